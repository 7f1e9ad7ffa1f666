//! A real node with many keys, some of which come all the time and most of them seldom.
//!
//! One engine has the part of a fleet's requests that comes to each of five nodes, and a real Redis. What it does
//! with keys for which it has no place is part of it, which the simulator leaves out: there every key is a fleet
//! of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tollgate::{Engine, Request, RuleSet, SharingConfig, SystemClock};

use super::asking::runtime;
use super::server;
use super::strict::{PATIENCE, open};
use crate::error::BenchError;
use crate::keys;
use crate::report::{Reach, Row, Unit};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let all = "one real node, Zipf over 100 K keys, asked of the store".to_owned();
    let fast = format!("{all}, keys above 10/s");
    if !session.wants_any([&all, &fast]) {
        return Ok(());
    }
    session.progress.say(&all);
    let (per_second, warm, lasting) = match session.scale.is_quick() {
        // Nearly all clients are new.
        true => (PER_SECOND / 20.0, Duration::from_millis(500), Duration::from_millis(500)),
        // Longer than the longest lease.
        false => (PER_SECOND, Duration::from_secs(45), Duration::from_secs(20)),
    };
    let (redis, runtime) = (server::start()?, runtime()?);
    let url = server::url(&redis);
    let (asked, exchanges, places) = runtime.block_on(async {
        let node = Node::open(&url, per_second)?;
        // All clients are new at first, and lent to one after the other.
        node.serve(warm, |time| (1.25 * time.as_secs_f64() / warm.as_secs_f64()).min(1.0)).await;
        let exchanges = || node.engine.sharing().map_or(0, |stats| stats.exchanges);
        let before = exchanges();
        let asked = node.serve(lasting, |_| 1.0).await;
        let places = node.engine.sharing().map_or(0, |stats| stats.keys);
        node.refuse_failure()?;
        Ok::<_, BenchError>((asked, exchanges() - before, places))
    })?;
    let seconds = lasting.as_secs_f64();
    let note = format!(
        "{:.0} requests a second, {:.0} exchanges a second; of 100,000 keys {places} are lent, in 65,536 places",
        asked.all.requests as f64 / seconds,
        exchanges as f64 / seconds,
    );
    let row = Row::alone(all, Unit::Percent, asked.all.percent()).noting(note);
    session.add(row.promising(Reach::AtMost(10.0, Unit::Percent)));
    let part = 100.0 * asked.fast.requests as f64 / asked.all.requests as f64;
    let row = Row::alone(fast, Unit::Percent, asked.fast.percent());
    let row = row.noting(format!("{part:.0} % of all requests are for these"));
    session.add(row.promising(Reach::AtMost(1.0, Unit::Percent)));
    Ok(())
}

/// Requests, and those of them for which the store had to be asked.
#[derive(Default)]
struct Asked {
    requests: u64,
    asked: u64,
}

impl Asked {
    const fn count(&mut self, is_asked: bool) {
        self.requests += 1;
        self.asked += is_asked as u64;
    }

    fn percent(&self) -> f64 {
        100.0 * self.asked as f64 / self.requests.max(1) as f64
    }
}

#[derive(Default)]
struct AskedOf {
    all: Asked,
    fast: Asked,
}

/// What comes to one key.
struct Client {
    user: String,
    plan: &'static str,
    /// Whether it comes more than ten times a second.
    is_fast: bool,
}

impl Client {
    /// The limit is one of tiers of 100/min, 1000/min, 10,000/min and so on: most clients have the lowest that is
    /// enough for them, and one in four the one below.
    fn new(rank: usize, per_second: f64) -> Self {
        let enough = (per_second * 60.0).log10().ceil() as usize;
        let tier = if rank.is_multiple_of(4) { enough.saturating_sub(1) } else { enough };
        let plan = PLANS[tier.saturating_sub(2).min(PLANS.len() - 1)];
        Self { user: format!("user-{rank}"), plan, is_fast: per_second > 10.0 }
    }
}

struct Node {
    engine: Arc<Engine>,
    clients: Arc<[Client]>,
    /// Which part of all requests are for a client or one before it.
    parts: Vec<f64>,
    per_second: f64,
}

impl Node {
    fn open(url: &str, per_second: f64) -> Result<Self, BenchError> {
        let clock = SystemClock::new();
        let rules = RuleSet::parse(RULES).map_err(|error| BenchError::Rules(error.to_string()))?;
        let store = open(url, clock.clone())?;
        // A little more patient than the store.
        let config = SharingConfig { timeout: PATIENCE * 10 / 9, ..SharingConfig::default() };
        let engine = Engine::builder(rules).clock(clock).store(store, config)?;
        let harmonic: f64 = (1..=KEYS).map(|rank| 1.0 / rank as f64).sum();
        let part = |rank: usize| 1.0 / harmonic / rank as f64;
        let client = |rank| Client::new(rank, per_second * part(rank));
        let parts = (1..=KEYS).scan(0.0, |sum, rank| {
            *sum += part(rank);
            Some(*sum)
        });
        let (clients, parts) = ((1..=KEYS).map(client).collect(), parts.collect());
        Ok(Self { engine: Arc::new(engine.build()?), clients, parts, per_second })
    }

    /// Decides what comes in some time, evenly, for clients by chance: that part of all that come. Who has to wait
    /// for the store does so beside all others.
    async fn serve(&self, lasting: Duration, part: impl Fn(Duration) -> f64) -> AskedOf {
        let (watch, mut asked, mut number) = (Stopwatch::start(), AskedOf::default(), 0_u64);
        let (mut due, mut last) = (0.0, Duration::ZERO);
        while last < lasting {
            let now = watch.elapsed();
            due += (now - last).as_secs_f64() * self.per_second * part(now);
            last = now;
            while number < due as u64 {
                let chance = keys::mix(number ^ lasting.as_nanos() as u64) as f64 / u64::MAX as f64;
                let at = self.parts.partition_point(|part| *part < chance).min(KEYS - 1);
                let is_asked = self.decide(at);
                asked.all.count(is_asked);
                if self.clients[at].is_fast {
                    asked.fast.count(is_asked);
                }
                number += 1;
            }
            yield_now().await;
        }
        asked
    }

    /// Whether the store had to be asked.
    fn decide(&self, at: usize) -> bool {
        let client = &self.clients[at];
        let attributes = [("user", &*client.user), ("descriptor.plan", client.plan)];
        let request = Request::new("GET", "/v1/items").attributes(&attributes);
        let Err(wait) = self.engine.try_decide(&request) else { return false };
        let (engine, clients) = (Arc::clone(&self.engine), Arc::clone(&self.clients));
        tokio::spawn(async move {
            let client = &clients[at];
            let attributes = [("user", &*client.user), ("descriptor.plan", client.plan)];
            let request = Request::new("GET", "/v1/items").attributes(&attributes);
            let mut ruling = Err(wait);
            while let Err(wait) = ruling {
                let since = wait.since();
                wait.fetch().await;
                ruling = engine.try_decide_again(&request, since);
            }
        });
        true
    }

    /// Whoever is decided without a store that fails has asked nobody.
    fn refuse_failure(&self) -> Result<(), BenchError> {
        let stats = self.engine.sharing().unwrap_or_default();
        match stats.degraded == 0 {
            true => Ok(()),
            false => Err(BenchError::Child(format!("the store has failed: {stats:?}"))),
        }
    }
}

const RULES: &str = "
tiers: { from: descriptor.plan, known: [p2, p3, p4, p5, p6, p7], else: p2 }
rules:
  - name: per-user
    key: [user]
    limit: { p2: 100/min, p3: 1000/min, p4: 10k/min, p5: 100k/min, p6: 1M/min, p7: 10M/min }
";

const PLANS: [&str; 6] = ["p2", "p3", "p4", "p5", "p6", "p7"];

const KEYS: usize = 100_000;

/// A fifth of half a million.
const PER_SECOND: f64 = 100_000.0;
