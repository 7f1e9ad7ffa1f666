//! `tollgate rules show` and `push`: the rules of a server that runs.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_rules::{Changes, Format, NoFiles, RuleSet, Source};

use super::client::{Client, Message};
use crate::error::{Ending, Error};
use crate::files;
use crate::flags::{Output, RulesPush, RulesShow};
use crate::print;
use crate::rules::{Diff, changes_text};

/// The rules of a server.
#[derive(Debug, Deserialize)]
struct Shown {
    version: String,
    namespace: String,
    from: Option<String>,
    pushed: bool,
    killed: Option<String>,
    rules: Vec<ShownRule>,
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ShownRule {
    name: String,
    mode: String,
    killed: Option<String>,
}

pub(crate) fn show(flags: &RulesShow) -> Result<Ending, Error> {
    let client = Client::new(&flags.remote)?;
    let answer = client.get("/v1/rules")?;
    if flags.remote.output == Output::Json {
        print::json(&answer)?;
        return Ok(Ending::Good);
    }
    print::text(&text(&client.read(answer)?))?;
    Ok(Ending::Good)
}

fn text(shown: &Shown) -> String {
    let from = match (&shown.from, shown.pushed) {
        (_, true) => "pushed".to_owned(),
        (Some(file), false) => format!("from {}", print::harmless(file)),
        (None, false) => "from nowhere known".to_owned(),
    };
    let mut text = format!(
        "version {} of namespace {}, {from}\n",
        shown.version,
        print::harmless(&shown.namespace)
    );
    if let Some(mode) = &shown.killed {
        text += &format!("all rules are killed: {mode}\n");
    }
    let row = |rule: &ShownRule| {
        let killed = rule.killed.as_ref().map(|mode| format!("killed: {mode}"));
        [print::harmless(&rule.name), rule.mode.clone(), killed.unwrap_or_default()]
    };
    let rows: Vec<_> = shown.rules.iter().map(row).collect();
    text += &format!("\n{}", print::columns(["rule", "mode", ""], &rows));
    if let Some(rules) = &shown.text {
        let lines = rules.lines().map(|line| format!("{}\n", print::harmless(line)));
        text += &format!("\n{}", lines.collect::<String>());
    }
    text
}

/// What a push did, for programs.
#[derive(Debug, Serialize)]
struct Pushed<'a> {
    dry_run: bool,
    /// What was in force.
    previous: &'a str,
    /// What these rules are.
    version: String,
    /// Absent if the rules in force cannot be read here.
    changes: Option<Diff<'a>>,
    /// What the server says; absent if nothing was sent.
    answer: Option<Value>,
}

pub(crate) fn push(flags: &RulesPush) -> Result<Ending, Error> {
    let (source, rules) = files::load(&flags.file)?;
    let client = Client::new(&flags.remote)?;
    let shown: Shown = client.read(client.get("/v1/rules")?)?;
    let version = rules.version().to_string();
    let is_same = version == shown.version;
    let changes = read(&shown).map(|before| before.changes(&rules));
    let is_text = flags.remote.output == Output::Text;
    if is_text {
        print::text(&announced(changes.as_ref(), is_same, print::colours()))?;
    }
    let sends = !flags.dry_run && !is_same;
    let answer = match sends {
        true => Some(client.ask(Method::PUT, "/v1/rules", message(&source, &shown.version))?),
        false => None,
    };
    match (is_text, sends) {
        (false, _) => print::json(&Pushed {
            dry_run: flags.dry_run,
            previous: &shown.version,
            version,
            changes: changes.as_ref().map(|changes| Diff::new("in force", source.name(), changes)),
            answer,
        })?,
        (true, true) => {
            print::text(&format!("\nversion {version} is in force\n{}", still(&shown)))?;
        }
        (true, false) => {}
    }
    Ok(if flags.dry_run && !is_same { Ending::Findings } else { Ending::Good })
}

fn message<'a>(source: &Source, version: &'a str) -> Message<'a> {
    let content_type = match source.format() {
        Format::Toml => "application/toml",
        Format::Yaml => "application/yaml",
    };
    Message { content_type, body: source.text().into(), replaces: Some(version) }
}

/// The rules in force, if they can be read without the files that they name.
fn read(shown: &Shown) -> Option<RuleSet> {
    let name = shown.from.as_deref().unwrap_or("rules.yaml");
    RuleSet::read(&Source::new(name, shown.text.as_deref()?), &NoFiles).ok()
}

fn announced(changes: Option<&Changes>, is_same: bool, colours: bool) -> String {
    match (changes, is_same) {
        (_, true) => "these rules are in force already\n".to_owned(),
        (Some(changes), false) if changes.is_empty() => {
            "nothing that is decided changes\n".to_owned()
        }
        (Some(changes), false) => changes_text(changes, colours),
        (None, false) => {
            "the rules in force name other files, so what changes cannot be told here\n".to_owned()
        }
    }
}

/// What is killed stays so, which is easily forgotten.
fn still(shown: &Shown) -> String {
    let rules = shown.rules.iter().filter(|rule| rule.killed.is_some());
    let names: Vec<_> = rules.map(|rule| print::harmless(&rule.name)).collect();
    match (&shown.killed, names.is_empty()) {
        (Some(mode), _) => format!("all rules are still killed: {mode}\n"),
        (None, false) => format!("still killed, if they are there: {}\n", names.join(", ")),
        (None, true) => String::new(),
    }
}
