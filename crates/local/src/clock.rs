//! Clocks: the real one, and one that stands still until it is told.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tollgate_core::{Anchor, Tick, Wall};

use crate::shards::lock;

/// Where decisions get their time from.
///
/// [`now`](Self::now) never runs backwards for one thread; what two threads read at the same
/// moment may differ by less than a microsecond. [`wall`](Self::wall) is asked once, when counters are
/// made, to align windows to the calendar; what the clock on the wall does afterwards moves no
/// window.
///
/// ```
/// use tollgate_local::{Clock, SystemClock};
/// let clock = SystemClock::new();
/// let earlier = clock.now();
/// assert!(clock.now() >= earlier);
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time since the clock's beginning.
    ///
    /// ```
    /// use tollgate_local::{Clock, ManualClock};
    /// assert_eq!(ManualClock::new().now().as_nanos(), 0);
    /// ```
    fn now(&self) -> Tick;

    /// The time by the calendar.
    ///
    /// ```
    /// use tollgate_local::{Clock, ManualClock};
    /// assert_eq!(ManualClock::new().wall().as_unix_nanos(), 0);
    /// ```
    fn wall(&self) -> Wall;

    /// Both at once.
    ///
    /// ```
    /// use tollgate_local::{Clock, ManualClock};
    /// assert_eq!(ManualClock::new().anchor().tick.as_nanos(), 0);
    /// ```
    fn anchor(&self) -> Anchor {
        Anchor { tick: self.now(), wall: self.wall() }
    }
}

/// A clock that can also wake somebody up.
///
/// ```
/// use std::time::Duration;
/// use tollgate_local::{Clock, ManualClock, Timer};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let clock = ManualClock::new();
/// let sleeper = tokio::spawn(clock.sleep(Duration::from_secs(60)));
/// clock.advance(Duration::from_secs(60));
/// sleeper.await.expect("it wakes up");
/// # });
/// ```
pub trait Timer: Clock {
    /// Ends when this time has passed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_local::{ManualClock, Timer};
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// ManualClock::new().sleep(Duration::ZERO).await;
    /// # });
    /// ```
    fn sleep(&self, span: Duration) -> Sleep;
}

/// See [`Timer::sleep`].
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Tick {
        (**self).now()
    }

    fn wall(&self) -> Wall {
        (**self).wall()
    }
}

impl<C: Timer + ?Sized> Timer for Arc<C> {
    fn sleep(&self, span: Duration) -> Sleep {
        (**self).sleep(span)
    }
}

/// The machine's clock: the processor's time stamp counter where it can be trusted, the system's
/// monotonic clock elsewhere.
///
/// ```
/// use tollgate_local::{Clock, SystemClock};
/// assert!(SystemClock::new().wall().as_unix_nanos() > 1_600_000_000_000_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct SystemClock {
    clock: quanta::Clock,
    start: u64,
    pace: Pace<DOUBLE>,
}

impl SystemClock {
    /// A clock that begins now.
    ///
    /// ```
    /// let clock = tollgate_local::SystemClock::new();
    /// # let _ = clock;
    /// ```
    #[expect(clippy::disallowed_methods, reason = "the one place that has a counter")]
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        let pace = Pace::of(clock.delta_as_nanos(0, Pace::<DOUBLE>::STEPS));
        Self { start: clock.raw(), clock, pace }
    }
}

/// Steps are doubled so often: counters of 500 MHz and more are told right, those of 4 GHz for 73
/// years. Other processors than these count at 24 MHz up to 1 GHz.
const DOUBLE: u32 = if cfg!(target_arch = "x86_64") { 1 } else { 6 };

/// How long a step of a counter takes, in nanoseconds, as a fraction of `2^DOUBLE`.
#[derive(Clone, Copy, Debug)]
struct Pace<const DOUBLE: u32>(u64);

impl<const DOUBLE: u32> Pace<DOUBLE> {
    /// The pace of a counter, [`Self::STEPS`] steps of which take so many nanoseconds.
    ///
    /// A counter too slow for the fraction seems to be as fast as it can be told: then time runs
    /// slower than it is, which never grants budget.
    fn of(nanos: u64) -> Self {
        let fraction = (u128::from(nanos) << 64) / (u128::from(Self::STEPS) << DOUBLE);
        Self(u64::try_from(fraction).unwrap_or(u64::MAX))
    }

    /// What so many steps take.
    ///
    /// The upper half of a product is the result: to shift all of it would take longer than the
    /// rest of this together, as would asking whether this counter needs its steps doubled.
    #[inline(always)]
    const fn nanos(self, steps: u64) -> u64 {
        (((steps << DOUBLE) as u128 * self.0 as u128) >> 64) as u64
    }

    /// The time after so many steps since the start.
    ///
    /// Counters of two processors may disagree by a few steps around the start: what is before it
    /// has wrapped around, is later than any time, and so costs nothing to all others. That is so for
    /// counters of up to 48 GHz, or of 1.5 GHz where steps are doubled six times.
    #[inline(always)]
    const fn tick(self, steps: u64) -> Tick {
        let nanos = self.nanos(steps);
        if nanos < Tick::MAX.as_nanos() { Tick::from_nanos(nanos) } else { Self::far(steps) }
    }

    /// The start, if the steps lead to before it, and the last time otherwise.
    #[cold]
    const fn far(steps: u64) -> Tick {
        if steps > u64::MAX / 2 { Tick::ZERO } else { Tick::MAX }
    }

    /// So many steps, about three days of a fast counter, tell the scale to 15 digits.
    const STEPS: u64 = 1 << 50;
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Tick {
        self.pace.tick(self.clock.raw().wrapping_sub(self.start))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that asks for the date")]
    fn wall(&self) -> Wall {
        // A machine that believes in 1969 has its windows aligned as if it were 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Wall::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(feature = "tokio")]
impl Timer for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that waits with tokio")]
    fn sleep(&self, span: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(span))
    }
}

/// A clock for tests and simulations: it stands still until it is told to advance. Clones show
/// the same time.
///
/// ```
/// use std::time::Duration;
/// use tollgate_local::{Clock, ManualClock};
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(2));
/// assert_eq!(clock.now().as_nanos(), 2_000_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
    begin: Wall,
    sleepers: Arc<Mutex<Vec<Waker>>>,
}

impl ManualClock {
    /// A clock at tick 0, which was the Unix epoch.
    ///
    /// ```
    /// use tollgate_local::{Clock, ManualClock};
    /// assert_eq!(ManualClock::new().wall().as_unix_nanos(), 0);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock whose tick 0 was at `begin` by the calendar.
    ///
    /// ```
    /// use tollgate_core::Wall;
    /// use tollgate_local::{Clock, ManualClock};
    /// let noon = Wall::from_unix_seconds(12 * 3600);
    /// assert_eq!(ManualClock::starting_at(noon).wall(), noon);
    /// ```
    pub fn starting_at(begin: Wall) -> Self {
        Self { begin, ..Self::default() }
    }

    /// Moves the clock on.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_local::{Clock, ManualClock};
    /// let clock = ManualClock::new();
    /// clock.advance(Duration::MAX);
    /// assert_eq!(clock.now(), tollgate_core::Tick::MAX);
    /// ```
    pub fn advance(&self, span: Duration) {
        let later = |nanos| Some(Tick::from_nanos(nanos).after(span).as_nanos());
        // `later` always answers, so this cannot fail.
        let _ = self.nanos.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
        // Whoever is woken may sleep again at once, on this thread: the lock must be free by then.
        let sleepers = std::mem::take(&mut *lock(&self.sleepers));
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.nanos.load(Ordering::Acquire))
    }

    fn wall(&self) -> Wall {
        Anchor { tick: Tick::ZERO, wall: self.begin }.wall_at(self.now())
    }
}

impl Timer for ManualClock {
    fn sleep(&self, span: Duration) -> Sleep {
        let (clock, end) = (self.clone(), self.now().after(span));
        Box::pin(std::future::poll_fn(move |context| {
            // The lock keeps the clock from advancing unseen between the look and the wish to be
            // woken.
            let mut sleepers = lock(&clock.sleepers);
            if clock.now() >= end {
                return Poll::Ready(());
            }
            sleepers.push(context.waker().clone());
            Poll::Pending
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_any_speed_count_nanoseconds() {
        // Nanoseconds per step: 4 GHz, 1 GHz, a little slower, 24 MHz.
        for per_step in [0.25, 1.0, 1.5] {
            tells_the_time::<1>(per_step);
        }
        for per_step in [1.0, 1.5, 41.666_666] {
            tells_the_time::<6>(per_step);
        }
    }

    fn tells_the_time<const DOUBLE: u32>(per_step: f64) {
        let pace = Pace::<DOUBLE>::of((Pace::<DOUBLE>::STEPS as f64 * per_step) as u64);
        for steps in [1_000u64, 1_000_000_000, 1 << 50] {
            let (is, right) = (pace.nanos(steps) as f64, steps as f64 * per_step);
            assert!((is - right).abs() <= 1.0 + right / 1e12, "{is} instead of {right}");
        }
    }

    #[test]
    fn a_counter_before_the_start_shows_the_start_and_a_late_one_the_end() {
        fn ends<const DOUBLE: u32>(per_step: f64) {
            let pace = Pace::<DOUBLE>::of((Pace::<DOUBLE>::STEPS as f64 * per_step) as u64);
            for before in [1, 1_000, 1 << 40] {
                assert_eq!(pace.tick(0u64.wrapping_sub(before)), Tick::ZERO, "{before} before");
            }
            assert_eq!(pace.tick((2e17 / per_step) as u64), Tick::MAX, "after 6.3 years");
        }
        [0.2, 0.25, 1.0, 1.5].into_iter().for_each(ends::<1>);
        [1.0, 41.666_666].into_iter().for_each(ends::<6>);
    }

    #[test]
    fn a_counter_too_slow_to_be_told_never_runs_ahead() {
        let pace = Pace::<1>::of(Pace::<1>::STEPS * 3);
        assert_eq!(pace.nanos(1_000_000), 1_999_999);
    }
}
