//! Decisions that the store makes, all of them: by a call of the store alone, and by a whole engine with a rule
//! file, as a program has it. Finding the rule and its key, waiting, and what is kept for operators come on
//! top of the same call then.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{Engine, Request, RuleSet, SharingConfig};
use tollgate_core::Limit;
use tollgate_core::lease::Exchange;
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
    let load = format!("{} keys, {CALLERS} callers", count_of(KEYS as usize));
    let names = ["the store alone", "a whole engine"].map(|who| format!("strict, {who}, {load}"));
    if !session.wants_any(&names) {
        return Ok(());
    }
    let (redis, runtime, callers) = (server::start()?, runtime()?, callers(session));
    let url = server::url(&redis);
    let [mut alone, mut whole, mut peers] = [const { Sums::NEW }; 3];
    runtime.block_on(async {
        let (strict, by_hand) = (Strict::open(&url)?, ByHand::open(&url).await?);
        let program = Program::open(&url)?;
        // Keys are known before it counts.
        callers.busy(&strict).await?;
        callers.busy(&program).await?;
        callers.busy(&by_hand).await?;
        for round in 1..=rounds(session) {
            session.progress.say(&format!("strict, {load}: round {round}"));
            alone.add(callers, &strict, &redis).await?;
            whole.add(callers, &program, &redis).await?;
            peers.add(callers, &by_hand, &redis).await?;
        }
        program.refuse_others()
    })?;
    let rows = names.into_iter().zip([alone, whole]).map(|(name, ours)| {
        let note =
            format!("of the processors, a decision takes {ours}, an EVALSHA for each {peers}");
        let peer = ("an EVALSHA for each", median(peers.rates.clone()));
        Row::against(name, Unit::ThousandsPerSecond, median(ours.rates), peer).noting(note)
    });
    rows.for_each(|row| session.add(row.promising(Reach::Times(2.0))));
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
struct Sums {
    rates: Vec<f64>,
    decisions: f64,
    redis: f64,
    here: f64,
}

impl Sums {
    const NEW: Self = Self { rates: Vec::new(), decisions: 0.0, redis: 0.0, here: 0.0 };

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
    let config = RedisConfig { timeout: PATIENCE, ..RedisConfig::default() };
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

/// Asks an engine, which asks the same store about every request.
#[derive(Clone)]
struct Program(Arc<Engine>);

impl Program {
    fn open(url: &str) -> Result<Self, BenchError> {
        let clock = SystemClock::new();
        let rules = RuleSet::parse(RULES).map_err(|error| BenchError::Rules(error.to_string()))?;
        let store = open(url, clock.clone())?;
        // A little more patient than the store, as a server is.
        let timeout = PATIENCE * 10 / 9;
        let config = SharingConfig { timeout, ..SharingConfig::default() };
        let engine = Engine::builder(rules).clock(clock).store(store, config)?.build()?;
        Ok(Self(Arc::new(engine)))
    }

    /// It must have been the store that has decided, each time.
    fn refuse_others(&self) -> Result<(), BenchError> {
        let stats = self.0.sharing().unwrap_or_default();
        match stats.asked > 0 && stats.lent + stats.short + stats.degraded == 0 {
            true => Ok(()),
            false => Err(BenchError::Child(format!("not all were asked of the store: {stats:?}"))),
        }
    }
}

impl Asking for Program {
    async fn ask(&self, number: u64) -> Result<bool, BenchError> {
        // Others write `user:` before it to tell keys apart, and an engine writes `user=`.
        let user = number.to_string();
        let attributes = [("user", user.as_str())];
        let request = Request::new("GET", "/v1/items").attributes(&attributes);
        Ok(self.0.decide_waiting(&request).await.is_allowed())
    }
}

/// So much that nobody is denied.
pub(super) fn limit() -> Result<Limit, BenchError> {
    Ok(Limit::token_bucket("1k/s")?)
}

/// The same limit in a rule file. Whoever cannot be decided on is denied, which ends the run.
const RULES: &str = "
rules:
  - name: per-user
    key: [user]
    limit: 1k/s
    consistency: strict
    on_store_failure: deny
";

pub(super) const PATIENCE: Duration = Duration::from_secs(5);

pub(super) const CALLERS: u64 = 64;

const KEYS: u64 = 10_000;
