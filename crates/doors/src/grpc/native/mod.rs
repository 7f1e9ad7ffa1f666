//! Tollgate's own protocol: `tollgate.v1`.

mod asked;
mod stream;
mod told;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Clock as _, Outcome, Request, Ruling, Tick};
use tollgate_proto::tollgate::v1::tollgate_server::{self, TollgateServer};
use tollgate_proto::tollgate::v1::{
    CheckBatchRequest, CheckBatchResponse, CheckRequest, CheckResponse, ReportRequest,
    ReportResponse,
};
use tonic::{Response, Status, Streaming, async_trait};

use crate::door::Name;
use crate::grpc::frame::{Code, Refusal};
use crate::grpc::native::asked::Asked;
use crate::grpc::native::stream::Answers;
use crate::grpc::{Asking, Told};
use crate::tickets::Ticket;

impl Asking {
    /// Whether a request may pass.
    pub(super) fn check(&self, asked: CheckRequest) -> Told<CheckResponse> {
        let now = self.service.clock().now();
        // Before anything is decided: slots may be free again.
        self.tickets.sweep(now);
        Ok((self.check_at(&asked, now)?, Duration::ZERO))
    }

    fn check_at(&self, asked: &CheckRequest, now: Tick) -> Result<CheckResponse, Refusal> {
        let parts = Asked::new(asked)?;
        let (headers, attributes) = parts.pairs();
        let request = parts.request(&headers, &attributes);
        if asked.peek {
            return Ok(told::answer(&self.service.peek(&request), None, asked));
        }
        self.need_room(std::slice::from_ref(&request), now)?;
        let ruling = self.service.check(Name::Grpc, &request);
        Ok(self.keep(ruling, asked, &request, now))
    }

    /// Whether many may pass, each on its own. If there is something wrong with one, nothing is
    /// decided about any.
    pub(super) fn check_batch(&self, asked: CheckBatchRequest) -> Told<CheckBatchResponse> {
        let (most, checks) = (self.limits.batch, &asked.checks);
        if checks.len() > most {
            let message = format!("there are {} checks, and {most} are the most", checks.len());
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        let now = self.service.clock().now();
        self.tickets.sweep(now);
        let parts = checks.iter().map(Asked::new).collect::<Result<Vec<_>, _>>()?;
        let pairs: Vec<_> = parts.iter().map(Asked::pairs).collect();
        let requests = parts.iter().zip(&pairs);
        let requests: Vec<_> = requests.map(|(asked, (h, a))| asked.request(h, a)).collect();
        let mut answers = Vec::with_capacity(checks.len());
        if checks.iter().any(|check| check.peek) {
            self.need_room(&requests, now)?;
            for (check, request) in checks.iter().zip(&requests) {
                answers.push(match check.peek {
                    true => told::answer(&self.service.peek(request), None, check),
                    false => {
                        let ruling = self.service.check(Name::Grpc, request);
                        self.keep(ruling, check, request, now)
                    }
                });
            }
        } else {
            self.need_room(&requests, now)?;
            self.service.check_batch(Name::Grpc, &requests, |at, ruling| {
                answers.push(self.keep(ruling, &checks[at], &requests[at], now));
            });
        }
        Ok((CheckBatchResponse { answers }, Duration::ZERO))
    }

    /// How requests ended.
    pub(super) fn report(&self, asked: ReportRequest) -> Told<ReportResponse> {
        let (most, count) = (self.limits.batch, asked.ended.len());
        if count > most {
            let message = format!("there are {count} tickets, and {most} are the most");
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        let now = self.service.clock().now();
        let reported = asked.ended.iter().map(|ended| {
            let Ok(ticket) = ended.ticket.parse::<Ticket>() else { return false };
            let Some(kept) = self.tickets.take(ticket, now) else { return false };
            let headers: Vec<_> = ended.headers.iter().map(|(n, v)| (&**n, &**v)).collect();
            let status = u16::try_from(ended.status).ok().filter(|status| *status > 0);
            kept.report(self.service.engine(), &Outcome { status, headers: &headers });
            true
        });
        Ok((ReportResponse { reported: reported.collect() }, Duration::ZERO))
    }

    fn need_room(&self, requests: &[Request<'_>], now: Tick) -> Result<(), Refusal> {
        match self.tickets.have_room_for(requests, &self.service, now) {
            true => Ok(()),
            false => Err(Refusal::new(Code::ResourceExhausted, FULL)),
        }
    }

    /// The answer, and a ticket if the end of the request is to be told.
    fn keep(
        &self,
        ruling: Ruling,
        asked: &CheckRequest,
        request: &Request<'_>,
        now: Tick,
    ) -> CheckResponse {
        let needed = ruling.is_allowed() && ruling.needs_report();
        let ticket = needed.then(|| self.tickets.draw(now));
        let answer = told::answer(&ruling, ticket, asked);
        if let Some(ticket) = ticket {
            self.tickets.put(ticket, ruling.keep(), request);
        }
        answer
    }
}

/// The same for tonic, which has the stream.
#[derive(Debug)]
pub(super) struct Native {
    asking: Arc<Asking>,
}

impl Native {
    pub(super) fn serving(asking: &Arc<Asking>) -> TollgateServer<Self> {
        let most = asking.limits.body_bytes;
        TollgateServer::new(Self { asking: Arc::clone(asking) }).max_decoding_message_size(most)
    }
}

#[async_trait]
impl tollgate_server::Tollgate for Native {
    type CheckStreamStream = Answers;

    async fn check(
        &self,
        asked: tonic::Request<CheckRequest>,
    ) -> Result<Response<CheckResponse>, Status> {
        told(self.asking.check(asked.into_inner()))
    }

    async fn check_batch(
        &self,
        asked: tonic::Request<CheckBatchRequest>,
    ) -> Result<Response<CheckBatchResponse>, Status> {
        told(self.asking.check_batch(asked.into_inner()))
    }

    async fn check_stream(
        &self,
        asked: tonic::Request<Streaming<CheckRequest>>,
    ) -> Result<Response<Answers>, Status> {
        Ok(Response::new(Answers::new(Arc::clone(&self.asking), asked.into_inner())))
    }

    async fn report(
        &self,
        asked: tonic::Request<ReportRequest>,
    ) -> Result<Response<ReportResponse>, Status> {
        told(self.asking.report(asked.into_inner()))
    }
}

fn told<T>(told: Told<T>) -> Result<Response<T>, Status> {
    told.map(|(answer, _)| Response::new(answer)).map_err(Refusal::status)
}

const FULL: &str = "too many requests are under way: say how they ended, with Report";

#[cfg(test)]
mod tests;
