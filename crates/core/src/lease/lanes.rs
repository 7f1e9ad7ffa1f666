//! Who uses when what comes in next.
//!
//! ```text
//!          now
//!   lane 1  |#a#a#a#a#d#d|              each lane is a quarter of what comes in
//!   lane 2  |#b#b#b#b#b|                # comes in, and nobody may use it sooner
//!   lane 3  |#c#c#c#c#c|
//!   lane 4  |#c#c#c#c#c|
//! ```
//!
//! Tokens that come in one after the other, some for this node and then some for the next, come to
//! each of many nodes faster than it can use them, and lie there. In a lane they come more slowly, to
//! several nodes at the same time. A node that can use all that comes in has all lanes.

use super::exchange::Promise;

/// Up to when what comes in is promised to nodes, each of which keeps back what was promised to it
/// until it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes([u64; Promise::LANES as usize]);

/// What was added to lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// The nanosecond at which the last of it is in.
    pub(super) end: u64,
    /// In how many lanes it comes in at the end, and at most.
    pub(super) lanes: u64,
}

impl Lanes {
    const ALL: u64 = Promise::LANES;

    /// All that comes in until that nanosecond is promised.
    pub(super) const fn until(nanos: u64) -> Self {
        Self([nanos; Self::ALL as usize])
    }

    /// How many nanoseconds what is promised takes to come in.
    pub(super) fn promised(&self, now: u64) -> u64 {
        self.left(now).iter().sum::<u64>() / Self::ALL
    }

    /// Promises what takes so long to come in, in at most so many lanes: those that are free soonest.
    pub(super) fn fill(&mut self, now: u64, time: u64, most: u64) -> Filled {
        let mut left = self.left(now);
        left.sort_unstable();
        let (mut sum, mut lanes, mut level) = (time.saturating_mul(Self::ALL), 0, u64::MAX);
        while lanes < most.clamp(1, Self::ALL) && left[lanes as usize] < level {
            sum = sum.saturating_add(left[lanes as usize]);
            lanes += 1;
            level = sum.div_ceil(lanes);
        }
        left[..lanes as usize].fill(level);
        self.0 = left.map(|left| now.saturating_add(left));
        Filled { end: now.saturating_add(level), lanes }
    }

    /// Somebody has given back what takes so long to come in. Whose turn it was cannot be said of
    /// others, so they are as late as they were: what is promised ends sooner.
    pub(super) fn drain(&mut self, now: u64, time: u64) {
        let mut left = self.left(now);
        left.sort_unstable_by(|one, other| other.cmp(one));
        let (mut sum, mut lanes, mut level) = (0, 0, 0);
        while lanes < Self::ALL && left[lanes as usize] > level {
            sum += left[lanes as usize];
            lanes += 1;
            level = sum.saturating_sub(time.saturating_mul(Self::ALL)).div_ceil(lanes);
        }
        left[..lanes as usize].fill(level);
        self.0 = left.map(|left| now.saturating_add(left));
    }

    fn left(&self, now: u64) -> [u64; Self::ALL as usize] {
        self.0.map(|end| end.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lane_comes_in_at_a_quarter_of_the_pace() {
        let mut lanes = Lanes::until(0);
        assert_eq!(lanes.fill(100, 10, 1), Filled { end: 140, lanes: 1 });
        assert_eq!(lanes.fill(100, 10, 2), Filled { end: 120, lanes: 2 });
        assert_eq!(
            lanes.fill(100, 10, 4),
            Filled { end: 127, lanes: 3 },
            "one is taken for longer"
        );
        assert_eq!(lanes.promised(100), 30);
        assert_eq!(lanes.promised(130), 2);
    }

    #[test]
    fn what_is_given_back_is_the_last_that_comes_in() {
        let mut lanes = Lanes::until(0);
        lanes.fill(0, 10, 1);
        lanes.fill(0, 10, 1);
        lanes.drain(0, 5);
        assert_eq!((lanes.promised(0), lanes.promised(29), lanes.promised(30)), (15, 0, 0));
        lanes.drain(0, 100);
        assert_eq!(lanes, Lanes::until(0));
    }

    proptest! {
        /// What is promised grows and shrinks by as much as it should, or a little more than that, and never
        /// comes in sooner than it did before.
        #[test]
        fn what_is_promised_is_the_sum_of_it(
            deeds in prop::collection::vec((0..50u64, 0..1_000u64, 1..5u64, any::<bool>()), 1..30),
        ) {
            let (mut lanes, mut now) = (Lanes::until(0), 0);
            for (passed, time, most, fills) in deeds {
                now += passed;
                let before = lanes;
                let had = before.promised(now);
                if fills {
                    let Filled { end, lanes: used } = lanes.fill(now, time, most);
                    prop_assert!((had + time..=had + time + 2).contains(&lanes.promised(now)));
                    for later in now..end {
                        let added = lanes.promised(later) - before.promised(later);
                        // What a node keeps that takes its tokens for the last of so many lanes.
                        let kept = time.min((end - later) * used / Lanes::ALL + 1);
                        prop_assert!(added <= kept + 2, "{added} of {kept} at {later}: {before:?}, {lanes:?}");
                    }
                } else {
                    lanes.drain(now, time);
                    let left = had.saturating_sub(time);
                    prop_assert!((left..=left + 2).contains(&lanes.promised(now)));
                    for later in now..now + 2_000 {
                        let most = before.promised(later).saturating_sub(time.min(had));
                        let is_over = lanes.promised(later) == 0;
                        prop_assert!(is_over || lanes.promised(later) <= most + 2);
                    }
                }
            }
        }
    }
}
