//! Time without a clock: monotonic and wall time as two types, and the one bridge between them.

use std::fmt;
use std::time::Duration;

/// A reading of a monotonic clock, in nanoseconds since that clock's own beginning.
///
/// Decisions are made on ticks. A tick says nothing about the date: see [`Wall`] and [`Anchor`].
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Tick;
///
/// let start = Tick::ZERO;
/// let later = start.after(Duration::from_millis(3));
/// assert_eq!(later.since(start), Duration::from_millis(3));
/// assert_eq!(start.since(later), Duration::ZERO, "time does not run backwards");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The clock's beginning.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Tick::ZERO.as_nanos(), 0);
    /// ```
    pub const ZERO: Self = Self(0);

    /// The last tick: six years after the clock's beginning.
    ///
    /// Later readings count as this one. A clock that old stands still, and a clock that stands
    /// still grants nothing, so a process that runs for longer denies too much and never too
    /// little.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// assert_eq!(Tick::from_nanos(u64::MAX), Tick::MAX);
    /// ```
    pub const MAX: Self = Self(6 * 366 * 86_400 * 1_000_000_000);

    /// The tick `nanos` nanoseconds after the clock's beginning, at most [`Tick::MAX`].
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// assert_eq!(Tick::from_nanos(5).as_nanos(), 5);
    /// assert_eq!(Tick::from_nanos(u64::MAX), Tick::MAX);
    /// ```
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos < Self::MAX.0 { Self(nanos) } else { Self::MAX }
    }

    /// Nanoseconds since the clock's beginning.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Tick::ZERO.as_nanos(), 0);
    /// ```
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The tick `span` later, at most [`Tick::MAX`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Tick;
    /// assert_eq!(Tick::ZERO.after(Duration::from_secs(1)).as_nanos(), 1_000_000_000);
    /// assert_eq!(Tick::ZERO.after(Duration::MAX), Tick::MAX);
    /// ```
    #[inline]
    pub fn after(self, span: Duration) -> Self {
        Self::from_nanos(self.0.saturating_add(nanos(span)))
    }

    /// How long after `earlier` this tick is; zero if it is not after it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Tick;
    /// assert_eq!(Tick::from_nanos(9).since(Tick::from_nanos(4)), Duration::from_nanos(5));
    /// ```
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// A moment by the calendar: nanoseconds since 1970-01-01T00:00:00Z.
///
/// Only windows that follow the calendar or the clock on the wall ever see one, and they see it
/// through an [`Anchor`].
///
/// ```
/// use tollgate_core::Wall;
/// assert_eq!(Wall::from_unix_seconds(1).as_unix_nanos(), 1_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(u64);

impl Wall {
    /// The moment `nanos` nanoseconds after the Unix epoch.
    ///
    /// ```
    /// use tollgate_core::Wall;
    /// assert_eq!(Wall::from_unix_nanos(7).as_unix_nanos(), 7);
    /// ```
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        // The year 2262 is the end of what signed nanoseconds can say, and far enough.
        const END: u64 = i64::MAX as u64;
        if nanos < END { Self(nanos) } else { Self(END) }
    }

    /// The moment `seconds` seconds after the Unix epoch.
    ///
    /// ```
    /// use tollgate_core::Wall;
    /// assert_eq!(Wall::from_unix_seconds(2), Wall::from_unix_nanos(2_000_000_000));
    /// ```
    pub const fn from_unix_seconds(seconds: u64) -> Self {
        Self::from_unix_nanos(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the Unix epoch.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Wall::default().as_unix_nanos(), 0);
    /// ```
    pub const fn as_unix_nanos(self) -> u64 {
        self.0
    }
}

/// Says which moment by the calendar one tick of a monotonic clock was.
///
/// It is taken once, when counters are made, so a wall clock that is stepped afterwards, in
/// either direction, moves no window and grants no budget.
///
/// ```
/// use tollgate_core::{Anchor, Tick, Wall};
///
/// let anchor = Anchor { tick: Tick::ZERO, wall: Wall::from_unix_seconds(100) };
/// let second = Tick::from_nanos(1_000_000_000);
/// assert_eq!(anchor.wall_at(second), Wall::from_unix_seconds(101));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// The tick.
    pub tick: Tick,
    /// What the clock on the wall said at that tick.
    pub wall: Wall,
}

impl Anchor {
    /// What the clock on the wall says at `tick`, if nobody steps it.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Tick, Wall};
    /// let anchor = Anchor { tick: Tick::from_nanos(10), wall: Wall::from_unix_nanos(50) };
    /// assert_eq!(anchor.wall_at(Tick::from_nanos(12)), Wall::from_unix_nanos(52));
    /// assert_eq!(anchor.wall_at(Tick::from_nanos(7)), Wall::from_unix_nanos(47));
    /// ```
    pub const fn wall_at(self, tick: Tick) -> Wall {
        Wall::from_unix_nanos((self.wall.0 + tick.0).saturating_sub(self.tick.0))
    }

    /// The tick at which the clock on the wall says this; `None` before the first.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Tick, Wall};
    /// let anchor = Anchor { tick: Tick::from_nanos(10), wall: Wall::from_unix_nanos(50) };
    /// assert_eq!(anchor.tick_at(Wall::from_unix_nanos(52)), Some(Tick::from_nanos(12)));
    /// assert_eq!(anchor.tick_at(Wall::from_unix_nanos(39)), None);
    /// ```
    pub const fn tick_at(self, wall: Wall) -> Option<Tick> {
        match (wall.0.saturating_add(self.tick.0)).checked_sub(self.wall.0) {
            Some(nanos) => Some(Tick::from_nanos(nanos)),
            None => None,
        }
    }

    /// What the clock on the wall says at tick 0, in nanoseconds since the Unix epoch.
    pub(crate) fn origin(self) -> i128 {
        i128::from(self.wall.0) - i128::from(self.tick.0)
    }
}

/// The nanoseconds of a span, as many as a `u64` holds (584 years).
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
