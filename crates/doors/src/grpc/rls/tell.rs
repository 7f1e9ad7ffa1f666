//! What Envoy is told.

use tollgate_proto::Duration;
use tollgate_proto::envoy::config::core::v3::HeaderValue;
use tollgate_proto::envoy::service::ratelimit::v3::RateLimitResponse;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};

use crate::grpc::Asking;
use crate::grpc::rls::decide::Decided;
use crate::respond::{Message, Standing};

impl Asking {
    /// The answer to descriptors in order.
    pub(super) fn tell(&self, decided: &[Decided]) -> RateLimitResponse {
        let statuses = decided.iter().map(|each| self.status(each)).collect();
        let overall = match decided.iter().all(Decided::is_allowed) {
            true => Code::Ok,
            false => Code::OverLimit,
        };
        let mut answer =
            RateLimitResponse { overall_code: overall.into(), statuses, ..Default::default() };
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
            answer.response_headers_to_add = message.headers().map(header).collect();
            answer.raw_body = message.body;
        }
        answer
    }

    fn status(&self, decided: &Decided) -> DescriptorStatus {
        let code = if decided.is_allowed() { Code::Ok } else { Code::OverLimit };
        let mut status = DescriptorStatus { code: code.into(), ..Default::default() };
        match decided {
            Decided::ByRules(ruling) => match self.answers.words(ruling).standing() {
                Standing::Free => {}
                Standing::Unlimited => status.limit_remaining = u32::MAX,
                Standing::Limited { rule, quota, window, remaining, reset } => {
                    let unit = window.map_or(Unit::Unknown, unit).into();
                    let requests_per_unit = saturated(quota);
                    let name = rule.to_owned();
                    status.current_limit = Some(RateLimit { requests_per_unit, unit, name });
                    status.limit_remaining = saturated(remaining);
                    status.duration_until_reset = Some(duration(reset));
                }
            },
            Decided::ByOwn(own, decision) => {
                let (requests_per_unit, unit) = (own.requests, unit(own.seconds).into());
                let name = String::new();
                status.current_limit = Some(RateLimit { requests_per_unit, unit, name });
                status.limit_remaining = saturated(decision.remaining());
                let reset = decision.retry_after().unwrap_or_else(|| decision.reset_after());
                let seconds = reset.as_secs() + u64::from(reset.subsec_nanos() > 0);
                status.duration_until_reset = Some(duration(seconds));
            }
        }
        status
    }
}

pub(super) fn header((name, value): (&str, &[u8])) -> HeaderValue {
    let key = name.to_owned();
    match str::from_utf8(value) {
        Ok(value) => HeaderValue { key, value: value.to_owned(), raw_value: Vec::new() },
        Err(_) => HeaderValue { key, value: String::new(), raw_value: value.to_vec() },
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

fn duration(seconds: u64) -> Duration {
    Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
