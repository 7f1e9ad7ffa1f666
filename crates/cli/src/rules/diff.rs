//! `tollgate rules diff`: what another version of the rules changes.

use serde::Serialize;
use tollgate_rules::{Change, Changes, Direction, OverrideChanges, RuleChange};

use crate::error::{Ending, Error};
use crate::files::{self, STDIN};
use crate::flags::{Output, RulesDiff};
use crate::print;
use crate::rules::words;

/// All changes, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Diff<'a> {
    old: &'a str,
    new: &'a str,
    /// `stricter`, `looser`, `both`, or absent if that cannot be told.
    direction: Option<&'static str>,
    /// What changes beside the rules.
    file: Vec<Field<'a>>,
    rules: Vec<RuleDiff<'a>>,
}

#[derive(Debug, Serialize)]
struct RuleDiff<'a> {
    direction: Option<&'static str>,
    #[serde(flatten)]
    what: What<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
enum What<'a> {
    Added {
        rule: &'a str,
        words: &'a str,
    },
    Removed {
        rule: &'a str,
        words: &'a str,
    },
    Renamed {
        rule: &'a str,
        from: &'a str,
    },
    Changed {
        rule: &'a str,
        begins_anew: bool,
        fields: Vec<Field<'a>>,
        overrides: Option<Keys>,
    },
    /// A kind of change that this program does not know.
    Other,
}

#[derive(Debug, Serialize)]
struct Field<'a> {
    field: &'a str,
    tier: Option<&'a str>,
    /// Empty if it was not there.
    from: &'a str,
    /// Empty if it is gone.
    to: &'a str,
    ratio: Option<&'a str>,
    direction: Option<&'static str>,
}

/// What becomes of keys with limits of their own.
#[derive(Debug, Serialize)]
struct Keys {
    added: usize,
    removed: usize,
    changed: usize,
    direction: Option<&'static str>,
    /// The first few.
    first: Vec<Key>,
}

#[derive(Debug, Serialize)]
struct Key {
    key: String,
    from: Option<String>,
    to: Option<String>,
}

pub(super) fn run(flags: &RulesDiff) -> Result<Ending, Error> {
    if flags.old == STDIN && flags.new == STDIN {
        return Err(Error::Usage {
            message: "standard input can be one of the files, not both",
            remedy: "name a file for the other",
        });
    }
    let ((old, before), (new, after)) = (files::load(&flags.old)?, files::load(&flags.new)?);
    let changes = before.changes(&after);
    match flags.output {
        Output::Text => print::text(&text(&changes, print::colours()))?,
        Output::Json => print::json(&Diff::new(old.name(), new.name(), &changes))?,
    }
    Ok(if changes.is_empty() { Ending::Good } else { Ending::Findings })
}

/// The changes for people, one kind after the other.
pub(crate) fn text(changes: &Changes, colours: bool) -> String {
    if changes.is_empty() {
        return "nothing changes\n".to_owned();
    }
    let mut groups = vec![("beside the rules", String::new())];
    for change in &changes.file {
        groups[0].1 += &format!("  {change}\n");
    }
    for (title, is_it) in KINDS {
        let rules = changes.rules.iter().filter(|rule| is_it(rule));
        groups.push((title, rules.map(|rule| of_rule(rule, colours)).collect()));
    }
    let groups = groups.into_iter().filter(|(_, text)| !text.is_empty());
    let groups: Vec<_> = groups.map(|(title, text)| format!("{title}\n{text}")).collect();
    let all = match changes.direction() {
        Some(Direction::Both) => {
            "all in all: stricter in one way, and looser in another".to_owned()
        }
        Some(way) => format!("all in all: {}", painted(way, colours)),
        None => "whether that is stricter or looser cannot be told".to_owned(),
    };
    format!("{}\n{all}\n", groups.join("\n"))
}

type IsIt = fn(&RuleChange) -> bool;

/// In the order in which they are read: what changes for those who are limited today comes first.
const KINDS: [(&str, IsIt); 4] = [
    ("changed", |rule| matches!(rule, RuleChange::Changed { .. })),
    ("added", |rule| matches!(rule, RuleChange::Added { .. })),
    ("removed", |rule| matches!(rule, RuleChange::Removed { .. })),
    ("renamed", |rule| matches!(rule, RuleChange::Renamed { .. })),
];

fn of_rule(rule: &RuleChange, colours: bool) -> String {
    let way = rule.direction().map(|way| painted(way, colours));
    match rule {
        RuleChange::Added { name, words, .. } | RuleChange::Removed { name, words, .. } => {
            let way = way.map_or_else(String::new, |way| format!(": {way}"));
            format!("  {name}{way}\n{}", words::below(words, 4))
        }
        RuleChange::Changed { name, changes, overrides, begins_anew, .. } => {
            let way = way.unwrap_or_else(|| "changed".to_owned());
            let anew = if *begins_anew { "; its counters begin anew" } else { "" };
            let mut text = format!("  {name}: {way}{anew}\n");
            for change in changes {
                text += &format!("    {change}\n");
            }
            let keys = overrides.iter().map(ToString::to_string).collect::<String>();
            keys.lines().fold(text, |text, line| format!("{text}  {line}\n"))
        }
        other => other.to_string().lines().map(|line| format!("  {line}\n")).collect(),
    }
}

fn painted(way: Direction, colours: bool) -> String {
    let word = way.to_string();
    match way {
        Direction::Stricter => print::bad(&word, colours),
        Direction::Looser => print::good(&word, colours),
        Direction::Both => print::mixed(&word, colours),
    }
}

const fn direction(way: Direction) -> &'static str {
    match way {
        Direction::Stricter => "stricter",
        Direction::Looser => "looser",
        Direction::Both => "both",
    }
}

impl<'a> Diff<'a> {
    pub(crate) fn new(old: &'a str, new: &'a str, changes: &'a Changes) -> Self {
        Self {
            old,
            new,
            direction: changes.direction().map(direction),
            file: changes.file.iter().map(Field::of).collect(),
            rules: changes.rules.iter().map(RuleDiff::of).collect(),
        }
    }
}

impl<'a> RuleDiff<'a> {
    fn of(rule: &'a RuleChange) -> Self {
        let what = match rule {
            RuleChange::Added { name, words, .. } => What::Added { rule: name, words },
            RuleChange::Removed { name, words, .. } => What::Removed { rule: name, words },
            RuleChange::Renamed { from, to } => What::Renamed { rule: to, from },
            RuleChange::Changed { name, changes, overrides, begins_anew, .. } => What::Changed {
                rule: name,
                begins_anew: *begins_anew,
                fields: changes.iter().map(Field::of).collect(),
                overrides: overrides.as_ref().map(Keys::of),
            },
            _ => What::Other,
        };
        Self { direction: rule.direction().map(direction), what }
    }
}

impl<'a> Field<'a> {
    fn of(change: &'a Change) -> Self {
        Self {
            field: &change.field,
            tier: change.tier.as_deref(),
            from: &change.from,
            to: &change.to,
            ratio: change.ratio.as_deref(),
            direction: change.direction.map(direction),
        }
    }
}

impl Keys {
    fn of(changes: &OverrideChanges) -> Self {
        let key = |change: &tollgate_rules::OverrideChange| Key {
            key: change.key.clone(),
            from: change.from.map(|quota| quota.to_string()),
            to: change.to.map(|quota| quota.to_string()),
        };
        Self {
            added: changes.added,
            removed: changes.removed,
            changed: changes.changed,
            direction: changes.direction.map(direction),
            first: changes.first.iter().map(key).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_rules::RuleSet;

    #[test]
    fn terminals_show_which_way_it_goes() {
        let rules = |limit| {
            RuleSet::parse(&format!("rules: [{{ name: a, key: [], limit: {limit} }}]")).unwrap()
        };
        let (little, much) = (rules("5/s"), rules("9/s"));
        let stricter = text(&much.changes(&little), true);
        assert!(stricter.contains("\u{1b}[31mstricter"), "{stricter:?}");
        let looser = text(&little.changes(&much), true);
        assert!(looser.contains("\u{1b}[32mlooser"), "{looser:?}");
        assert!(!text(&little.changes(&much), false).contains('\u{1b}'));
    }
}
