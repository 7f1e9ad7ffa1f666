//! Law: whatever borrowers do with their tokens while the loans run, and whoever else spends in
//! the meantime, the limit holds.

use proptest::prelude::*;
use tollgate_core::{Loan, Tick, Word};

use crate::bound::{Admission, obeys_bucket, per_window};
use crate::model;
use crate::subject::{Kind, Subject};
use crate::trace::{self, Pause};

#[derive(Clone, Copy, Debug)]
struct Move {
    pause: Pause,
    deed: Deed,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Spend directly so many 2^16ths of the capacity, or at least 1.
    Spend(u16),
    Borrow {
        want: u64,
    },
    /// One of the borrowers spends so many 2^16ths of what it has, or at least 1.
    Use {
        who: u16,
        share: u16,
    },
    /// Spend directly all there is.
    Drain,
    /// All borrowers spend all they have at the last moment, and others all there is besides.
    UseAllAtTheEnd,
}

/// What passed, and how much of it was borrowed.
struct Union {
    admitted: Vec<Admission>,
    borrowed: u64,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let numbers = [any::<u32>(), any::<u32>(), any::<u32>()];
    let one = numbers.prop_map(|[pause, kind, amount]| Move {
        pause: pause_numbered(pause),
        deed: match kind % 16 {
            0..6 => Deed::Spend((amount >> 16) as u16 >> (kind >> 16 & 15)),
            6..10 => Deed::Borrow { want: u64::from(amount) >> (kind >> 16 & 31) },
            10..13 => Deed::Use { who: amount as u16, share: (amount >> 16) as u16 },
            13 => Deed::Drain,
            _ => Deed::UseAllAtTheEnd,
        },
    });
    prop::collection::vec(one, 1..80)
}

/// Loans are short, and therefore most pauses.
fn pause_numbered(number: u32) -> Pause {
    let amount = number / 8;
    match number % 8 {
        0 | 1 => Pause::Nanos(0),
        2..5 => Pause::Nanos(u64::from(amount) >> (amount % 28)),
        5 => Pause::Token(amount % (3 << 16)),
        6 => Pause::Period((amount % (3 << 16)) >> 6),
        _ => Pause::Reset,
    }
}

fn lenders(
    quotas: &'static [&'static str],
    kinds: &'static [Kind],
) -> impl Strategy<Value = Subject> {
    (prop::sample::select(quotas), prop::sample::select(kinds))
        .prop_map(|(quota, kind)| Subject::plain(kind, quota))
}

proptest! {
    #![proptest_config(trace::cases(6))]

    #[test]
    fn a_bucket_that_lends_keeps_its_bound(
        subject in lenders(&BUCKETS, &[Kind::TokenBucket]), start in trace::starts(), moves in moves(),
    ) {
        let union = union(&subject, start, &moves);
        obeys_bucket(&union.admitted, subject.rate(), subject.capacity())?;
    }

    #[test]
    fn a_window_that_lends_keeps_its_limit(
        subject in lenders(&WINDOWS, &[Kind::Fixed, Kind::Jittered, Kind::Sliding]),
        start in trace::starts(),
        moves in moves(),
    ) {
        let union = union(&subject, start, &moves);
        let mut model = model::of(&subject);
        for (at, cost) in &union.admitted {
            model.spend(*at, *cost);
        }
        per_window(&subject, &union.admitted)?;
    }
}

/// Lets all of them spend, and tells what passed, in the order of time.
fn union(subject: &Subject, start: Tick, moves: &[Move]) -> Union {
    let mut union = Union { admitted: Vec::new(), borrowed: 0 };
    let (mut word, mut now, mut loans) = (Word::REST, start, Vec::<(Loan, u64)>::new());
    for Move { pause, deed } in moves {
        let next = now.after(pause.length(subject.rate(), &subject.peek(word, now)));
        if matches!(deed, Deed::UseAllAtTheEnd) {
            loans.sort_by_key(|(loan, _)| loan.until);
            for (loan, left) in loans.drain(..) {
                now = loan.until;
                union.use_up(now, left);
                word = union.spend(subject, word, now, subject.remaining(word, now));
            }
        }
        now = next.max(now);
        loans.retain(|(loan, left)| loan.until >= now && *left > 0);
        match deed {
            Deed::Spend(share) => {
                let cost = part(subject.capacity(), *share).max(1);
                word = union.spend(subject, word, now, cost);
            }
            Deed::Drain => word = union.spend(subject, word, now, subject.remaining(word, now)),
            Deed::Borrow { want } => {
                if let Some(loan) = subject.machine.lend(word, now, *want, subject.phase) {
                    check_loan(subject, word, now, *want, &loan);
                    word = loan.word;
                    loans.push((loan, loan.tokens));
                }
            }
            Deed::Use { who, share } if !loans.is_empty() => {
                let who = usize::from(*who) % loans.len();
                let cost = part(loans[who].1, *share).max(1);
                loans[who].1 -= cost;
                union.use_up(now, cost);
            }
            Deed::Use { .. } | Deed::UseAllAtTheEnd => {}
        }
    }
    union
}

impl Union {
    fn spend(&mut self, subject: &Subject, word: Word, now: Tick, cost: u64) -> Word {
        let step = subject.step(word, now, cost);
        if step.decision.is_allowed() {
            self.admitted.push((now.as_nanos(), cost));
        }
        step.word
    }

    fn use_up(&mut self, now: Tick, cost: u64) {
        self.admitted.push((now.as_nanos(), cost));
        self.borrowed += cost;
    }
}

/// A loan is spent as far as the lender is concerned, is no more than a small part of what was
/// left, and its word ascends.
fn check_loan(subject: &Subject, word: Word, now: Tick, want: u64, loan: &Loan) {
    let left = subject.remaining(word, now);
    assert!((2..=want.min(left / 64)).contains(&loan.tokens), "{loan:?} of {left}");
    assert!(loan.until >= now && loan.word > word && loan.word.bits() < Word::END);
    assert!(subject.remaining(loan.word, now) <= left - loan.tokens);
    assert_eq!(loan.decision, subject.peek(loan.word, now));
    assert_eq!(loan.decision_with(3).remaining(), subject.remaining(loan.word, now) + 3);
}

fn part(whole: u64, share: u16) -> u64 {
    ((u128::from(whole) * u128::from(share)) >> 16) as u64
}

const BUCKETS: [&str; 7] = [
    "1M/s",
    "1M/s burst 200k",
    "1G/s",
    "999983/s burst 1M",
    "1k/s burst 10k",
    "100k/min",
    "7/s burst 1000",
];

const WINDOWS: [&str; 5] = ["1k/s", "1M/s", "131071/s", "500k/min", "200/1ms"];

/// Without loans the laws above would be about nothing.
#[test]
fn there_is_lending_to_speak_of() {
    let borrow = Move { pause: Pause::Nanos(5), deed: Deed::Borrow { want: 1000 } };
    let spend = Move { pause: Pause::Nanos(5), deed: Deed::Use { who: 0, share: u16::MAX } };
    for (kind, quota) in
        [(Kind::TokenBucket, "1M/s"), (Kind::Fixed, "1M/s"), (Kind::Sliding, "1M/s")]
    {
        let subject = Subject::plain(kind, quota);
        assert!(union(&subject, Tick::ZERO, &[borrow, spend]).borrowed > 0, "{subject:?}");
    }
}

/// A full bucket that lent would fill again beside the loan: it lends only what it will miss.
#[test]
fn a_slow_bucket_that_is_full_does_not_lend() {
    let subject = Subject::plain(Kind::TokenBucket, "10k/s");
    assert_eq!(subject.machine.lend(Word::REST, Tick::ZERO, 100, subject.phase), None);
    let word = subject.step(Word::REST, Tick::ZERO, 7).word;
    let loan = subject.machine.lend(word, Tick::ZERO, 5, subject.phase).expect("it lacks seven");
    assert_eq!((loan.tokens, loan.until), (5, Tick::from_nanos(700_000)));
}

/// A borrower may end without having used its loan. What others lose by that is back soon.
#[test]
fn a_loan_is_no_more_than_what_comes_back_in_a_millisecond() {
    for kind in [Kind::TokenBucket, Kind::Fixed, Kind::Jittered, Kind::Sliding] {
        for (quota, most) in [("1M/s", 1_000), ("10k/s", 10), ("1k/s", 0), ("1M/day", 0)] {
            let subject = Subject::plain(kind.clone(), quota);
            // At the beginning of a window.
            let now = Tick::from_nanos(10 * 86_400_000_000_000 - subject.phase.0 % 1_000);
            let word = subject.step(Word::REST, now, 100).word;
            let loan = subject.machine.lend(word, now, u64::MAX, subject.phase);
            let lent = loan.map_or(0, |loan| loan.tokens);
            assert!(lent <= most, "{subject:?} lends {lent}");
            assert!(lent > 0 || most == 0, "{subject:?} lends nothing");
        }
    }
}
