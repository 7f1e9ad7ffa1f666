//! What a rule says, as texts that can be compared.

use std::fmt::Display;

use super::{Change, Direction, Side};
use crate::budget::Budget;
use crate::cost::Cost;
use crate::key::Missing;
use crate::matching::Matching;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::settings::{CONSISTENCIES, HEADERS, MODES, Mode, OnStoreFailure, PRIORITIES, name_of};
use crate::window::Window;
use crate::words::After;

/// One thing that a rule says.
pub(super) struct Aspect {
    pub(super) field: String,
    pub(super) text: String,
    /// How much it lets pass, where that can be told: more is looser.
    permits: Option<u128>,
}

/// All but the limits themselves, sorted by field. What is not said is not there.
pub(super) fn aspects(side: &Side<'_>, rule: &Rule) -> Vec<Aspect> {
    let mut aspects = Aspects(Vec::new());
    aspects.matching(side.set, &rule.matching);
    aspects.add("key", listed(&rule.key.parts));
    match &rule.key.missing {
        Missing::Skip => {}
        Missing::Other(attribute) => aspects.add("key_missing", attribute.to_string()),
        Missing::Together(name) => aspects.add("key_missing", format!("together as {name}")),
    }
    aspects.budget(rule);
    if rule.cost != Cost::ONE {
        aspects.add("cost", rule.cost.to_string());
        if let (Some(cost), Some(last)) = (rule.cost.largest(), aspects.0.last_mut()) {
            last.permits = Some(u128::from(u64::MAX - cost));
        }
    }
    if let Some(condition) = &rule.count_if {
        aspects.add("count_if", condition.text().to_owned());
    }
    if let Some(time) = rule.block_for() {
        aspects.permitting("block_for", After(time).to_string(), u128::MAX - time.as_nanos());
    }
    aspects.settings(rule);
    if let Some(before) = before_in_group(side, rule) {
        aspects.add("first_match", before);
    }
    aspects.0.sort_by(|a, b| a.field.cmp(&b.field));
    aspects.0
}

/// The differences between what two rules say.
pub(super) fn compare(old: &[Aspect], new: &[Aspect]) -> Vec<Change> {
    let mut changes = Vec::new();
    let find = |among: &[Aspect], field: &str| -> Option<usize> {
        among.iter().position(|aspect| aspect.field == field)
    };
    for aspect in old {
        match find(new, &aspect.field).map(|at| &new[at]) {
            Some(same) if same.text == aspect.text => {}
            other => changes.push(change(Some(aspect), other)),
        }
    }
    let added = new.iter().filter(|aspect| find(old, &aspect.field).is_none());
    changes.extend(added.map(|aspect| change(None, Some(aspect))));
    changes
}

fn change(from: Option<&Aspect>, to: Option<&Aspect>) -> Change {
    let field = from.or(to).map(|aspect| aspect.field.clone()).unwrap_or_default();
    let text = |aspect: Option<&Aspect>| aspect.map(|it| it.text.clone()).unwrap_or_default();
    // Fields that are not there permit what they permit by themselves.
    let usual = match field.as_str() {
        "block_for" => Some(u128::MAX),
        "cost" => Some(u128::from(u64::MAX - 1)),
        _ => None,
    };
    let permits = |aspect: Option<&Aspect>| aspect.map_or(usual, |aspect| aspect.permits);
    let direction = match (permits(from), permits(to)) {
        // Which of both is more, the server knows.
        (Some(one), Some(other)) if is_share(&field, one, other) => None,
        (Some(from), Some(to)) => Direction::of(&from, &to),
        _ => None,
    };
    Change { direction, ..Change::plain(field, text(from), text(to)) }
}

/// Whether a share of the limit is compared with that of the server, which a rule file does not know.
fn is_share(field: &str, one: u128, other: u128) -> bool {
    let (any, shares) = (u128::from(ANY_SHARE), 1..=u128::from(ANY_SHARE));
    let is_any = (one == any) != (other == any);
    field == "on_store_failure" && is_any && shares.contains(&one) && shares.contains(&other)
}

/// Stands for the share of a rule that names none: more than nothing, and not everything.
const ANY_SHARE: u8 = 101;

struct Aspects(Vec<Aspect>);

impl Aspects {
    fn add(&mut self, field: impl Into<String>, text: String) {
        self.0.push(Aspect { field: field.into(), text, permits: None });
    }

    fn permitting(&mut self, field: &str, text: String, permits: u128) {
        self.0.push(Aspect { field: field.to_owned(), text, permits: Some(permits) });
    }

    fn matching(&mut self, set: &RuleSet, matching: &Matching) {
        let mut add = |field: &str, texts: Vec<String>| {
            if !texts.is_empty() {
                self.add(format!("match.{field}"), sorted(texts));
            }
        };
        add("method", texts(&matching.methods));
        add("host", texts(&matching.hosts));
        add("path", texts(&matching.paths));
        let name = |tier: &usize| set.tiers().map_or_else(String::new, |it| it.name(*tier).into());
        add("tier", matching.tiers.iter().map(name).collect());
        add("ip", matching.networks.texts());
        for (attribute, patterns) in &matching.others {
            add(&attribute.to_string(), texts(patterns));
        }
        add("when", matching.when.iter().map(|when| when.text().to_owned()).collect());
    }

    fn budget(&mut self, rule: &Rule) {
        match &rule.budget {
            Budget::Rate(rates) => {
                self.add("algorithm", rates.shape.algorithm.name().to_owned());
                if let Some(queue) = rates.shape.algorithm.queue() {
                    self.permitting("queue", queue.to_string(), u128::from(queue));
                }
                match &rates.shape.window {
                    Window::Plain => {}
                    Window::Jittered => self.add("window", "jitter".to_owned()),
                    Window::Calendar { zone, day, anchor: None, .. } => {
                        self.add("window", format!("calendar of {zone}, from day {day}"));
                    }
                    Window::Calendar { zone, anchor: Some(anchor), .. } => {
                        self.add("window", format!("calendar of {zone}, from day {anchor}"));
                    }
                }
            }
            Budget::Concurrent { expires: Some(after), .. } => {
                self.add("expires", After(*after).to_string());
            }
            Budget::Concurrent { expires: None, .. } => {}
        }
    }

    fn settings(&mut self, rule: &Rule) {
        let settings = &rule.settings;
        let mode = match settings.mode {
            Mode::Enforce => 0,
            // Neither denies anything.
            Mode::Shadow | Mode::Off => 1,
        };
        self.permitting("mode", name_of(&MODES, &settings.mode).to_owned(), mode);
        let failure = match settings.on_store_failure {
            OnStoreFailure::Deny => 0,
            OnStoreFailure::Local { share } => u128::from(share.unwrap_or(ANY_SHARE)),
            OnStoreFailure::Allow => 1_000,
        };
        self.permitting("on_store_failure", settings.on_store_failure.to_string(), failure);
        self.add("consistency", name_of(&CONSISTENCIES, &settings.consistency).to_owned());
        self.add("priority", name_of(&PRIORITIES, &settings.priority).to_owned());
        self.add("headers", name_of(&HEADERS, &settings.headers).to_owned());
        self.add("deny.status", settings.deny.status.to_string());
        for (field, text) in
            [("deny.message", &settings.deny.message), ("deny.body", &settings.deny.body)]
        {
            if let Some(text) = text {
                self.add(field, text.to_string());
            }
        }
        if !settings.warn_at.is_empty() {
            let levels: Vec<_> = settings.warn_at.iter().map(|it| format!("{it}%")).collect();
            self.add("warn_at", levels.join(", "));
        }
    }
}

/// Which rule of its group is asked before this one.
fn before_in_group(side: &Side<'_>, rule: &Rule) -> Option<String> {
    let place = rule.alternative?;
    let before = place.rank.checked_sub(1);
    let before = before.and_then(|rank| side.alternatives.get(&(place.group, rank)));
    Some(before.map_or_else(|| "first".to_owned(), |before| format!("after {before}")))
}

fn texts<T: Display>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn listed<T: Display>(values: &[T]) -> String {
    match values {
        [] => "everybody".to_owned(),
        values => texts(values).join(", "),
    }
}

fn sorted(mut texts: Vec<String>) -> String {
    texts.sort();
    texts.dedup();
    texts.join(", ")
}
