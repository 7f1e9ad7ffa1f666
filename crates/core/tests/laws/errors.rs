//! What is refused, and what it says: what is wrong, and what is allowed instead.

use tollgate_core::{Limit, LimitError, Quota, QuotaError};

fn refused(limit: Result<Limit, LimitError>) -> LimitError {
    limit.expect_err("it is refused")
}

/// Each with the words that tell what is wrong, and what to do.
fn table() -> Vec<(LimitError, &'static [&'static str])> {
    let jittered = |limit: Result<Limit, LimitError>| refused(limit.and_then(Limit::jittered));
    vec![
        (refused(Limit::token_bucket("100")), &["`100`", "not a quota", "`100/min`"]),
        (
            refused(Limit::token_bucket("2G/s")),
            &["`2G/s`", "per nanosecond", "`1G/s`", "unlimited"],
        ),
        (
            refused(Limit::token_bucket("1/day burst 500")),
            &["`1/day burst 500`", "500 days", "most is 400 days", "lower the burst to 400"],
        ),
        (
            // Half a day too long looked as if it were allowed.
            refused(Limit::leaky_police("2/day burst 801")),
            &["401 days", "most is 400 days", "lower the burst to 800"],
        ),
        (
            // A quota without a burst was told to lower its burst.
            refused(Limit::leaky_shape("1/month", 13)),
            &["`1/month`", "420 days", "queue of 13", "most is 400 days", "queue of 12"],
        ),
        (refused(Limit::leaky_shape("1/s", 0)), &["queue", "is 0", "from 1 to 1000000"]),
        (refused(Limit::leaky_shape("1/s", 1_000_001)), &["queue", "is 1000001", "1 to 1000000"]),
        (
            refused(Limit::leaky_shape("1/s burst 2", 5)),
            &["`1/s burst 2`", "shaping", "drop the burst"],
        ),
        (refused(Limit::fixed_window("1/s burst 2")), &["a fixed window", "drop", "token bucket"]),
        (
            refused(Limit::sliding_window("1/s burst 2")),
            &["a sliding window", "drop", "token bucket"],
        ),
        (refused(Limit::sliding_log("1/s burst 2")), &["a sliding log", "drop", "token bucket"]),
        (refused(Limit::calendar("1/day burst 2", "UTC")), &["a calendar window", "drop"]),
        (
            refused(Limit::fixed_window("100M/1ms")),
            &["a fixed window", "16777215 per ms", "`100M/ms`", "lower the count", "unlimited"],
        ),
        (
            refused(Limit::sliding_window("1G/s")),
            &["a sliding window", "134217727 per s", "`1G/s`", "lower the count"],
        ),
        (refused(Limit::sliding_log("200k/s")), &["`200k/s`", "100000", "sliding window counter"]),
        (refused(Limit::calendar("5/h", "UTC")), &["`5/h`", "calendar", "day, week or month"]),
        (refused(Limit::calendar("5/2day", "UTC")), &["`5/2day`", "day, week or month"]),
        (refused(Limit::billing_month("5/day", "UTC", 3)), &["`5/day`", "month"]),
        (refused(Limit::billing_month("5/month", "UTC", 0)), &["day 0", "1 to 31"]),
        (refused(Limit::billing_month("5/month", "UTC", 32)), &["day 32", "1 to 31"]),
        (
            refused(Limit::calendar("5/day", "Mars/Olympus")),
            &["`Mars/Olympus`", "time zone", "`UTC`"],
        ),
        (refused(Limit::calendar("5/day", "")), &["``", "time zone", "`UTC`"]),
        (jittered(Limit::calendar("5/day", "UTC")), &["calendar", "cannot be jittered"]),
        (jittered(Limit::token_bucket("5/s")), &["only a fixed window", "token bucket"]),
        (jittered(Limit::leaky_police("5/s")), &["only a fixed window", "policing leaky bucket"]),
        (jittered(Limit::leaky_shape("5/s", 5)), &["only a fixed window", "shaping leaky bucket"]),
        (jittered(Limit::sliding_window("5/s")), &["only a fixed window", "sliding window"]),
        (jittered(Limit::sliding_log("5/s")), &["only a fixed window", "sliding log"]),
    ]
}

#[test]
fn errors_say_what_is_wrong_and_what_is_allowed() {
    for (error, words) in table() {
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "`{word}` is not in: {text}");
        }
    }
}

#[test]
fn each_error_is_reached() {
    let reached = |is: fn(&LimitError) -> bool| table().iter().any(|(error, _)| is(error));
    assert!(reached(|error| matches!(error, LimitError::Quota(_))));
    assert!(reached(|error| matches!(error, LimitError::TooFast { .. })));
    assert!(reached(|error| matches!(error, LimitError::BurstTooLarge { .. })));
    assert!(reached(|error| matches!(error, LimitError::QueueTooLong { .. })));
    assert!(reached(|error| matches!(error, LimitError::NoBurst { .. })));
    assert!(reached(|error| matches!(error, LimitError::WindowTooFull { .. })));
    assert!(reached(|error| matches!(error, LimitError::LogTooLong { .. })));
    assert!(reached(|error| matches!(error, LimitError::NotOnCalendar { .. })));
    assert!(reached(|error| matches!(error, LimitError::NoSuchDay { .. })));
    assert!(reached(|error| matches!(error, LimitError::UnknownTimeZone { .. })));
    assert!(reached(|error| matches!(error, LimitError::CalendarJitter)));
    assert!(reached(|error| matches!(error, LimitError::NothingToJitter { .. })));
    assert!(reached(|error| matches!(error, LimitError::OutOfRange { .. })));
}

/// What an error offers instead is taken, and nothing above it.
#[test]
fn what_errors_offer_is_accepted() {
    assert!(Limit::token_bucket("1G/s").is_ok());
    assert!(Limit::token_bucket("1/day burst 400").is_ok());
    assert!(Limit::token_bucket("1/day burst 401").is_err());
    assert!(Limit::leaky_police("2/day burst 800").is_ok());
    assert!(Limit::leaky_shape("1/month", 12).is_ok());
    assert!(Limit::leaky_shape("1/s", Limit::MAX_QUEUE).is_ok());
    assert!(Limit::fixed_window("16777215/1ms").is_ok());
    assert!(Limit::fixed_window("16777216/1ms").is_err());
    assert!(Limit::sliding_window("134217727/s").is_ok());
    assert!(Limit::sliding_window("134217728/s").is_err());
    assert!(Limit::sliding_log("100k/s").is_ok());
    assert!(Limit::sliding_log("100001/s").is_err());
}

/// At one a year not even one may wait: there is no queue to offer.
#[test]
fn a_queue_that_cannot_be_is_said_to_be_none() {
    let error = refused(Limit::leaky_shape("1/366day", 1));
    assert!(matches!(error, LimitError::QueueTooLong { longest: 0, .. }), "{error}");
}

#[test]
fn quota_errors_say_what_is_wrong_and_what_is_allowed() {
    let table: [(&str, QuotaError, &[&str]); 8] = [
        (
            "10 per s",
            QuotaError::NotAQuota { text: "10 per s".into() },
            &["`10 per s`", "`100/min`"],
        ),
        ("ten/s", QuotaError::NotACount { text: "ten".into() }, &["`ten`", "whole number"]),
        ("0/s", QuotaError::ZeroCount, &["at least 1"]),
        (
            "1000001G/s",
            QuotaError::CountTooLarge { max: Quota::MAX_COUNT },
            &["at most 1000000000000000", "unlimited"],
        ),
        (
            "1/year",
            QuotaError::UnknownUnit { text: "year".into() },
            &["`year`", "ms, s, min, h, day"],
        ),
        (
            "1/13month",
            QuotaError::PeriodOutOfRange {
                text: "13month".into(),
                min: tollgate_core::Period::MIN,
                max: tollgate_core::Period::MAX,
            },
            &["`13month`", "1ms", "366 days"],
        ),
        ("1/s burst 0", QuotaError::ZeroBurst, &["burst", "at least 1"]),
        (
            "unlimited burst 5",
            QuotaError::NotAQuota { text: "unlimited burst 5".into() },
            &["unlimited"],
        ),
    ];
    for (text, right, words) in table {
        let error = text.parse::<Quota>().expect_err(text);
        assert_eq!(error, right, "{text}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    }
    let error = Quota::unlimited().with_burst(5).expect_err("it has none");
    assert_eq!(error, QuotaError::UnlimitedBurst);
    assert!(error.to_string().contains("has no burst"));
}

#[test]
fn a_period_that_is_out_of_range_is_named_as_it_was_given() {
    for (quota, period) in
        [("5/0s", "`0s`"), ("5/ 400 day", "`400day`"), ("5/99999999999 week", "`99999999999 week`")]
    {
        let error = quota.parse::<Quota>().expect_err(quota).to_string();
        assert!(error.contains(period), "{error}");
    }
}

#[test]
fn limits_that_differ_read_differently() {
    let limits = [
        Limit::token_bucket("5/day"),
        Limit::token_bucket("5/day burst 2"),
        Limit::leaky_police("5/day"),
        Limit::leaky_police("5/day burst 2"),
        Limit::leaky_shape("5/day", 7),
        Limit::leaky_shape("5/day", 8),
        Limit::fixed_window("5/day"),
        Limit::fixed_window("5/day").and_then(Limit::jittered),
        Limit::sliding_window("5/day"),
        Limit::sliding_log("5/day"),
        Limit::calendar("5/day", "UTC"),
        Limit::calendar("5/day", "Europe/Berlin"),
        Limit::calendar("5/month", "UTC"),
        Limit::billing_month("5/month", "UTC", 2),
        Limit::billing_month("5/month", "UTC", 31),
        Limit::billing_month("5/month", "Europe/Berlin", 31),
        Limit::token_bucket("unlimited"),
    ]
    .map(|limit| limit.expect("it is a limit"));
    for (index, limit) in limits.iter().enumerate() {
        for other in &limits[..index] {
            assert_ne!(limit.to_string(), other.to_string());
        }
    }
    let text = |limit: Result<Limit, LimitError>| limit.expect("it is a limit").to_string();
    assert_eq!(text(Limit::leaky_shape("5/s", 7)), "shaping leaky bucket of 5/s with a queue of 7");
    assert_eq!(text(Limit::calendar("5/day", "etc/UTC")), "calendar window of 5/day in Etc/UTC");
    assert_eq!(
        text(Limit::billing_month("5/month", "UTC", 1)),
        text(Limit::calendar("5/month", "UTC")),
        "they are the same limit"
    );
}

#[test]
fn texts_of_all_kinds_are_quotas() {
    let text = String::from("5/s burst 2");
    let limit = Limit::token_bucket("5/s burst 2");
    assert_eq!(Limit::token_bucket(&text), limit);
    assert_eq!(Limit::try_from(&text), limit);
    assert_eq!(Limit::try_from(text.clone()), limit);
    assert_eq!(Limit::token_bucket(text), limit);
}

#[test]
fn no_limit_is_no_limit_under_any_name() {
    let limits = [
        Limit::token_bucket("unlimited"),
        Limit::leaky_police("unlimited"),
        Limit::leaky_shape("unlimited", 5),
        Limit::fixed_window("unlimited"),
        Limit::fixed_window("unlimited").and_then(Limit::jittered),
        Limit::sliding_window("unlimited"),
        Limit::sliding_log("unlimited"),
        Limit::calendar("unlimited", "UTC"),
        Limit::billing_month("unlimited", "UTC", 31),
    ];
    for limit in limits {
        let machine = limit.unwrap().machine(tollgate_core::Anchor::default()).unwrap();
        assert!(machine.is_unlimited());
    }
}
