//! Limits of single keys: what somebody was promised beyond a rule's own limit.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tollgate_core::{Limit, Quota};

use crate::budget::{Budget, Rates};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::files::Files;
use crate::key::KeyParts;
use crate::read::{Reader, shortened};

/// Keys with limits of their own, sorted, their text in one piece.
#[derive(Clone, Debug)]
pub(crate) struct Overrides {
    text: Box<str>,
    entries: Box<[Entry]>,
    /// The different quotas that keys have.
    pub(crate) quotas: Box<[Quota]>,
    /// For each of these as many limits as for each quota of the rule.
    pub(crate) limits: Box<[Limit]>,
}

/// Eight bytes for each key, beside its text.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    len: u16,
    quota: u16,
}

impl Overrides {
    /// The most keys with limits of their own, for one rule.
    pub(crate) const MAX: usize = 4_000_000;
    /// The most different limits among them: each has a counter of its own.
    pub(crate) const MAX_QUOTAS: usize = 4_096;

    /// Each key, as it is written, and which of the quotas it has.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.entries.iter().map(|entry| (self.key(entry), usize::from(entry.quota)))
    }

    fn key(&self, entry: &Entry) -> &str {
        let start = entry.start as usize;
        &self.text[start..start + usize::from(entry.len)]
    }

    /// Keys that a file lists, or the rule itself.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        node: &Node,
        budget: &Budget,
        key: &KeyParts,
        files: &dyn Files,
    ) -> Option<Self> {
        let Budget::Rate(rates) = budget else {
            let message = "only rates can be overridden";
            let remedy = "leave `overrides` out, or limit a rate with `limit: 100/min`";
            let span = first(node);
            reader.add(Diagnostic::error(
                "no-overrides",
                span,
                message,
                "beside `concurrent`",
                remedy,
            ));
            return None;
        };
        if key.parts.is_empty() {
            let message = "a rule that counts everybody together has no keys to override";
            let remedy = "count by something: `key: [user]`";
            let span = first(node);
            reader.add(Diagnostic::error("no-overrides", span, message, "here", remedy));
            return None;
        }
        let mut lines = Lines { reader, node, key, rates, overrides: Building::default(), bad: 0 };
        match &node.value {
            Value::Map(fields) => {
                for field in fields {
                    let quota = match &field.value.value {
                        Value::Text(text) | Value::Number(text) => text.as_str(),
                        _ => "",
                    };
                    lines.add(&field.name, quota, &|| format!("`{}`", shortened(&field.name)));
                }
            }
            _ => lines.read_file(files)?,
        }
        lines.finish()
    }
}

fn first(node: &Node) -> std::ops::Range<usize> {
    node.span.start..node.span.start
}

#[derive(Default)]
struct Building {
    text: String,
    entries: Vec<Entry>,
    quotas: Vec<Quota>,
    /// The same, to find their numbers by.
    numbers: BTreeMap<String, u16>,
    /// The text of the last quota and its number: files repeat themselves.
    known: BTreeMap<Box<str>, u16>,
}

struct Lines<'l, 'r> {
    reader: &'l mut Reader<'r>,
    node: &'l Node,
    key: &'l KeyParts,
    rates: &'l Rates,
    overrides: Building,
    bad: usize,
}

impl Lines<'_, '_> {
    /// More than this is not said about one file.
    const MAX_BAD: usize = 10;

    fn read_file(&mut self, files: &dyn Files) -> Option<()> {
        let name = self.reader.text(self.node, "`overrides`")?;
        let text = match files.read(name) {
            Ok(text) => text,
            Err(error) => {
                let name = shortened(name);
                let message = format!("the overrides in `{name}` cannot be read: {error}");
                let remedy =
                    "name a file beside the rule file, with lines like `acme-corp,50000/min`";
                let span = self.node.span.clone();
                self.reader.add(Diagnostic::error(
                    "unreadable-file",
                    span,
                    message,
                    "this file",
                    remedy,
                ));
                return None;
            }
        };
        // Spreadsheets write a mark before the first key, which is not part of it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, quota) = line.rsplit_once(',').unwrap_or((line, ""));
            self.add(key.trim(), quota.trim(), &|| format!("{name}:{}", number + 1));
        }
        Some(())
    }

    fn add(&mut self, key: &str, quota: &str, at: &dyn Fn() -> String) {
        if let Err(why) = self.try_add(key, quota) {
            self.bad += 1;
            if self.bad <= Self::MAX_BAD {
                let message = format!("{}: {why}", at());
                let remedy = "write one key and its limit on each line: `acme-corp,50000/min`";
                let span = first(self.node);
                self.reader.add(Diagnostic::error(
                    "bad-override",
                    span,
                    message,
                    "from here",
                    remedy,
                ));
            }
        }
    }

    fn try_add(&mut self, key: &str, quota: &str) -> Result<(), String> {
        if let Some(part) = self.key.written(key).position(|value| value.is_none()) {
            let part = &self.key.parts[part];
            return Err(format!("`{}` has no `{part}`, or one that cannot be", shortened(key)));
        }
        let len = u16::try_from(key.len())
            .map_err(|_| "the key is longer than 65535 bytes".to_owned())?;
        if self.overrides.entries.len() == Overrides::MAX {
            return Err(format!("there are more than {} keys", Overrides::MAX));
        }
        let quota = self.quota(quota)?;
        let building = &mut self.overrides;
        let start = u32::try_from(building.text.len())
            .map_err(|_| "the keys take more than 4 GB".to_owned())?;
        building.text.push_str(key);
        building.entries.push(Entry { start, len, quota });
        Ok(())
    }

    fn quota(&mut self, text: &str) -> Result<u16, String> {
        if let Some(known) = self.overrides.known.get(text) {
            return Ok(*known);
        }
        let quota: Quota = text.parse().map_err(|error| format!("{error}"))?;
        let Building { quotas, numbers, .. } = &mut self.overrides;
        let number = match numbers.get(&quota.to_string()) {
            Some(number) => *number,
            None if quotas.len() == Overrides::MAX_QUOTAS => {
                return Err(format!(
                    "there are more than {} different limits",
                    Overrides::MAX_QUOTAS
                ));
            }
            None => {
                self.rates.shape.limits(quota).map_err(|error| error.to_string())?;
                // At most 4096.
                let number = u16::try_from(quotas.len()).unwrap_or(u16::MAX);
                quotas.push(quota);
                numbers.insert(quota.to_string(), number);
                number
            }
        };
        if self.overrides.known.len() < Overrides::MAX_QUOTAS * 2 {
            self.overrides.known.insert(text.into(), number);
        }
        Ok(number)
    }

    fn finish(self) -> Option<Overrides> {
        let Building { text, mut entries, quotas, .. } = self.overrides;
        let key = |entry: &Entry| &text[entry.start as usize..][..usize::from(entry.len)];
        entries.sort_by(|a, b| key(a).cmp(key(b)));
        for pair in entries
            .windows(2)
            .filter(|pair| key(&pair[0]).cmp(key(&pair[1])) == Ordering::Equal)
            .take(Self::MAX_BAD)
        {
            let message = format!("the key `{}` is given twice", shortened(key(&pair[0])));
            let span = first(self.node);
            self.reader.add(Diagnostic::error(
                "duplicate",
                span,
                message,
                "from here",
                "keep one of them",
            ));
        }
        if self.bad > Self::MAX_BAD {
            let message = format!("{} more overrides are no good", self.bad - Self::MAX_BAD);
            let span = first(self.node);
            self.reader.add(Diagnostic::error(
                "bad-override",
                span,
                message,
                "from here",
                "mend these first",
            ));
        }
        let limits =
            quotas.iter().filter_map(|quota| self.rates.shape.limits(*quota).ok()).flatten();
        Some(Overrides {
            limits: limits.collect(),
            text: text.into(),
            entries: entries.into(),
            quotas: quotas.into(),
        })
    }
}
