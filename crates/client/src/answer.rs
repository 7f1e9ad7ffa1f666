//! What a tollgate says about a request.

use std::time::Duration;

use tollgate_proto::tollgate::v1::{self as proto, CheckResponse};

/// What a tollgate says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it may pass.
    pub allowed: bool,
    /// The strictest rule that applies; empty if none does. The rest is about its limit.
    pub rule: String,
    /// `None` if there is no limit.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// When all of it is back.
    pub reset_after: Duration,
    /// If it is denied, whether it helps to come again.
    pub retry: Option<Retry>,
    /// How long an allowed request has to wait before it goes on: its place in a queue.
    pub delay: Duration,
    /// If there is one, how the request ended [is to be told](crate::Client::report).
    pub ticket: Option<String>,
    /// What [`Check::id`](crate::Check::id) said.
    pub id: u64,
}

/// Whether it helps to come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After this, if nobody else is let in meanwhile.
    After(Duration),
    /// When somebody who is under way has ended.
    OnReturn,
    /// It costs more than the limit.
    Never,
}

impl From<CheckResponse> for Answer {
    fn from(told: CheckResponse) -> Self {
        let retry = match told.retry() {
            proto::Retry::Unspecified => None,
            proto::Retry::After => {
                Some(Retry::After(Duration::from_millis(told.retry_after_ms.unwrap_or_default())))
            }
            proto::Retry::OnReturn => Some(Retry::OnReturn),
            proto::Retry::Never => Some(Retry::Never),
        };
        Self {
            allowed: told.allowed,
            rule: told.rule,
            limit: told.limit,
            remaining: told.remaining,
            reset_after: Duration::from_millis(told.reset_after_ms),
            retry,
            delay: Duration::from_millis(told.delay_ms),
            ticket: Some(told.ticket).filter(|ticket| !ticket.is_empty()),
            id: told.id,
        }
    }
}
