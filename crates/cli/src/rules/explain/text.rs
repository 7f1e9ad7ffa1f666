//! Explanations for people.

use super::{Explained, Explainee, How, Limit};
use crate::print;

impl Explained {
    pub(super) fn to_text(&self, colours: bool) -> String {
        let word = match self.answer.allowed {
            true => print::good("allowed", colours),
            false => print::bad("denied", colours),
        };
        let mut text = format!("{}\nwould be {word}", self.request);
        match &self.answer.rule {
            Some(rule) if self.answer.allowed => text += &format!("; the strictest is `{rule}`\n"),
            Some(rule) => text += &format!(" by `{rule}`\n"),
            None => text += ": no rule applies\n",
        }
        text += &self.request_text();
        let (applying, others): (Vec<_>, Vec<_>) = self.rules.iter().partition(|it| it.applies);
        if !applying.is_empty() {
            text += "\napplies\n";
            text += &applying.iter().map(|it| it.how_text(colours)).collect::<Vec<_>>().join("\n");
        }
        if !others.is_empty() {
            text += "\ndoes not apply\n";
            let width = others.iter().map(|it| it.rule.chars().count()).max().unwrap_or_default();
            for it in others {
                let why = it.why.as_ref().map_or("", |why| &why.text);
                text += &format!("  {:width$}  {why}\n", it.rule, width = width.min(MAX_NAMES));
            }
        }
        text
    }

    /// What rules see of the request that it does not say itself.
    fn request_text(&self) -> String {
        let mut lines = Vec::new();
        if !self.request.split(' ').any(|word| word.split('?').next() == Some(&self.path)) {
            lines.push(("path", self.path.clone()));
        }
        let client = self.client.address.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
        lines.push(("client", format!("{client}: {}", self.client.text)));
        lines.extend(self.tier.clone().map(|tier| ("tier", tier)));
        format!("\n{}", aligned(&lines, 0))
    }
}

impl Explainee {
    fn how_text(&self, colours: bool) -> String {
        let Some(how) = &self.how else { return String::new() };
        let mut lines = how.key_lines();
        lines.push(("limit", how.limit.to_text()));
        lines.push(("cost", how.cost_text()));
        if how.when_failed {
            lines.push(("when", "cannot be told, so the rule applies".to_owned()));
        }
        if let Some(answer) = &how.answer {
            let says = match answer.allowed {
                true => answer.says(),
                false => print::bad(&answer.says(), colours),
            };
            let left = match answer.is_limited() {
                true => format!("{says}, {} of {} remaining", answer.remaining(), answer.limit()),
                false => says,
            };
            let retry = match answer.retry() {
                retry if retry.is_empty() => String::new(),
                retry => format!(", retry after: {retry}"),
            };
            lines.push(("answer", left + &retry));
        }
        format!("  {}\n{}", self.rule, aligned(&lines, 4))
    }
}

impl How {
    /// One line for each part of the key.
    fn key_lines(&self) -> Vec<(&'static str, String)> {
        let names = ["key"].into_iter().chain(std::iter::repeat(""));
        match &*self.key {
            [] => vec![("key", "one counter for everybody".to_owned())],
            parts => names.zip(parts.iter().map(|part| part.text.clone())).collect(),
        }
    }

    fn cost_text(&self) -> String {
        let error = self.cost_error.as_deref().unwrap_or_default();
        match self.cost {
            None => format!("refused: {error}"),
            Some(cost) if error.is_empty() => cost.to_string(),
            Some(cost) => format!("{cost}, as {error}"),
        }
    }
}

impl Limit {
    fn to_text(&self) -> String {
        let Self { text, tier, overridden, .. } = self;
        match (overridden, tier) {
            (Some(key), _) => format!("{text}, by the override for `{key}`"),
            (None, Some(tier)) => format!("{text}, for the tier `{tier}`"),
            (None, None) => text.clone(),
        }
    }
}

/// Names and values below each other.
fn aligned(lines: &[(&str, String)], indent: usize) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, value): &(&str, String)| format!("{:indent$}{name:width$}  {value}\n", "");
    lines.iter().map(line).collect()
}

/// Names that are longer than this do not push all others to the right.
const MAX_NAMES: usize = 24;
