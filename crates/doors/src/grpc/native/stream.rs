//! Requests that come in a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tollgate::Sleep;
use tollgate_proto::tollgate::v1::{CheckRequest, CheckResponse};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::connection::Peer;
use crate::grpc::frame::Refusal;
use crate::grpc::{Asking, Told};
use crate::service::Turn;

/// The answers to requests that come in a stream, in their order.
///
/// Nothing is read before somebody wants the answer: whoever does not take answers is not asked for
/// further requests, and so nothing piles up here.
pub(in crate::grpc) struct Answers {
    asking: Arc<Asking>,
    peer: Peer,
    asked: Streaming<CheckRequest>,
    /// A request that waits until a store was asked, and which turn it has then.
    waiting: Option<(CheckRequest, Sleep, Turn)>,
    /// Ends with the server.
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Since others had their turn.
    in_a_row: u32,
    is_over: bool,
}

impl Answers {
    pub(super) fn new(asking: Arc<Asking>, peer: Peer, asked: Streaming<CheckRequest>) -> Self {
        let mut draining = asking.service.drain().listener();
        let draining = Box::pin(async move { draining.begin().await });
        Self { asking, peer, asked, waiting: None, draining, in_a_row: 0, is_over: false }
    }

    /// Answers a request, or lets it wait until a store was asked.
    fn check(
        &mut self,
        asked: CheckRequest,
        turn: Turn,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<CheckResponse, Status>>> {
        match self.asking.of(&self.peer, turn).check(asked.clone()) {
            Err(Refusal::Wait(wait)) => {
                let turn = Turn::after(&wait.0);
                self.waiting = Some((asked, Box::pin(wait.0.fetch()), turn));
                context.waker().wake_by_ref();
                Poll::Pending
            }
            answer => self.told(answer),
        }
    }

    fn told(&mut self, answer: Told<CheckResponse>) -> Poll<Option<Result<CheckResponse, Status>>> {
        match answer {
            Ok((answer, _)) => Poll::Ready(Some(Ok(answer))),
            Err(refusal) => self.end(Refusal::status(refusal)),
        }
    }

    fn end(&mut self, status: Status) -> Poll<Option<Result<CheckResponse, Status>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(status)))
    }
}

impl Stream for Answers {
    type Item = Result<CheckResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if this.in_a_row == MOST_IN_A_ROW {
            this.in_a_row = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some((_, fetch, _)) = &mut this.waiting {
            ready!(fetch.as_mut().poll(context));
        }
        if let Some((asked, _, turn)) = this.waiting.take() {
            return this.check(asked, turn, context);
        }
        let asked = match Pin::new(&mut this.asked).poll_next(context) {
            Poll::Ready(asked) => asked,
            Poll::Pending => {
                this.in_a_row = 0;
                // What has come is answered first.
                ready!(this.draining.as_mut().poll(context));
                return this.end(Status::unavailable("the server ends: ask another one"));
            }
        };
        this.in_a_row += 1;
        match asked {
            Some(Ok(asked)) => this.check(asked, Turn::First, context),
            Some(Err(status)) => this.end(status),
            None => {
                this.is_over = true;
                Poll::Ready(None)
            }
        }
    }
}

/// So many are answered before others have their turn.
const MOST_IN_A_ROW: u32 = 128;
