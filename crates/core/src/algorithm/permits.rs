//! Concurrency: so many at once, however long each takes.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::decision::{Decision, Retry};
use crate::time::{Tick, nanos};

/// The permits that one key has out.
///
/// A permit comes back when its holder returns it, or when it expires because the holder died. After
/// what time that is comes with every question, and holds for all permits that are out: whoever
/// shortens it does not wait for those given out before, and whoever extends it grants them the rest.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use tollgate_core::{Permits, Retry, Tick};
///
/// let max = NonZeroU32::new(1).expect("not zero");
/// let minute = Some(Duration::from_secs(60));
/// let mut permits = Permits::default();
/// let permit = permits.acquire(max, minute, Tick::ZERO).expect("one is free");
/// let denied = permits.acquire(max, minute, Tick::ZERO).expect_err("it is out");
/// assert_eq!(denied.retry(), Some(Retry::OnReturn));
/// assert!(permits.give_back(permit));
/// assert!(permits.acquire(max, minute, Tick::ZERO).is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Permits {
    /// In the order they were given out, so ascending by number.
    out: VecDeque<Hold>,
    given: u64,
}

/// Names a permit that is out: what [`Permits::give_back`] takes.
///
/// ```
/// use std::num::NonZeroU32;
/// use tollgate_core::{Permits, Tick};
/// let mut permits = Permits::default();
/// let permit = permits.acquire(NonZeroU32::MIN, None, Tick::ZERO).expect("one is free");
/// assert!(permits.give_back(permit));
/// assert!(!permits.give_back(permit), "a permit comes back once");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permit(u64);

#[derive(Clone, Copy, Debug)]
struct Hold {
    permit: Permit,
    since: Tick,
}

impl Permits {
    /// No permits, the first of which will have this number. Permits of one key must not repeat a
    /// number while an old holder may still return one, also when the state was forgotten.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tollgate_core::{Permits, Tick};
    /// let mut old = Permits::default();
    /// let permit = old.acquire(NonZeroU32::MIN, None, Tick::ZERO).expect("one is free");
    /// let mut new = Permits::numbered_from(old.next_number());
    /// new.acquire(NonZeroU32::MIN, None, Tick::ZERO).expect("one is free");
    /// assert!(!new.give_back(permit), "it is another one");
    /// ```
    pub fn numbered_from(first: u64) -> Self {
        Self { given: first, ..Self::default() }
    }

    /// The number of the next permit.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Permits::default().next_number(), 0);
    /// ```
    pub const fn next_number(&self) -> u64 {
        self.given
    }

    /// Takes a permit if fewer than `max` are out.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tollgate_core::{Permits, Tick};
    /// assert!(Permits::default().acquire(NonZeroU32::MIN, None, Tick::ZERO).is_ok());
    /// ```
    pub fn acquire(
        &mut self,
        max: NonZeroU32,
        expires: Option<Duration>,
        now: Tick,
    ) -> Result<Permit, Decision> {
        self.forget(expires, now);
        if self.out.len() >= max.get() as usize {
            return Err(Decision::deny(max.get().into(), 0, Duration::ZERO, Retry::OnReturn));
        }
        let permit = Permit(self.given);
        self.given += 1;
        self.out.push_back(Hold { permit, since: now });
        Ok(permit)
    }

    /// Takes a permit back. `false` if it is not out: it came back before, or it expired.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tollgate_core::{Permits, Tick};
    /// let mut permits = Permits::default();
    /// let permit = permits.acquire(NonZeroU32::MIN, None, Tick::ZERO).expect("one is free");
    /// assert!(permits.give_back(permit));
    /// ```
    pub fn give_back(&mut self, permit: Permit) -> bool {
        let place = self.out.binary_search_by_key(&permit.0, |hold| hold.permit.0);
        place.ok().and_then(|place| self.out.remove(place)).is_some()
    }

    /// How many permits are kept, expired ones included until somebody looks: what they cost in
    /// memory.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Permits::default().held(), 0);
    /// ```
    pub fn held(&self) -> usize {
        self.out.len()
    }

    /// How many permits are out, if they expire after that time.
    ///
    /// ```
    /// use tollgate_core::{Permits, Tick};
    /// assert_eq!(Permits::default().out(None, Tick::ZERO), 0);
    /// ```
    pub fn out(&mut self, expires: Option<Duration>, now: Tick) -> usize {
        self.forget(expires, now);
        self.out.len()
    }

    /// Whether no permit is out.
    ///
    /// ```
    /// use tollgate_core::{Permits, Tick};
    /// assert!(Permits::default().is_at_rest(None, Tick::ZERO));
    /// ```
    pub fn is_at_rest(&mut self, expires: Option<Duration>, now: Tick) -> bool {
        self.out(expires, now) == 0
    }

    /// Permits of one key expire in the order they were given out.
    fn forget(&mut self, expires: Option<Duration>, now: Tick) {
        let Some(span) = expires.map(nanos) else { return };
        // In nanoseconds, and not as a tick: at the last tick nothing may expire that was given out
        // then.
        let end = |hold: &Hold| hold.since.as_nanos().saturating_add(span);
        while self.out.front().is_some_and(|hold| end(hold) <= now.as_nanos()) {
            self.out.pop_front();
        }
    }
}
