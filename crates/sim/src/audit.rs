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
        last: u64,
        this: u64,
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
            Kind::Sliding => Rule::Sliding { length, limit: burst, now: 0, last: 0, this: 0 },
            Kind::Shape => Rule::Queue { next: 0, count: wide_count, period },
            Kind::Bucket => {
                let capacity = u128::from(burst) * period;
                Rule::Bucket { level: capacity, capacity, count: wide_count, period, at: 0 }
            }
        })
    }

    /// So many may pass twice in the window of that time: a replica had not heard of them when it took over.
    /// Windows of more than a minute alone are excused for that.
    pub(crate) const fn excuses(&mut self, time: u64, tokens: u64) {
        if let Rule::Window { length, shift, now, spent, excused, .. } = &mut self.0 {
            let window = (time + *shift) / *length;
            if window != *now {
                (*now, *spent, *excused) = (window, 0, 0);
            }
            *excused += tokens;
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
    fn passes(&mut self, time: u64, cost: u64) -> bool {
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
            Self::Window { length, shift, limit, now, spent, excused } => {
                let window = (time + *shift) / *length;
                if window != *now {
                    (*now, *spent, *excused) = (window, 0, 0);
                }
                *spent += cost;
                *spent <= *limit + *excused
            }
            Self::Sliding { length, limit, now, last, this } => {
                let window = time / *length;
                if window != *now {
                    *last = if window == *now + 1 { *this } else { 0 };
                    (*now, *this) = (window, 0);
                }
                *this += cost;
                let left = u128::from(*length - time % *length);
                let estimate = u128::from(*last) * left + u128::from(*this) * u128::from(*length);
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
