//! Worked examples as textbooks and articles give them, checked by hand.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, Log, Tick, Word};

use crate::subject::{Kind, Subject};
use crate::trace;

const fn millis(millis: u64) -> Tick {
    Tick::from_nanos(millis * 1_000_000)
}

/// How many of `requests` that come at once are allowed, each at a cost of 1.
fn allowed(subject: &Subject, word: &mut Word, now: Tick, requests: usize) -> usize {
    let passes = |_: &usize| {
        let step = subject.step(*word, now, 1);
        *word = step.word;
        step.decision.is_allowed()
    };
    (0..requests).filter(passes).count()
}

/// ```text
///   at     tokens before      requests          tokens after
///   0.0    10                 1                  9
///   0.2     9 + 0.4 =  9.4    1                  8.4
///   0.3   8.4 + 0.2 =  8.6    9, one denied      0.6
///   2.8   0.6 + 5   =  5.6    1                  4.6
///   5.8   4.6 + 6   = 10.6    1                  9, for 0.6 did not fit
/// ```
#[test]
fn a_bucket_of_ten_that_refills_two_a_second() {
    let subject = Subject::plain(Kind::TokenBucket, "2/s burst 10");
    let mut word = Word::REST;
    let trace = [(0, 1, 1, 9), (200, 1, 1, 8), (300, 9, 8, 0), (2800, 1, 1, 4), (5800, 1, 1, 9)];
    for (at, requests, pass, left) in trace {
        assert_eq!(allowed(&subject, &mut word, millis(at), requests), pass, "at {at} ms");
        assert_eq!(subject.remaining(word, millis(at)), left, "at {at} ms");
        if at == 300 {
            // 0.4 tokens are missing, at 2 a second.
            let retry = subject.step(word, millis(at), 1).decision.retry_after();
            assert_eq!(retry, Some(Duration::from_millis(200)));
        }
    }
}

#[test]
fn a_hundred_and_thirty_at_once_into_a_bucket_of_a_hundred() {
    let subject = Subject::plain(Kind::TokenBucket, "50/s burst 100");
    let mut word = Word::REST;
    assert_eq!(allowed(&subject, &mut word, millis(0), 130), 100, "and 30 are denied");
    let denied = subject.step(word, millis(0), 1).decision;
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(20)));
    assert_eq!(denied.reset_after(), Duration::from_secs(2));
    assert_eq!(allowed(&subject, &mut word, millis(19), 1), 0);
    assert_eq!(allowed(&subject, &mut word, millis(20), 2), 1);
    assert_eq!(allowed(&subject, &mut word, millis(1020), 130), 50);
}

/// 80 in the last window, 30 in this one, a quarter of it gone: 80 x 0.75 + 30 = 90.
#[test]
fn the_estimate_of_a_sliding_counter() {
    let subject = Subject::plain(Kind::Sliding, "100/min");
    let mut word = Word::REST;
    assert_eq!(allowed(&subject, &mut word, millis(30_000), 80), 80);
    assert_eq!(allowed(&subject, &mut word, millis(75_000), 30), 30);
    assert_eq!(subject.remaining(word, millis(75_000)), 10);
    assert_eq!(allowed(&subject, &mut word, millis(75_000), 11), 10);
    // 40 of this window and 60 of the last; one more fits when 59 of the last are left.
    let retry = subject.step(word, millis(75_000), 1).decision.retry_after();
    assert_eq!(retry, Some(Duration::from_millis(750)));
    assert_eq!(subject.remaining(word, millis(90_000)), 100 - 40 - 40);
    // In the next window the 40 count as the last one, in the one after that nothing does.
    assert_eq!(subject.remaining(word, millis(120_000)), 60);
    assert_eq!(subject.remaining(word, millis(150_000)), 80);
    assert_eq!(subject.remaining(word, millis(180_000)), 100);
}

#[test]
fn a_fixed_window_lets_twice_the_limit_pass_around_its_end() {
    let fixed = Subject::plain(Kind::Fixed, "100/min");
    let mut word = Word::REST;
    assert_eq!(allowed(&fixed, &mut word, millis(59_999), 150), 100);
    let denied = fixed.step(word, millis(59_999), 1).decision;
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(1)));
    assert_eq!(allowed(&fixed, &mut word, millis(60_000), 150), 100, "200 within a millisecond");

    let sliding = Subject::plain(Kind::Sliding, "100/min");
    let mut word = Word::REST;
    assert_eq!(allowed(&sliding, &mut word, millis(59_999), 150), 100);
    assert_eq!(allowed(&sliding, &mut word, millis(60_000), 150), 0);
    assert_eq!(allowed(&sliding, &mut word, millis(90_000), 150), 50);
}

#[test]
fn a_sliding_log_lets_the_limit_pass_in_any_minute() {
    let rule = Limit::sliding_log("100/min").unwrap().log_rule().unwrap();
    let mut log = Log::default();
    let mut allowed =
        |at, requests| (0..requests).filter(|_| log.step(rule, millis(at), 1).is_allowed()).count();
    assert_eq!(allowed(30_000, 40), 40);
    assert_eq!(allowed(59_999, 150), 60);
    assert_eq!(allowed(60_000, 150), 0);
    assert_eq!(allowed(89_999, 150), 0);
    assert_eq!(allowed(90_000, 150), 40, "as many as came a minute ago");
    assert_eq!(allowed(119_999, 150), 60);
}

#[test]
fn a_policing_leaky_bucket_passes_one_at_a_time() {
    let subject = Subject::plain(Kind::Police, "10/s");
    let mut word = Word::REST;
    assert_eq!(allowed(&subject, &mut word, millis(0), 3), 1);
    let denied = subject.step(word, millis(30), 1).decision;
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(70)));
    assert_eq!(allowed(&subject, &mut word, millis(99), 1), 0);
    assert_eq!(allowed(&subject, &mut word, millis(100), 2), 1);
    assert_eq!(allowed(&subject, &mut word, millis(5_000), 10), 1, "silence earns no burst");

    let subject = Subject::plain(Kind::Police, "10/s burst 3");
    let mut word = Word::REST;
    assert_eq!(allowed(&subject, &mut word, millis(0), 10), 3);
    assert_eq!(allowed(&subject, &mut word, millis(100), 10), 1);
}

/// The last window's count is rounded up to a multiple of a power of two: here a 64th of the
/// limit.
#[test]
fn a_sliding_counter_to_which_two_counts_do_not_fit_rounds_up() {
    let subject = Subject::plain(Kind::Sliding, "67108864/s");
    let step = subject.step(Word::REST, Tick::ZERO, 1);
    assert_eq!(step.decision.remaining(), 67_108_863, "this window is exact");
    let last = 67_108_864 - subject.remaining(step.word, millis(1_000));
    assert_eq!(last, 67_108_864 / 64);
}

proptest! {
    /// Whatever the traffic, a log holds any window to the limit where a fixed window passes it.
    #[test]
    fn a_log_never_lets_more_than_the_limit_pass_in_any_window(
        limit in 1..20u64, pauses in prop::collection::vec(0..400_000_000u64, 1..200),
    ) {
        let rule = Limit::sliding_log(&*format!("{limit}/s")).unwrap().log_rule().unwrap();
        let (mut log, mut now, mut passed) = (Log::default(), Tick::ZERO, Vec::new());
        for pause in pauses {
            now = now.after(Duration::from_nanos(pause / (limit + 1)));
            if log.step(rule, now, 1).is_allowed() {
                passed.push(now);
            }
        }
        let last_of_limit = usize::try_from(limit).unwrap();
        for window in passed.windows(last_of_limit + 1) {
            prop_assert!(window[last_of_limit].since(window[0]) >= Duration::from_secs(1));
        }
    }

    /// Twice the limit is also the most that a fixed window lets pass in any window's length.
    #[test]
    fn a_fixed_window_never_lets_more_than_twice_the_limit_pass(
        limit in 1..20u64, pauses in prop::collection::vec(trace::pauses(), 1..200),
    ) {
        let subject = Subject::plain(Kind::Fixed, &format!("{limit}/s"));
        let (mut word, mut now, mut passed) = (Word::REST, Tick::ZERO, Vec::new());
        for pause in pauses {
            let step = subject.step(word, now, 1);
            word = step.word;
            if step.decision.is_allowed() {
                passed.push(now);
            }
            now = now.after(pause.length(subject.rate(), &step.decision));
        }
        let twice = usize::try_from(2 * limit).unwrap();
        for window in passed.windows(twice + 1) {
            prop_assert!(window[twice].since(window[0]) >= Duration::from_secs(1));
        }
    }
}
