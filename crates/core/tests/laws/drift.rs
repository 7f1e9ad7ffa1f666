//! Law: no error builds up, in a hundred thousand tokens or in years.

use tollgate_core::{Tick, Word};

use crate::fraction::Fraction;
use crate::subject::{Kind, Subject};

/// Takes every token at the first moment it is there, and tells how many it got, and when the
/// last.
fn hammer(subject: &Subject, word: Word, start: Tick, tokens: u64) -> (u64, Tick, Word) {
    let (mut word, mut now, mut got) = (word, start, 0);
    while got < tokens {
        let step = subject.step(word, now, 1);
        word = step.word;
        match step.decision.retry_after() {
            None => got += 1,
            Some(wait) => now = now.after(wait),
        }
    }
    (got, now, word)
}

const EXACT: [&str; 10] = [
    "3/s",
    "7/s",
    "33/s",
    "100/min",
    "7/min",
    "64/s burst 3",
    "1k/s burst 7",
    "10/15min",
    "1G/s burst 1k",
    "60/7s burst 11",
];

#[test]
fn a_hundred_thousand_tokens_come_exactly_in_time() {
    for quota in EXACT {
        let subject = Subject::plain(Kind::TokenBucket, quota);
        let rate = subject.rate();
        assert!(Fraction::is_exact(rate), "{quota}");
        let start = Tick::from_nanos(12_345_678_901);
        let (got, end, _) = hammer(&subject, Word::REST, start, 100_000);
        let passed = end.as_nanos() - start.as_nanos();
        let right = u128::from(subject.capacity()) + Fraction::said(rate).in_nanos(passed);
        assert_eq!(u128::from(got), right, "{quota} after {passed} ns");
    }
}

#[test]
fn years_of_silence_give_one_burst_and_not_a_token_more() {
    for quota in EXACT {
        let subject = Subject::plain(Kind::TokenBucket, quota);
        let (burst, rate) = (subject.capacity(), Fraction::said(subject.rate()));
        let mut word = Word::REST;
        for year in 0..5u64 {
            let start = Tick::from_nanos(year * 31_557_600_000_000_007);
            assert_eq!(subject.remaining(word, start), burst, "{quota} in year {year}");
            let (got, end, after) = hammer(&subject, word, start, burst.min(1_000) + 1_000);
            let passed = end.as_nanos() - start.as_nanos();
            let right = u128::from(burst) + rate.in_nanos(passed);
            assert!(u128::from(got) <= right && (burst > 1_000 || u128::from(got) == right));
            word = after;
        }
    }
}

/// One token a day, taken every day for six years.
#[test]
fn six_years_of_days_are_six_years_of_tokens() {
    let subject = Subject::plain(Kind::TokenBucket, "1/day");
    let (got, end, _) = hammer(&subject, Word::REST, Tick::ZERO, 2_000);
    assert_eq!((got, end.as_nanos()), (2_000, 1_999 * 86_400_000_000_000));
}

/// The interval of such a rate is no whole number of 64ths of a nanosecond: it is rounded up.
#[test]
fn odd_rates_fall_short_by_little_and_never_pass_more() {
    for (quota, most_short) in
        [("999/min", 1), ("9973/s", 20), ("67/s burst 1", 1), ("999983/s burst 1k", 2_000)]
    {
        let subject = Subject::plain(Kind::TokenBucket, quota);
        let (burst, rate) = (subject.capacity(), subject.rate());
        assert!(!Fraction::is_exact(rate), "{quota}");
        let (got, end, _) = hammer(&subject, Word::REST, Tick::ZERO, 100_000 + burst);
        let right = u128::from(burst) + Fraction::said(rate).in_nanos(end.as_nanos());
        let short = right.checked_sub(u128::from(got)).expect(quota);
        assert!(short <= most_short, "{quota} is {short} short of {right}");
    }
}
