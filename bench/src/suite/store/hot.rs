//! Keys that are lent to, beside the same limits without a store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tollgate::{Engine, Request, RuleSet, SharingConfig, SystemClock};

use super::asking::runtime;
use super::server;
use super::strict::open;
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    for (keys, threads) in [(1, 1), (1, 2), (HOT, 1), (HOT, 2)] {
        let name = format!("shared, hot keys: {keys}, threads: {threads}");
        if session.wants(&name) {
            row(session, name, keys, threads)?;
        }
    }
    Ok(())
}

fn row(session: &mut Session, name: String, keys: usize, threads: usize) -> Result<(), BenchError> {
    let (redis, runtime) = (server::start()?, runtime()?);
    let clock = SystemClock::new();
    let rules = || RuleSet::parse(RULES).map_err(|error| BenchError::Rules(error.to_string()));
    let local = Engine::builder(rules()?).clock(clock.clone()).build()?;
    let shared = runtime.block_on(async {
        let store = open(&server::url(&redis), clock.clone())?;
        let builder = Engine::builder(rules()?).clock(clock.clone());
        Ok::<_, BenchError>(builder.store(store, SharingConfig::default())?.build()?)
    })?;
    let users: Vec<String> = (0..keys).map(|key| format!("user-{key}")).collect();
    let clients = Clients { users: &users, threads, runtime: &runtime };
    let (rounds, round) = match session.scale.is_quick() {
        true => (3, Duration::from_millis(100)),
        false => (15, Duration::from_millis(500)),
    };
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        session.progress.say(&format!("{name}: round {number} of {rounds}"));
        // What nobody uses for a while goes back to the store: it is lent again before it counts.
        clients.rate(&shared, WARM);
        ours.push(clients.rate(&shared, round));
        peers.push(clients.rate(&local, round));
    }
    let stats = shared.sharing().unwrap_or_default();
    let here = (stats.lent + stats.short) as f64 / (stats.lent + stats.short + stats.asked) as f64;
    let note = format!("{:.3} % of them without a question to the store", here * 100.0);
    let peer = ("local", median(peers));
    let row = Row::against(name, Unit::MillionsPerSecond, median(ours), peer);
    session.add(row.promising(Reach::Times(0.8)).noting(note));
    Ok(())
}

/// Threads that ask about the same keys in turn.
struct Clients<'a> {
    users: &'a [String],
    threads: usize,
    runtime: &'a Runtime,
}

impl Clients<'_> {
    /// Millions of decisions in a second, of all threads, over some time.
    fn rate(&self, engine: &Engine, lasting: Duration) -> f64 {
        let (decisions, watch) = (AtomicU64::new(0), Stopwatch::start());
        thread::scope(|scope| {
            for thread in 0..self.threads {
                let (decisions, watch) = (&decisions, &watch);
                scope.spawn(move || {
                    let mut at = thread * self.users.len() / self.threads;
                    while watch.elapsed() < lasting {
                        for _ in 0..CHUNK {
                            self.decide(engine, &self.users[at % self.users.len()]);
                            at += 1;
                        }
                        decisions.fetch_add(CHUNK, Ordering::Relaxed);
                    }
                });
            }
        });
        decisions.into_inner() as f64 / watch.elapsed().as_secs_f64() / 1e6
    }

    fn decide(&self, engine: &Engine, user: &str) {
        let attributes = [("user", user)];
        let request = Request::new("GET", "/v1/items").attributes(&attributes);
        let ruling = match engine.try_decide(&request) {
            Ok(ruling) => ruling,
            Err(wait) => {
                self.runtime.block_on(wait.fetch());
                engine.decide(&request)
            }
        };
        std::hint::black_box(ruling.is_allowed());
    }
}

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 100M/s }]";

const HOT: usize = 100;

const WARM: Duration = Duration::from_millis(500);

/// Decisions between two looks at the clock.
const CHUNK: u64 = 1_000;
