//! The memory of counters: never more than was given, for all of them together.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::time::Duration;

use tollgate::{Gate, Limit, LimitId, Limiter, ManualClock, Quota};

/// From what two logs and three windows need at the least to what is mostly table, and not round.
const BUDGETS: [usize; 7] =
    [150_000, 250_000, 333_333, 524_287, 1_000_000, (1 << 20) + 1, 3_000_017];

fn bucket() -> Limit {
    Limit::token_bucket("10/h").unwrap()
}

fn log() -> Limit {
    Limit::sliding_log("10/h").unwrap()
}

fn window() -> Limit {
    Limit::sliding_window("10/h").unwrap()
}

fn gate(bytes: usize, limits: &[Limit]) -> (Gate<ManualClock>, Vec<LimitId>) {
    let mut builder = Gate::builder().memory(bytes).clock(ManualClock::new());
    let add = |(number, limit): (usize, &Limit)| builder.limit(format!("{number}"), limit.clone());
    let ids = limits.iter().enumerate().map(add).collect();
    (builder.build().unwrap(), ids)
}

/// Has keys come in, far more than there is room for, and some of them often.
fn expect_within(bytes: usize, limits: &[Limit]) {
    let (gate, ids) = gate(bytes, limits);
    let memory = || gate.stats().memory;
    assert!(memory() <= bytes, "{} of {bytes} with {} limits", memory(), limits.len());
    for key in 0..20_000u64 {
        for id in [ids[key as usize % ids.len()], ids[0]] {
            let _ = gate.check(&[id.charge(&(key / (1 + key % 3)))]);
        }
        if key % 500 == 0 {
            gate.clock().advance(Duration::from_millis(5));
            assert!(memory() <= bytes, "{} of {bytes} at key {key}", memory());
        }
    }
    assert!(memory() <= bytes, "{} of {bytes} with {} limits", memory(), limits.len());
}

/// A sketch of its own for each limit came on top of what was given.
#[test]
fn a_gate_of_fifty_buckets_keeps_to_its_memory() {
    for bytes in BUDGETS.into_iter().filter(|bytes| *bytes > 50 * 4096 + 128) {
        expect_within(bytes, &vec![bucket(); 50]);
    }
}

/// Logs came to four times as much as was given.
#[test]
fn a_gate_of_two_logs_and_three_windows_keeps_to_its_memory() {
    for bytes in BUDGETS {
        expect_within(bytes, &[log(), log(), window(), window(), window()]);
    }
}

#[test]
fn one_limit_keeps_to_its_memory() {
    for bytes in BUDGETS.into_iter().step_by(3) {
        for limit in [bucket(), window(), log()] {
            expect_within(bytes, &[limit]);
        }
    }
}

#[test]
fn a_limiter_keeps_to_its_memory() {
    for limit in [bucket(), log()] {
        let limiter = Limiter::builder(limit.clone()).memory(200_000).build().unwrap();
        for key in 0..20_000u64 {
            let _ = limiter.check(&key);
        }
        let memory = limiter.stats().memory;
        assert!((100_000..=200_000).contains(&memory), "{memory} with {limit}");
        assert!(limiter.stats().overflowed > 0, "there were more keys than room with {limit}");
    }
}

#[test]
fn what_is_given_is_used() {
    for bytes in [100_000, 1 << 20, 10_000_001, 64 << 20] {
        let (gate, _) = gate(bytes, &[bucket(), window()]);
        let memory = gate.stats().memory;
        // A line more may need a cell more in each sketch.
        assert!(memory <= bytes && memory + 64 + 2 * 8 > bytes, "{memory} of {bytes}");
    }
}

#[test]
fn what_limits_nothing_takes_nothing() {
    let unlimited = Limit::token_bucket(Quota::unlimited()).unwrap();
    let (gate, _) = gate(64_000, &[unlimited.clone(), unlimited]);
    assert_eq!(gate.stats().memory, 64_000);
}

#[test]
fn with_too_little_memory_counters_are_as_small_as_they_can_be() {
    for bytes in [128, 1_000, 4_096 + 128] {
        let (gate, ids) = gate(bytes, &[bucket()]);
        assert_eq!(gate.stats().memory, 4_096 + 128, "with {bytes}");
        assert!(gate.check(&[ids[0].charge("alice")]).is_allowed());
    }
    for bytes in [128, 64 << 10] {
        let (gate, ids) = gate(bytes, &[log(), window()]);
        for key in 0..5_000u64 {
            let _ = gate.check(&[ids[0].charge(&key), ids[1].charge(&key)]);
        }
        let memory = gate.stats().memory;
        assert!(memory <= (64 << 10) + 4_096 + 128, "{memory} with {bytes}");
    }
}

#[test]
fn planned_keys_take_what_is_documented() {
    let memory = |limits: usize| {
        let mut builder = Gate::builder().keys(1_000_000);
        for number in 0..limits {
            builder.limit(format!("{number}"), bucket());
        }
        builder.build().unwrap().stats().memory as f64 / 1e6
    };
    let (one, eleven) = (memory(1), memory(11));
    assert!((23.5..24.0).contains(&one), "{one} bytes a key");
    let further = (eleven - one) / 10.0;
    assert!((0.225..0.235).contains(&further), "{further} bytes a key for each further limit");
}
