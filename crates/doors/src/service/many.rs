//! Many decisions at once, for those who ask in pipelines.

use std::sync::OnceLock;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::{
    Ask, Clock as _, Decision, HeavyKey, LimitError, Request, Reserve, Ruling, Stats, SystemClock,
    Throttle, Tick,
};

use crate::door::Name;
use crate::service::Service;

impl Service {
    /// Lets each of these requests pass, or not, with what is kept for them, and calls `each` with its
    /// place and its ruling, which is lent.
    pub(crate) fn check_batch(
        &self,
        door: Name,
        requests: &[Request<'_>],
        kept: &mut Reserve,
        mut each: impl FnMut(usize, &mut Ruling),
    ) {
        if let [request] = requests {
            return each(0, &mut self.check_with(door, request, kept));
        }
        let (first, rest) = match self.metrics.times_of_next(requests.len()) {
            0 => requests.split_at(0),
            timed => {
                let some = requests.split_at(requests.len().min(HELD));
                self.check_timed(door, some.0, timed, kept, &mut each);
                some
            }
        };
        let counting = self.metrics.counting(door);
        let (mut is_due, mut left_out) = (true, 0);
        self.engine.decide_each_with(rest, kept, |at, ruling| {
            counting.decided(ruling);
            match (ruling.is_allowed(), is_due) {
                (true, _) => {}
                (false, true) => is_due = self.denials.note(door, &rest[at], ruling),
                (false, false) => left_out += 1,
            }
            each(first.len() + at, ruling);
        });
        self.denials.leave_out(left_out);
    }

    /// The same, with a look at the clock before and after. What is told about the rulings is not
    /// to be timed with them, so they are kept until all are there.
    fn check_timed(
        &self,
        door: Name,
        requests: &[Request<'_>],
        timed: u64,
        kept: &mut Reserve,
        each: &mut impl FnMut(usize, &mut Ruling),
    ) {
        let mut rulings = SmallVec::<[Ruling; HELD]>::new();
        let began = self.clock().now();
        self.engine.decide_batch_with(requests, kept, |_, ruling| rulings.push(ruling));
        self.metrics.decided_in(self.share_since(began, requests.len()), timed);
        for (at, ruling) in rulings.iter_mut().enumerate() {
            self.decided(door, &requests[at], ruling);
            each(at, ruling);
        }
    }

    /// What each of so many decisions took that began together.
    fn share_since(&self, began: Tick, decisions: usize) -> Duration {
        let of = u32::try_from(decisions).unwrap_or(u32::MAX).max(1);
        self.clock().now().since(began) / of
    }

    /// Lets all of these requests pass, or none, with what is kept for them, and calls `each` with the place and the ruling of
    /// each.
    pub(crate) fn check_together(
        &self,
        door: Name,
        requests: &[Request<'_>],
        kept: &mut Reserve,
        mut each: impl FnMut(usize, Ruling),
    ) {
        self.engine.decide_together_with(requests, kept, |at, ruling| {
            self.decided(door, &requests[at], &ruling);
            each(at, ruling);
        });
    }

    /// Lets each of these pass, or not, by the limit that it brings, and calls `each` with every
    /// answer in order.
    #[inline]
    pub(crate) fn throttle(
        &self,
        door: Name,
        asks: &[Ask<&[u8]>],
        mut each: impl FnMut(Result<Decision, ThrottleError>),
    ) {
        let Some(throttle) = self.throttle.made() else {
            return asks.iter().for_each(|_| each(Err(ThrottleError::Memory)));
        };
        let (mut allowed, mut denied, mut last_denied) = (0, 0, 0);
        let mut answered = |at, answer: Result<Decision, LimitError>| {
            match &answer {
                Ok(decision) if decision.is_allowed() => allowed += 1,
                Ok(_) => (denied, last_denied) = (denied + 1, at),
                Err(_) => {}
            }
            each(answer.map_err(ThrottleError::Limit));
        };
        match self.metrics.times_of_next(asks.len()) {
            0 => throttle.check_batch(asks, answered),
            timed => {
                let mut answers = SmallVec::<[_; 32]>::new();
                let began = self.clock().now();
                throttle.check_batch(asks, |_, answer| answers.push(answer));
                self.metrics.decided_in(self.share_since(began, asks.len()), timed);
                answers.into_iter().enumerate().for_each(|(at, answer)| answered(at, answer));
            }
        }
        self.metrics.throttled(door, allowed, denied);
        if let (1.., Some(ask)) = (denied, asks.get(last_denied)) {
            self.denials.note_throttled(denied, ask.key);
        }
    }

    /// The keys that come, or are denied, most often: of all rules, and of those who bring their
    /// limits themselves.
    pub(crate) fn top(&self, n: usize, denied: bool) -> Vec<HeavyKey> {
        let throttle = self.throttle.made_before();
        let (rules, throttled) = match denied {
            false => (self.engine.top(n), throttle.map(|throttle| throttle.top(n))),
            true => (self.engine.top_denied(n), throttle.map(|throttle| throttle.top_denied(n))),
        };
        let named = |key: HeavyKey| HeavyKey { key: format!("{THROTTLED} key={}", key.key), ..key };
        let throttled = throttled.unwrap_or_default().into_iter().map(named).collect();
        merged([rules, throttled], n)
    }

    /// How the counters of those who bring their limits themselves are doing; `None` if there are
    /// none yet.
    pub(crate) fn throttle_stats(&self) -> Option<Stats> {
        self.throttle.made_before().map(Throttle::stats)
    }

    /// Gives back what was spent with [`throttle`](Self::throttle) by a request that is denied after
    /// all.
    pub(crate) fn refund_throttle(&self, ask: &Ask<&[u8]>) {
        if let Some(throttle) = self.throttle.made_before() {
            // A limit that could be spent from is one.
            let _ = throttle.refund(ask.key, ask.quota, ask.cost);
        }
    }

    /// Gives a key of [`throttle`](Self::throttle) everything back. `false` if it has it.
    pub(crate) fn reset_throttle(&self, key: &[u8]) -> bool {
        self.throttle.made_before().is_some_and(|throttle| throttle.reset(key))
    }
}

/// Two lists of heavy keys as one, each with its share of all.
fn merged(lists: [Vec<HeavyKey>; 2], n: usize) -> Vec<HeavyKey> {
    let came = |keys: &Vec<HeavyKey>| match keys.first() {
        Some(key) if key.share > 0.0 => key.count as f64 / key.share,
        _ => 0.0,
    };
    let all: f64 = lists.iter().map(came).sum();
    let mut keys = lists.concat();
    keys.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
    keys.truncate(n);
    for key in &mut keys {
        key.share = key.count as f64 / all.max(1.0);
    }
    keys
}

/// Why somebody's own limit cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ThrottleError {
    /// There is no such limit.
    #[error("{0}")]
    Limit(#[source] LimitError),
    /// There is no room for its keys.
    #[error("there is no memory for keys: serve with fewer of them")]
    Memory,
}

/// Counters for those who bring their limits themselves. They take as much memory as those of all
/// rules, so they are made when somebody first asks for them.
#[derive(Debug)]
pub(super) struct Throttles {
    keys: usize,
    clock: SystemClock,
    /// `None` if there was no memory.
    made: OnceLock<Option<Throttle>>,
}

impl Throttles {
    pub(super) const fn new(keys: usize, clock: SystemClock) -> Self {
        Self { keys, clock, made: OnceLock::new() }
    }

    /// Those that somebody has asked for before.
    fn made_before(&self) -> Option<&Throttle> {
        self.made.get().and_then(Option::as_ref)
    }

    #[inline]
    fn made(&self) -> Option<&Throttle> {
        let make = || {
            let builder = Throttle::builder().keys(self.keys).clock(self.clock.clone());
            let made = builder.build().inspect_err(|error| {
                tracing::error!(%error, "CL.THROTTLE cannot be answered");
            });
            made.ok()
        };
        self.made.get_or_init(make).as_ref()
    }
}

/// What decisions of `CL.THROTTLE` are called where others have the name of a rule. No rule is called
/// so.
pub(crate) const THROTTLED: &str = "(cl.throttle)";

/// So many rulings are kept at once while they are timed: whoever holds more pointers to the rules
/// has to count them, and that would be timed as well.
const HELD: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_lists_have_their_shares_of_both() {
        let heavy = |key: &str, count, share| HeavyKey { key: key.to_owned(), count, share };
        let rules = vec![heavy("a", 60, 0.6), heavy("b", 40, 0.4)];
        let throttled = vec![heavy("c", 50, 0.5), heavy("d", 10, 0.1)];
        let merged = merged([rules, throttled], 3);
        let told: Vec<_> = merged.iter().map(|it| (&*it.key, it.count, it.share)).collect();
        assert_eq!(told, [("a", 60, 0.3), ("c", 50, 0.25), ("b", 40, 0.2)]);
        assert!(super::merged([Vec::new(), Vec::new()], 3).is_empty());
    }
}
