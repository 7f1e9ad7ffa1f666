//! What may pass: the limit itself, counted over what really passed, in exact numbers.

use crate::plan::{SECOND, Subject};
use tollgate_core::Limit;

#[derive(Clone, Debug)]
pub(crate) enum Audit {
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
    },
    Sliding {
        length: u64,
        limit: u64,
        now: u64,
        last: u64,
        this: u64,
    },
    Permits,
}

impl Audit {
    pub(crate) fn of(subject: Subject, phase: u64) -> Self {
        let Some(limit) = subject.limit() else { return Self::Permits };
        let (count, length) = rate(&limit);
        let burst = limit.capacity().unwrap();
        let window = |shift| Self::Window { length, shift, limit: burst, now: 0, spent: 0 };
        match subject {
            Subject::Fixed(_) | Subject::Daily(_) => window(0),
            Subject::Jittered(_) => window(length - phase % length),
            Subject::Sliding(_) => Self::Sliding { length, limit: burst, now: 0, last: 0, this: 0 },
            _ => {
                let (count, period) = (u128::from(count), u128::from(length));
                let capacity = u128::from(burst) * period;
                Self::Bucket { level: capacity, capacity, count, period, at: 0 }
            }
        }
    }

    /// Something passes. That a bucket over real admissions never runs dry says the same as that
    /// in no interval more than `burst + rate x D` passed.
    pub(crate) fn passes(&mut self, time: u64, cost: u64) -> Result<(), String> {
        let is_fine = match self {
            Self::Bucket { level, capacity, count, period, at } => {
                *level = (*level + u128::from(time - *at) * *count).min(*capacity);
                *at = time;
                let spent = u128::from(cost) * *period;
                let is_fine = spent <= *level;
                *level = level.saturating_sub(spent);
                is_fine
            }
            Self::Window { length, shift, limit, now, spent } => {
                let window = (time + *shift) / *length;
                *spent = if window == *now { *spent + cost } else { cost };
                *now = window;
                *spent <= *limit
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
            Self::Permits => true,
        };
        match is_fine {
            true => Ok(()),
            false => Err(format!("{cost} too many passed at {time}: {self:?}")),
        }
    }
}

/// So many, in so many nanoseconds.
fn rate(limit: &Limit) -> (u64, u64) {
    let rate = limit.quota().rate().unwrap();
    let period = rate.period().as_duration();
    (rate.count(), period.as_secs() * SECOND + u64::from(period.subsec_nanos()))
}
