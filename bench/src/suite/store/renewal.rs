//! What a lease costs Redis while it is renewed.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::{Exchange, LeaseId, Node};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{Ask, Budget, Store as _};

use super::asking::{key, runtime};
use super::server;
use super::strict::{limit, open};
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let name = format!("renewal of leases, {} keys, in Redis", count_of(KEYS));
    if !session.wants(&name) {
        return Ok(());
    }
    let (redis, runtime) = (server::start()?, runtime()?);
    let clock = SystemClock::new();
    let budget = Budget::new("api", &limit()?, Duration::from_millis(1), clock.wall());
    let mut leases: Vec<_> = (0..KEYS).map(|_| Lease::default()).collect();
    let budget = Arc::new(budget);
    let rounds = if session.scale.is_quick() { 3 } else { 40 };
    let mut figures = Vec::new();
    runtime.block_on(async {
        let store = open(&server::url(&redis), clock)?;
        // The first grants the leases.
        for round in 0..=rounds {
            session.progress.say(&format!("{name}: round {round}"));
            let before = redis.cpu()?;
            for _ in 0..REPEATS {
                for (part, leases) in leases.chunks_mut(BATCH).enumerate() {
                    let asks: Vec<_> = (part * BATCH..)
                        .zip(&mut *leases)
                        .map(|(number, lease)| lease.ask(&budget, number as u64))
                        .collect();
                    for (lease, answer) in leases.iter_mut().zip(store.exchange(&asks).await) {
                        let grant = answer?;
                        lease.id = Some(grant.lease);
                        lease.held = grant.tokens;
                    }
                }
            }
            let took = redis.cpu()? - before;
            if round > 0 {
                figures.push(took * 1e6 / (KEYS * REPEATS) as f64);
            }
        }
        Ok::<_, BenchError>(())
    })?;
    let each = median(figures);
    let note = format!("ten thousand a second take {each:.0} % of a core");
    let row = Row::alone(name, Unit::Microseconds, each).noting(note);
    session.add(row.promising(Reach::AtMost(50.0, Unit::Microseconds)));
    Ok(())
}

/// What a node holds of one key, all of which it uses until it asks for more.
#[derive(Default)]
struct Lease {
    sequence: u64,
    id: Option<LeaseId>,
    used: u64,
    held: u64,
}

impl Lease {
    fn ask(&mut self, budget: &Arc<Budget>, number: u64) -> Ask {
        self.sequence += 1;
        self.used += std::mem::take(&mut self.held);
        let exchange = Exchange {
            sequence: self.sequence,
            lease: self.id,
            used: self.used,
            want: 5,
            ..Exchange::strict(Node { number: 1, incarnation: 1 }, 0)
        };
        Ask::new(Arc::clone(budget), key(number), exchange)
    }
}

const KEYS: usize = 1_000;

/// Questions that are asked at once.
const BATCH: usize = 50;

/// In one round, so that it is long enough for the clock of the kernel.
const REPEATS: usize = 4;
