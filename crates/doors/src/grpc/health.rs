//! Whether requests should be sent here, as gRPC asks: `grpc.health.v1`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status, async_trait};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::drain::Draining;
use crate::service::Service;

/// All services are as well as the server is.
#[derive(Debug)]
pub(super) struct Health {
    service: Arc<Service>,
}

impl Health {
    pub(super) fn serving(service: Arc<Service>, most_bytes: usize) -> HealthServer<Self> {
        HealthServer::new(Self { service }).max_decoding_message_size(most_bytes)
    }
}

#[async_trait]
impl health_server::Health for Health {
    type WatchStream = Changes;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(Status::not_found("there is no such service"));
        }
        let status = match self.service.is_ready() {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        Ok(Response::new(told(status)))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Changes>, Status> {
        let is_known = is_known(&request.get_ref().service);
        let draining = self.service.drain().listener();
        Ok(Response::new(Changes { is_known, draining: Some(draining), next: Next::First }))
    }
}

/// How a service is, now and when that changes. It ends with the server.
pub(super) struct Changes {
    is_known: bool,
    draining: Option<Draining>,
    next: Next,
}

/// What comes next.
enum Next {
    First,
    /// It is not ready any more.
    Left(Waiting),
    /// It ends.
    Ended(Waiting),
}

type Waiting = Pin<Box<dyn Future<Output = Draining> + Send>>;

impl Changes {
    fn wait_for_end(&mut self, mut draining: Draining) {
        self.next = Next::Ended(Box::pin(async move {
            draining.begin().await;
            draining
        }));
    }
}

impl Stream for Changes {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match &mut this.next {
            Next::First => {
                let Some(mut draining) = this.draining.take() else { return Poll::Ready(None) };
                let status = match (this.is_known, draining.is_ready()) {
                    (false, _) => ServingStatus::ServiceUnknown,
                    (true, false) => ServingStatus::NotServing,
                    (true, true) => {
                        this.next = Next::Left(Box::pin(async move {
                            draining.leave().await;
                            draining
                        }));
                        return Poll::Ready(Some(Ok(told(ServingStatus::Serving))));
                    }
                };
                this.wait_for_end(draining);
                Poll::Ready(Some(Ok(told(status))))
            }
            Next::Left(waiting) => {
                let draining = ready!(waiting.as_mut().poll(context));
                this.wait_for_end(draining);
                Poll::Ready(Some(Ok(told(ServingStatus::NotServing))))
            }
            Next::Ended(waiting) => {
                // It is not asked again after that.
                _ = ready!(waiting.as_mut().poll(context));
                this.next = Next::First;
                Poll::Ready(None)
            }
        }
    }
}

/// The server itself, and what it serves.
fn is_known(service: &str) -> bool {
    ["", RLS, QUOTAS, AUTHORIZATION, NATIVE].contains(&service)
}

const fn told(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}

const RLS: &str = "envoy.service.ratelimit.v3.RateLimitService";
const QUOTAS: &str = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService";
const AUTHORIZATION: &str = "envoy.service.auth.v3.Authorization";
const NATIVE: &str = "tollgate.v1.Tollgate";
