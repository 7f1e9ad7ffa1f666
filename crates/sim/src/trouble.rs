//! Fleets in all kinds of trouble, each from a seed.

use std::num::NonZeroU32;

use tollgate_core::LimitError;

use crate::chance::Chance;
use crate::plan::{MILLI, Pace, Plan, SECOND};
use crate::subject::Subject;

impl Plan {
    /// The plan of a seed: which limit, how many nodes, how busy, and what goes wrong. Clocks are
    /// up to a hundredth apart, where the promise of lending ends.
    ///
    /// ```
    /// use tollgate_sim::Plan;
    /// let (one, again) = (Plan::troubled(7)?, Plan::troubled(7)?);
    /// assert_eq!(format!("{one:?}"), format!("{again:?}"));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None, as long as the limits here are limits.
    pub fn troubled(seed: u64) -> Result<Self, LimitError> {
        let mut chance = Chance(seed);
        let subject = subject(&mut chance)?;
        Ok(Self::troubled_of(subject, chance.next()))
    }

    /// The same for one limit.
    ///
    /// ```
    /// use tollgate_sim::{Fleet, Plan, Subject};
    /// let plan = Plan::troubled_of(Subject::bucket("100/s")?, 7);
    /// Fleet::run(&plan).expect("the limit holds");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn troubled_of(subject: Subject, seed: u64) -> Self {
        let mut chance = Chance(seed);
        let c = &mut chance;
        let busy = c.below(6);
        // Permits are short when requests last for as long as pauses: less often than what is used up.
        let all = if subject.is_permits() { 24 * SECOND } else { 100 * SECOND };
        let pause = (all / subject.capacity().clamp(1, 20_000)) >> busy;
        // Some fleets are large, and not asked for more than the others all together.
        let many = c.sometimes(50, |c| c.between((13, 100)));
        let nodes = many.unwrap_or_else(|| c.between((1, 12)));
        let pause = pause * nodes.div_ceil(12);
        let calm = Self::calm(c.next(), subject, nodes, pause);
        // Where messages take no time, nothing that is told too early is heard too late to matter.
        let near = c.sometimes(600, |c| c.below(20 * MILLI)).unwrap_or(0);
        let far = match c.below(4) {
            0 => 0,
            1 => c.below(5 * MILLI),
            _ => c.below(600 * MILLI),
        };
        // Long enough for leases to end, and trouble as often as runs are short.
        let hold = calm.subject.lender(calm.round_trip()).and_then(|lender| lender.terms());
        let hold = hold.map_or(0, |terms| terms.hold().as_nanos() as u64);
        let lasts = (4 * hold).max(4 * SECOND);
        let part = lasts / 20;
        let now_and_then = |c: &mut Chance| c.between((part, 20 * part));
        Self {
            lasts,
            pace: match c.per_mille(700) {
                true => Pace::Between(pause / 4, pause + 1),
                false => Pace::About(pause / 2 + 1),
            },
            most_cost: c.between((1, 6)).min(calm.subject.capacity()),
            turns: c.sometimes(500, |c| c.between((50 * MILLI, 3 * SECOND))),
            together: c.per_mille(300),
            delay: (near, near + far),
            lost: c.below(300),
            repeated: c.below(300),
            in_vain: c.sometimes(500, |c| c.below(1_000)).unwrap_or(0),
            drift: c.between((0, 10)),
            deaths: c.sometimes(500, now_and_then),
            freezes: c.sometimes(400, now_and_then),
            cuts: c.sometimes(400, now_and_then),
            restarts: c.sometimes(500, now_and_then),
            dropped: c.sometimes(300, |c| c.below(1_000)).unwrap_or(0),
            takeovers: c.sometimes(400, now_and_then),
            // Some last longer than a lease of permits.
            work: c.sometimes(500, |c| c.between((SECOND, 6 * SECOND))).unwrap_or(calm.work),
            displaced: c.sometimes(300, |c| c.below(100)).unwrap_or(0),
            ..calm
        }
    }
}

/// One of the limits that schedules are about: every algorithm, fast and slow, with round numbers
/// and without.
fn subject(chance: &mut Chance) -> Result<Subject, LimitError> {
    match chance.below(20) {
        0 => Subject::bucket("100/s"),
        1 => Subject::bucket("1k/s"),
        2 => Subject::bucket("333/s burst 400"),
        3 => Subject::bucket("20/s burst 60"),
        4 => Subject::bucket("9973/s burst 5k"),
        5 => Subject::bucket("100/min"),
        6 => Subject::bucket("1k/h burst 40"),
        7 => Subject::police("100/s burst 80"),
        8 => Subject::police("70/s burst 30"),
        9 => Subject::shape("100/s", 20),
        10 => Subject::fixed("1k/s"),
        11 => Subject::fixed("100/2s"),
        12 => Subject::fixed("60/min"),
        13 => Subject::jittered("300/s"),
        14 => Subject::jittered("100/3s"),
        15 => Subject::daily("200/day"),
        16 => Subject::sliding("1k/s"),
        17 => Subject::sliding("100/2s"),
        18 => Ok(Subject::permits(NonZeroU32::MIN.saturating_add(39))),
        _ => Ok(Subject::permits(NonZeroU32::MIN.saturating_add(4))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_one() {
        let kinds = (0..2_000).map(|seed| Plan::troubled(seed).unwrap().subject.to_string());
        assert_eq!(kinds.collect::<std::collections::BTreeSet<_>>().len(), 20);
    }
}
