//! Reports that come in a stream, and the assignments that they are answered with.

use std::collections::BTreeMap;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tollgate::Clock as _;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::BucketAction;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use tollgate_proto::envoy::service::rate_limit_quota::v3::{
    RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::grpc::Asking;
use crate::grpc::frame::{Code, Refusal};
use crate::grpc::rlqs::bucket::{BucketId, Described};
use crate::grpc::rlqs::desk::{Action, Bucket, Desk};
use crate::grpc::rlqs::pool::Usage;
use crate::grpc::rlqs::told;

/// What one Envoy has reported.
pub(super) struct Reporter {
    asking: Arc<Asking>,
    desk: Arc<Desk>,
    /// That of the first report.
    domain: Option<String>,
    buckets: BTreeMap<BucketId, Bucket>,
}

impl Reporter {
    pub(super) fn new(asking: &Arc<Asking>, desk: &Arc<Desk>) -> Result<Self, Refusal> {
        desk.open()?;
        let (asking, desk) = (Arc::clone(asking), Arc::clone(desk));
        Ok(Self { asking, desk, domain: None, buckets: BTreeMap::new() })
    }

    /// What a report is answered; `None` if there is nothing to say.
    pub(super) fn report(
        &mut self,
        reports: RateLimitQuotaUsageReports,
    ) -> Result<Option<RateLimitQuotaResponse>, Refusal> {
        self.answer(reports).inspect_err(|_| self.desk.refuse())
    }

    fn answer(
        &mut self,
        reports: RateLimitQuotaUsageReports,
    ) -> Result<Option<RateLimitQuotaResponse>, Refusal> {
        let usages = reports.bucket_quota_usages;
        if usages.len() > MOST_BUCKETS {
            let message =
                format!("there are {} buckets, and {MOST_BUCKETS} are the most", usages.len());
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        let domain = self.domain.take().unwrap_or(reports.domain);
        let mut actions = Vec::new();
        for usage in usages {
            actions.extend(self.usage(&domain, usage)?);
        }
        self.domain = Some(domain);
        Ok((!actions.is_empty()).then_some(RateLimitQuotaResponse { bucket_action: actions }))
    }

    fn usage(
        &mut self,
        domain: &str,
        usage: BucketQuotaUsage,
    ) -> Result<Vec<BucketAction>, Refusal> {
        let id = usage.bucket_id.unwrap_or_default().bucket;
        let described = Described::new(domain, &id)?;
        let service = &self.asking.service;
        let now = service.clock().now();
        let limits = described.limits(service);
        let (allowed, denied) = (usage.num_requests_allowed, usage.num_requests_denied);
        if allowed > 0 {
            described.spend(service, allowed);
        }
        if !self.buckets.contains_key(&id) {
            if self.buckets.len() >= MOST_BUCKETS {
                let message = format!("{MOST_BUCKETS} buckets are the most of a stream");
                return Err(Refusal::new(Code::ResourceExhausted, message));
            }
            self.buckets.insert(id.clone(), self.desk.bucket(now));
        }
        let Some(bucket) = self.buckets.get_mut(&id) else { return Ok(Vec::new()) };
        let action = self.desk.report(bucket, limits, Usage { allowed, denied }, now)?;
        if action == Some(Action::Abandon) {
            self.buckets.remove(&id);
        }
        Ok(action.map_or_else(Vec::new, |action| told::actions(id, action)))
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.desk.close(mem::take(&mut self.buckets).into_values());
    }
}

/// The answers to reports. Nothing is read before somebody takes them.
pub(in crate::grpc) struct Assignments {
    reporter: Reporter,
    reports: Streaming<RateLimitQuotaUsageReports>,
    /// Ends with the server.
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl Assignments {
    pub(super) fn new(reporter: Reporter, reports: Streaming<RateLimitQuotaUsageReports>) -> Self {
        let mut draining = reporter.asking.service.drain().listener();
        let draining = Box::pin(async move { draining.begin().await });
        Self { reporter, reports, draining, is_over: false }
    }

    fn end(&mut self, status: Status) -> Poll<Option<Result<RateLimitQuotaResponse, Status>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(status)))
    }
}

impl Stream for Assignments {
    type Item = Result<RateLimitQuotaResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let reports = match Pin::new(&mut this.reports).poll_next(context) {
            Poll::Ready(reports) => reports,
            Poll::Pending => {
                // What has come is answered first.
                ready!(this.draining.as_mut().poll(context));
                return this.end(Status::unavailable("the server ends: report to another one"));
            }
        };
        match reports {
            Some(Ok(reports)) => match this.reporter.report(reports) {
                Ok(Some(answer)) => Poll::Ready(Some(Ok(answer))),
                Ok(None) => {
                    // Others have their turn.
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Err(refusal) => this.end(refusal.status()),
            },
            Some(Err(status)) => this.end(status),
            None => {
                this.is_over = true;
                Poll::Ready(None)
            }
        }
    }
}

/// The most buckets of a stream, and reports in one message.
const MOST_BUCKETS: usize = 10_000;
