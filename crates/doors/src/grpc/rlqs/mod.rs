//! Envoy's rate limit quota service: `StreamRateLimitQuotas`.
//!
//! Envoy says how many requests came to each of its buckets, and is given token buckets that it
//! enforces itself, for a while. Several that report about the same limit share it.
//!
//! ```text
//!   stream   reports of one Envoy, and the answers
//!   bucket   a bucket as rules see it, and the limits that it meets
//!   desk     the limits of all, and what Envoy is told of them
//!   pool     who has how much of a limit: pure arithmetic
//!   fill     a rate as Envoy takes it
//!   counts   what is counted about all this
//!   told     what Envoy is told, as a message
//! ```

mod bucket;
mod counts;
mod desk;
mod fill;
mod pool;
mod stream;
mod talk;
mod told;

pub(crate) use counts::{Counts, KINDS};
pub(crate) use desk::Desk;
pub(crate) use talk::Talk;

use std::sync::Arc;

use tollgate_proto::envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server::{
    RateLimitQuotaService, RateLimitQuotaServiceServer,
};
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::grpc::Asking;
use crate::grpc::frame::Refusal;
use crate::grpc::rlqs::stream::{Assignments, Reporter};

/// Quotas for tonic.
#[derive(Debug)]
pub(super) struct Quotas {
    asking: Arc<Asking>,
    desk: Arc<Desk>,
}

impl Quotas {
    pub(super) fn serving(asking: &Arc<Asking>) -> RateLimitQuotaServiceServer<Self> {
        let most = asking.limits.body_bytes;
        let quotas = Self { asking: Arc::clone(asking), desk: Arc::default() };
        asking.service.metrics().follow_quotas(&quotas.desk);
        RateLimitQuotaServiceServer::new(quotas).max_decoding_message_size(most)
    }
}

#[async_trait]
impl RateLimitQuotaService for Quotas {
    type StreamRateLimitQuotasStream = Assignments;

    async fn stream_rate_limit_quotas(
        &self,
        reports: Request<Streaming<RateLimitQuotaUsageReports>>,
    ) -> Result<Response<Assignments>, Status> {
        let reporter = Reporter::new(&self.asking, &self.desk).map_err(Refusal::status)?;
        Ok(Response::new(Assignments::new(reporter, reports.into_inner())))
    }
}

#[cfg(test)]
mod tests;
