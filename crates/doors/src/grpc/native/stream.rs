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
use crate::service::{Together, Turn};

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
    together: Together,
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
        Self {
            asking,
            peer,
            asked,
            waiting: None,
            together: Together::default(),
            draining,
            in_a_row: 0,
            is_over: false,
        }
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
                if turn == Turn::First {
                    self.together.more(&self.asking.service);
                }
                let wait = self.together.wait(wait.0, &self.asking.service);
                let turn = Turn::after(&wait);
                self.waiting = Some((asked, Box::pin(wait.fetch()), turn));
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
            this.together.waited(&this.asking.service);
        }
        if let Some((asked, _, turn)) = this.waiting.take() {
            return this.check(asked, turn, context);
        }
        let asked = match Pin::new(&mut this.asked).poll_next(context) {
            Poll::Ready(asked) => asked,
            Poll::Pending => {
                this.in_a_row = 0;
                this.together.apart();
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::Bytes;
    use http_body_util::Full;
    use prost::Message as _;
    use tonic::codec::{DecodeBuf, Decoder};

    use super::*;
    use crate::grpc::tests::asking_of;
    use crate::service::silent::Silent;

    struct Messages;

    impl Decoder for Messages {
        type Item = CheckRequest;
        type Error = Status;

        fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<CheckRequest>, Status> {
            Ok(Some(CheckRequest::decode(bytes).unwrap()))
        }
    }

    /// A message as it stands in a stream.
    fn framed(it: usize) -> Vec<u8> {
        let asked = CheckRequest { path: format!("/{it}"), ..Default::default() };
        let message = asked.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], &message].concat()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn those_behind_one_that_waited_for_the_store_in_vain_do_not_wait() {
        let silent = Silent::default();
        let service = silent.serves("rules: [{ name: a, key: [path], limit: 5/h }]");
        let body: Bytes = (0..20).flat_map(framed).collect();
        let asked = Streaming::new_request(Messages, Full::new(body), None, None);
        let asking = Arc::new(asking_of(service));
        let mut answers = Answers::new(asking, Peer::default(), asked);
        let mut told = 0;
        while let Some(answer) = poll_fn(|it| Pin::new(&mut answers).poll_next(it)).await {
            assert!(answer.unwrap().allowed);
            told += 1;
        }
        assert_eq!((told, silent.asked()), (20, 1));
    }
}
