//! All or nothing: spending from several limits at once.

use smallvec::SmallVec;
use tollgate_core::{Decision, Tick};
use tollgate_local::{Clock, Counters, KeyHash, Prepared};

/// What is known of each of a few limits. Up to eight take no allocation.
pub(crate) type Each<T> = SmallVec<[T; 8]>;

/// What a request spends from the counters of one limit.
#[derive(Clone, Copy)]
pub(crate) struct Spending<'a> {
    pub(crate) counters: &'a Counters,
    pub(crate) key: KeyHash,
    pub(crate) cost: u64,
}

impl AsRef<Self> for Spending<'_> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// When something was spent. Only whoever gives it back later asks: an engine, when it hears of
/// outcomes.
#[cfg_attr(not(feature = "rules"), expect(dead_code, reason = "a gate does not ask"))]
pub(crate) enum Times {
    /// From all of them at this time.
    Same(Tick),
    /// From each at its own time, if it was.
    Each(Each<Option<Tick>>),
    /// From none.
    Never,
}

#[cfg(feature = "rules")]
impl Times {
    pub(crate) fn of(&self, index: usize) -> Option<Tick> {
        match self {
            Self::Same(at) => Some(*at),
            Self::Each(at) => at.get(index).copied().flatten(),
            Self::Never => None,
        }
    }
}

/// Spends from all, or from none of them, and puts what each decides into `each`.
///
/// Nearly always all the keys have a state, and nobody interferes: then each decision is made up
/// once, and all are made at the end, or none if one is a denial. Otherwise it is done the long way.
#[inline]
pub(crate) fn spend_all<'a>(
    all: &[impl AsRef<Spending<'a>>],
    clock: &impl Clock,
    each: &mut Each<Decision>,
) -> Times {
    spend_all_at(all, clock, clock.now(), each)
}

/// The same at a time that was read before, for several requests.
#[inline]
pub(crate) fn spend_all_at<'a>(
    all: &[impl AsRef<Spending<'a>>],
    clock: &impl Clock,
    now: Tick,
    each: &mut Each<Decision>,
) -> Times {
    match spend_prepared(all, clock, now, each) {
        Quickly::Spent => Times::Same(now),
        Quickly::Denied => Times::Never,
        Quickly::Not => {
            let spent = spend_slowly(all, clock, now);
            *each = spent.each;
            Times::Each(spent.at)
        }
    }
}

/// What came of the short way.
enum Quickly {
    /// All agreed.
    Spent,
    /// One did not: nothing is spent, and `each` says what every limit would say.
    Denied,
    /// It has to be done the long way, and nothing is spent.
    Not,
}

#[inline]
fn spend_prepared<'a>(
    all: &[impl AsRef<Spending<'a>>],
    clock: &impl Clock,
    now: Tick,
    each: &mut Each<Decision>,
) -> Quickly {
    let mut prepared: Each<Prepared<'_>> = Each::new();
    for (index, one) in all.iter().map(AsRef::as_ref).enumerate() {
        let again = all[..index].iter().any(|other| other.as_ref().is_same(one));
        let Some((decision, ready)) = one.counters.prepare(one.key, one.cost, now) else {
            return Quickly::Not;
        };
        if again {
            return Quickly::Not;
        }
        each.push(decision);
        if !decision.is_allowed() {
            // This one has decided for all of them: it is not asked again.
            if all.len() > 1 {
                look_at_others(all, index, now, each);
            }
            return Quickly::Denied;
        }
        prepared.push(ready);
    }
    for (index, ready) in prepared.iter().enumerate() {
        if !ready.commit() {
            for one in all[..index].iter().map(AsRef::as_ref) {
                one.counters.undo(one.key, one.cost, now, clock);
            }
            return Quickly::Not;
        }
    }
    Quickly::Spent
}

/// Has all limits but the one that denies say what they would, and what is left without it.
#[inline]
fn look_at_others<'a>(
    all: &[impl AsRef<Spending<'a>>],
    denying: usize,
    now: Tick,
    each: &mut Each<Decision>,
) {
    for (index, decision) in each[..denying].iter_mut().enumerate() {
        if !decision.unspend(all[index].as_ref().cost) {
            *decision = look(all, index, now);
        }
    }
    for index in denying + 1..all.len() {
        each.push(look(all, index, now));
    }
}

/// What became of spending from each in turn.
struct Spent {
    each: Each<Decision>,
    at: Each<Option<Tick>>,
}

/// Looks first, and spends only if everybody agrees: so a denial, the usual reason to stop,
/// touches nothing. Where a race makes a limit change its mind in between, what was spent is
/// taken back.
#[inline(never)]
fn spend_slowly<'a>(all: &[impl AsRef<Spending<'a>>], clock: &impl Clock, now: Tick) -> Spent {
    if let [_] | [] = all {
        return spend_each(all, clock, now);
    }
    let looks = look_each(all, now);
    if looks.iter().any(|look| !look.is_allowed()) {
        return Spent { at: SmallVec::from_elem(None, looks.len()), each: looks };
    }
    let mut spent = spend_each(all, clock, now);
    if spent.each.iter().any(|decision| !decision.is_allowed()) {
        take_back(all, clock, &mut spent);
    }
    spent
}

impl Spending<'_> {
    /// Whether it is from the same counter.
    fn is_same(&self, other: &Self) -> bool {
        self.key == other.key && std::ptr::eq(self.counters, other.counters)
    }
}

/// What every limit would say.
pub(crate) fn look_each<'a>(all: &[impl AsRef<Spending<'a>>], now: Tick) -> Each<Decision> {
    (0..all.len()).map(|index| look(all, index, now)).collect()
}

/// What one of them would say. One that a request meets twice with the same key must allow both at
/// once: that the second is denied would be known only after the first was spent.
#[inline(never)]
fn look<'a>(all: &[impl AsRef<Spending<'a>>], index: usize, now: Tick) -> Decision {
    let one = all[index].as_ref();
    let before = all[..index].iter().map(AsRef::as_ref).filter(|other| other.is_same(one));
    let cost = before.fold(one.cost, |sum, other| sum.saturating_add(other.cost));
    one.counters.peek(one.key, cost, now)
}

/// Spends from every limit in turn up to the first denial. Limits that shape come last: a place in
/// their queues cannot be given back.
fn spend_each<'a>(all: &[impl AsRef<Spending<'a>>], clock: &impl Clock, mut now: Tick) -> Spent {
    let mut spent = Spent {
        each: SmallVec::from_elem(Decision::unlimited(), all.len()),
        at: SmallVec::from_elem(None, all.len()),
    };
    let mut denied = false;
    for shaping in [false, true] {
        for (index, one) in all.iter().map(AsRef::as_ref).enumerate() {
            if one.counters.shapes() != shaping {
                continue;
            }
            let decision = match denied {
                true => one.counters.peek(one.key, one.cost, now),
                false => one.counters.check_with(one.key, one.cost, clock, &mut now),
            };
            spent.at[index] = (!denied && decision.is_allowed()).then_some(now);
            spent.each[index] = decision;
            denied |= !decision.is_allowed();
        }
    }
    spent
}

/// Takes back what was spent before the denial, from each limit at the time at which it was spent
/// there: that may be in another window than the one in which the request began. Then has every
/// decision say what is left without it.
fn take_back<'a>(all: &[impl AsRef<Spending<'a>>], clock: &impl Clock, spent: &mut Spent) {
    for (one, at) in all.iter().map(AsRef::as_ref).zip(&mut spent.at) {
        if let Some(then) = at.take() {
            one.counters.undo(one.key, one.cost, then, clock);
        }
    }
    let now = clock.now();
    for (one, decision) in all.iter().map(AsRef::as_ref).zip(&mut spent.each) {
        *decision = decision.with_remaining_of(one.counters.peek(one.key, 0, now));
    }
}
