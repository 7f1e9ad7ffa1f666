//! What is said about a ruling, as a message.

use tollgate::{Decision, RuleDecision, Ruling};
use tollgate_proto::tollgate::v1::{self as proto, CheckRequest, CheckResponse};

use crate::respond::millis;
use crate::tickets::Ticket;

pub(super) fn answer(
    ruling: &Ruling,
    ticket: Option<Ticket>,
    asked: &CheckRequest,
) -> CheckResponse {
    let decision = ruling.decision();
    let retry = match decision.retry() {
        None => proto::Retry::Unspecified,
        Some(tollgate::Retry::After(_)) => proto::Retry::After,
        Some(tollgate::Retry::OnReturn) => proto::Retry::OnReturn,
        Some(tollgate::Retry::Never) => proto::Retry::Never,
    };
    CheckResponse {
        allowed: ruling.is_allowed(),
        rule: ruling.rule().unwrap_or_default().to_owned(),
        limit: known(decision.limit()),
        remaining: known(decision.remaining()),
        reset_after_ms: millis(decision.reset_after()),
        retry: retry.into(),
        retry_after_ms: decision.retry_after().map(millis),
        delay_ms: millis(decision.delay()),
        ticket: ticket.map(|ticket| ticket.to_string()).unwrap_or_default(),
        rules: match asked.with_rules {
            true => ruling.each().map(|each| rule(&each)).collect(),
            false => Vec::new(),
        },
        id: asked.id,
    }
}

fn rule(each: &RuleDecision<'_>) -> proto::RuleDecision {
    let decision = each.decision();
    let mode = match each.mode() {
        tollgate::Mode::Enforce => proto::Mode::Enforce,
        tollgate::Mode::Shadow => proto::Mode::Shadow,
        tollgate::Mode::Off => proto::Mode::Off,
    };
    proto::RuleDecision {
        name: each.name().to_owned(),
        mode: mode.into(),
        allowed: each.is_allowed(),
        limit: known(decision.limit()),
        remaining: known(decision.remaining()),
        reset_after_ms: millis(decision.reset_after()),
        retry_after_ms: decision.retry_after().map(millis),
        warning: each.warning().map(u32::from),
    }
}

/// What is no number is not said.
const fn known(number: u64) -> Option<u64> {
    match number {
        Decision::UNLIMITED => None,
        _ => Some(number),
    }
}
