//! Which limits are alternatives to each other.

use std::collections::BTreeMap;

use super::super::rule_file::{Entry, Rule, RuleFile};
use super::Found;
use super::step::{self, Want};

/// Rules for the same keys may meet the same descriptor: they are alternatives.
pub(super) fn write(file: &mut RuleFile, found: Vec<Found>) {
    let mut order = Vec::new();
    let mut members: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for found in found {
        let keys = step::keys(&found.steps);
        let family = members.entry(keys.clone()).or_default();
        if family.is_empty() {
            order.push(keys);
        }
        family.push(found);
    }
    for keys in order {
        write_family(file, members.remove(&keys).unwrap_or_default());
    }
}

fn write_family(file: &mut RuleFile, mut found: Vec<Found>) {
    let exact = |found: &Found| found.steps.iter().all(|step| matches!(step.want, Want::Exact(_)));
    let alone = found.len() == 1 || found.iter().all(exact);
    let names = found.first().map(|found| found.steps.iter().map(|step| &*step.key));
    let group = format!("by-{}", names.into_iter().flatten().collect::<Vec<_>>().join("-"));
    if !alone {
        let ranks =
            |found: &Found| found.steps.iter().map(|step| step.want.rank()).collect::<Vec<_>>();
        found.sort_by_cached_key(ranks);
        set_apart(&mut found);
    }
    let group = if alone { group } else { file.name(&group) };
    let mut rules = Vec::new();
    for Found { mut rule, .. } in found {
        rule.name = file.name(&rule.name);
        rules.push(rule);
    }
    match alone {
        true => file.entries.extend(rules.into_iter().map(Entry::Rule)),
        false => file.entries.push(Entry::Group { name: group, rules }),
    }
}

/// Of alternatives, the one that asks for most is asked first. Where that is not the one that would
/// have been found first in the tree, each rule says what it is not about.
fn set_apart(found: &mut [Found]) {
    let asks = |rule: &Rule| {
        let star = |values: &[String]| values.iter().any(|value| value.contains('*'));
        let matches = rule.matches.iter().map(|(_, values)| 2 - usize::from(star(values)));
        matches.sum::<usize>() + 2 * usize::from(!rule.when.is_empty())
    };
    let first_is_asked_first =
        found.windows(2).all(|pair| asks(&pair[0].rule) >= asks(&pair[1].rule));
    if first_is_asked_first || found.len() > MOST {
        return;
    }
    for later in 1..found.len() {
        let (before, from) = found.split_at_mut(later);
        let Some(one) = from.first_mut() else { continue };
        for other in before {
            let differ = other.steps.iter().zip(&one.steps).find(|(other, one)| other != one);
            let Some((other, own)) = differ else { continue };
            if let Some(refused) = other.refused()
                && other.is_preferred_to(own)
                && !one.rule.when.contains(&refused)
            {
                one.rule.when.push(refused);
            }
        }
    }
}

/// With more rules than this, they would be compared for too long.
const MOST: usize = 1000;
