//! What may pass: the limit itself, counted over what really passed, in exact numbers.

use crate::schedule::Broken;
use crate::subject::{Kind, Subject};

/// Counts what passes. It knows limits as their definitions put them, and none of the code that
/// keeps them.
///
/// ```
/// use tollgate_sim::{Audit, SECOND, Subject};
/// let mut audit = Audit::of(&Subject::bucket("100/s")?, 0);
/// assert!(audit.passes(SECOND, 100).is_ok());
/// assert!(audit.passes(SECOND, 1).is_err(), "that is one more than the burst");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Audit(Rule);

#[derive(Clone, Debug)]
enum Rule {
    /// A bucket, in tokens times the period.
    Bucket {
        level: u128,
        capacity: u128,
        count: u128,
        period: u128,
        at: u64,
    },
    Window {
        length: u64,
        shift: u64,
        limit: u64,
        now: u64,
        spent: u64,
        excused: u64,
    },
    Sliding {
        length: u64,
        limit: u64,
        now: u64,
        last: Count,
        this: Count,
    },
    /// The time, times the count, from which on the next may pass.
    Queue {
        next: u128,
        count: u128,
        period: u128,
    },
    /// Nothing: permits are counted while they are out.
    Permits,
}

/// What passed in one window, and how much of that is excused.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    passed: u64,
    excused: u64,
}

impl Count {
    fn counts(self) -> u128 {
        self.passed.saturating_sub(self.excused).into()
    }
}

impl Audit {
    /// Of a limit, for a key whose windows are shifted by `phase` if they are those of that key
    /// alone.
    ///
    /// ```
    /// use tollgate_sim::{Audit, Subject};
    /// let mut audit = Audit::of(&Subject::fixed("1/s")?, 0);
    /// assert!(audit.passes(0, 2).is_err());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn of(subject: &Subject, phase: u64) -> Self {
        let Some((count, length)) = subject.rate() else { return Self(Rule::Permits) };
        let burst = subject.capacity();
        let window =
            |shift| Rule::Window { length, shift, limit: burst, now: 0, spent: 0, excused: 0 };
        let (wide_count, period) = (u128::from(count), u128::from(length));
        Self(match subject.kind {
            Kind::Permits(_) => Rule::Permits,
            Kind::Window => window(0),
            Kind::Jittered => window(length - phase % length),
            Kind::Sliding => {
                let (last, this) = (Count::default(), Count::default());
                Rule::Sliding { length, limit: burst, now: 0, last, this }
            }
            Kind::Shape => Rule::Queue { next: 0, count: wide_count, period },
            Kind::Bucket => {
                let capacity = u128::from(burst) * period;
                Rule::Bucket { level: capacity, capacity, count: wide_count, period, at: 0 }
            }
        })
    }

    /// So many may pass twice in the window of that time: a replica had not heard of them when it took over.
    /// Windows of more than a minute alone are excused for that. Those that slide are in both windows that
    /// such a window counts in, and in the second no more than the first has left of it.
    pub(crate) const fn excuses(&mut self, time: u64, tokens: u64) {
        self.0.turn(time);
        match &mut self.0 {
            Rule::Window { excused, .. } => *excused += tokens,
            Rule::Sliding { this, .. } => this.excused += tokens,
            Rule::Bucket { .. } | Rule::Queue { .. } | Rule::Permits => {}
        }
    }

    /// The replica takes so much for all that passed in the window before that of this time, which was over
    /// when it took over, and not yet when it heard of something last. What passed beyond that is excused.
    pub(crate) fn excuses_all_but(&mut self, time: u64, known: u64) {
        self.0.turn(time);
        if let Rule::Sliding { last, .. } = &mut self.0 {
            last.excused = last.excused.max(last.passed.saturating_sub(known));
        }
    }

    /// Something passes, not before what passed last. That a bucket over real admissions never runs
    /// dry says the same as that in no interval more than `burst + rate x D` passed.
    ///
    /// ```
    /// use tollgate_sim::{Audit, SECOND, Subject};
    /// let mut audit = Audit::of(&Subject::fixed("2/s")?, 0);
    /// assert!(audit.passes(SECOND, 1).is_ok());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If that is more than may.
    pub fn passes(&mut self, time: u64, cost: u64) -> Result<(), Broken> {
        match self.0.passes(time, cost) {
            true => Ok(()),
            false => Err(Broken(format!("{cost} passed at {time}, too many: {:?}", self.0))),
        }
    }
}

impl Rule {
    /// Begins the window of that time, if it is another.
    const fn turn(&mut self, time: u64) {
        match self {
            Self::Window { length, shift, now, spent, excused, .. } => {
                let window = (time + *shift) / *length;
                if window != *now {
                    (*now, *spent, *excused) = (window, 0, 0);
                }
            }
            Self::Sliding { length, now, last, this, .. } => {
                let window = time / *length;
                if window != *now {
                    let nothing = Count { passed: 0, excused: 0 };
                    *last = if window == *now + 1 { *this } else { nothing };
                    (*now, *this) = (window, nothing);
                }
            }
            Self::Bucket { .. } | Self::Queue { .. } | Self::Permits => {}
        }
    }

    fn passes(&mut self, time: u64, cost: u64) -> bool {
        self.turn(time);
        match self {
            Self::Bucket { level, capacity, count, period, at } => {
                let passed = time.saturating_sub(*at);
                *level = (*level + u128::from(passed) * *count).min(*capacity);
                *at = (*at).max(time);
                let spent = u128::from(cost) * *period;
                let is_fine = spent <= *level;
                *level = level.saturating_sub(spent);
                is_fine
            }
            Self::Window { limit, spent, excused, .. } => {
                *spent += cost;
                *spent <= *limit + *excused
            }
            Self::Sliding { length, limit, last, this, .. } => {
                this.passed += cost;
                let left = u128::from(*length - time % *length);
                let estimate = last.counts() * left + this.counts() * u128::from(*length);
                estimate <= u128::from(*limit) * u128::from(*length)
            }
            Self::Queue { next, count, period } => {
                let time = u128::from(time) * *count;
                let is_fine = time >= *next;
                *next = time.max(*next) + u128::from(cost) * *period;
                is_fine
            }
            Self::Permits => true,
        }
    }
}
