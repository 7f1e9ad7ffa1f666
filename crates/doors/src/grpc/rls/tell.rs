//! What Envoy is told: a `RateLimitResponse`, written field by field.

use bytes::Bytes;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;

use crate::grpc::Asking;
use crate::grpc::frame;
use crate::grpc::rls::decide::Decided;
use crate::grpc::wire::{put_bytes, put_message, put_number, put_text};
use crate::respond::{Message, Standing};

/// A limit, and what is left of it.
struct Limit<'a> {
    name: &'a str,
    requests: u32,
    unit: Unit,
    remaining: u32,
    /// In seconds.
    reset: u64,
}

impl Asking {
    /// The answer to descriptors in order, as calls carry it.
    pub(super) fn tell(&self, decided: &[Decided]) -> Bytes {
        let mut to = Vec::with_capacity(ROOM);
        frame::begin(&mut to);
        put_number(&mut to, 1, code(decided.iter().all(Decided::is_allowed)));
        for each in decided {
            put_message(&mut to, 2, |to| self.write_status(each, to));
        }
        // Clients are told of the strictest.
        let strictest = decided.iter().reduce(|one, other| {
            match one.decision().stricter(other.decision()) == one.decision() {
                true => one,
                false => other,
            }
        });
        let message = strictest.and_then(|strictest| match strictest {
            Decided::ByRules(ruling) => Some(self.answers.words(ruling).message()),
            Decided::ByOwn(_, decision) => {
                (!decision.is_allowed()).then(|| Message::of_own_limit(decision))
            }
        });
        if let Some(message) = message {
            for (name, value) in message.headers() {
                put_message(&mut to, 3, |to| write_header(name, value, to));
            }
            put_bytes(&mut to, 5, &message.body);
        }
        frame::end(to)
    }

    fn write_status(&self, decided: &Decided, to: &mut Vec<u8>) {
        put_number(to, 1, code(decided.is_allowed()));
        match decided {
            Decided::ByRules(ruling) => match self.answers.words(ruling).standing() {
                Standing::Free => {}
                Standing::Unlimited => put_number(to, 3, u32::MAX.into()),
                Standing::Limited { rule, quota, window, remaining, reset } => {
                    let unit = window.map_or(Unit::Unknown, unit);
                    let (requests, remaining) = (saturated(quota), saturated(remaining));
                    write_limit(&Limit { name: rule, requests, unit, remaining, reset }, to);
                }
            },
            Decided::ByOwn(own, decision) => {
                let reset = decision.retry_after().unwrap_or_else(|| decision.reset_after());
                let reset = reset.as_secs() + u64::from(reset.subsec_nanos() > 0);
                let remaining = saturated(decision.remaining());
                let (requests, unit) = (own.requests, unit(own.seconds));
                write_limit(&Limit { name: "", requests, unit, remaining, reset }, to);
            }
        }
    }
}

fn write_limit(limit: &Limit<'_>, to: &mut Vec<u8>) {
    put_message(to, 2, |to| {
        put_number(to, 1, limit.requests.into());
        put_number(to, 2, limit.unit as u64);
        put_text(to, 3, limit.name);
    });
    put_number(to, 3, limit.remaining.into());
    put_message(to, 4, |to| put_number(to, 1, limit.reset));
}

fn write_header(name: &str, value: &[u8], to: &mut Vec<u8>) {
    put_text(to, 1, name);
    match str::from_utf8(value) {
        Ok(value) => put_text(to, 2, value),
        Err(_) => put_bytes(to, 3, value),
    }
}

const fn code(is_allowed: bool) -> u64 {
    match is_allowed {
        true => Code::Ok as u64,
        false => Code::OverLimit as u64,
    }
}

/// What Envoy takes these units to be.
const fn unit(seconds: u64) -> Unit {
    match seconds {
        1 => Unit::Second,
        60 => Unit::Minute,
        3_600 => Unit::Hour,
        86_400 => Unit::Day,
        604_800 => Unit::Week,
        2_592_000 => Unit::Month,
        31_536_000 => Unit::Year,
        _ => Unit::Unknown,
    }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Enough for one descriptor and the headers of its rule.
const ROOM: usize = 384;
