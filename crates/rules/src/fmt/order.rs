//! The order of fields.

use super::layout::{Entry, Group, Item, Layout};
use crate::rule_file;

/// Puts the fields of the file and of its rules in the order of the reference. Others follow in
/// the order in which they stand.
pub(super) fn order(layout: &mut Layout<'_>) {
    let Item::Group(root) = &mut layout.root else { return };
    sort(root, &rule_file::FIELDS);
    for entry in &mut root.entries {
        match entry.name {
            Some("rules") => rules(entry),
            Some("tests") => each_map(entry, |group| sort(group, &TEST)),
            _ => {}
        }
    }
}

/// Whether an entry is the list of the rules of a file or of a group.
pub(super) fn is_rules(entry: &Entry<'_>) -> bool {
    entry.name == Some("rules")
}

fn rules(entry: &mut Entry<'_>) {
    each_map(entry, |rule| {
        sort(rule, &RULE);
        rule.inline = false;
        rule.entries.iter_mut().filter(|entry| is_rules(entry)).for_each(rules);
    });
}

fn each_map(entry: &mut Entry<'_>, mut change: impl FnMut(&mut Group<'_>)) {
    let Item::Group(Group { map: false, entries, .. }) = &mut entry.item else { return };
    for entry in entries {
        if let Item::Group(group @ Group { map: true, .. }) = &mut entry.item {
            change(group);
        }
    }
}

fn sort(group: &mut Group<'_>, order: &[&str]) {
    if group.map {
        let rank = |name| order.iter().position(|known| *known == name).unwrap_or(order.len());
        group.entries.sort_by_key(|entry| entry.name.map_or(0, rank));
    }
}

const RULE: [&str; 26] = [
    "name",
    "group",
    "first_match",
    "match",
    "key",
    "key_missing",
    "limit",
    "concurrent",
    "expires",
    "burst",
    "algorithm",
    "queue",
    "window",
    "jitter",
    "cost",
    "consistency",
    "mode",
    "on_store_failure",
    "count_if",
    "block_for",
    "overrides",
    "priority",
    "warn_at",
    "deny",
    "headers",
    "rules",
];

const TEST: [&str; 3] = ["name", "given", "expect"];
