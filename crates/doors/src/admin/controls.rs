//! Switches, the log, and the end.

use ::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{Outcome, bad_request, good, not_found, problem};
use crate::given::InForce;
use crate::respond;
use crate::service::Service;
use crate::switches::{Killed, SwitchError, Which};
use crate::web::Answer;

/// Kills a rule, or all.
pub(super) fn kill(service: &Service, asked: &Kill) -> Outcome<Answer> {
    let which = which(asked.rule.as_deref(), asked.all)?;
    service.kill(which, asked.mode).map(|now| killed(&now)).map_err(|error| refused(&error))
}

/// Takes that back.
pub(super) fn unkill(service: &Service, asked: &Unkill) -> Outcome<Answer> {
    let which = which(asked.rule.as_deref(), asked.all)?;
    service.unkill(which).map(|now| killed(&now)).map_err(|error| refused(&error))
}

/// What is killed.
pub(super) fn killed(now: &InForce) -> Answer {
    let rule = |(rule, mode)| KilledRule { rule, mode };
    let rules = now.switches.each().map(rule).collect();
    good(&KilledRules { all: now.switches.all(), rules })
}

/// Has the server end, after this is answered.
pub(super) fn drain(service: &Service) -> Answer {
    tracing::info!("the end was asked for");
    service.end();
    respond::told(StatusCode::ACCEPTED, &Drained { draining: true })
}

pub(super) fn log_level(service: &Service) -> Answer {
    good(&Level { level: service.log_level().now() })
}

pub(super) fn set_log_level(service: &Service, asked: &Level) -> Outcome<Answer> {
    let before = service.log_level().now();
    service.log_level().set(&asked.level).map_err(|reason| bad_request(&reason))?;
    tracing::warn!(before, now = asked.level, "the level of the log has changed");
    Ok(log_level(service))
}

/// `{"rule": "per-user", "mode": "off"}`, or `{"all": true, "mode": "shadow"}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kill {
    rule: Option<String>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    mode: Killed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unkill {
    rule: Option<String>,
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Level {
    level: String,
}

#[derive(Debug, Serialize)]
struct KilledRules<'a> {
    all: Option<Killed>,
    rules: Vec<KilledRule<'a>>,
}

#[derive(Debug, Serialize)]
struct KilledRule<'a> {
    rule: &'a str,
    mode: Killed,
}

#[derive(Debug, Serialize)]
struct Drained {
    draining: bool,
}

fn which(rule: Option<&str>, all: bool) -> Outcome<Which<'_>> {
    match (rule, all) {
        (Some(rule), false) => Ok(Which::Rule(rule)),
        (None, true) => Ok(Which::All),
        _ => Err(bad_request("name a `rule`, or say `\"all\": true`, and not both")),
    }
}

fn refused(error: &SwitchError) -> Box<Answer> {
    let detail = error.to_string();
    match error {
        SwitchError::Unknown(_) => not_found(&detail),
        SwitchError::NotKilled(_) | SwitchError::KilledWithAll(_) => {
            problem(StatusCode::CONFLICT, &detail)
        }
        SwitchError::Swap(_) => problem(StatusCode::UNPROCESSABLE_ENTITY, &detail),
    }
}
