//! Several limits for one request: all or nothing.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Gate, GateBuilder, Limit, LimitId, ManualClock, Retry};

fn limits() -> Vec<Limit> {
    vec![
        Limit::token_bucket("5/h").unwrap(),
        Limit::leaky_police("5/h burst 5").unwrap(),
        Limit::leaky_shape("5/h", 4).unwrap(),
        Limit::fixed_window("5/h").unwrap(),
        Limit::sliding_window("5/h").unwrap(),
        Limit::sliding_log("5/h").unwrap(),
        Limit::calendar("5/day", "UTC").unwrap(),
    ]
}

fn gate(limits: impl IntoIterator<Item = Limit>) -> (Gate<ManualClock>, Vec<LimitId>) {
    let mut builder: GateBuilder<ManualClock> = Gate::builder().clock(ManualClock::new());
    let ids = limits.into_iter().enumerate().map(|(n, limit)| builder.limit(n.to_string(), limit));
    let ids = ids.collect();
    (builder.build().unwrap(), ids)
}

#[test]
fn a_denial_by_one_limit_spends_nothing_from_any_other() {
    for first in limits() {
        for second in limits() {
            let tight = match second.log_rule() {
                Some(_) => Limit::sliding_log("1/h").unwrap(),
                None => Limit::token_bucket("1/h").unwrap(),
            };
            let (gate, ids) = gate([first.clone(), second.clone(), tight]);
            let request: Vec<_> = ids.iter().map(|id| id.charge(&"alice")).collect();
            assert!(gate.check(&request).is_allowed());
            for _ in 0..3 {
                let denied = gate.check(&request);
                assert_eq!(denied.limit(), ids[2], "{first} and {second}");
                assert!(matches!(denied.decision().retry(), Some(Retry::After(_))));
                let left: Vec<u64> = denied.each().iter().map(|each| each.remaining()).collect();
                assert_eq!(left, [4, 4, 0], "{first} and {second}");
            }
        }
    }
}

#[test]
fn racing_threads_spend_from_all_limits_or_from_none() {
    for algorithm in [Limit::token_bucket, Limit::fixed_window, Limit::sliding_window] {
        let (gate, ids) = gate([algorithm("10000/h").unwrap(), algorithm("700/h").unwrap()]);
        let allowed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..400 {
                        let request = [ids[0].charge(&"shared"), ids[1].charge(&"shared")];
                        let answer = gate.check(&request);
                        allowed.fetch_add(u64::from(answer.is_allowed()), Ordering::Relaxed);
                    }
                });
            }
        });
        let allowed = allowed.into_inner();
        assert!(allowed <= 700, "{allowed} were allowed");
        let left = gate.peek(&[ids[0].charge(&"shared")]).decision().remaining();
        // A loan that a thread did not use up is spent as well.
        assert!(left <= 10_000 - allowed, "{left} are left of 10,000 less {allowed}");
        let lost = 10_000 - allowed - left;
        assert!(lost <= 4 * 10_000 / 64, "{lost} were spent by requests that were denied");
    }
}

#[test]
fn limits_too_small_to_lend_from_are_spent_exactly_by_racing_threads() {
    let (gate, ids) = gate([
        Limit::token_bucket("100/h").unwrap(),
        Limit::sliding_log("60/h").unwrap(),
        Limit::fixed_window("80/h").unwrap(),
    ]);
    // The key has its slots before the race: two threads that bring it at once may be counted
    // too high.
    let first: Vec<_> = ids.iter().map(|id| id.charge(&"shared")).collect();
    let allowed = AtomicU64::new(u64::from(gate.check(&first).is_allowed()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let request: Vec<_> = ids.iter().map(|id| id.charge(&"shared")).collect();
                    allowed
                        .fetch_add(u64::from(gate.check(&request).is_allowed()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(allowed.into_inner(), 60);
    let left = |id: LimitId| gate.peek(&[id.charge(&"shared")]).decision().remaining();
    assert_eq!((left(ids[0]), left(ids[1]), left(ids[2])), (40, 0, 20));
}

#[test]
fn the_strictest_answer_is_reported_and_every_one_is_visible() {
    let (gate, ids) = gate([
        Limit::token_bucket("9/h").unwrap(),
        Limit::token_bucket("unlimited").unwrap(),
        Limit::token_bucket("3/h").unwrap(),
    ]);
    let answer = gate.check(&[ids[0].charge(&1u64), ids[1].charge(&1u64), ids[2].charge(&1u64)]);
    assert_eq!(answer.limit(), ids[2]);
    let left: Vec<u64> = answer.each().iter().map(|each| each.remaining()).collect();
    assert_eq!(left, [8, u64::MAX, 2]);
}

#[test]
fn a_cost_that_never_fits_is_denied_for_good_and_spends_nothing() {
    let (gate, ids) =
        gate([Limit::token_bucket("9/h").unwrap(), Limit::token_bucket("3/h").unwrap()]);
    let answer = gate.check(&[ids[0].charge(&1u64).cost(2), ids[1].charge(&1u64).cost(4)]);
    assert_eq!(answer.decision().retry(), Some(Retry::Never));
    assert_eq!(gate.peek(&[ids[0].charge(&1u64)]).decision().remaining(), 9);
}

#[test]
fn one_limit_twice_in_a_request_is_spent_twice_or_not_at_all() {
    let (gate, ids) = gate([Limit::token_bucket("3/h").unwrap()]);
    let request = [ids[0].charge(&"alice"), ids[0].charge(&"alice")];
    assert!(gate.check(&request).is_allowed());
    assert!(!gate.check(&request).is_allowed());
    assert_eq!(gate.peek(&request[..1]).decision().remaining(), 1);
}

#[test]
fn any_number_of_charges_is_decided() {
    let (gate, ids) = gate((0..20).map(|_| Limit::token_bucket("2/h").unwrap()));
    let request: Vec<_> = ids.iter().map(|id| id.charge(&"alice")).collect();
    assert!(gate.check(&request).is_allowed());
    assert!(gate.check(&request).is_allowed());
    assert!(!gate.check(&request).is_allowed());
    assert!(gate.check(&[]).is_allowed(), "a request that meets no limit passes");
}
