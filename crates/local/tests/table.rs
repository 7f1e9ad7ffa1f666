//! The table: how much it holds, and what happens beyond.
#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table, TableError};

struct Bench {
    clock: ManualClock,
    seed: Seed,
    table: Arc<Table>,
}

impl Bench {
    fn with_keys(keys: usize) -> Self {
        let table = Arc::new(Table::with_keys(keys).unwrap());
        Self { clock: ManualClock::new(), seed: Seed::new(11), table }
    }

    fn counters(&self, quota: &str, salt: u64) -> Counters {
        let limit = Limit::token_bucket(quota).unwrap();
        Counters::new(&self.table, &limit, self.clock.anchor(), self.seed.salt(salt))
    }

    fn allows(&self, counters: &Counters, key: u64) -> bool {
        counters.check(key.hash(&self.seed), 1, &self.clock).is_allowed()
    }
}

#[test]
fn the_planned_keys_fit_in_24_bytes_each_and_hardly_any_overflows() {
    const KEYS: usize = 200_000;
    let bench = Bench::with_keys(KEYS);
    let counters = bench.counters("10/h", 0);
    for key in 0..KEYS as u64 {
        assert!(bench.allows(&counters, key));
    }
    let pressure = counters.pressure();
    assert!(pressure.overflowed * 1000 <= KEYS as u64, "{} overflowed", pressure.overflowed);
    let memory = bench.table.memory() + pressure.memory;
    assert!(memory <= 24 * KEYS, "{} bytes a key", memory as f64 / KEYS as f64);
    let occupancy = bench.table.occupancy(bench.clock.now());
    assert!((0.53..0.58).contains(&occupancy), "{occupancy}");
}

#[test]
fn no_key_exceeds_its_limit_at_four_times_the_planned_keys() {
    const KEYS: u64 = 40_000;
    let bench = Bench::with_keys(KEYS as usize / 4);
    let counters = bench.counters("3/h", 0);
    let mut admitted = vec![0; KEYS as usize];
    for round in 0..6 {
        for key in 0..KEYS {
            // Another order each round.
            let key = (key * 7919 + round * 104_729) % KEYS;
            admitted[key as usize] += u32::from(bench.allows(&counters, key));
        }
    }
    assert_eq!(admitted.iter().max(), Some(&3));
    assert!(counters.pressure().overflowed > 0);
    let whole = admitted.iter().filter(|count| **count == 3).count();
    assert!(whole > KEYS as usize / 5, "only {whole} keys got all of their limit");
}

#[test]
fn keys_at_rest_make_room_without_being_cleaned_up() {
    let bench = Bench::with_keys(1_000);
    let counters = bench.counters("1/s", 0);
    let mut denied = 0;
    for generation in 0..50 {
        for key in 0..1_000 {
            denied += u32::from(!bench.allows(&counters, generation * 1_000 + key));
        }
        bench.clock.advance(Duration::from_secs(1));
    }
    // A few overflow at the planned load, and some of those share a count.
    let overflowed = counters.pressure().overflowed;
    assert!(overflowed < 100, "{overflowed} of 50,000 overflowed in a table for 1,000");
    assert!(denied < 10, "{denied} of 50,000 new keys were denied");
}

#[test]
fn a_key_without_a_slot_gets_one_as_soon_as_one_is_at_rest() {
    let bench = Bench::with_keys(1);
    let (short, hourly) = (bench.counters("1/s", 0), bench.counters("3/h", 1));
    // Ten slots, all live.
    for key in 0..10 {
        assert!(bench.allows(&short, key));
    }
    assert!(bench.allows(&hourly, 77));
    assert_eq!(hourly.pressure().overflowed, 1);
    bench.clock.advance(Duration::from_secs(1));
    assert!(bench.allows(&hourly, 77));
    assert_eq!(hourly.pressure().promoted, 1, "it took along what it had spent");
    assert_eq!(hourly.peek(77u64.hash(&bench.seed), 1, bench.clock.now()).remaining(), 1);
    // From now on it stands alone: others in the sketch do not touch it.
    for key in 100..109 {
        bench.allows(&hourly, key);
    }
    assert!(bench.allows(&hourly, 77));
    assert!(!bench.allows(&hourly, 77));
}

#[test]
fn a_key_in_the_sketch_cannot_be_reset_alone_and_says_so() {
    let bench = Bench::with_keys(1);
    let hourly = bench.counters("1/h", 0);
    for key in 0..11 {
        bench.allows(&hourly, key);
    }
    let overflowed = (0..11u64).find(|key| !hourly.reset(key.hash(&bench.seed), Tick::ZERO));
    assert!(overflowed.is_some());
}

#[test]
fn limits_in_one_table_do_not_touch_each_other() {
    let bench = Bench::with_keys(1_000);
    let (one, two) = (bench.counters("1/h", 0), bench.counters("1/h", 1));
    for key in 0..100 {
        assert!(bench.allows(&one, key));
        assert!(bench.allows(&two, key));
        assert!(!bench.allows(&one, key));
    }
}

#[test]
fn absurd_sizes_are_refused() {
    assert!(matches!(Table::with_keys(0), Err(TableError::TooSmall)));
    assert!(matches!(Table::with_memory(127), Err(TableError::TooSmall)));
    assert!(matches!(Table::with_keys(usize::MAX), Err(TableError::TooLarge { .. })));
    assert!(matches!(Table::with_memory(usize::MAX), Err(TableError::TooLarge { .. })));
}

#[test]
fn a_time_from_the_past_grants_nothing() {
    let bench = Bench::with_keys(100);
    let counters = bench.counters("2/s", 0);
    let key = 5u64.hash(&bench.seed);
    let now = Tick::ZERO.after(Duration::from_secs(10));
    assert!(counters.check_at(key, 2, now).is_allowed());
    for past in [0, 5, 9] {
        let past = Tick::ZERO.after(Duration::from_secs(past));
        assert!(!counters.check_at(key, 1, past).is_allowed());
    }
}
