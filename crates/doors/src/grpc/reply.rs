//! What an answer consists of.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::Response;
use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::grpc::frame::{Code, Refusal, STATUS};
use crate::held::{Budget, OverBudget};
use crate::web::{NO_ROOM, OneRequest, Plain, Sent, held};

/// What an answer consists of.
pub(crate) enum Reply {
    /// Headers say it all.
    Nothing,
    /// One message, and that all is well.
    Message(Option<Bytes>),
    /// That all is well.
    Well,
    /// What has nothing to do with gRPC.
    Plain(Plain),
    /// Whatever tonic sends, and the request that is under way meanwhile.
    Streamed(tonic::body::Body, Option<OneRequest>),
}

/// An answer with one message, as calls carry it.
pub(super) fn message(message: Bytes) -> Response<Reply> {
    let mut answer = Response::new(Reply::Message(Some(message)));
    answer.headers_mut().insert(CONTENT_TYPE, CONTENT);
    answer
}

impl Reply {
    pub(super) const fn streamed(body: tonic::body::Body) -> Self {
        Self::Streamed(body, None)
    }

    /// The request is under way until this was sent, if that can take a while.
    pub(super) fn hold(&mut self, one: OneRequest) {
        if let Self::Streamed(_, under_way) = self {
            *under_way = Some(one);
        }
    }
}

impl Sent for Reply {
    fn until_sent(answer: Response<Self>, budget: &Arc<Budget>) -> Response<Self> {
        let (head, body) = answer.into_parts();
        match body {
            Self::Message(Some(message)) => match held(message, budget) {
                Ok(message) => Response::from_parts(head, Self::Message(Some(message))),
                Err(OverBudget) => Refusal::new(Code::ResourceExhausted, NO_ROOM).answer(),
            },
            Self::Plain(plain) => {
                Plain::until_sent(Response::from_parts(head, plain), budget).map(Self::Plain)
            }
            // Streams have only so much to send as their windows hold.
            other => Response::from_parts(head, other),
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let this = self.get_mut();
        match this {
            Self::Nothing => Poll::Ready(None),
            Self::Message(message) => {
                let message = message.take().unwrap_or_default();
                *this = Self::Well;
                Poll::Ready(Some(Ok(Frame::data(message))))
            }
            Self::Well => {
                *this = Self::Nothing;
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(STATUS, OK);
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Self::Plain(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Streamed(body, _) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Message(_) | Self::Well => false,
            Self::Plain(body) => body.is_end_stream(),
            Self::Streamed(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plain(body) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

/// What messages are.
pub(super) const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");

const OK: HeaderValue = HeaderValue::from_static("0");
