//! What a store has denied a moment ago.
//!
//! Some limits are not lent: what waits in a queue, what is too little to be shared out, what comes back
//! too fast. The store decides every request, and a client that goes on after it was denied would have it
//! asked as often as it comes. But a denial says how long it lasts: nothing but time gives back what is
//! spent, or somebody who changes his mind. So it is said once more here, to whoever needs as much, until
//! that time is over, [a moment](Denials::LONGEST) has passed, or more is left than it says, whatever comes first:
//! what is said to be left is what somebody could have now.
//!
//! Each key has one line of memory, which it shares with others. Whoever writes there last is remembered,
//! and for all others the store is asked. Nobody waits: a reader that meets a writer knows of no denial,
//! and of two writers one is forgotten.

use std::time::Duration;

use tollgate_core::{Decision, Retry, Tick};

use crate::key::KeyHash;
use crate::sync::{AtomicU64, Ordering, fence};

/// Remembers of many keys what was denied to them by somebody who is asked for each request.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Decision, Retry, Tick};
/// use tollgate_local::{Denials, Key, Seed};
/// let (denials, alice) = (Denials::new(1_000), "alice".hash(&Seed::random()));
/// let wait = Duration::from_millis(40);
/// let denied = Decision::deny(5, 0, Duration::from_millis(200), Retry::After(wait));
/// let (asked, heard) = (Tick::ZERO, Tick::ZERO.after(Duration::from_millis(1)));
/// denials.note(alice, 1, &denied, wait, (asked, heard));
///
/// let later = heard.after(Duration::from_millis(10));
/// let again = denials.find(alice, 1, later).expect("it lasts for longer");
/// assert_eq!(again.retry_after(), Some(Duration::from_millis(30)));
/// assert!(denials.find(alice, 1, asked.after(wait)).is_none(), "by then it may pass");
/// ```
#[derive(Debug)]
pub struct Denials {
    lines: Box<[Line]>,
    /// Of each line, the nanosecond after which a denial has to be asked for: the last one at which a key of it
    /// was [forgotten](Self::forget). Only those who write need it, so it lies apart.
    asked_from: Box<[AtomicU64]>,
}

/// The denial of one request, for as long as its version stands still. All times are in nanoseconds.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line {
    /// Odd while somebody writes.
    version: AtomicU64,
    key: AtomicU64,
    cost: AtomicU64,
    /// From when on it is not said any more.
    until: AtomicU64,
    limit: AtomicU64,
    remaining: AtomicU64,
    reset: AtomicU64,
    retry: AtomicU64,
}

impl Denials {
    /// For no longer than this a denial is said again without asking. Whoever gives back what is spent may
    /// do so elsewhere, and is heard of after this. It makes eleven questions in a second about a key that
    /// is denied all the time, which is as many as about one that is lent to.
    pub const LONGEST: Duration = Duration::from_millis(90);

    /// As many lines as are needed for about so many keys to be denied at the same moment, up to 65,536:
    /// 72 bytes each.
    ///
    /// ```
    /// let denials = tollgate_local::Denials::new(4_096);
    /// # drop(denials);
    /// ```
    pub fn new(keys: usize) -> Self {
        let lines = keys.clamp(1, 1 << 16).next_power_of_two();
        Self {
            lines: (0..lines).map(|_| Line::default()).collect(),
            asked_from: (0..lines).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A request of that cost was denied: asked for at the first of these times, and heard of at the second.
    ///
    /// What is denied is so from the moment on at which it is decided, and nobody here knows which that was.
    /// So it is said again for as long as it lasts from the first time on, and whoever hears it comes again
    /// when he would if he had heard it at the second. Nor is it said for longer than what is left `stays` so
    /// much: that may be more soon, and still too little. What was asked for before the key was
    /// [forgotten](Self::forget) does not count any more.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::{Decision, Retry, Tick};
    /// # use tollgate_local::{Denials, Key, Seed};
    /// let (denials, key) = (Denials::new(1), 7u64.hash(&Seed::random()));
    /// let denied = Decision::deny(5, 5, Duration::ZERO, Retry::Never);
    /// denials.note(key, 6, &denied, Duration::MAX, (Tick::ZERO, Tick::ZERO));
    /// assert!(denials.find(key, 6, Tick::ZERO).is_some());
    /// assert!(denials.find(key, 5, Tick::ZERO).is_none(), "that might pass");
    /// ```
    pub fn note(
        &self,
        key: KeyHash,
        cost: u64,
        denied: &Decision,
        stays: Duration,
        (asked, heard): (Tick, Tick),
    ) {
        let (lasts, retry) = match denied.retry() {
            Some(Retry::After(wait)) => (wait.min(stays), heard.after(wait).as_nanos()),
            Some(Retry::Never) => (stays, NEVER),
            // Nobody knows how long that lasts, or it was no denial.
            Some(Retry::OnReturn) | None => return,
        };
        let until = asked.after(lasts.min(Self::LONGEST));
        if until <= heard {
            return;
        }
        let (line, asked_from) = (self.line(key), &self.asked_from[self.line_of(key)]);
        let version = line.version.load(Ordering::Relaxed);
        let is_free = version & 1 == 0
            && line
                .version
                .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !is_free {
            return;
        }
        // Whoever sees anything of what follows sees that it is being written.
        fence(Ordering::Release);
        let reset = heard.after(denied.reset_after()).as_nanos();
        for (place, value) in [
            (&line.key, key.0),
            (&line.cost, cost),
            (&line.until, until.as_nanos()),
            (&line.limit, denied.limit()),
            (&line.remaining, denied.remaining()),
            (&line.reset, reset),
            (&line.retry, retry),
        ] {
            place.store(value, Ordering::Relaxed);
        }
        // Nothing is changed, but who changes it later has seen all of the above, and whoever has changed it is
        // seen: a mere load might miss him, and he this denial.
        if asked.as_nanos() < asked_from.fetch_max(0, Ordering::AcqRel) {
            line.until.store(0, Ordering::Relaxed);
        }
        line.version.store(version + 2, Ordering::Release);
    }

    /// What a request of that cost would hear if it asked, if that is known: then it is a denial.
    ///
    /// ```
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::{Denials, Key, Seed};
    /// assert!(Denials::new(1).find(7u64.hash(&Seed::random()), 1, Tick::ZERO).is_none());
    /// ```
    #[inline]
    pub fn find(&self, key: KeyHash, cost: u64, now: Tick) -> Option<Decision> {
        let line = self.line(key);
        let version = line.version.load(Ordering::Acquire);
        let of = |place: &AtomicU64| place.load(Ordering::Relaxed);
        // Of most keys nothing was denied lately, and then the rest does not matter.
        let is_known = version & 1 == 0
            && of(&line.until) > now.as_nanos()
            && of(&line.key) == key.0
            && of(&line.cost) == cost;
        if !is_known {
            return None;
        }
        let (limit, remaining) = (of(&line.limit), of(&line.remaining));
        let (reset, retry) = (of(&line.reset), of(&line.retry));
        // All of that was read before this, and is of the same denial if nobody has written meanwhile.
        fence(Ordering::Acquire);
        if line.version.load(Ordering::Relaxed) != version {
            return None;
        }
        let left = |until: u64| Tick::from_nanos(until).since(now);
        let retry = if retry == NEVER { Retry::Never } else { Retry::After(left(retry)) };
        Some(Decision::deny(limit, remaining, left(reset), retry))
    }

    /// Something was given back to the key, or it was given a new start, by now: it has to ask. Denials may be on
    /// their way that were asked for before: those are forgotten as well.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::{Decision, Retry, Tick};
    /// # use tollgate_local::{Denials, Key, Seed};
    /// let (denials, key) = (Denials::new(1), 7u64.hash(&Seed::random()));
    /// let denied = Decision::deny(5, 5, Duration::ZERO, Retry::Never);
    /// denials.note(key, 6, &denied, Duration::MAX, (Tick::ZERO, Tick::ZERO));
    /// denials.forget(key, Tick::ZERO);
    /// assert!(denials.find(key, 6, Tick::ZERO).is_none());
    ///
    /// denials.note(key, 6, &denied, Duration::MAX, (Tick::ZERO, Tick::from_nanos(5)));
    /// assert!(denials.find(key, 6, Tick::from_nanos(5)).is_none(), "it was asked for before");
    /// ```
    pub fn forget(&self, key: KeyHash, now: Tick) {
        let line = self.line(key);
        let after = now.as_nanos().saturating_add(1);
        // Of whoever writes here and does not see this, the denial is seen.
        self.asked_from[self.line_of(key)].fetch_max(after, Ordering::AcqRel);
        if line.key.load(Ordering::Relaxed) == key.0 {
            // Whoever reads or writes meanwhile need not know: at worst another key is forgotten.
            line.until.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    fn line(&self, key: KeyHash) -> &Line {
        &self.lines[self.line_of(key)]
    }

    #[inline]
    fn line_of(&self, key: KeyHash) -> usize {
        // There are a power of two of them. The upper bits choose places elsewhere.
        key.0 as usize & (self.lines.len() - 1)
    }
}

/// When a request may come again that costs more than there can ever be.
const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::MAX;

    fn at(millis: u64) -> Tick {
        Tick::ZERO.after(Duration::from_millis(millis))
    }

    fn denied(retry: u64) -> Decision {
        let [reset, wait] = [retry * 5, retry].map(Duration::from_millis);
        Decision::deny(10, 2, reset, Retry::After(wait))
    }

    /// Of one line.
    fn key(number: u64) -> KeyHash {
        KeyHash(number << 40)
    }

    #[test]
    fn a_denial_is_said_until_it_may_be_over_and_counts_down() {
        let denials = Denials::new(1);
        denials.note(key(1), 3, &denied(20), LONG, (at(100), at(104)));
        for millis in 100..120 {
            let said = denials.find(key(1), 3, at(millis)).expect("it is not over");
            let expected = [124 - millis, 204 - millis].map(Duration::from_millis);
            assert_eq!([said.retry_after(), Some(said.reset_after())], expected.map(Some));
            assert_eq!((said.limit(), said.remaining(), said.is_allowed()), (10, 2, false));
        }
        assert!(denials.find(key(1), 3, at(120)).is_none(), "it may have been decided at once");
    }

    #[test]
    fn one_that_lasts_is_said_for_a_moment() {
        let denials = Denials::new(1);
        denials.note(key(1), 1, &denied(3_600_000), LONG, (at(0), at(0)));
        assert!(denials.find(key(1), 1, at(89)).is_some());
        assert!(denials.find(key(1), 1, at(90)).is_none());
    }

    #[test]
    fn one_of_which_more_is_left_soon_is_said_until_then() {
        let denials = Denials::new(1);
        denials.note(key(1), 8, &denied(20), Duration::from_millis(7), (at(0), at(2)));
        assert!(denials.find(key(1), 8, at(6)).is_some());
        assert!(denials.find(key(1), 8, at(7)).is_none());
    }

    #[test]
    fn only_what_was_denied_is() {
        let denials = Denials::new(1);
        denials.note(key(1), 3, &denied(20), LONG, (at(0), at(0)));
        assert!(denials.find(key(1), 2, at(1)).is_none(), "so little may pass");
        assert!(denials.find(key(2), 3, at(1)).is_none(), "that is another key");
        denials.note(key(2), 3, &Decision::allow(10, 9, Duration::ZERO), LONG, (at(1), at(1)));
        denials.note(
            key(2),
            3,
            &Decision::deny(1, 0, Duration::ZERO, Retry::OnReturn),
            LONG,
            (at(1), at(1)),
        );
        assert!(
            denials.find(key(2), 3, at(1)).is_none() && denials.find(key(1), 3, at(1)).is_some()
        );
        denials.forget(key(2), at(0));
        assert!(denials.find(key(1), 3, at(1)).is_some(), "nothing was given back to it");
        denials.forget(key(1), at(0));
        assert!(denials.find(key(1), 3, at(1)).is_none());
    }

    #[test]
    fn what_was_asked_for_before_the_key_was_forgotten_is_not_denied() {
        let denials = Denials::new(1);
        denials.forget(key(1), at(10));
        denials.note(key(1), 1, &denied(20), LONG, (at(9), at(14)));
        assert!(denials.find(key(1), 1, at(15)).is_none());
        denials.note(key(1), 1, &denied(20), LONG, (at(11), at(14)));
        assert!(denials.find(key(1), 1, at(15)).is_some(), "it was asked for after that");
    }

    #[test]
    fn whoever_was_denied_last_is_remembered() {
        let denials = Denials::new(1);
        for number in 1..5 {
            denials.note(key(number), 1, &denied(number), LONG, (at(0), at(0)));
        }
        let known = (1..5).filter(|number| denials.find(key(*number), 1, at(0)).is_some());
        assert_eq!(known.collect::<Vec<_>>(), [4]);
    }
}
