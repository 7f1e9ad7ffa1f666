//! The library as its users meet it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use tollgate::{Error, Gate, Limit, Limiter, Quota, Retry, Slots};

fn shared<T: Send + Sync + 'static>(value: T) -> Arc<T> {
    Arc::new(value)
}

#[test]
fn everything_can_be_shared_between_threads() {
    let limiter = shared(Limiter::new("100/h").unwrap());
    let slots = shared(Slots::new(2).unwrap());
    let mut builder = Gate::builder();
    let id = builder.limit("a", Limit::token_bucket("100/h").unwrap());
    let gate = shared(builder.build().unwrap());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (limiter, slots, gate) = (limiter.clone(), slots.clone(), gate.clone());
            std::thread::spawn(move || {
                let _permit = slots.acquire("x");
                for _ in 0..10 {
                    assert!(limiter.check("alice").is_allowed());
                    assert!(gate.check(&[id.charge("alice")]).is_allowed());
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(limiter.peek("alice").remaining(), 60);
    assert_eq!(slots.out("x"), 0);
}

#[test]
fn a_limiter_can_be_a_static() {
    static LIMITER: LazyLock<Limiter> = LazyLock::new(|| Limiter::new("2/h").unwrap());
    assert!(LIMITER.check("a").is_allowed());
    assert!(LIMITER.check("a").is_allowed());
    assert!(!LIMITER.check("a").is_allowed());
}

#[test]
fn a_limiter_is_made_of_whatever_names_a_limit() {
    let (text, quota): (String, Quota) = ("7/h".into(), "7/h".parse().unwrap());
    let limit = Limit::token_bucket(quota).unwrap();
    for limiter in [
        Limiter::new("7/h"),
        Limiter::new(&text),
        Limiter::new(text.clone()),
        Limiter::new(quota),
        Limiter::new(limit.clone()),
        Limiter::builder("7/h").build(),
        Limiter::builder(&text).build(),
        Limiter::builder(text).build(),
        Limiter::builder(quota).build(),
        Limiter::builder(limit.clone()).build(),
    ] {
        assert_eq!(limiter.unwrap().limit(), &limit);
    }
}

#[test]
fn bad_input_is_refused_with_what_is_allowed() {
    let text = |error: Error| error.to_string();
    for (bad, says) in [
        ("0/s", "at least 1"),
        ("-1/s", "whole number"),
        ("100", "100/min"),
        ("5/s burst 0", "at least 1"),
        ("2G/s", "1G/s"),
        ("1/month burst 1000", "lower the burst"),
    ] {
        let error = text(Limiter::new(bad).unwrap_err());
        assert!(error.contains(says), "{bad}: {error}");
    }
    let limit = Limit::token_bucket("1/s").unwrap();
    assert!(text(Limiter::builder(limit.clone()).keys(0).build().unwrap_err()).contains("one key"));
    let huge = Limiter::builder(limit.clone()).keys(usize::MAX).build().unwrap_err();
    assert!(text(huge).contains("at most"));
    assert!(text(Limiter::builder(limit).memory(10).build().unwrap_err()).contains("128 bytes"));
    assert!(text(Slots::new(0).unwrap_err()).contains("from 1"));
}

#[test]
fn absurd_requests_are_decided_without_panicking() {
    for limit in [
        Limit::token_bucket("5/s").unwrap(),
        Limit::leaky_shape("5/s", 5).unwrap(),
        Limit::fixed_window("5/s").unwrap(),
        Limit::sliding_window("5/s").unwrap(),
        Limit::sliding_log("5/s").unwrap(),
    ] {
        let limiter = Limiter::new(limit).unwrap();
        assert_eq!(limiter.check_n("a", u64::MAX).retry(), Some(Retry::Never));
        assert!(limiter.check_n("", 0).is_allowed());
        assert!(limiter.check("").is_allowed());
        assert!(limiter.check(&"x".repeat(1 << 20)).is_allowed());
        limiter.refund("a", u64::MAX);
        limiter.refund("never seen", 1);
        assert!(limiter.reset("never seen"));
        assert!(limiter.check("a").is_allowed());
    }
}

#[test]
fn keys_of_all_kinds_are_counted_apart() {
    let limiter = Limiter::new("1/h").unwrap();
    let ip: IpAddr = "2001:db8::1".parse().unwrap();
    assert!(limiter.check("7").is_allowed());
    assert!(limiter.check(&7u64).is_allowed());
    assert!(limiter.check(&ip).is_allowed());
    assert!(limiter.check(&(ip, "7")).is_allowed());
    assert!(limiter.check(&("7", 7u64, "x")).is_allowed());
    assert!(limiter.check(b"bytes".as_slice()).is_allowed());
    assert!(limiter.check(&()).is_allowed());
    assert!(!limiter.check(&String::from("7")).is_allowed(), "a String is its str");
}

#[test]
fn no_limit_allows_everything_and_says_so() {
    let limiter = Limiter::new(Quota::unlimited()).unwrap();
    for _ in 0..1_000 {
        assert!(limiter.check_n("a", u64::MAX).is_allowed());
    }
    assert_eq!(limiter.peek("a").limit(), u64::MAX);
}
