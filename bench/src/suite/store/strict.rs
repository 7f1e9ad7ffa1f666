//! Decisions by the store alone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::Exchange;
use tollgate_core::{Limit, LimitError};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{Ask, Budget, RedisConfig, RedisStore, Store as _, StoreError};

use super::asking::{Asking, Callers, key, runtime};
use super::by_hand::ByHand;
use super::server;
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;
use crate::suite::doors::process::{Server, cpu_of};

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let name = format!("strict, {} keys, {CALLERS} callers", count_of(KEYS as usize));
    if !session.wants(&name) {
        return Ok(());
    }
    let (redis, runtime, callers) = (server::start()?, runtime()?, callers(session));
    let url = server::url(&redis);
    let (mut ours, mut peers) = (Sums::default(), Sums::default());
    runtime.block_on(async {
        let (strict, by_hand) = (Strict::open(&url)?, ByHand::open(&url).await?);
        // Keys are known before it counts.
        callers.busy(&strict).await?;
        callers.busy(&by_hand).await?;
        for round in 1..=rounds(session) {
            session.progress.say(&format!("{name}: round {round}"));
            ours.add(callers, &strict, &redis).await?;
            peers.add(callers, &by_hand, &redis).await?;
        }
        Ok::<_, BenchError>(())
    })?;
    let note = format!("of the processors, a decision takes {ours}, an EVALSHA for each {peers}");
    let peer = ("an EVALSHA for each", median(peers.rates));
    let row = Row::against(name, Unit::ThousandsPerSecond, median(ours.rates), peer);
    session.add(row.promising(Reach::Times(2.0)).noting(note));
    Ok(())
}

pub(super) fn callers(session: &Session) -> Callers {
    let millis = if session.scale.is_quick() { 100 } else { 250 };
    Callers { count: CALLERS, keys: KEYS, lasting: Duration::from_millis(millis) }
}

/// Many short ones: what else the machine does for a moment falls into few of them.
pub(super) fn rounds(session: &Session) -> usize {
    if session.scale.is_quick() { 9 } else { 55 }
}

/// The rates of all rounds, and what they took of the processors, in seconds.
#[derive(Default)]
struct Sums {
    rates: Vec<f64>,
    decisions: f64,
    redis: f64,
    here: f64,
}

impl Sums {
    async fn add(
        &mut self,
        callers: Callers,
        asking: &impl Asking,
        redis: &Server,
    ) -> Result<(), BenchError> {
        let (before, here) = (redis.cpu()?, cpu_of("self")?);
        let rate = callers.busy(asking).await?.rate;
        self.redis += redis.cpu()? - before;
        self.here += cpu_of("self")? - here;
        self.decisions += rate * 1e3 * callers.lasting.as_secs_f64();
        self.rates.push(rate);
        Ok(())
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |seconds: f64| seconds * 1e6 / self.decisions;
        write!(f, "{:.2} us in Redis and {:.2} us here", each(self.redis), each(self.here))
    }
}

/// Asks our store about every request.
#[derive(Clone)]
pub(super) struct Strict {
    store: RedisStore,
    budget: Arc<Budget>,
}

impl Strict {
    pub(super) fn open(url: &str) -> Result<Self, BenchError> {
        let clock = SystemClock::new();
        let budget = Budget::new("api", &limit()?, Duration::from_millis(1), clock.wall());
        Ok(Self { store: open(url, clock)?, budget: Arc::new(budget) })
    }
}

/// A store with patience: on a machine that is busy elsewhere a moment may be long, and nobody is to
/// be turned away.
pub(super) fn open(url: &str, clock: SystemClock) -> Result<RedisStore, BenchError> {
    let config = RedisConfig { timeout: Duration::from_secs(5), ..RedisConfig::default() };
    Ok(RedisStore::open(url, config, Arc::new(clock))?)
}

impl Asking for Strict {
    async fn ask(&self, number: u64) -> Result<bool, BenchError> {
        let ask = Ask::new(Arc::clone(&self.budget), key(number), Exchange::once(1));
        let answer = self.store.exchange(&[ask]).await.pop();
        let missing = || StoreError::Refused { reason: "no answer".into() };
        Ok(answer.unwrap_or_else(|| Err(missing()))?.decision.is_allowed())
    }
}

/// So much that nobody is denied.
pub(super) fn limit() -> Result<Limit, BenchError> {
    Limit::token_bucket("1k/s").map_err(|error: LimitError| BenchError::Quota {
        subject: "tollgate",
        reason: error.to_string(),
    })
}

pub(super) const CALLERS: u64 = 64;

const KEYS: u64 = 10_000;
