//! Which limits are alternatives to each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::rule_file::{Entry, Rule, RuleFile};
use super::Found;
use super::step::Want;

/// Rules whose keys contain the keys of others may meet the same descriptor: they are alternatives.
pub(super) fn write(file: &mut RuleFile, found: Vec<Found>) {
    let keys =
        |found: &Found| found.steps.iter().map(|step| step.key.clone()).collect::<BTreeSet<_>>();
    let sets: BTreeSet<_> = found.iter().map(keys).collect();
    let families = families(&sets.into_iter().collect::<Vec<_>>());
    let mut order = Vec::new();
    let mut members: BTreeMap<usize, Vec<Found>> = BTreeMap::new();
    for found in found {
        let family = families.get(&keys(&found)).copied().unwrap_or(0);
        let family_members = members.entry(family).or_default();
        if family_members.is_empty() {
            order.push(family);
        }
        family_members.push(found);
    }
    for family in order {
        write_family(file, members.remove(&family).unwrap_or_default());
    }
}

/// Numbers for sets of keys: the same for sets of which one contains the other.
fn families(sets: &[BTreeSet<String>]) -> BTreeMap<BTreeSet<String>, usize> {
    /// With more sets than this, all are one family: that is right as well, only longer to read.
    const MAX: usize = 1000;
    let mut family: Vec<usize> = (0..sets.len()).collect();
    for one in 0..sets.len() {
        for other in 0..if sets.len() > MAX { 0 } else { one } {
            if sets[one].is_subset(&sets[other]) || sets[other].is_subset(&sets[one]) {
                let (from, to) = (family[one], family[other]);
                if from == to {
                    continue;
                }
                family.iter_mut().filter(|family| **family == from).for_each(|family| *family = to);
            }
        }
    }
    let number = |index: usize| if sets.len() > MAX { 0 } else { family[index] };
    sets.iter().enumerate().map(|(index, set)| (set.clone(), number(index))).collect()
}

fn write_family(file: &mut RuleFile, mut found: Vec<Found>) {
    let depth = |found: &Found| found.steps.len();
    let exact = |found: &Found| found.steps.iter().all(|step| matches!(step.want, Want::Exact(_)));
    let apart = found.iter().all(|one| exact(one) && depth(one) == found.first().map_or(0, depth));
    let alone = found.len() == 1 || apart;
    let first = found.first().and_then(|found| found.steps.first());
    let group = first.map(|step| format!("by-{}", step.key)).unwrap_or_default();
    if !alone {
        let ranks =
            |found: &Found| found.steps.iter().map(|step| step.want.rank()).collect::<Vec<_>>();
        found.sort_by_cached_key(|found| (Reverse(found.steps.len()), ranks(found)));
    }
    let mut rules = Vec::new();
    let group = if alone { group } else { file.name(&group) };
    for found in found {
        let mut rule = found.rule;
        if !alone {
            must_be_there(&mut rule);
        }
        rule.name = file.name(&rule.name);
        rules.push(rule);
    }
    match alone {
        true => file.entries.extend(rules.into_iter().map(Entry::Rule)),
        false => file.entries.push(Entry::Group { name: group, rules }),
    }
}

/// Among alternatives, a rule without its key must not be the one that was found.
fn must_be_there(rule: &mut Rule) {
    for name in &rule.key {
        if !rule.matches.iter().any(|(matched, _)| matched == name) {
            rule.matches.push((name.clone(), vec!["*".to_owned()]));
        }
    }
}
