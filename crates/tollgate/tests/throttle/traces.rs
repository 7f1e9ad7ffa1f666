//! What redis-cell answers, command by command.

use std::time::Duration;

use tollgate::{Decision, LimitError, Quota, Retry};

use crate::{SECOND, quota, throttle};

/// The five numbers of a reply.
fn reply(decision: Decision) -> [i64; 5] {
    let seconds = |time: Duration| time.as_micros().div_ceil(1_000_000) as i64;
    let (limit, remaining) = (decision.limit() as i64, decision.remaining() as i64);
    let retry = decision.retry_after().map_or(-1, seconds);
    let limited = i64::from(!decision.is_allowed());
    [limited, limit, remaining, retry, seconds(decision.reset_after())]
}

#[test]
fn one_in_ten_seconds_with_a_burst_of_two_more() {
    let (throttle, clock) = throttle(100);
    let limit = quota(2, 1, 10);
    let throttled = |cost| reply(throttle.check("key", limit, cost).unwrap());
    assert_eq!(throttled(0), [0, 3, 3, -1, 0], "nobody knows it yet");
    assert_eq!(throttled(1), [0, 3, 2, -1, 10]);
    assert_eq!(throttled(1), [0, 3, 1, -1, 20]);
    assert_eq!(throttled(1), [0, 3, 0, -1, 30]);
    assert_eq!(throttled(1), [1, 3, 0, 10, 30]);
    assert_eq!(throttled(0), [0, 3, 0, -1, 30], "whoever looks is not denied");
    clock.advance(SECOND * 10);
    assert_eq!(throttled(2), [1, 3, 1, 10, 20]);
    assert_eq!(throttled(1), [0, 3, 0, -1, 30]);
    clock.advance(SECOND * 30);
    assert_eq!(throttled(3), [0, 3, 0, -1, 30]);
}

#[test]
fn more_than_there_can_be_is_denied_for_good_and_spends_nothing() {
    let (throttle, _) = throttle(100);
    let limit = quota(2, 1, 10);
    let never = throttle.check("key", limit, 4).unwrap();
    assert_eq!((reply(never), never.retry()), ([1, 3, 3, -1, 0], Some(Retry::Never)));
    assert_eq!(reply(throttle.check("key", limit, 1).unwrap()), [0, 3, 2, -1, 10]);
    assert_eq!(reply(throttle.check("key", limit, u64::MAX).unwrap()), [1, 3, 2, -1, 10]);
}

#[test]
fn a_burst_of_none_is_one_at_a_time() {
    let (throttle, clock) = throttle(100);
    let limit = quota(0, 30, 60);
    let throttled = || reply(throttle.check("key", limit, 1).unwrap());
    assert_eq!([throttled(), throttled()], [[0, 1, 0, -1, 2], [1, 1, 0, 2, 2]]);
    clock.advance(SECOND * 2);
    assert_eq!(throttled(), [0, 1, 0, -1, 2]);
}

/// Seven a minute do not divide a minute evenly.
#[test]
fn rates_that_do_not_divide_evenly_say_whole_seconds() {
    let (throttle, _) = throttle(100);
    let limit = quota(6, 7, 60);
    let replies: Vec<_> =
        (0..8).map(|_| reply(throttle.check("key", limit, 1).unwrap())[3..].to_vec()).collect();
    let resets = [9, 18, 26, 35, 43, 52, 60].map(|reset| vec![-1, reset]);
    assert_eq!(replies[..7], resets);
    assert_eq!(replies[7], [9, 60]);
    assert_eq!(reply(throttle.check("at once", limit, 7).unwrap()), [0, 7, 0, -1, 60]);
}

#[test]
fn what_was_spent_under_one_limit_counts_under_another() {
    let (throttle, clock) = throttle(100);
    let (slow, fast, wide) = (quota(0, 1, 60), quota(9, 1, 1), quota(99, 1, 1));
    let throttled = |limit, cost| reply(throttle.check("key", limit, cost).unwrap());
    assert_eq!(throttled(slow, 1), [0, 1, 0, -1, 60]);
    assert_eq!(throttled(fast, 1), [1, 10, 0, 51, 60], "more is owed than it ever holds");
    assert_eq!(throttled(wide, 1), [0, 100, 39, -1, 61]);
    clock.advance(SECOND * 55);
    assert_eq!(throttled(fast, 0), [0, 10, 4, -1, 6]);
    assert_eq!(throttled(fast, 4), [0, 10, 0, -1, 10]);
    assert_eq!(throttled(slow, 1), [1, 1, 0, 10, 10]);
    clock.advance(SECOND * 10);
    assert_eq!(throttled(slow, 1), [0, 1, 0, -1, 60], "at rest under one, and so under all");
}

#[test]
fn keys_are_apart_and_any_bytes_will_do() {
    let (throttle, _) = throttle(100);
    let limit = quota(0, 1, 60);
    for key in [&b"a"[..], b"b", b"", b"\xFF\x00", b"a\r\n"] {
        assert!(throttle.check(key, limit, 1).unwrap().is_allowed(), "{key:?}");
        assert!(!throttle.check(key, limit, 1).unwrap().is_allowed(), "{key:?}");
    }
}

#[test]
fn limits_that_there_cannot_be_are_errors_and_spend_nothing() {
    let (throttle, _) = throttle(100);
    let too_long = quota(400, 1, 86_400);
    let error = throttle.check("key", too_long, 1).unwrap_err();
    assert!(matches!(error, LimitError::BurstTooLarge { largest: 400, .. }), "{error}");
    let too_fast = throttle.check("key", quota(1, 2_000_000_000, 1), 1).unwrap_err();
    assert!(matches!(too_fast, LimitError::TooFast { .. }), "{too_fast}");
    assert_eq!(throttle.check("key", quota(4, 1, 60), 0).unwrap().remaining(), 5);
    let unlimited = throttle.check("key", Quota::unlimited(), 1_000).unwrap();
    assert_eq!(unlimited.remaining(), Decision::UNLIMITED);
}
