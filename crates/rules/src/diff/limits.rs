//! How limits change, tier by tier.

use std::collections::BTreeSet;

use tollgate_core::Quota;

use super::{Change, Direction, Sides};
use crate::budget::{Algorithm, Budget};
use crate::rule::Rule;
use crate::rule_set::RuleSet;

/// How much a rule allows in one tier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    Rate(Quota),
    Slots(u32),
}

/// The amounts of a rule as text.
pub(super) fn meaning(set: &RuleSet, rule: &Rule) -> String {
    match &rule.budget {
        Budget::Rate(rates) if rates.quotas.0.len() == 1 => format!("{}", rates.quotas.0[0]),
        Budget::Concurrent { most, .. } if most.0.len() == 1 => format!("{} at once", most.0[0]),
        _ => {
            let each = tiers(set).into_iter().enumerate();
            each.map(|(tier, name)| format!("{name}:{},", amount(rule, tier).text())).collect()
        }
    }
}

/// The changes between the amounts of two rules.
pub(super) fn compare(sides: &Sides<'_>, old: &Rule, new: &Rule) -> Vec<Change> {
    let field = |rule: &Rule| match rule.budget {
        Budget::Rate(_) => "limit",
        Budget::Concurrent { .. } => "concurrent",
    };
    let mut changes = Vec::new();
    if !is_tiered(old) && !is_tiered(new) {
        changes.extend(change(field(new), None, old, (0, 0), new));
        return changes;
    }
    let (before, after) = (tiers(sides.old.set), tiers(sides.new.set));
    let known: BTreeSet<&str> = before.iter().copied().collect();
    for (to, name) in after.iter().enumerate().filter(|(_, name)| known.contains(*name)) {
        let from = before.iter().position(|it| it == name).unwrap_or_default();
        changes.extend(change(field(new), Some(name), old, (from, to), new));
    }
    let now: BTreeSet<&str> = after.iter().copied().collect();
    for (tier, name) in before.iter().enumerate().filter(|(_, name)| !now.contains(*name)) {
        let from = amount(old, tier).text();
        let tier = Some((*name).to_owned());
        changes.push(Change { tier, ..Change::plain(field(new), from, String::new()) });
    }
    for (tier, name) in after.iter().enumerate().filter(|(_, name)| !known.contains(*name)) {
        let to = amount(new, tier).text();
        let tier = Some((*name).to_owned());
        changes.push(Change { tier, ..Change::plain(field(new), String::new(), to) });
    }
    changes
}

fn change(
    field: &str,
    tier: Option<&str>,
    old: &Rule,
    (from, to): (usize, usize),
    new: &Rule,
) -> Option<Change> {
    let (from, to) = (amount(old, from), amount(new, to));
    if from == to {
        return None;
    }
    let (ratio, direction) = match (from, to) {
        (Amount::Slots(from), Amount::Slots(to)) => {
            (ratio(u128::from(from), u128::from(to)), Direction::of(&from, &to))
        }
        (Amount::Rate(from), Amount::Rate(to)) => compare_quotas(from, old, to, new),
        _ => (None, None),
    };
    let tier = tier.map(str::to_owned);
    Some(Change { tier, ratio, direction, ..Change::plain(field, from.text(), to.text()) })
}

fn compare_quotas(
    from: Quota,
    old: &Rule,
    to: Quota,
    new: &Rule,
) -> (Option<String>, Option<Direction>) {
    let direction = quota_direction((from, old), (to, new));
    let ratio = match (from.rate(), to.rate()) {
        (Some(from), Some(to)) => {
            let (slow, fast) = pace(&from, &to);
            ratio(slow, fast)
        }
        _ => None,
    };
    (ratio, direction)
}

/// Whether a quota allows less or more than another one did.
pub(super) fn quota_direction(
    (from, old): (Quota, &Rule),
    (to, new): (Quota, &Rule),
) -> Option<Direction> {
    let (before, after) = match (from.rate(), to.rate()) {
        (None, None) => return None,
        (None, Some(_)) => return Some(Direction::Stricter),
        (Some(_), None) => return Some(Direction::Looser),
        (Some(from), Some(to)) => (from, to),
    };
    let (slow, fast) = pace(&before, &after);
    let burst = |rule: &Rule, rate: &tollgate_core::Rate| match &rule.budget {
        Budget::Rate(rates) => match rates.shape.algorithm {
            Algorithm::LeakyBucket { queue } => rate.burst().unwrap_or(1).max(queue + 1),
            _ => rate.burst().unwrap_or_else(|| rate.count()),
        },
        Budget::Concurrent { .. } => 0,
    };
    let bursts = Direction::of(&burst(old, &before), &burst(new, &after));
    Direction::with(Direction::of(&slow, &fast), bursts)
}

/// How much two rates let pass in the same time.
fn pace(from: &tollgate_core::Rate, to: &tollgate_core::Rate) -> (u128, u128) {
    let (before, after) = (from.period().as_duration(), to.period().as_duration());
    // A count is at most 10^15 and a period 366 days, 4 * 10^10 milliseconds: both fit together.
    let pace = |count: u64, other: std::time::Duration| u128::from(count) * other.as_millis();
    (pace(from.count(), after), pace(to.count(), before))
}

/// What `to` is of `from`, in words; nothing if they are the same.
fn ratio(from: u128, to: u128) -> Option<String> {
    if from == to || from == 0 || to == 0 {
        return None;
    }
    if from.is_multiple_of(to) {
        return Some(match from / to {
            2 => "half".to_owned(),
            3 => "a third".to_owned(),
            4 => "a quarter".to_owned(),
            10 => "a tenth".to_owned(),
            times => format!("1/{times}"),
        });
    }
    if to.is_multiple_of(from) {
        return Some(match to / from {
            2 => "double".to_owned(),
            times => format!("{times} times"),
        });
    }
    // Both are below 2^90, so that percentages fit.
    let (part, less) = if to < from { (from - to, true) } else { (to - from, false) };
    let percent = (part * 100 + from / 2) / from;
    Some(match (percent, less) {
        (0, true) => "a little less".to_owned(),
        (0, false) => "a little more".to_owned(),
        (percent, true) => format!("{percent}% less"),
        (percent, false) => format!("{percent}% more"),
    })
}

fn is_tiered(rule: &Rule) -> bool {
    match &rule.budget {
        Budget::Rate(rates) => rates.quotas.0.len() > 1,
        Budget::Concurrent { most, .. } => most.0.len() > 1,
    }
}

fn amount(rule: &Rule, tier: usize) -> Amount {
    match &rule.budget {
        Budget::Rate(rates) => Amount::Rate(*rates.quotas.of(tier)),
        Budget::Concurrent { most, .. } => Amount::Slots(*most.of(tier)),
    }
}

fn tiers(set: &RuleSet) -> Vec<&str> {
    set.tiers().map_or_else(Vec::new, |tiers| tiers.names().collect())
}

impl Amount {
    fn text(self) -> String {
        match self {
            Self::Rate(quota) => quota.to_string(),
            Self::Slots(most) => format!("{most} at once"),
        }
    }
}
