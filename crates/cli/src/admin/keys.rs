//! `tollgate keys`: how keys stand, and a new start for one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};
use tollgate_rules::Lasting;

use super::client::Client;
use crate::error::{Ending, Error};
use crate::flags::{KeysCommand, KeysInspect, KeysReset, KeysTop, Output};
use crate::print;

pub(crate) fn run(command: &KeysCommand) -> Result<Ending, Error> {
    match command {
        KeysCommand::Inspect(flags) => inspect(flags),
        KeysCommand::Reset(flags) => reset(flags),
        KeysCommand::Top(flags) => top(flags),
    }
}

/// How a key stands with one limit.
#[derive(Debug, Deserialize)]
struct State {
    rule: String,
    mode: String,
    key: Vec<Part>,
    under: String,
    tier: Option<String>,
    limit: String,
    total: u64,
    used: u64,
    reset_after_ms: u64,
    allowed: bool,
    blocked_for_ms: Option<u64>,
    told_by: String,
    lent_here: Option<u64>,
    on_store_failure: Option<String>,
    store_failure: Option<String>,
    #[serde(default)]
    lost_ago_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Part {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct States {
    keys: Vec<State>,
}

fn inspect(flags: &KeysInspect) -> Result<Ending, Error> {
    let client = Client::new(&flags.remote)?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(&flags.attributes);
    let answer = client.get(&format!("/v1/keys?{}", query.finish()))?;
    if flags.remote.output == Output::Json {
        print::json(&answer)?;
        return Ok(Ending::Good);
    }
    let States { keys } = client.read(answer)?;
    if keys.is_empty() {
        print::text("no rule counts by that\n")?;
        return Ok(Ending::Good);
    }
    let rows: Vec<_> = keys.iter().map(State::row).collect();
    let head = ["rule", "key", "limit", "used", "", "all back in", "now"];
    print::text(&print::columns(head, &rows))?;
    print::text(&whose_word(&keys))?;
    Ok(Ending::Good)
}

/// What is to be known about limits that are shared with other nodes.
fn whose_word(keys: &[State]) -> String {
    let mut text = String::new();
    if keys.iter().any(|key| key.told_by == "store") {
        text += "\nshared: as the store says, for all nodes; what it has lent counts as used\n";
    }
    for State { rule, lent_here, .. } in keys {
        if let Some(lent @ 1..) = lent_here {
            text += &format!("of {rule}, {lent} lent to this node and not used yet\n");
        }
    }
    if let Some(ago) = keys.iter().find_map(|key| key.lost_ago_ms) {
        let rules: BTreeSet<_> =
            keys.iter().filter(|key| key.lost_ago_ms.is_some()).map(|key| &*key.rule).collect();
        let rules = Vec::from_iter(rules).join(", ");
        text += &format!(
            "\nthe store lost its memory {} ago, and nobody knows what was used before: of {rules} all counts\n\
             as used until it is back for certain. `tollgate keys reset` gives it back at once\n",
            lasting(ago)
        );
    }
    if let Some(reason) = keys.iter().find_map(|key| key.store_failure.as_ref()) {
        let reason = print::harmless(reason);
        text += &format!(
            "\nthe store does not answer ({reason})\nuntil it does, `on_store_failure` is in force at \
             this node, and what others let pass is not known:\n"
        );
        let policies: BTreeSet<_> = keys.iter().filter_map(State::policy).collect();
        for policy in policies {
            let meaning = match policy.split(' ').next() {
                Some("allow") => "everything passes",
                Some("deny") => "nothing passes but what was lent before",
                _ => "this node lets its share pass, less what it has let pass lately",
            };
            text += &format!("  {policy}: {meaning}\n");
        }
    }
    text
}

impl State {
    /// What is in force in place of the limit, if the store does not answer.
    fn policy(&self) -> Option<&str> {
        self.on_store_failure.as_deref()
    }

    fn row(&self) -> [String; 7] {
        let part = |Part { name, value }: &Part| format!("{name}={}", print::harmless(value));
        let key: Vec<_> = self.key.iter().map(part).collect();
        let limit = match (&*self.under, &self.tier) {
            ("override", _) => format!("{} (its own)", self.limit),
            (_, Some(tier)) => format!("{} (tier {tier})", self.limit),
            _ => self.limit.clone(),
        };
        let limit = match &*self.told_by {
            "store" => format!("{limit}, shared"),
            "node_alone" => {
                format!("{limit}, without the store: {}", self.policy().unwrap_or_default())
            }
            _ => limit,
        };
        let now = match (&*self.mode, self.blocked_for_ms, self.allowed) {
            ("off", _, _) => "off".to_owned(),
            (_, Some(left), _) => format!("blocked for {}", lasting(left)),
            ("shadow", None, false) => "would be denied".to_owned(),
            (_, None, true) => "allowed".to_owned(),
            (_, None, false) => "denied".to_owned(),
        };
        let everybody = || "(everybody)".to_owned();
        [
            self.rule.clone(),
            if key.is_empty() { everybody() } else { key.join(" ") },
            limit,
            match self.total {
                0 | u64::MAX => String::new(),
                total => format!("{}/{total}", self.used),
            },
            bar(self.used, self.total),
            // Nothing was spent of what is not to be had.
            if self.total == 0 { String::new() } else { lasting(self.reset_after_ms) },
            now,
        ]
    }
}

/// How full something is.
fn bar(used: u64, total: u64) -> String {
    match total {
        0 => return "nothing".to_owned(),
        u64::MAX => return "unlimited".to_owned(),
        _ => {}
    }
    // Something that is used is seen, and only what is full looks full.
    let filled = u128::from(used) * WIDTH as u128 / u128::from(total.max(1));
    let least = usize::from(used > 0);
    let filled = usize::try_from(filled).unwrap_or(WIDTH).clamp(least, WIDTH);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(WIDTH - filled))
}

fn lasting(millis: u64) -> String {
    Lasting(Duration::from_millis(millis)).to_string()
}

#[derive(Debug, Serialize)]
struct Reset<'a> {
    attributes: BTreeMap<&'a str, &'a str>,
    rule: Option<&'a str>,
}

fn reset(flags: &KeysReset) -> Result<Ending, Error> {
    let client = Client::new(&flags.remote)?;
    let attributes = flags.attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
    let reset = Reset { attributes, rule: flags.rule.as_deref() };
    let answer = client.send(Method::POST, "/v1/keys/reset", &reset)?;
    if flags.remote.output == Output::Json {
        print::json(&answer)?;
        return Ok(Ending::Good);
    }
    let text = match answer["reset"].as_u64() {
        Some(0) => "nothing was spent: nothing is reset\n".to_owned(),
        Some(1) => "1 counter is reset\n".to_owned(),
        count => format!("{} counters are reset\n", count.unwrap_or_default()),
    };
    print::text(&text)?;
    if let Some(left @ 1..) = answer["leases_end_in_ms"].as_u64() {
        let left = lasting(left);
        print::text(&format!(
            "other nodes may pass what was lent to them before for {left} more\n"
        ))?;
    }
    Ok(Ending::Good)
}

#[derive(Debug, Deserialize)]
struct Top {
    keys: Vec<Heavy>,
}

#[derive(Debug, Deserialize)]
struct Heavy {
    key: String,
    count: u64,
    share: f64,
}

fn top(flags: &KeysTop) -> Result<Ending, Error> {
    let client = Client::new(&flags.remote)?;
    let list = if flags.denied { "denied" } else { "top" };
    let answer = client.get(&format!("/v1/keys/{list}?n={}", flags.n))?;
    if flags.remote.output == Output::Json {
        print::json(&answer)?;
        return Ok(Ending::Good);
    }
    let Top { keys } = client.read(answer)?;
    if keys.is_empty() {
        print::text("nobody\n")?;
        return Ok(Ending::Good);
    }
    let row = |Heavy { key, count, share }: &Heavy| {
        [print::harmless(key), count.to_string(), format!("{:.1} %", share * 100.0)]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    let times = if flags.denied { "denied lately, about" } else { "came lately, about" };
    print::text(&print::columns(["key", times, "of all"], &rows))?;
    Ok(Ending::Good)
}

/// How long a bar is.
const WIDTH: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_what_is_used() {
        assert_eq!(bar(0, 100), "[----------]");
        assert_eq!(bar(1, 1_000_000), "[#---------]");
        assert_eq!(bar(99, 100), "[#########-]");
        assert_eq!(bar(100, 100), "[##########]");
        assert_eq!(bar(u64::MAX - 1, 1), "[##########]");
        assert_eq!(bar(0, 0), "nothing");
        assert_eq!(bar(5, u64::MAX), "unlimited");
    }
}
