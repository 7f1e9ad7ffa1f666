//! Law: nothing overflows, at any legal quota, tick and cost. Tests run with overflow checks and
//! debug assertions on.

use proptest::prelude::*;
use tollgate_core::{Anchor, Limit, Phase, Tick, Wall, Word};

use crate::subject::{Kind, Subject, magnitudes};
use crate::trace;

const QUOTAS: [&str; 24] = [
    "1/1ms",
    "1/s",
    "1/month",
    "1/366day",
    "1/12month",
    "1M/1ms",
    "131071/1ms",
    "131072/1ms",
    "16777215/1ms",
    "1G/s",
    "999999999/s",
    "500000001/s burst 1G",
    "1G/s burst 1000000G",
    "1/s burst 34560000",
    "65/366day",
    "1000000000000000/366day",
    "999999999999999/366day",
    "1000000000000000/day",
    "1000000000000000/month",
    "1000000000000000/2month",
    "1000000000000000/10h",
    "2199023255551/min",
    "64/1ms burst 2211840000000",
    "1/day burst 400",
];

fn kinds() -> Vec<Kind> {
    let zone = || "Pacific/Apia".to_owned();
    vec![
        Kind::TokenBucket,
        Kind::Police,
        Kind::Shape { queue: 1 },
        Kind::Shape { queue: Limit::MAX_QUEUE },
        Kind::Fixed,
        Kind::Jittered,
        Kind::Calendar { zone: zone() },
        Kind::Billing { zone: zone(), day: 31 },
        Kind::Sliding,
    ]
}

fn anchors() -> Vec<Anchor> {
    let walls = [0, 1, 1_767_225_600_000_000_007, u64::MAX];
    let ticks = [0, 1, u64::MAX];
    let pairs = walls.iter().flat_map(|wall| ticks.map(|tick| (*wall, tick)));
    let anchor =
        |(wall, tick)| Anchor { wall: Wall::from_unix_nanos(wall), tick: Tick::from_nanos(tick) };
    pairs.map(anchor).collect()
}

fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for quota in QUOTAS {
        for kind in kinds() {
            for (number, anchor) in anchors().into_iter().enumerate() {
                let phase = Phase([0, 1, u64::MAX][number % 3]);
                subjects.extend(Subject::new(kind.clone(), quota, anchor, phase));
            }
        }
    }
    subjects
}

const END: u64 = Tick::MAX.as_nanos();
const TICKS: [u64; 7] = [0, 1, 999_999, END / 2, END - 1_000_000_000, END - 1, END];
const COSTS: [u64; 5] = [0, 1, 2, u64::MAX - 1, u64::MAX];

/// Everything that can be done to a state.
fn deeds(subject: &Subject, word: Word, now: Tick, cost: u64) -> Vec<Word> {
    let (machine, phase) = (&subject.machine, subject.phase);
    let step = machine.step(word, now, cost, phase);
    let _ = (step.decision.remaining(), step.decision.reset_after(), step.decision.retry());
    let mut words = vec![
        step.word,
        machine.join(word, machine.step(Word::REST, now, cost, phase).word, phase),
        machine.refund(word, now, cost, phase),
        machine.undo(word, Tick::ZERO, now, cost, phase),
        machine.undo(word, now, Tick::ZERO, cost, phase),
        machine.undo(word, now, now, cost, phase),
    ];
    if let Some(loan) = machine.lend(word, now, cost, phase) {
        assert!(loan.until <= Tick::MAX);
        let _ = (loan.decision_with(u64::MAX).remaining(), loan.decision_with(0).remaining());
        words.push(loan.word);
    }
    words
}

#[test]
fn nothing_overflows_wherever_two_deeds_lead() {
    for subject in subjects() {
        let costs = [&COSTS[..], &[subject.capacity() - 1, subject.capacity()]].concat();
        for first in TICKS {
            for cost in &costs {
                for word in deeds(&subject, Word::REST, Tick::from_nanos(first), *cost) {
                    assert!(word.bits() < Word::END, "{subject:?}");
                    for second in [0, first, END] {
                        for word in deeds(&subject, word, Tick::from_nanos(second), *cost) {
                            assert!(word.bits() < Word::END, "{subject:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_largest_quotas_of_all_algorithms_are_among_them() {
    for (kind, quota) in [
        (Kind::TokenBucket, "1G/s burst 1000000G"),
        (Kind::TokenBucket, "1/s burst 34560000"),
        (Kind::TokenBucket, "64/1ms burst 2211840000000"),
        (Kind::Fixed, "16777215/1ms"),
        (Kind::Fixed, "1000000000000000/10h"),
        (Kind::Sliding, "131071/1ms"),
        (Kind::Sliding, "1000000000000000/2month"),
        (Kind::Calendar { zone: "UTC".into() }, "1000000000000000/day"),
    ] {
        assert!(QUOTAS.contains(&quota));
        Subject::plain(kind, quota);
    }
}

proptest! {
    #![proptest_config(trace::cases(8))]

    /// A state that passes to another key may be read by the machine of the wrong limit, whose
    /// answer is then thrown away: it must not panic. Words are as late as any that a clock of
    /// five years brings about, or a little after the present.
    #[test]
    fn a_word_of_another_limit_does_no_harm(
        subject in crate::subject::all(),
        bits in 0..Word::at(Tick::from_nanos(END / 6 * 5)).bits(),
        ahead in magnitudes(58),
        now in trace::starts(),
        cost in trace::costs(),
    ) {
        for bits in [bits, Word::at(now).bits() + ahead] {
            let word = Word::from_bits(bits).expect("below the end");
            for cost in [cost.tokens(subject.peek(word, now)), 1, u64::MAX] {
                deeds(&subject, word, now, cost);
            }
            let decision = subject.step(word, now, 1).decision;
            prop_assert!(decision.remaining() <= decision.limit());
        }
    }
}
