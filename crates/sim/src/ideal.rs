//! One limiter that sees every request at once: what nobody with a network can beat.

use crate::subject::{Kind, Subject};

/// A bucket, in tokens times the period.
#[derive(Clone, Debug)]
pub(crate) struct Ideal(Option<Level>);

#[derive(Clone, Debug)]
struct Level {
    level: u128,
    capacity: u128,
    count: u128,
    period: u128,
    at: u64,
}

impl Ideal {
    /// Of a bucket; other limits have none.
    pub(crate) fn of(subject: &Subject) -> Self {
        let rate = subject.rate().filter(|_| subject.kind == Kind::Bucket);
        Self(rate.map(|(count, period)| {
            let (count, period) = (u128::from(count), u128::from(period));
            let capacity = u128::from(subject.capacity()) * period;
            Level { level: capacity, capacity, count, period, at: 0 }
        }))
    }

    /// How much of `cost` it lets pass: all or nothing.
    pub(crate) fn admits(&mut self, time: u64, cost: u64) -> u64 {
        let Some(bucket) = &mut self.0 else { return 0 };
        let gained = u128::from(time.saturating_sub(bucket.at)) * bucket.count;
        bucket.level = (bucket.level + gained).min(bucket.capacity);
        bucket.at = bucket.at.max(time);
        let spent = u128::from(cost) * bucket.period;
        match bucket.level.checked_sub(spent) {
            Some(level) => {
                bucket.level = level;
                cost
            }
            None => 0,
        }
    }
}
