//! How often a node asks about one key, however it comes.

use std::time::Duration;

use super::terms::Terms;
use crate::time::{Tick, nanos};

/// An account of the questions about one key. Each takes a while to be paid, and whatever can be put off
/// waits until few enough are not: so about eleven are asked in a second in the long run, and some more
/// at the beginning of a burst.
///
/// A request that finds nothing and knows of no reason why asks in any case. Leases that are over sooner than
/// a quarter of a second have to be renewed more often, and questions about them are paid sooner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// When all questions are paid.
    paid: Tick,
    /// How long a question takes to be paid.
    each: Duration,
}

impl Pace {
    /// Nothing was asked yet.
    pub(super) fn of(terms: &Terms) -> Self {
        Self { paid: Tick::ZERO, each: EACH.min(terms.hold() * 3 / 8) }
    }

    /// A question is asked.
    pub(super) fn asks(&mut self, now: Tick) {
        let most = now.after(self.each * MOST);
        self.paid = self.paid.max(now).after(self.each).min(most);
    }

    /// From when on no more than so many are unpaid.
    pub(super) fn leaves(&self, unpaid: u32) -> Tick {
        Tick::from_nanos(self.paid.as_nanos().saturating_sub(nanos(self.each * unpaid)))
    }
}

/// How long a question takes to be paid about a lease that lasts.
const EACH: Duration = Duration::from_millis(88);

/// No more than so many are ever unpaid: whoever has asked in any case does not wait for all of that.
const MOST: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;

    fn pace() -> Pace {
        let limit = Limit::token_bucket("1k/s").unwrap();
        Pace::of(&Terms::of(&limit, Duration::ZERO).unwrap())
    }

    #[test]
    fn who_waits_until_few_are_unpaid_asks_eleven_times_a_second() {
        let second = Duration::from_secs(1);
        for unpaid in [0, 3, 8] {
            let (mut pace, mut asked, begin) = (pace(), 0, Tick::from_nanos(1 << 40));
            let mut now = begin;
            while now < begin.after(second * 100) {
                now = now.after(Duration::from_micros(100)).max(pace.leaves(unpaid));
                pace.asks(now);
                asked += 1;
            }
            assert!((1_130..1_150).contains(&asked), "{asked} with {unpaid} unpaid");
        }
    }

    #[test]
    fn who_asks_in_any_case_is_not_waited_for_long() {
        let (mut pace, now) = (pace(), Tick::from_nanos(1 << 40));
        (0..1_000).for_each(|_| pace.asks(now));
        assert_eq!(pace.leaves(MOST), now);
        assert_eq!(pace.leaves(MOST - 2), now.after(EACH * 2));
    }
}
