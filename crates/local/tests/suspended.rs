//! Threads that are suspended at a bad moment: one that is putting a key into a slot holds up
//! nobody, and one that comes with an old time is given nothing for it.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use tollgate_core::{Limit, Tick, Wall};
use tollgate_local::{Clock, Counters, Key, KeyHash, ManualClock, Seed, Table};

const SECOND: Duration = Duration::from_secs(1);

/// More keys than the table has slots.
const GUESTS: std::ops::Range<u64> = 1_000..1_200;

/// A table of ten slots, in which every key may stand anywhere.
struct Small {
    table: Arc<Table>,
    clock: ManualClock,
    seed: Seed,
}

impl Small {
    fn new(seed: u64) -> Self {
        let table = Arc::new(Table::with_memory(128).unwrap());
        Self { table, clock: ManualClock::new(), seed: Seed::new(seed) }
    }

    /// Counters that share the table with those of other quotas.
    fn counters(&self, limit: Limit) -> Counters {
        let salt = limit.to_string().hash(&self.seed);
        Counters::new(&self.table, &limit, self.clock.anchor(), salt)
    }

    fn buckets(&self, quota: &str) -> Counters {
        self.counters(Limit::token_bucket(quota).unwrap())
    }

    fn keys(&self, numbers: std::ops::Range<u64>) -> Vec<KeyHash> {
        numbers.map(|number| number.hash(&self.seed)).collect()
    }

    /// Puts keys that stay live into all slots at rest.
    fn fill(&self) -> Counters {
        let hourly = self.buckets("1/h");
        for key in self.keys(GUESTS) {
            hourly.check(key, 1, &self.clock);
        }
        assert!(hourly.pressure().overflowed > 0, "there is still room");
        hourly
    }

    /// A key that spends, and a thread that reads the time half a second later and is suspended.
    fn late(&self, counters: &Counters) -> (KeyHash, Late) {
        let key = "late".hash(&self.seed);
        counters.check(key, 1, &self.clock);
        self.clock.advance(SECOND / 2);
        (key, Late::new(&self.clock, self.clock.now()))
    }

    fn passes(&self, counters: &Counters, key: KeyHash, times: usize) -> usize {
        (0..times).filter(|_| counters.check(key, 1, &self.clock).is_allowed()).count()
    }
}

/// The clock of a thread that was suspended right after it had read the time for the first time.
struct Late {
    clock: ManualClock,
    first: Tick,
    readings: AtomicU32,
}

impl Late {
    fn new(clock: &ManualClock, first: Tick) -> Self {
        Self { clock: clock.clone(), first, readings: AtomicU32::new(0) }
    }
}

impl Clock for Late {
    fn now(&self) -> Tick {
        match self.readings.fetch_add(1, Ordering::Relaxed) {
            0 => self.first,
            _ => self.clock.now(),
        }
    }

    fn wall(&self) -> Wall {
        self.clock.wall()
    }
}

/// The clock of a thread that is suspended when it reads the time for the second time, which it
/// does between the claim of a slot and its publication.
struct Suspending {
    clock: ManualClock,
    readings: AtomicU32,
    /// Passed when the reader is suspended, and again when it may go on.
    gate: Barrier,
}

impl Suspending {
    fn new(clock: &ManualClock) -> Self {
        Self { clock: clock.clone(), readings: AtomicU32::new(0), gate: Barrier::new(2) }
    }
}

impl Clock for Suspending {
    fn now(&self) -> Tick {
        if self.readings.fetch_add(1, Ordering::Relaxed) == 1 {
            self.gate.wait();
            self.gate.wait();
        }
        self.clock.now()
    }

    fn wall(&self) -> Wall {
        self.clock.wall()
    }
}

/// Runs `meanwhile` while another thread is suspended in the middle of putting `key` into a slot.
/// Returns whether that thread's request passed, and what `meanwhile` returned.
fn suspended<T: Send>(
    counters: &Counters,
    key: KeyHash,
    clock: &ManualClock,
    meanwhile: impl FnOnce() -> T + Send,
) -> (usize, T) {
    let suspending = Suspending::new(clock);
    thread::scope(|scope| {
        let claimer = scope.spawn(|| counters.check(key, 1, &suspending).is_allowed());
        suspending.gate.wait();
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || sender.send(meanwhile()));
        let others = receiver.recv_timeout(Duration::from_secs(20));
        suspending.gate.wait();
        let passed = usize::from(claimer.join().unwrap());
        (passed, others.expect("a suspended thread holds up the others"))
    })
}

#[test]
fn a_key_whose_slot_is_being_taken_goes_on_elsewhere() {
    for seed in 0..40 {
        let small = Small::new(seed);
        let counters = small.buckets("1/s");
        let old = small.keys(0..10);
        for key in &old {
            counters.check(*key, 1, &small.clock);
        }
        small.clock.advance(5 * SECOND);
        let new = "new".hash(&small.seed);
        let (_, passed) = suspended(&counters, new, &small.clock, || {
            let look = |key: &KeyHash| {
                let passed = small.passes(&counters, *key, 2);
                let left = counters.peek(*key, 1, small.clock.now()).remaining();
                assert!(passed == 0 || left == 0, "{left} are left, with seed {seed}");
                passed
            };
            old.iter().map(look).collect::<Vec<_>>()
        });
        for (number, (key, passed)) in old.iter().zip(passed).enumerate() {
            let all = passed + small.passes(&counters, *key, 2);
            assert!(all <= 1, "key {number} passed {all} times, with seed {seed}");
        }
    }
}

#[test]
fn others_spend_from_a_key_that_is_being_put_into_a_slot_and_nothing_is_forgotten() {
    for seed in 0..20 {
        let small = Small::new(seed);
        let counters = small.buckets("3/h");
        let key = "new".hash(&small.seed);
        let (own, others) =
            suspended(&counters, key, &small.clock, || small.passes(&counters, key, 10));
        assert_eq!(others, 3, "all three, one by one, with seed {seed}");
        assert_eq!(own + small.passes(&counters, key, 10), 0, "with seed {seed}");
    }
}

#[test]
fn a_late_thread_that_claims_a_slot_brings_no_old_time() {
    let small = Small::new(1);
    let counters = small.buckets("1/s");
    let (key, late) = small.late(&counters);
    small.clock.advance(10 * SECOND);
    // Others take its slot, and one of them leaves a slot that is at rest at any time.
    let hourly = small.fill();
    let guests = small.keys(GUESTS);
    assert!(guests.iter().any(|guest| hourly.reset(*guest, small.clock.now())));
    let overflowed = counters.pressure().overflowed;
    assert!(counters.check(key, 1, &late).is_allowed(), "it is at rest by now");
    assert_eq!(counters.pressure().overflowed, overflowed, "it got a slot");
    assert_eq!(small.passes(&counters, key, 1), 0, "what passed, passed now and not long ago");
}

#[test]
fn a_late_thread_that_finds_no_slot_brings_no_old_time() {
    let small = Small::new(2);
    let counters = small.buckets("1/s");
    let (key, late) = small.late(&counters);
    small.clock.advance(10 * SECOND);
    small.fill();
    assert!(counters.check(key, 1, &late).is_allowed(), "it is at rest by now");
    assert_eq!(small.passes(&counters, key, 1), 0, "what passed, passed now and not long ago");
}

#[test]
fn a_late_thread_brings_no_old_time_to_a_log() {
    let small = Small::new(3);
    let counters = small.counters(Limit::sliding_log("1/s").unwrap());
    let (key, late) = small.late(&counters);
    // Logs at rest are dropped when there are many, and among them that of the late one.
    for other in small.keys(0..2_000) {
        small.clock.advance(2 * SECOND);
        counters.check(other, 1, &small.clock);
    }
    assert_eq!(counters.pressure().overflowed, 0);
    small.clock.advance(2 * SECOND);
    assert!(counters.check(key, 1, &late).is_allowed(), "it is at rest by now");
    assert_eq!(small.passes(&counters, key, 1), 0, "what passed, passed now and not long ago");
}
