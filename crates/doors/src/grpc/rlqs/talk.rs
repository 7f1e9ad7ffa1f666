//! A conversation with one Envoy without a socket, for those who fuzz.

use std::sync::Arc;

use prost::Message as _;
use tollgate_proto::envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::BucketAction as Kind;
use tollgate_proto::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy};

use crate::connection::Limits;
use crate::fuzzing::Assigned;
use crate::grpc::Asking;
use crate::grpc::frame::Refusal;
use crate::grpc::rlqs::desk::Desk;
use crate::grpc::rlqs::stream::Reporter;
use crate::respond::Answers;
use crate::service::Service;
use crate::service::Turn;
use crate::tickets::Tickets;

/// A conversation with one Envoy.
pub(crate) struct Talk {
    asking: Arc<Asking>,
    desk: Arc<Desk>,
    /// None after a refusal, until the next report.
    stream: Option<Reporter>,
}

impl Talk {
    pub(crate) fn new(
        service: Arc<Service>,
        answers: Arc<Answers>,
        tickets: Arc<Tickets>,
        limits: Limits,
    ) -> Self {
        let asking =
            Arc::new(Asking { service, answers, tickets, limits, client: None, turn: Turn::First });
        Self { asking, desk: Arc::default(), stream: None }
    }

    /// Another Envoy of the same server.
    pub(crate) fn other(&self) -> Self {
        let (asking, desk) = (Arc::clone(&self.asking), Arc::clone(&self.desk));
        Self { asking, desk, stream: None }
    }

    /// What a message of reports is answered, or why its stream ends; `None` if it is no message.
    pub(crate) fn report(
        &mut self,
        message: &[u8],
    ) -> Option<Result<Vec<Assigned>, (u16, String)>> {
        let reports = RateLimitQuotaUsageReports::decode(message).ok()?;
        Some(self.answer(reports).map_err(|refusal| {
            self.stream = None;
            match refusal {
                Refusal::Call { code, message } => (code as u16, message),
                Refusal::NoCall | Refusal::Wait(_) => (0, String::new()),
            }
        }))
    }

    fn answer(&mut self, reports: RateLimitQuotaUsageReports) -> Result<Vec<Assigned>, Refusal> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => Reporter::new(&self.asking, &self.desk)?,
        };
        let told = stream.report(reports)?;
        self.stream = Some(stream);
        let actions = told.map(|told| told.bucket_action).unwrap_or_default();
        Ok(actions.into_iter().filter_map(|action| action.bucket_action).map(assigned).collect())
    }
}

fn assigned(kind: Kind) -> Assigned {
    let Kind::QuotaAssignmentAction(action) = kind else { return Assigned::Nothing };
    match action.rate_limit_strategy.and_then(|strategy| strategy.strategy) {
        Some(Strategy::BlanketRule(rule)) if rule == i32::from(BlanketRule::AllowAll) => {
            Assigned::AllowAll
        }
        Some(Strategy::TokenBucket(bucket)) => Assigned::Share {
            tokens: bucket.max_tokens,
            tokens_per_fill: bucket.tokens_per_fill.unwrap_or(0),
            fill_seconds: bucket.fill_interval.map_or(0, |interval| interval.seconds),
        },
        _ => Assigned::Nothing,
    }
}
