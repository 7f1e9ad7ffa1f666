//! Laws: what is undone soon enough was never there; what is undone too late stays.

use proptest::prelude::*;
use tollgate_core::{Tick, Word};

use crate::fraction::Fraction;
use crate::model;
use crate::subject::{self, Kind, Subject};
use crate::trace::{self, Pause, Request, Visit};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn undo_restores_exactly_what_is_recent_and_leaves_the_rest(
        subject in subject::of(&REGULAR),
        start in trace::starts(),
        requests in trace::requests(40),
        pause in trace::pauses(),
    ) {
        trace::walk(&subject, start, &requests, |visit| undoes(&subject, visit, pause))?;
    }

    #[test]
    fn a_place_in_a_queue_is_not_undone(
        subject in subject::shapes(), start in trace::starts(), requests in trace::requests(20),
    ) {
        trace::walk(&subject, start, &requests, |visit| {
            let (word, now) = (visit.step.word, visit.now);
            prop_assert_eq!(subject.machine.undo(word, now, now, visit.cost, subject.phase), word);
            Ok(())
        })?;
    }

    #[test]
    fn others_get_no_more_in_a_window_because_one_is_undone(
        subject in subject::of(&WINDOWS),
        start in trace::starts(),
        requests in trace::requests(60),
        fates in prop::collection::vec(any::<u8>(), 60),
    ) {
        let run = Run::new(&subject, start, &requests, &fates);
        let mut model = model::of(&subject);
        for kept in run.kept {
            model.spend(kept.at, kept.cost);
        }
    }

    #[test]
    fn others_get_no_more_from_a_bucket_because_one_is_undone(
        subject in subject::of(&BUCKETS),
        start in trace::starts(),
        requests in trace::requests(60),
        fates in prop::collection::vec(any::<u8>(), 60),
    ) {
        let run = Run::new(&subject, start, &requests, &fates);
        keeps_bound(&subject, &run)?;
    }
}

const BUCKETS: [Kind; 2] = [Kind::TokenBucket, Kind::Police];
const WINDOWS: [Kind; 3] = [Kind::Fixed, Kind::Jittered, Kind::Sliding];
const REGULAR: [Kind; 5] =
    [Kind::TokenBucket, Kind::Police, Kind::Fixed, Kind::Jittered, Kind::Sliding];

fn undoes(subject: &Subject, visit: &Visit, pause: Pause) -> Result<(), TestCaseError> {
    let (word, then) = (visit.step.word, visit.now);
    let now = then.after(pause.length(subject.rate(), &visit.step.decision));
    let undone = subject.machine.undo(word, then, now, visit.cost, subject.phase);
    if !visit.spent() {
        return Ok(());
    }
    if subject.is_bucket() {
        return undoes_less_time(subject, visit, now, undone);
    }
    if !is_recent(subject, then, now) {
        prop_assert_eq!(undone, word);
        return Ok(());
    }
    for later in [now, now.after(subject.peek(word, now).reset_after() / 3)] {
        for cost in [0, 1, subject.capacity() / 2, subject.capacity()] {
            let is = subject.step(undone, later, cost).decision;
            prop_assert_eq!(is, subject.step(visit.before, later, cost).decision);
        }
    }
    Ok(())
}

/// What is undone at once was never there; later, less is given back, and never more.
fn undoes_less_time(
    subject: &Subject,
    visit: &Visit,
    now: Tick,
    undone: Word,
) -> Result<(), TestCaseError> {
    for cost in [0, 1, subject.capacity() / 2, subject.capacity()] {
        let (is, was) = (
            subject.step(undone, now, cost).decision,
            subject.step(visit.before, now, cost).decision,
        );
        prop_assert!(cost > 0 || is.remaining() <= was.remaining());
        prop_assert!(was.is_allowed() || !is.is_allowed());
        if now == visit.now {
            prop_assert_eq!(is, was);
        }
    }
    prop_assert!(undone <= visit.step.word, "it takes nothing more");
    Ok(())
}

/// Whether the window in which it was spent has not ended.
fn is_recent(subject: &Subject, then: Tick, now: Tick) -> bool {
    let shift = if subject.kind == Kind::Jittered { i128::from(subject.phase.0) } else { 0 };
    let window = |tick: Tick| {
        let wall = i128::from(tick.as_nanos()) + subject.origin() - shift;
        wall.div_euclid(subject.period().into())
    };
    window(then) == window(now)
}

/// Many spend from one key, and some take back what they spent a few requests later: by a clock
/// that they read right then, or that they read when they spent.
struct Run {
    kept: Vec<Kept>,
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Kept {
    at: u64,
    cost: u64,
}

struct Pending {
    then: Tick,
    cost: u64,
    /// After so many more requests.
    left: u8,
    stale: bool,
}

impl Run {
    fn new(subject: &Subject, start: Tick, requests: &[Request], fates: &[u8]) -> Self {
        let mut run = Self { kept: Vec::new(), pending: Vec::new() };
        let (mut word, mut now) = (Word::REST, start);
        let mut last = subject.peek(word, now);
        for (request, fate) in requests.iter().zip(fates) {
            now = now.after(request.pause.length(subject.rate(), &last));
            let cost = request.cost.tokens(subject.peek(word, now));
            let step = subject.step(word, now, cost);
            last = step.decision;
            if step.decision.is_allowed() && cost > 0 {
                run.spend(subject, now, cost, *fate);
            }
            word = run.undo(subject, step.word, now);
        }
        run
    }

    fn spend(&mut self, subject: &Subject, now: Tick, cost: u64, fate: u8) {
        let at = now.as_nanos();
        match fate % 4 {
            0 | 1 => self.kept.push(Kept { at, cost }),
            // A clock that was not read again may be too old to undo from a bucket.
            fresh_or_stale => self.pending.push(Pending {
                then: now,
                cost,
                left: fate / 4 % 8,
                stale: fresh_or_stale == 3 && !subject.is_bucket(),
            }),
        }
    }

    fn undo(&mut self, subject: &Subject, mut word: Word, now: Tick) -> Word {
        for one in self.pending.extract_if(.., |one| one.left == 0) {
            let read = if one.stale { one.then } else { now };
            word = subject.machine.undo(word, one.then, read, one.cost, subject.phase);
        }
        self.pending.iter_mut().for_each(|one| one.left -= 1);
        word
    }
}

/// The bound of a bucket, for those who took nothing back.
fn keeps_bound(subject: &Subject, run: &Run) -> Result<(), TestCaseError> {
    let (rate, kept) = (Fraction::said(subject.rate()), &run.kept);
    for (index, first) in kept.iter().enumerate() {
        let mut spent = 0;
        for last in &kept[index..] {
            spent += u128::from(last.cost);
            let holds = rate.covers(spent, subject.capacity(), first.at, last.at);
            prop_assert!(holds, "{spent} from {} to {}: {kept:?}", first.at, last.at);
        }
    }
    Ok(())
}

/// One that had spent in a window was undone, by a clock read before its end, when others had
/// already spent in the next: their spending was taken back instead.
#[test]
fn undo_leaves_the_next_window_alone() {
    for kind in [Kind::Fixed, Kind::Sliding] {
        let subject = Subject::plain(kind, "10/s");
        let (end, next) = (Tick::from_nanos(999_999_999), Tick::from_nanos(1_000_000_000));
        let mine = subject.step(Word::REST, end, 1).word;
        let others = subject.step(mine, next, 4).word;
        assert_eq!(subject.machine.undo(others, end, end, 1, subject.phase), others);
    }
}

/// Others who took from a bucket that something pending kept from being full were better off
/// once that was undone: nine were left where six would have been.
#[test]
fn an_undo_gives_back_no_more_than_time_has_left_of_it() {
    let subject = Subject::plain(Kind::TokenBucket, "10/s");
    let at = |millis: u64| Tick::from_nanos(millis * 1_000_000);
    let undone = subject.step(Word::REST, at(0), 5).word;
    let word = subject.step(undone, at(300), 5).word;
    let word = subject.machine.undo(word, at(0), at(400), 5, subject.phase);
    let never = subject.step(Word::REST, at(300), 5).word;
    assert_eq!((subject.remaining(word, at(400)), subject.remaining(never, at(400))), (5, 6));
}
