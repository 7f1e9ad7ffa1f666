//! `tollgate kill`, `unkill`, `drain` and `log-level`.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::Client;
use crate::error::{Ending, Error};
use crate::flags::{Drain, Kill, KillMode, LogLevel, Output, Remote, Unkill, Which};
use crate::print;

#[derive(Debug, Serialize)]
struct Switch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
}

impl<'a> Switch<'a> {
    fn new(which: &'a Which, mode: Option<&'static str>) -> Self {
        Self { rule: which.rule.as_deref(), all: which.all, mode }
    }
}

/// What is killed.
#[derive(Debug, Deserialize)]
struct Killed {
    all: Option<String>,
    rules: Vec<KilledRule>,
}

#[derive(Debug, Deserialize)]
struct KilledRule {
    rule: String,
    mode: String,
}

pub(crate) fn kill(flags: &Kill) -> Result<Ending, Error> {
    let mode = match flags.mode {
        KillMode::Off => "off",
        KillMode::Shadow => "shadow",
    };
    switch(&flags.remote, "/v1/kill", &Switch::new(&flags.which, Some(mode)))
}

pub(crate) fn unkill(flags: &Unkill) -> Result<Ending, Error> {
    switch(&flags.remote, "/v1/unkill", &Switch::new(&flags.which, None))
}

fn switch(remote: &Remote, path: &str, switch: &Switch<'_>) -> Result<Ending, Error> {
    let client = Client::new(remote)?;
    let answer = client.send(Method::POST, path, switch)?;
    told(remote, &answer, || client.read(answer.clone()).map(|killed| text(&killed)))
}

fn text(killed: &Killed) -> String {
    let mut text = match &killed.all {
        Some(mode) => format!("all rules are killed: {mode}\n"),
        None if killed.rules.is_empty() => "no rule is killed\n".to_owned(),
        None => String::new(),
    };
    for KilledRule { rule, mode } in &killed.rules {
        text += &format!("{} is killed: {mode}\n", print::harmless(rule));
    }
    text
}

pub(crate) fn drain(flags: &Drain) -> Result<Ending, Error> {
    let answer = Client::new(&flags.remote)?.send(Method::POST, "/v1/drain", &())?;
    told(&flags.remote, &answer, || Ok("it ends: whoever has asked gets an answer\n".to_owned()))
}

#[derive(Debug, Serialize)]
struct Level<'a> {
    level: &'a str,
}

pub(crate) fn log_level(flags: &LogLevel) -> Result<Ending, Error> {
    let client = Client::new(&flags.remote)?;
    let answer = match &flags.level {
        Some(level) => client.send(Method::PUT, "/v1/log-level", &Level { level })?,
        None => client.get("/v1/log-level")?,
    };
    let level = || print::harmless(answer["level"].as_str().unwrap_or_default());
    told(&flags.remote, &answer, || Ok(format!("the level of the log is {}\n", level())))
}

fn told(
    remote: &Remote,
    answer: &Value,
    text: impl FnOnce() -> Result<String, Error>,
) -> Result<Ending, Error> {
    match remote.output {
        Output::Json => print::json(answer)?,
        Output::Text => print::text(&text()?)?,
    }
    Ok(Ending::Good)
}
