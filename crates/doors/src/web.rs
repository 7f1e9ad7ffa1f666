//! HTTP/1.1 and HTTP/2 on a connection.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::AsyncWriteExt as _;

use crate::connection::{Limits, Peer, Stream};
use crate::door::{Door, Name};
use crate::drain::Draining;
use crate::respond;
use crate::worker::Work;

/// What every answer is.
pub(crate) type Answer = Response<Full<Bytes>>;

/// What a door of HTTP serves.
pub(crate) trait Site: Send + Sync + 'static {
    const NAME: Name;

    /// Answers one request.
    fn answer(&self, request: Request<Incoming>, peer: Peer)
    -> impl Future<Output = Answer> + Send;
}

/// A door of HTTP.
#[derive(Debug)]
pub(crate) struct Web<S> {
    site: Arc<S>,
    limits: Limits,
}

impl<S> Web<S> {
    pub(crate) fn new(site: S, limits: Limits) -> Self {
        Self { site: Arc::new(site), limits }
    }
}

impl<S: Site> Door for Web<S> {
    fn name(&self) -> Name {
        S::NAME
    }

    fn serve(self: Arc<Self>, stream: Stream, peer: Peer, draining: Draining) -> Work {
        Box::pin(serve(Arc::clone(&self.site), stream, peer, self.limits, draining))
    }

    fn refuse(self: Arc<Self>, stream: Stream) -> Work {
        Box::pin(refuse(stream))
    }
}

/// Serves a connection until it ends, or until nobody is to be served any more.
async fn serve<S: Site>(
    site: Arc<S>,
    stream: Stream,
    peer: Peer,
    limits: Limits,
    mut draining: Draining,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The time that hyper gives a request's headers begins when the last answer is sent.
        .header_read_timeout(limits.idle)
        .max_buf_size(limits.header_bytes.max(SMALLEST_BUFFER));
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.patience)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request, peer).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // What ends a connection early is the client's affair: it has gone, or does not speak HTTP, in
    // which case it has been told.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = draining.begin() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Says that there are too many connections.
async fn refuse(mut stream: Stream) {
    // Whoever does not take it at once goes without.
    let _ = stream.write_all(respond::TOO_MANY_CONNECTIONS).await;
    let _ = stream.shutdown().await;
}

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLong,
    TooSlow,
    /// The client has gone, or breaks the protocol.
    Broken,
}

/// The body of a request, as far as that is allowed.
pub(crate) async fn body(incoming: Incoming, limits: &Limits) -> Result<Bytes, BodyError> {
    let most = limits.body_bytes;
    if incoming.size_hint().lower() > most as u64 {
        return Err(BodyError::TooLong);
    }
    let whole = Limited::new(incoming, most).collect();
    match tokio::time::timeout(limits.patience, whole).await {
        Err(_) => Err(BodyError::TooSlow),
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLong),
        Ok(Err(_)) => Err(BodyError::Broken),
    }
}

/// Requests under way at once on one connection of HTTP/2.
const STREAMS: u32 = 256;

/// The least that hyper can do with.
const SMALLEST_BUFFER: usize = 8192;
