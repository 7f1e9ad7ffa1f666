//! Machines and their words spelled out, for a store that keeps them in a form of its own: what it
//! has to know to decide as we do, and what it kept as a word again.

use crate::algorithm::{Kind, Machine, Phase};
use crate::time::Tick;
use crate::word::Word;

/// All that a machine decides by, apart from where windows end: see [`Machine::window`].
///
/// ```
/// use tollgate_core::{Anchor, Limit, Plan};
/// let machine = Limit::token_bucket("3/s burst 5")?.machine(Anchor::default()).expect("a word is enough");
/// // A token takes a third of a second, in grains of a third of a nanosecond.
/// assert_eq!(machine.plan(), Plan::Bucket { per_nano: 3, interval: 1_000_000_000, tokens: 5 });
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Everything passes.
    Unlimited,
    /// A bucket, whether it polices or not.
    Bucket {
        /// Grains in a nanosecond: 1 to 64.
        per_nano: u64,
        /// Grains until one token is back.
        interval: u64,
        /// What it holds.
        tokens: u64,
    },
    /// A bucket whose requests wait for their turn.
    Shape {
        /// Grains in a nanosecond: 1 to 64.
        per_nano: u64,
        /// Grains until one place is free again.
        interval: u64,
        /// The queue, and one that goes at once.
        tokens: u64,
    },
    /// So many in a window.
    Window {
        /// How many.
        limit: u64,
    },
    /// So many in this window and what still counts of the last one.
    Sliding {
        /// How many.
        limit: u64,
        /// Nanoseconds of a window.
        length: u64,
        /// The count of a window that has become the last one is rounded up to a multiple of this.
        rounding: u64,
    },
}

/// What the word of a key says.
///
/// ```
/// use tollgate_core::{Anchor, Limit, Phase, State, Tick};
/// let machine = Limit::fixed_window("9/s")?.machine(Anchor::default()).expect("a word is enough");
/// let word = machine.word(State::Window { count: 4 }, Tick::ZERO, Phase::default());
/// let step = machine.step(word.expect("it has room"), Tick::ZERO, 0, Phase::default());
/// assert_eq!(step.decision.remaining(), 5);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// When a bucket is full again: nanoseconds since tick 0, and grains.
    Full {
        /// The nanoseconds.
        nanos: u64,
        /// The grains beyond them.
        part: u64,
    },
    /// What was spent in the window that `now` lies in.
    Window {
        /// How much.
        count: u64,
    },
    /// The same, and what was spent in the window before.
    Sliding {
        /// In the last one.
        last: u64,
        /// In this one.
        this: u64,
    },
}

impl Machine {
    /// What it decides by.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Plan};
    /// let machine = Limit::fixed_window("9/s")?.machine(Anchor::default()).expect("a word is enough");
    /// assert_eq!(machine.plan(), Plan::Window { limit: 9 });
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn plan(&self) -> Plan {
        match &self.0 {
            Kind::Unlimited => Plan::Unlimited,
            Kind::TokenBucket(bucket) => bucket.0.plan(),
            Kind::Shape(shape) => match shape.0.plan() {
                Plan::Bucket { per_nano, interval, tokens } => {
                    Plan::Shape { per_nano, interval, tokens }
                }
                plan => plan,
            },
            Kind::FixedWindow(window) => Plan::Window { limit: window.limit() },
            Kind::SlidingCounter(counter) => counter.plan(),
        }
    }

    /// The first tick of the window that `now` lies in, and the first after it; `None` without
    /// windows.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick};
    /// let machine = Limit::fixed_window("9/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let window = machine.window(Tick::from_nanos(1_500_000_000), Phase::default());
    /// assert_eq!(window, Some((Tick::from_nanos(1_000_000_000), Tick::from_nanos(2_000_000_000))));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn window(&self, now: Tick, phase: Phase) -> Option<(Tick, Tick)> {
        let (begin, end) = match &self.0 {
            Kind::FixedWindow(window) => window.window(now, phase),
            Kind::SlidingCounter(counter) => counter.window(now, phase),
            _ => return None,
        };
        Some((Tick::from_nanos(begin), Tick::from_nanos(end)))
    }

    /// The word that says this at `now`. `None` if no key of the limit can have come to that: it is
    /// of another limit, or somebody else wrote it.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, State, Tick};
    /// let machine = Limit::fixed_window("9/s")?.machine(Anchor::default()).expect("a word is enough");
    /// assert_eq!(machine.word(State::Window { count: 10 }, Tick::ZERO, Phase::default()), None);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn word(&self, state: State, now: Tick, phase: Phase) -> Option<Word> {
        match (&self.0, state) {
            (Kind::Unlimited, _) => Some(Word::REST),
            (Kind::TokenBucket(bucket), State::Full { nanos, part }) => {
                bucket.0.word_of(nanos, part)
            }
            (Kind::Shape(shape), State::Full { nanos, part }) => shape.0.word_of(nanos, part),
            (Kind::FixedWindow(window), State::Window { count }) => {
                window.word_of(now, count, phase)
            }
            (Kind::SlidingCounter(counter), State::Sliding { last, this }) => {
                counter.word_of(now, last, this, phase)
            }
            _ => None,
        }
    }
}
