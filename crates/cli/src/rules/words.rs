//! Rules in a few words.

use tollgate_rules::{Lasting, Rule, RuleSet};

/// What a rule says in words, each part in a line of its own.
pub(super) fn below(words: &str, indent: usize) -> String {
    let blank = " ".repeat(indent);
    words.split("; ").map(|part| format!("{blank}{part}\n")).collect()
}

/// Each limit of a rule, with the tier it is for, if tiers have different ones.
pub(super) fn limits(rules: &RuleSet, rule: &Rule) -> Vec<(Option<String>, String)> {
    let texts: Vec<String> = match rule.concurrent() {
        Some((most, expires)) => {
            most.iter().map(|most| at_once(*most, expires.map(Lasting))).collect()
        }
        None => rule.limits().iter().map(ToString::to_string).collect(),
    };
    let names: Vec<&str> = rules.tiers().map(|tiers| tiers.names().collect()).unwrap_or_default();
    if texts.len() <= 1 || names.is_empty() {
        return texts.into_iter().take(1).map(|text| (None, text)).collect();
    }
    // Of limits that begin on a day of their own there is one for each day: the first stands for
    // all of them.
    let each = (texts.len() / names.len()).max(1);
    let tiers = names.into_iter().map(|name| Some(name.to_owned()));
    tiers.zip(texts.into_iter().step_by(each)).collect()
}

/// So many under way.
pub(super) fn at_once(most: u32, expires: Option<Lasting>) -> String {
    match expires {
        Some(expires) => format!("{most} at once, for {expires} at most"),
        None => format!("{most} at once"),
    }
}
