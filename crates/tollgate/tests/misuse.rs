//! What nobody should do is refused in words, or done without harm.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::error::Error as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use tollgate::{
    Answer, Charge, Clock, Decision, Error, Gate, Held, Limit, Limiter, ManualClock, Period, Quota,
    Retry, Slots, Stats, SystemClock, Tick,
};

const fn is_shared<T: Send + Sync + 'static>() {}
const fn is_sent<T: Send>(_: &T) {}

/// Checked when this is compiled.
const _: () = {
    is_shared::<Limiter>();
    is_shared::<Limiter<ManualClock>>();
    is_shared::<Gate>();
    is_shared::<Slots>();
    is_shared::<Held>();
    is_shared::<Answer>();
    is_shared::<Decision>();
    is_shared::<Stats>();
    is_shared::<Error>();
    is_shared::<SystemClock>();
};

fn each_algorithm() -> [Limit; 8] {
    [
        Limit::token_bucket("5/s").unwrap(),
        Limit::token_bucket("1G/s").unwrap(),
        Limit::leaky_police("5/s").unwrap(),
        Limit::leaky_shape("5/s", 5).unwrap(),
        Limit::fixed_window("5/s").unwrap().jittered().unwrap(),
        Limit::sliding_window("5/s").unwrap(),
        Limit::sliding_log("5/s").unwrap(),
        Limit::billing_month("5/month", "America/New_York", 31).unwrap(),
    ]
}

#[cfg(feature = "tokio")]
#[test]
fn a_wait_can_be_moved_between_threads() {
    let limiter = Limiter::new("1/s").unwrap();
    is_sent(&limiter.wait("alice"));
}

#[test]
fn one_gate_in_a_static_serves_all_threads() {
    static GATE: LazyLock<(Gate, tollgate::LimitId)> = LazyLock::new(|| {
        let mut builder = Gate::builder();
        let id =
            builder.limit("per-user", Limit::fixed_window("60/h").unwrap().jittered().unwrap());
        (builder.build().unwrap(), id)
    });
    let pass = || {
        let (gate, id) = &*GATE;
        (0..50).filter(|_| gate.check(&[id.charge("alice")]).is_allowed()).count()
    };
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(pass)).collect();
    let passed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(passed, 60);
}

#[test]
fn a_gate_says_what_is_wrong_with_it() {
    let error = Gate::builder().build().unwrap_err();
    assert!(matches!(error, Error::NoLimits));
    assert!(error.to_string().contains("at least one limit"), "{error}");

    let mut builder = Gate::builder();
    builder.limit("per-user", Limit::token_bucket("1/s").unwrap());
    builder.limit("per-ip", Limit::token_bucket("1/s").unwrap());
    builder.limit("per-user", Limit::token_bucket("2/s").unwrap());
    let error = builder.build().unwrap_err();
    assert!(matches!(&error, Error::SameName { name } if name == "per-user"));
    assert!(error.to_string().contains("`per-user`"), "{error}");

    for keys in [0, usize::MAX] {
        let mut builder = Gate::builder().keys(keys);
        builder.limit("a", Limit::token_bucket("1/s").unwrap());
        assert!(matches!(builder.build().unwrap_err(), Error::Table(_)), "{keys}");
    }
    for bytes in [0, 127, usize::MAX] {
        let mut builder = Gate::builder().memory(bytes);
        builder.limit("a", Limit::token_bucket("1/s").unwrap());
        assert!(matches!(builder.build().unwrap_err(), Error::Table(_)), "{bytes}");
    }
}

/// The limit of another gate was taken for the one at the same place of this gate.
#[test]
fn a_limit_of_another_gate_is_always_found_out_and_changes_nothing() {
    let make = || {
        let mut builder = Gate::builder();
        let ids = ["a", "b"].map(|name| builder.limit(name, Limit::token_bucket("5/h").unwrap()));
        (builder.clock(ManualClock::new()).build().unwrap(), ids)
    };
    let ((gate, [a, b]), (_, [foreign, _])) = (make(), make());
    assert_ne!(a, foreign);
    let request = [a.charge("alice"), foreign.charge("alice")];
    assert!(gate.check(&[a.charge("alice").cost(3), b.charge("alice")]).is_allowed());
    let misuses: [(&str, &dyn Fn()); 8] = [
        ("check", &|| drop(gate.check(&request))),
        ("check of one", &|| drop(gate.check(&request[1..]))),
        ("peek", &|| drop(gate.peek(&request))),
        ("refund", &|| gate.refund(&request)),
        ("reset", &|| _ = gate.reset(foreign, "alice")),
        ("top", &|| drop(gate.top(foreign, 1))),
        ("name", &|| _ = gate.name(foreign)),
        ("limit", &|| _ = gate.limit(foreign)),
    ];
    for (what, misuse) in misuses {
        let panic = catch_unwind(AssertUnwindSafe(misuse)).expect_err(what);
        let text = panic.downcast_ref::<&str>().expect("it says why");
        assert!(text.contains("another gate"), "{what}: {text}");
        assert_eq!(gate.peek(&[a.charge("alice")]).decision().remaining(), 2, "{what}");
    }
    assert_eq!(gate.name(gate.check(&[]).limit()), "a", "an answer names limits of its own gate");
}

#[test]
fn a_quota_that_is_wrong_names_what_is_right() {
    for (quota, hint) in [
        ("", "100/min"),
        ("fast", "100/min"),
        ("ten/s", "whole number"),
        ("1e3/s", "whole number"),
        ("0/s", "at least 1"),
        ("5/parsec", "one of ms, s, min"),
        ("5/0s", "period"),
        ("5/400day", "366 days"),
        ("5/s burst 0", "burst"),
        ("99999999999999999999/s", "at most"),
        ("unlimited burst 9", "unlimited"),
        ("1000000000000/s", "1G/s"),
    ] {
        let error = Limiter::new(quota).expect_err(quota);
        assert!(matches!(error, Error::Limit(_)), "{quota}");
        assert!(error.to_string().contains(hint), "`{quota}`: {error}");
        let built = Limiter::builder(quota).keys(10).build().expect_err(quota);
        assert_eq!(built.to_string(), error.to_string(), "the builder says the same");
        assert!(error.source().is_none_or(|cause| cause.to_string() != error.to_string()));
    }
    assert!(Quota::new(0, Period::DAY).is_err());
    assert!(Slots::new(0).unwrap_err().to_string().contains("from 1"));
    let error = Slots::builder(5).expiring(Duration::ZERO).build().unwrap_err().to_string();
    assert!(error.contains("expire") && error.contains("from 1"), "{error}");
}

#[test]
fn absurd_costs_spend_nothing() {
    for limit in each_algorithm() {
        let limiter = Limiter::builder(limit.clone()).clock(ManualClock::new()).build().unwrap();
        let all = limiter.peek("alice").remaining();
        for cost in [u64::MAX, u64::MAX - 1, 1 << 63, limiter.peek("alice").limit() + 1] {
            let denied = limiter.check_n("alice", cost);
            assert_eq!(denied.retry(), Some(Retry::Never), "{cost} of {limit}");
            limiter.refund("alice", cost);
            assert_eq!(limiter.peek("alice").remaining(), all, "{cost} of {limit}");
        }
        assert!(limiter.check_n("alice", 0).is_allowed());
        assert_eq!(limiter.peek("alice").remaining(), all, "{limit}");
    }
}

#[test]
fn absurd_charges_spend_nothing() {
    for limit in each_algorithm() {
        let mut builder = Gate::builder().clock(ManualClock::new());
        let a = builder.limit("a", limit.clone());
        let b = builder.limit("b", limit.clone());
        let gate = builder.build().unwrap();
        let all = gate.peek(&[a.charge(&1u64)]).decision().remaining();
        let half = [a.charge(&1u64), b.charge(&1u64).cost(u64::MAX)];
        let twice = [a.charge(&1u64).cost(u64::MAX), a.charge(&1u64).cost(u64::MAX)];
        for request in [half, twice] {
            assert_eq!(gate.check(&request).decision().retry(), Some(Retry::Never), "{limit}");
            gate.refund(&request);
            assert_eq!(gate.peek(&[a.charge(&1u64)]).decision().remaining(), all, "{limit}");
        }
        let nothing: [Charge<'_>; 2] = [a.charge(&1u64).cost(0), b.charge(&1u64).cost(0)];
        assert!(gate.check(&nothing).is_allowed(), "{limit}");
    }
}

#[test]
fn absurd_keys_are_keys() {
    let limiter = Limiter::new("1/h").unwrap();
    let (long, other) = ("k".repeat(3 << 20), "k".repeat((3 << 20) - 1));
    for key in ["", "\0", "\0\0", " ", "é\u{0301}", &long, &other] {
        assert!(limiter.check(key).is_allowed(), "a key of {} bytes", key.len());
        assert!(!limiter.check(key).is_allowed(), "a key of {} bytes", key.len());
    }
    assert!(limiter.top(100).iter().all(|heavy| heavy.key.len() < 300), "labels are cut");
    for key in [&[][..], &[0xFF, 0xFE], &[0; 5]] {
        let _ = limiter.check(key);
        let _ = limiter.reset(key);
    }
    assert!(limiter.check(&u64::MAX).is_allowed());
    assert!(limiter.check(&((), (), (), ())).is_allowed());
}

#[test]
fn absurd_times_grant_nothing_and_break_nothing() {
    for limit in each_algorithm() {
        let limiter = Limiter::builder(limit.clone()).clock(ManualClock::new()).build().unwrap();
        for at in [Tick::MAX, Tick::ZERO, Tick::MAX, Tick::from_nanos(1)] {
            let _ = limiter.check_at("alice", at);
        }
        limiter.clock().advance(Duration::MAX);
        let passed = (0..20).filter(|_| limiter.check("bob").is_allowed()).count() as u64;
        let most = limiter.peek("bob").limit();
        assert!(passed == most.min(20), "{limit}: {passed} at the end of time");
        assert_eq!(limiter.clock().now(), Tick::MAX);
    }
}

#[test]
fn an_empty_batch_decides_nothing_and_a_long_one_everything_in_order() {
    let limiter = Limiter::builder(Limit::token_bucket("3/h").unwrap()).build().unwrap();
    let mut decisions = Vec::new();
    limiter.check_batch::<u64>(&[], &mut decisions);
    assert!(decisions.is_empty());
    let keys: Vec<u64> = (0..1_000).map(|n| n % 250).collect();
    limiter.check_batch(&keys, &mut decisions);
    limiter.check_batch(&["one"], &mut decisions);
    let passed: Vec<_> = decisions.iter().map(|decision| decision.is_allowed()).collect();
    assert_eq!(passed, [vec![true; 750], vec![false; 250], vec![true]].concat());
}

#[test]
fn what_was_never_spent_cannot_be_given_back() {
    for limit in each_algorithm() {
        let limiter = Limiter::new(limit.clone()).unwrap();
        let all = limiter.peek("alice").remaining();
        limiter.refund("alice", 3);
        assert!(limiter.reset("alice"));
        assert_eq!(limiter.peek("alice").remaining(), all, "{limit}");
    }
}

#[test]
fn slots_that_are_shared_come_back_from_every_thread() {
    let slots = Arc::new(Slots::new(2).unwrap());
    for _ in 0..20 {
        let work = |_| {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.acquire("acme").is_ok())
        };
        let threads: Vec<_> = (0..4).map(work).collect();
        let got = threads.into_iter().map(|thread| thread.join().unwrap());
        assert!(got.filter(|is_held| *is_held).count() >= 2, "two can have one at once");
        assert_eq!(slots.out("acme"), 0);
    }
}
