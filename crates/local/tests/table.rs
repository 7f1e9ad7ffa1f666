//! The table under the load it was planned for, and beyond: what keys cost, how many find no slot,
//! how those are counted, and how they get one later.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Anchor, Limit, Tick};
use tollgate_local::{Clock, Counters, Key, KeyHash, ManualClock, Seed, Table, TableError};

const PLANNED: u32 = 200_000;
const NOW: Tick = Tick::ZERO;

fn counters(table: &Arc<Table>, quota: &str, seed: &Seed) -> Counters {
    let limit = Limit::token_bucket(quota).unwrap();
    Counters::new(table, &limit, Anchor::default(), quota.hash(seed))
}

fn allows(counters: &Counters, key: KeyHash, clock: &ManualClock) -> bool {
    counters.check(key, 1, clock).is_allowed()
}

/// Has every key come once and returns how many of them did not find a slot.
fn overflowed(counters: &Counters, keys: impl Iterator<Item = KeyHash>) -> u64 {
    let before = counters.pressure().overflowed;
    for key in keys {
        counters.check_at(key, 1, NOW);
    }
    counters.pressure().overflowed - before
}

/// The ways in which keys are alike.
fn kinds(seed: &Seed) -> [Vec<KeyHash>; 4] {
    let address = |number: u32| Ipv4Addr::from(0x0A00_0000 + number);
    [
        (0..PLANNED).map(|number| number.hash(seed)).collect(),
        (0..PLANNED).map(|number| format!("user-{number}").hash(seed)).collect(),
        (0..PLANNED).map(|number| address(number).hash(seed)).collect(),
        (0..PLANNED).map(|number| (number / 1_000, number % 1_000).hash(seed)).collect(),
    ]
}

#[test]
fn at_the_planned_load_one_key_in_a_thousand_at_most_finds_no_slot() {
    let seed = Seed::new(1);
    for (kind, keys) in kinds(&seed).into_iter().enumerate() {
        let (clock, table) = (ManualClock::new(), Table::with_keys(PLANNED as usize).unwrap());
        let hourly = counters(&Arc::new(table), "10/h", &seed);
        assert!(keys.into_iter().all(|key| allows(&hourly, key, &clock)), "of kind {kind}");
        let overflowed = hourly.pressure().overflowed;
        assert!(overflowed <= u64::from(PLANNED) / 1_000, "{overflowed} of kind {kind}");
    }
}

#[test]
fn at_the_planned_load_nearly_every_key_is_counted_exactly() {
    let seed = Seed::new(3);
    let table = Arc::new(Table::with_keys(PLANNED as usize).unwrap());
    let hourly = counters(&table, "2/h", &seed);
    let pass = |number: &u32| hourly.check_at(number.hash(&seed), 1, NOW).is_allowed();
    let [first, second, third] = [1, 2, 3].map(|_| (0..PLANNED).filter(pass).count());
    // A new key that shares a cell of the sketch with one that found no slot is counted too high.
    let most = PLANNED as usize / 1_000 * 995;
    assert!(first >= most && second >= most, "{first} passed once, {second} twice");
    assert_eq!(third, 0, "nobody has three");
}

#[test]
fn the_limits_of_a_table_share_its_room() {
    let seed = Seed::new(4);
    let table = Arc::new(Table::with_keys(PLANNED as usize).unwrap());
    let quotas = ["1/h", "2/h", "3/h", "4/h"];
    let limits = quotas.map(|quota| counters(&table, quota, &seed));
    let mut overflows = 0;
    for limit in &limits {
        overflows += overflowed(limit, (0..PLANNED / 4).map(|number| number.hash(&seed)));
    }
    assert!(overflows <= u64::from(PLANNED) / 1_000, "{overflows} found no slot");
    let occupancy = table.occupancy(NOW);
    assert!((0.53..0.58).contains(&occupancy), "{occupancy}");
    // The same keys under another limit are others.
    assert_eq!(limits[3].peek(7u32.hash(&seed), 1, NOW).remaining(), 3);
    assert_eq!(limits[1].peek(7u32.hash(&seed), 1, NOW).remaining(), 1);
}

#[test]
fn limits_that_are_alike_do_not_touch_each_other() {
    let (clock, seed) = (ManualClock::new(), Seed::new(11));
    let table = Arc::new(Table::with_keys(1_000).unwrap());
    let limit = Limit::token_bucket("1/h").unwrap();
    let [one, two] =
        [0, 1].map(|number| Counters::new(&table, &limit, Anchor::default(), seed.salt(number)));
    for key in (0..100u64).map(|number| number.hash(&seed)) {
        assert!(allows(&one, key, &clock));
        assert!(allows(&two, key, &clock));
        assert!(!allows(&one, key, &clock));
    }
}

/// As those of keys with limits of their own stand beside those of their rule.
#[test]
fn limits_beside_each_other_do_not_touch_each_other_and_find_as_much_room() {
    let seed = Seed::new(3);
    let table = Arc::new(Table::with_keys(PLANNED as usize).unwrap());
    let usual = counters(&table, "9/h", &seed);
    let limit = |number: u32| Limit::token_bucket(format!("{}/h", 10 + number)).unwrap();
    let beside = |number: u32| {
        let limit = limit(number);
        let builder = Counters::builder(&table, &limit, Anchor::default(), number.hash(&seed));
        builder.beside(&usual, number).build()
    };
    let all: Vec<_> = (1..=20).map(beside).collect();
    let of = |key: u32| if key.is_multiple_of(2) { &usual } else { &all[key as usize % all.len()] };
    for key in 0..PLANNED {
        of(key).check_at(key.hash(&seed), 1 + u64::from(key % 8), NOW);
    }
    let without_room = all.iter().chain([&usual]).map(|each| each.pressure().overflowed);
    assert!(without_room.sum::<u64>() <= u64::from(PLANNED) / 1_000);
    // None of the others knows the key, but for those few that share a count.
    let others =
        |key: u32| all.iter().chain([&usual]).filter(move |it| !std::ptr::eq(*it, of(key)));
    let spent = |each: &Counters, key: u32| {
        let peek = each.peek(key.hash(&seed), 0, NOW);
        peek.limit() - peek.remaining()
    };
    let odd = (0..PLANNED).filter(|key| spent(of(*key), *key) != 1 + u64::from(key % 8)).count();
    assert!(odd <= PLANNED as usize / 1_000, "{odd} keys are not counted exactly");
    let shared = (0..2_000).filter(|key| others(*key).any(|other| spent(other, *key) > 0)).count();
    assert!(shared <= 40, "{shared} keys are known where they never were");
}

#[test]
fn occupancy_is_the_part_of_slots_that_are_live() {
    let seed = Seed::new(5);
    let table = Arc::new(Table::with_memory(64 * 20_000).unwrap());
    let per_second = counters(&table, "1/s", &seed);
    assert_eq!(table.occupancy(NOW), 0.0);
    overflowed(&per_second, (0..25_000u32).map(|number| number.hash(&seed)));
    let quarter = table.occupancy(NOW);
    assert!((0.23..0.27).contains(&quarter), "{quarter} of 100,000 slots");
    assert_eq!(table.occupancy(NOW.after(Duration::from_secs(1))), 0.0, "all are at rest");
    overflowed(&per_second, (0..400_000u32).map(|number| number.hash(&seed)));
    let full = table.occupancy(NOW);
    assert!(full > 0.99, "{full}");
}

#[test]
fn a_planned_key_costs_at_most_24_bytes_with_all_that_belongs_to_it() {
    let seed = Seed::new(6);
    for planned in [10_000, 100_000, PLANNED as usize, 3_000_000] {
        let table = Arc::new(Table::with_keys(planned).unwrap());
        let memory = table.memory() + counters(&table, "1/h", &seed).pressure().memory;
        assert!(memory <= 24 * planned, "{memory} bytes for {planned} keys");
        assert!(table.keys() >= planned);
    }
}

#[test]
fn memory_that_is_given_is_not_exceeded_and_mostly_used() {
    for bytes in [128, 129, 191, 192, 6_400, 1 << 20, (64 << 20) + 63] {
        let table = Table::with_memory(bytes).unwrap();
        assert!(table.memory() <= bytes && table.memory() + 64 > bytes, "{bytes}");
        assert!(Table::with_keys(table.keys()).unwrap().memory() <= bytes, "{bytes}");
    }
}

#[test]
fn sizes_beyond_what_is_possible_are_refused() {
    for bytes in [0, 127] {
        assert!(matches!(Table::with_memory(bytes), Err(TableError::TooSmall)), "{bytes}");
    }
    assert!(matches!(Table::with_keys(0), Err(TableError::TooSmall)));
    for keys in [Table::MAX_KEYS + 1, usize::MAX] {
        assert!(matches!(Table::with_keys(keys), Err(TableError::TooLarge { .. })), "{keys}");
    }
    assert!(matches!(Table::with_memory(usize::MAX), Err(TableError::TooLarge { .. })));
    let error = Table::with_keys(usize::MAX).unwrap_err().to_string();
    assert!(error.contains(&Table::MAX_KEYS.to_string()), "{error}");
}

#[test]
fn the_smallest_table_holds_ten_keys() {
    let seed = Seed::new(7);
    let table = Arc::new(Table::with_keys(1).unwrap());
    let hourly = counters(&table, "1/h", &seed);
    assert_eq!(overflowed(&hourly, (0..10u32).map(|number| number.hash(&seed))), 0);
    assert_eq!(overflowed(&hourly, (10..20u32).map(|number| number.hash(&seed))), 10);
    assert_eq!(table.occupancy(NOW), 1.0);
}

#[test]
fn no_key_exceeds_its_limit_at_four_times_the_planned_keys() {
    const KEYS: u64 = 40_000;
    let (clock, seed) = (ManualClock::new(), Seed::new(11));
    let table = Arc::new(Table::with_keys(KEYS as usize / 4).unwrap());
    let hourly = counters(&table, "3/h", &seed);
    let mut admitted = vec![0; KEYS as usize];
    for round in 0..6 {
        for key in 0..KEYS {
            // Another order each round.
            let key = (key * 7919 + round * 104_729) % KEYS;
            admitted[key as usize] += u32::from(allows(&hourly, key.hash(&seed), &clock));
        }
    }
    assert_eq!(admitted.iter().max(), Some(&3));
    assert!(hourly.pressure().overflowed > 0);
    let whole = admitted.iter().filter(|count| **count == 3).count();
    assert!(whole > KEYS as usize / 5, "only {whole} keys got all of their limit");
}

#[test]
fn keys_at_rest_make_room_without_being_cleaned_up() {
    let (clock, seed) = (ManualClock::new(), Seed::new(11));
    let table = Arc::new(Table::with_keys(1_000).unwrap());
    let per_second = counters(&table, "1/s", &seed);
    let mut denied = 0;
    for generation in 0..50u64 {
        for key in 0..1_000 {
            let key = (generation * 1_000 + key).hash(&seed);
            denied += u32::from(!allows(&per_second, key, &clock));
        }
        clock.advance(Duration::from_secs(1));
    }
    // A few overflow at the planned load, and some of those share a count.
    let overflowed = per_second.pressure().overflowed;
    assert!(overflowed < 100, "{overflowed} of 50,000 overflowed in a table for 1,000");
    assert!(denied < 10, "{denied} of 50,000 new keys were denied");
}

#[test]
fn a_time_from_the_past_grants_nothing() {
    let seed = Seed::new(11);
    let table = Arc::new(Table::with_keys(100).unwrap());
    let per_second = counters(&table, "2/s", &seed);
    let at = |seconds| NOW.after(Duration::from_secs(seconds));
    assert!(per_second.check_at(5u64.hash(&seed), 2, at(10)).is_allowed());
    for past in [0, 5, 9] {
        assert!(!per_second.check_at(5u64.hash(&seed), 1, at(past)).is_allowed());
    }
}

/// A table whose slots are all taken by keys that are at rest after a second, and a key of another
/// limit, which shares a count with others until then.
struct Crowded {
    clock: ManualClock,
    hourly: Counters,
    hot: KeyHash,
    others: Vec<KeyHash>,
}

impl Crowded {
    fn new() -> Self {
        let (clock, seed) = (ManualClock::new(), Seed::new(8));
        let table = Arc::new(Table::with_keys(1).unwrap());
        let guests = counters(&table, "1/s", &seed);
        let hourly = counters(&table, "100/h", &seed);
        overflowed(&guests, (0..50u32).map(|number| number.hash(&seed)));
        let others = (0..5_000u32).map(|number| number.hash(&seed)).collect();
        Self { clock, hourly, hot: "hot".hash(&seed), others }
    }

    fn left(&self) -> u64 {
        self.hourly.peek(self.hot, 1, self.clock.now()).remaining()
    }

    fn others_spend(&self) {
        for other in &self.others {
            self.hourly.check(*other, 1, &self.clock);
        }
    }
}

#[test]
fn a_key_without_a_slot_is_counted_together_with_others_and_cannot_be_reset_alone() {
    let crowded = Crowded::new();
    crowded.hourly.check(crowded.hot, 10, &crowded.clock);
    assert_eq!(crowded.left(), 90, "nobody has joined it yet");
    assert!(!crowded.hourly.reset(crowded.hot, crowded.clock.now()), "but somebody may");
    crowded.others_spend();
    assert!(crowded.left() < 90, "some of five thousand have");
    let left = crowded.left();
    assert!(!crowded.hourly.reset(crowded.hot, crowded.clock.now()));
    crowded.hourly.refund(crowded.hot, 10, crowded.clock.now());
    assert_eq!(crowded.left(), left, "others may have spent what it wants back");
}

#[test]
fn a_key_gets_a_slot_of_its_own_as_soon_as_one_is_at_rest() {
    let crowded = Crowded::new();
    crowded.hourly.check(crowded.hot, 10, &crowded.clock);
    assert_eq!(crowded.hourly.pressure().overflowed, 1);
    crowded.others_spend();
    assert_eq!(crowded.hourly.pressure().promoted, 0);

    crowded.clock.advance(Duration::from_secs(1));
    let shared = crowded.left();
    crowded.hourly.check(crowded.hot, 1, &crowded.clock);
    assert_eq!(crowded.hourly.pressure().promoted, 1);
    assert_eq!(crowded.left(), shared - 1, "it takes along all that it has spent");

    crowded.others_spend();
    assert_eq!(crowded.left(), shared - 1, "others do not touch it any more");
    let overflowed = crowded.hourly.pressure().overflowed;
    crowded.hourly.check(crowded.hot, 1, &crowded.clock);
    assert_eq!(crowded.hourly.pressure().overflowed, overflowed);
    let rest = crowded.left();
    assert!(crowded.hourly.check(crowded.hot, rest, &crowded.clock).is_allowed());
    assert!(!allows(&crowded.hourly, crowded.hot, &crowded.clock), "it has spent all it had");
    assert!(crowded.hourly.reset(crowded.hot, crowded.clock.now()));
    assert_eq!(crowded.left(), 100);
}
