//! Tollgate's own protocol: `tollgate.v1`.

mod asked;
mod stream;
mod told;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tollgate::{Clock as _, Outcome, Request, Ruling, Tick};
use tollgate_proto::tollgate::v1::tollgate_server::{self, TollgateServer};
use tollgate_proto::tollgate::v1::{
    CheckBatchRequest, CheckBatchResponse, CheckRequest, CheckResponse, ReportRequest,
    ReportResponse,
};
use tonic::{Response, Status, Streaming, async_trait};

use crate::connection::Peer;
use crate::door::Name;
use crate::grpc::frame::{self, Code, Refusal};
use crate::grpc::native::asked::Asked;
use crate::grpc::native::stream::Answers;
use crate::grpc::streamed::MOST_BYTES;
use crate::grpc::wire::{self, Fields};
use crate::grpc::{Asking, Told};
use crate::tickets::Ticket;
use crate::web::Deadline;

impl Asking {
    /// Whether a request may pass.
    pub(super) fn check(&self, asked: CheckRequest) -> Told<CheckResponse> {
        let now = self.service.clock().now();
        // Before anything is decided: slots may be free again.
        self.tickets.sweep(now);
        Ok((self.check_at(&Asked::of(&asked)?, now)?, Duration::ZERO))
    }

    fn check_at(&self, asked: &Asked<'_>, now: Tick) -> Result<CheckResponse, Refusal> {
        // There is one: whoever was read asks about something.
        let Some(check) = asked.checks.first() else { return Ok(CheckResponse::default()) };
        let request = asked.request(check, self.client_cert());
        if check.peek {
            return Ok(told::answer(&self.look_at(&request)?, None, check));
        }
        self.need_room(std::slice::from_ref(&request), now)?;
        let mut ruling = self.ruling(&request)?;
        let ticket = self.ticket(&ruling, now);
        let answer = told::answer(&ruling, ticket, check);
        self.keep(&mut ruling, ticket, &request);
        Ok(answer)
    }

    /// Whether many may pass, each on its own: a message as it came, to one as it goes. If there is
    /// something wrong with one of them, nothing is decided about any.
    pub(super) fn check_batch(&self, message: &[u8]) -> Result<Bytes, Refusal> {
        let now = self.service.clock().now();
        self.tickets.sweep(now);
        let asked = self.read_batch(message)?;
        let requests = asked.checks.iter().map(|check| asked.request(check, self.client_cert()));
        let requests: Vec<_> = requests.collect();
        self.need_room(&requests, now)?;
        let mut to = Vec::with_capacity(requests.len() * ROOM + ROOM);
        frame::begin(&mut to);
        let mut tell = |at: usize, ruling: &mut Ruling| {
            let check = &asked.checks[at];
            let ticket = if check.peek { None } else { self.ticket(ruling, now) };
            wire::put_message(&mut to, 1, |to| told::write(ruling, ticket, check, to));
            self.keep(ruling, ticket, &requests[at]);
        };
        if asked.checks.iter().any(|check| check.peek) {
            let those = |peek: bool| -> Vec<_> {
                let both = asked.checks.iter().zip(&requests);
                both.filter(|(check, _)| check.peek == peek).map(|(_, request)| *request).collect()
            };
            let mut kept = self.service.keep(&those(false), &those(true), self.turn)?;
            for (at, (check, request)) in asked.checks.iter().zip(&requests).enumerate() {
                let mut ruling = match check.peek {
                    true => self.service.peek(request),
                    false => self.service.check_with(Name::Grpc, request, &mut kept),
                };
                tell(at, &mut ruling);
            }
        } else {
            let mut kept = self.service.keep(&requests, &[], self.turn)?;
            self.service.check_batch(Name::Grpc, &requests, &mut kept, tell);
        }
        Ok(frame::end(to))
    }

    fn read_batch<'a>(&self, message: &'a [u8]) -> Result<Asked<'a>, Refusal> {
        let mut asked = Asked::with_room((message.len() / SHORT).min(self.limits.batch));
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next()? {
            if number == 1 {
                self.need_few(asked.checks.len() + 1, "checks")?;
                asked.read(value.bytes()?)?;
            }
        }
        Ok(asked)
    }

    /// How requests ended.
    pub(super) fn report(&self, asked: ReportRequest) -> Told<ReportResponse> {
        self.need_few(asked.ended.len(), "tickets")?;
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

    fn need_few(&self, count: usize, what: &str) -> Result<(), Refusal> {
        match self.limits.batch {
            most if count > most => {
                let message = format!("there are more than {most} {what}: send less at once");
                Err(Refusal::new(Code::ResourceExhausted, message))
            }
            _ => Ok(()),
        }
    }

    /// A ticket, if the end of the request is to be told.
    fn ticket(&self, ruling: &Ruling, now: Tick) -> Option<Ticket> {
        let needed = ruling.is_allowed() && ruling.needs_report();
        needed.then(|| self.tickets.draw(now))
    }

    fn keep(&self, ruling: &mut Ruling, ticket: Option<Ticket>, request: &Request<'_>) {
        if let Some(ticket) = ticket {
            self.tickets.put(ticket, ruling.take_under_way(), request);
        }
    }
}

/// The same for tonic, which has the stream.
#[derive(Debug)]
pub(super) struct Native {
    asking: Arc<Asking>,
}

impl Native {
    pub(super) fn serving(asking: &Arc<Asking>) -> TollgateServer<Self> {
        let most = asking.limits.body_bytes.min(MOST_BYTES);
        TollgateServer::new(Self { asking: Arc::clone(asking) }).max_decoding_message_size(most)
    }

    /// When whoever asks has given up.
    fn deadline_of<T>(&self, asked: &tonic::Request<T>) -> Option<Deadline> {
        Deadline::of(asked.metadata().as_ref(), self.asking.service.clock())
    }
}

/// Who asks.
fn peer_of<T>(asked: &tonic::Request<T>) -> Peer {
    asked.extensions().get::<Peer>().cloned().unwrap_or_default()
}

#[async_trait]
impl tollgate_server::Tollgate for Native {
    type CheckStreamStream = Answers;

    async fn check(
        &self,
        asked: tonic::Request<CheckRequest>,
    ) -> Result<Response<CheckResponse>, Status> {
        let (peer, deadline) = (peer_of(&asked), self.deadline_of(&asked));
        told(self.asking.in_turn(&peer, deadline, |it| it.check(asked.get_ref().clone())).await)
    }

    async fn check_batch(
        &self,
        asked: tonic::Request<CheckBatchRequest>,
    ) -> Result<Response<CheckBatchResponse>, Status> {
        let (peer, deadline) = (peer_of(&asked), self.deadline_of(&asked));
        let message = asked.into_inner().encode_to_vec();
        let answer = self.asking.in_turn(&peer, deadline, |it| it.check_batch(&message)).await;
        let answer = answer.map_err(Refusal::status)?;
        let read = CheckBatchResponse::decode(answer.slice(frame::PREFIX..));
        read.map(Response::new).map_err(|error| Status::internal(error.to_string()))
    }

    async fn check_stream(
        &self,
        asked: tonic::Request<Streaming<CheckRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let (asking, peer) = (Arc::clone(&self.asking), peer_of(&asked));
        Ok(Response::new(Answers::new(asking, peer, asked.into_inner())))
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

/// Enough for an answer, mostly.
const ROOM: usize = 40;

/// How long a short question is.
const SHORT: usize = 16;

const FULL: &str = "too many requests are under way: say how they ended, with Report";

#[cfg(test)]
mod tests;
