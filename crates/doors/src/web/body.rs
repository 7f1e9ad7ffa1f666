//! Bodies of requests, within bounds of length and time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::connection::Limits;
use crate::held::{Budget, Held, OverBudget};

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLong,
    TooSlow,
    /// All clients together have sent too much that is not complete.
    NoRoom,
    /// The client has gone, or breaks the protocol.
    Broken,
}

/// The body of a request, as far as that is allowed.
pub(crate) async fn body(
    incoming: Incoming,
    limits: &Limits,
    budget: &Arc<Budget>,
) -> Result<Bytes, BodyError> {
    if incoming.size_hint().lower() > limits.body_bytes as u64 {
        return Err(BodyError::TooLong);
    }
    let mut whole = pin!(whole(incoming, limits.body_bytes, budget));
    // Nearly all bodies have come with their headers, and are here as soon as hyper hears that
    // somebody wants them: for those a timer would be more work than all the rest.
    let mut asked = false;
    let soon = poll_fn(|context| match whole.as_mut().poll(context) {
        Poll::Ready(whole) => Poll::Ready(Some(whole)),
        Poll::Pending if asked => Poll::Ready(None),
        Poll::Pending => {
            asked = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    });
    match soon.await {
        Some(whole) => whole,
        None => {
            tokio::time::timeout(limits.patience, whole).await.unwrap_or(Err(BodyError::TooSlow))
        }
    }
}

/// All of a body, which is mostly one piece.
async fn whole(
    mut incoming: Incoming,
    most: usize,
    budget: &Arc<Budget>,
) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    // Nobody has to account for a body that comes at once.
    let mut held = None;
    while !incoming.is_end_stream() {
        let Some(frame) = incoming.frame().await else { break };
        // What is no data comes behind it, and says nothing that is asked for.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        if first.len() + more.len() + data.len() > most {
            return Err(BodyError::TooLong);
        }
        match first.is_empty() {
            true => first = data,
            false => more.extend_from_slice(&data),
        }
        if !incoming.is_end_stream() {
            let held = held.get_or_insert_with(|| Held::nothing(Arc::clone(budget)));
            held.hold(first.len() + more.len()).map_err(|OverBudget| BodyError::NoRoom)?;
        }
    }
    match more.is_empty() {
        true => Ok(first),
        false => Ok([first, more.freeze()].concat().into()),
    }
}
