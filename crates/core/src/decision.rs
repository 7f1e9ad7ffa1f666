//! The answer: may this request pass, what is left, and when to come back.

use std::cmp::Ordering;
use std::time::Duration;

use crate::word::Word;

/// What a limit says to one request.
///
/// A decision is small and `Copy`; its numbers are worked out when they are asked for, so they cost
/// nothing to those who only want to know [`is_allowed`](Self::is_allowed).
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Decision, Retry, Verdict};
///
/// let decision = Decision::deny(100, 0, Duration::from_secs(60), Retry::After(Duration::from_millis(600)));
/// assert!(!decision.is_allowed());
/// assert_eq!(decision.retry_after(), Some(Duration::from_millis(600)));
/// assert_eq!(decision.verdict(), Verdict::Deny(Retry::After(Duration::from_millis(600))));
/// ```
#[derive(Clone, Copy)]
pub struct Decision {
    // Four whole words, the last two copied from the machine as they stand there: a decision is
    // written for every request, and read in full for few.
    /// The kind in the highest bits, below it whether the rest is [told in time](Room::Time), and
    /// then the delay of an allowance or the retry time of a denial in nanoseconds.
    verdict: u64,
    /// What is left, in tokens, or what is spent, in time.
    amount: u64,
    limit: u64,
    /// Nanoseconds until the whole limit is available again, or the time that a token takes.
    scale: u64,
}

/// The three things a limit can say.
///
/// ```
/// use tollgate_core::{Decision, Verdict};
/// assert_eq!(Decision::unlimited().verdict(), Verdict::Allow);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request may pass now.
    Allow,
    /// The request may pass after this delay; its place is already taken.
    AllowAfter(Duration),
    /// The request may not pass, and has spent nothing.
    Deny(Retry),
}

/// When a denied request is worth trying again.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Decision, Retry};
/// let never = Decision::deny(10, 10, Duration::ZERO, Retry::Never);
/// assert_eq!(never.retry_after(), None);
/// assert_eq!(never.retry(), Some(Retry::Never));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// At this time, and not a nanosecond before, if nobody else spends in between.
    After(Duration),
    /// As soon as somebody returns a permit; nobody knows when.
    OnReturn,
    /// Never: the request costs more than the limit can ever hold.
    Never,
}

/// The kinds, from the mildest to the strictest.
mod kind {
    pub(super) const ALLOW: u64 = 0;
    pub(super) const ALLOW_AFTER: u64 = 1;
    pub(super) const DENY_FOR: u64 = 2;
    pub(super) const DENY_UNTIL_RETURN: u64 = 3;
    pub(super) const DENY_FOREVER: u64 = 4;

    /// Where the kind begins in a verdict.
    pub(super) const SHIFT: u32 = 60;
    /// Whether a decision tells of time. Below there is room for a wait of 18 years.
    pub(super) const IN_TIME: u64 = 1 << 59;
    pub(super) const WAIT: u64 = IN_TIME - 1;
}

impl Decision {
    /// What [`limit`](Self::limit) and [`remaining`](Self::remaining) say when there is no limit.
    ///
    /// ```
    /// use tollgate_core::Decision;
    /// assert_eq!(Decision::unlimited().limit(), Decision::UNLIMITED);
    /// ```
    pub const UNLIMITED: u64 = u64::MAX;

    /// The request may pass now; `remaining` more of cost 1 would pass as well.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Decision;
    /// let decision = Decision::allow(100, 99, Duration::from_millis(600));
    /// assert!(decision.is_allowed());
    /// assert_eq!((decision.limit(), decision.remaining()), (100, 99));
    /// ```
    pub fn allow(limit: u64, remaining: u64, reset: Duration) -> Self {
        Self::allow_resetting(limit, remaining, crate::time::nanos(reset))
    }

    /// The same for whoever has the time until the whole limit is available again in nanoseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Decision;
    /// let (decision, second) = (Decision::allow_resetting(100, 99, 1_000_000_000), Duration::from_secs(1));
    /// assert_eq!(decision, Decision::allow(100, 99, second));
    /// ```
    #[inline]
    pub const fn allow_resetting(limit: u64, remaining: u64, reset: u64) -> Self {
        Self::raw(kind::ALLOW, 0, Room::Tokens { limit, left: remaining, reset })
    }

    /// The request may not pass.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Decision, Retry};
    /// let decision = Decision::deny(5, 0, Duration::ZERO, Retry::OnReturn);
    /// assert!(!decision.is_allowed());
    /// ```
    pub fn deny(limit: u64, remaining: u64, reset: Duration, retry: Retry) -> Self {
        let reset = crate::time::nanos(reset);
        Self::denied(retry, Room::Tokens { limit, left: remaining, reset })
    }

    /// There is no limit.
    ///
    /// ```
    /// use tollgate_core::Decision;
    /// assert_eq!(Decision::unlimited().remaining(), Decision::UNLIMITED);
    /// ```
    pub const fn unlimited() -> Self {
        let room = Room::Tokens { limit: Self::UNLIMITED, left: Self::UNLIMITED, reset: 0 };
        Self::raw(kind::ALLOW, 0, room)
    }

    #[inline]
    pub(crate) const fn allowed(room: Room) -> Self {
        Self::raw(kind::ALLOW, 0, room)
    }

    #[inline]
    pub(crate) const fn allowed_after(delay: u64, room: Room) -> Self {
        Self::raw(if delay == 0 { kind::ALLOW } else { kind::ALLOW_AFTER }, delay, room)
    }

    #[inline]
    pub(crate) const fn denied_for(wait: u64, room: Room) -> Self {
        Self::raw(kind::DENY_FOR, wait, room)
    }

    #[inline]
    pub(crate) const fn denied_forever(room: Room) -> Self {
        Self::raw(kind::DENY_FOREVER, 0, room)
    }

    pub(crate) fn denied(retry: Retry, room: Room) -> Self {
        match retry {
            Retry::After(wait) => Self::denied_for(crate::time::nanos(wait).min(kind::WAIT), room),
            Retry::OnReturn => Self::raw(kind::DENY_UNTIL_RETURN, 0, room),
            Retry::Never => Self::denied_forever(room),
        }
    }

    #[inline(always)]
    const fn raw(kind: u64, wait: u64, room: Room) -> Self {
        let verdict = (kind << kind::SHIFT) | wait;
        match room {
            Room::Tokens { limit, left, reset } => {
                Self { verdict, amount: left, limit, scale: reset }
            }
            Room::Time { limit, spent, interval } => {
                Self { verdict: verdict | kind::IN_TIME, amount: spent, limit, scale: interval }
            }
        }
    }

    #[inline]
    const fn room(&self) -> Room {
        let Self { verdict, amount, limit, scale } = *self;
        match verdict & kind::IN_TIME {
            0 => Room::Tokens { limit, left: amount, reset: scale },
            _ => Room::Time { limit, spent: amount, interval: scale },
        }
    }

    #[inline]
    const fn kind(&self) -> u64 {
        self.verdict >> kind::SHIFT
    }

    #[inline]
    const fn wait(&self) -> Duration {
        Duration::from_nanos(self.verdict & kind::WAIT)
    }

    /// Whether the request may pass, now or after a delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Decision, Retry};
    /// let second = Duration::from_secs(1);
    /// assert!(Decision::allow(5, 0, second).is_allowed(), "it was the last of five");
    /// assert!(!Decision::deny(5, 0, second, Retry::After(second / 5)).is_allowed());
    /// ```
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.kind() <= kind::ALLOW_AFTER
    }

    /// The verdict in full.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Decision, Retry, Verdict};
    /// let (minute, wait) = (Duration::from_secs(60), Retry::After(Duration::from_secs(12)));
    /// assert_eq!(Decision::allow(5, 3, minute).verdict(), Verdict::Allow);
    /// assert_eq!(Decision::deny(5, 0, minute, wait).verdict(), Verdict::Deny(wait));
    /// ```
    pub const fn verdict(&self) -> Verdict {
        match self.kind() {
            kind::ALLOW => Verdict::Allow,
            kind::ALLOW_AFTER => Verdict::AllowAfter(self.wait()),
            kind::DENY_FOR => Verdict::Deny(Retry::After(self.wait())),
            kind::DENY_UNTIL_RETURN => Verdict::Deny(Retry::OnReturn),
            _ => Verdict::Deny(Retry::Never),
        }
    }

    /// The most that can ever be available at one instant: a bucket's burst, a window's limit.
    /// [`Decision::UNLIMITED`] if there is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Decision;
    /// assert_eq!(Decision::allow(100, 97, Duration::from_secs(2)).limit(), 100);
    /// assert_eq!(Decision::unlimited().limit(), Decision::UNLIMITED);
    /// ```
    #[inline]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// How much would still be allowed now, after this decision.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Decision;
    /// assert_eq!(Decision::allow(100, 97, Duration::from_secs(2)).remaining(), 97);
    /// ```
    #[inline]
    pub const fn remaining(&self) -> u64 {
        self.room().left()
    }

    /// Has it say what is left if `cost`, which it has spent, is not spent after all. `false` if that
    /// cannot be told from the decision alone; then it says what it said.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let machine = Limit::token_bucket("5/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let mut decision = machine.step(Word::REST, Tick::ZERO, 2, Phase::default()).decision;
    /// assert_eq!(decision.remaining(), 3);
    /// assert!(decision.unspend(2));
    /// assert_eq!(decision.remaining(), 5);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline]
    pub const fn unspend(&mut self, cost: u64) -> bool {
        if self.verdict != kind::IN_TIME {
            return false;
        }
        let Some(span) = cost.checked_mul(self.scale) else { return false };
        let Some(amount) = self.amount.checked_sub(span) else { return false };
        // In its place: others have just been written beside it.
        self.amount = amount;
        true
    }

    /// How long until the whole limit is available again, if nothing more is spent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Decision;
    /// let decision = Decision::allow(100, 97, Duration::from_millis(1_800));
    /// assert_eq!(decision.reset_after(), Duration::from_millis(1_800), "three tokens of 600 ms");
    /// ```
    #[inline]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_nanos(self.room().reset())
    }

    /// How long an allowed request must wait before it goes on; zero unless the limit shapes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let limit = Limit::leaky_shape("10/s", 5)?;
    /// let machine = limit.machine(Anchor::default()).expect("a word is enough");
    /// let first = machine.step(Word::REST, Tick::ZERO, 1, Phase::default());
    /// let second = machine.step(first.word, Tick::ZERO, 1, Phase::default());
    /// assert_eq!(first.decision.delay(), Duration::ZERO);
    /// assert_eq!(second.decision.delay(), Duration::from_millis(100));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline]
    pub const fn delay(&self) -> Duration {
        match self.kind() {
            kind::ALLOW_AFTER => self.wait(),
            _ => Duration::ZERO,
        }
    }

    /// When to try again; `None` if the request was allowed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Decision, Retry};
    /// let minute = Duration::from_secs(60);
    /// let denied = Decision::deny(5, 2, minute, Retry::Never);
    /// assert_eq!(denied.retry(), Some(Retry::Never), "it cost more than five");
    /// assert_eq!(Decision::allow(5, 2, minute).retry(), None);
    /// ```
    pub const fn retry(&self) -> Option<Retry> {
        match self.verdict() {
            Verdict::Deny(retry) => Some(retry),
            _ => None,
        }
    }

    /// The exact time after which the same request would be allowed. `None` if this one was
    /// allowed, or if waiting does not help: see [`retry`](Self::retry).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Decision, Retry};
    /// let (minute, wait) = (Duration::from_secs(60), Duration::from_secs(12));
    /// let denied = Decision::deny(5, 0, minute, Retry::After(wait));
    /// assert_eq!(denied.retry_after(), Some(wait));
    /// assert_eq!(Decision::deny(5, 2, minute, Retry::Never).retry_after(), None);
    /// ```
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.kind() {
            kind::DENY_FOR => Some(self.wait()),
            _ => None,
        }
    }

    /// The stricter of two answers to one request: a denial before an allowance, the longer wait
    /// before the shorter, then the smaller remainder, and of equal ones that which takes longer to
    /// come back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Decision, Retry};
    /// let plenty = Decision::allow(100, 90, Duration::ZERO);
    /// let little = Decision::allow(10, 1, Duration::ZERO);
    /// let denied = Decision::deny(5, 0, Duration::ZERO, Retry::After(Duration::from_secs(1)));
    /// assert_eq!(plenty.stricter(little), little);
    /// assert_eq!(little.stricter(denied), denied);
    /// let later = Decision::allow(10, 1, Duration::from_secs(60));
    /// assert_eq!(little.stricter(later), later, "who waits for the other waits in vain");
    /// ```
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |d: &Self| (d.kind(), d.wait(), std::cmp::Reverse(d.remaining()));
        match rank(&other).cmp(&rank(&self)) {
            Ordering::Greater => other,
            Ordering::Equal if other.reset_after() > self.reset_after() => other,
            _ => self,
        }
    }

    /// The same verdict, with what `other` says is left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Decision;
    /// let would = Decision::allow(10, 3, Duration::ZERO);
    /// let now = Decision::allow(10, 4, Duration::ZERO);
    /// assert_eq!(would.with_remaining_of(now).remaining(), 4);
    /// ```
    #[must_use]
    pub const fn with_remaining_of(self, other: Self) -> Self {
        Self::raw(self.kind(), self.verdict & kind::WAIT, other.room())
    }

    /// This decision with `extra` more tokens remaining: what a caller holds besides.
    #[must_use]
    #[inline]
    pub(crate) const fn with_extra(self, extra: u64) -> Self {
        let room = self.room();
        let left = room.left().saturating_add(extra);
        let room = Room::Tokens { limit: self.limit, left, reset: room.reset() };
        Self::raw(self.kind(), self.verdict & kind::WAIT, room)
    }
}

/// What decisions say counts, not how they put it.
impl PartialEq for Decision {
    fn eq(&self, other: &Self) -> bool {
        let said = |d: &Self| (d.verdict(), d.limit, d.remaining(), d.reset_after());
        said(self) == said(other)
    }
}

impl Eq for Decision {}

impl std::fmt::Debug for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decision")
            .field("verdict", &self.verdict())
            .field("limit", &self.limit())
            .field("remaining", &self.remaining())
            .field("reset_after", &self.reset_after())
            .finish()
    }
}

/// What a machine says beside the verdict, in the terms in which it thinks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// So many tokens of the limit are left; after `reset` nanoseconds all of them.
    Tokens { limit: u64, left: u64, reset: u64 },
    /// All tokens are back when `spent` has passed, each after an `interval`, both in the units
    /// of [`Word`]s.
    Time { limit: u64, spent: u64, interval: u64 },
}

impl Room {
    #[inline]
    pub(crate) const fn left(&self) -> u64 {
        match *self {
            Self::Tokens { left, .. } => left,
            Self::Time { limit, spent, interval } => {
                let left = limit.saturating_mul(interval).saturating_sub(spent);
                match left.checked_div(interval) {
                    Some(tokens) => tokens,
                    None => 0,
                }
            }
        }
    }

    /// In nanoseconds.
    #[inline]
    pub(crate) const fn reset(&self) -> u64 {
        match *self {
            Self::Tokens { reset, .. } => reset,
            Self::Time { spent, .. } => spent.div_ceil(Word::PER_NANO),
        }
    }
}
