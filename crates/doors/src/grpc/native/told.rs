//! What is said about a ruling, as a message.

use prost::Message as _;
use tollgate::{Decision, RuleDecision, Ruling};
use tollgate_proto::tollgate::v1::{self as proto, CheckResponse};

use crate::grpc::native::asked::Check;
use crate::grpc::wire::{put_number, put_some, put_text};
use crate::respond::millis;
use crate::tickets::Ticket;

/// Writes the same as a message.
pub(super) fn write(ruling: &Ruling, ticket: Option<Ticket>, asked: &Check<'_>, to: &mut Vec<u8>) {
    if asked.with_rules || ticket.is_some() {
        // Those are few.
        return answer(ruling, ticket, asked).encode_raw(to);
    }
    let (rule, decision) = match ruling.strictest() {
        Some(strictest) => (strictest.name(), strictest.decision()),
        None => ("", Decision::unlimited()),
    };
    put_number(to, 1, ruling.is_allowed().into());
    put_text(to, 2, rule);
    put_some(to, 3, known(decision.limit()));
    put_some(to, 4, known(decision.remaining()));
    put_number(to, 5, millis(decision.reset_after()));
    put_number(to, 6, retry(&decision) as u64);
    put_some(to, 7, decision.retry_after().map(millis));
    put_number(to, 8, millis(decision.delay()));
    put_number(to, 11, asked.id);
}

pub(super) fn answer(ruling: &Ruling, ticket: Option<Ticket>, asked: &Check<'_>) -> CheckResponse {
    let decision = ruling.decision();
    CheckResponse {
        allowed: ruling.is_allowed(),
        rule: ruling.rule().unwrap_or_default().to_owned(),
        limit: known(decision.limit()),
        remaining: known(decision.remaining()),
        reset_after_ms: millis(decision.reset_after()),
        retry: retry(&decision).into(),
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

const fn retry(decision: &Decision) -> proto::Retry {
    match decision.retry() {
        None => proto::Retry::Unspecified,
        Some(tollgate::Retry::After(_)) => proto::Retry::After,
        Some(tollgate::Retry::OnReturn) => proto::Retry::OnReturn,
        Some(tollgate::Retry::Never) => proto::Retry::Never,
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
