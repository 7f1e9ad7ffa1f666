//! HTTP/1.1 and HTTP/2 on a connection.

mod begun;
mod body;
mod deadline;
mod head;
mod http2;
mod kept;
pub(crate) mod page;
mod quick;
mod silence;

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tollgate::{SystemClock, Wait};

use crate::connection::{Limits, Peer, Stream};
use crate::door::{Door, Name};
use crate::drain::Draining;
use crate::held::Held;
use crate::respond;
use crate::service::{Service, Turn};
use crate::web::begun::Begun;
use crate::web::head::Head;
use crate::web::http2::{Http2, Serving};
use crate::web::quick::{Next, Quick};
use crate::web::silence::{Late, Requests, Watch};
use crate::worker::Work;

pub(crate) use begun::PREFACE;
pub(crate) use body::{BodyError, body};
pub(crate) use deadline::{Deadline, within};
pub(crate) use http2::{Called, Calls};
pub(crate) use kept::{NO_ROOM, Sent, held};
pub(crate) use quick::at_once;
pub(crate) use silence::OneRequest;

/// What most answers are: all of them that are about HTTP.
pub(crate) type Answer = Response<Plain>;

/// A body that is there as a whole.
pub(crate) type Plain = Full<Bytes>;

/// Goes with an answer to a request that is held against the connection it came on. Some of them, or
/// the last, end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    One,
    Last,
}

/// What a door of HTTP serves.
pub(crate) trait Site: Send + Sync + 'static {
    const NAME: Name;

    /// What its answers consist of.
    type Body: Sent<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Answers one request.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// The request has its answer, which may go on for as long as somebody takes it. It has ended
    /// when `one` is dropped.
    fn began(&self, _answer: &mut Response<Self::Body>, one: OneRequest) {
        drop(one);
    }

    /// Answers a POST whose body is here, if it can do that at once.
    fn quick(&self, _path: &str, _body: &[u8], _turn: Turn) -> Option<Result<Answer, Wait>> {
        None
    }

    /// Who answers calls of gRPC that can be answered at once, if anybody does.
    fn calls(&self) -> Option<&dyn Calls> {
        None
    }

    /// What is behind it.
    fn service(&self) -> &Arc<Service>;
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

/// Serves a connection until it ends, is silent or owes something for too long, or nobody is to be
/// served any more.
async fn serve<S: Site>(
    site: Arc<S>,
    stream: Stream,
    peer: Peer,
    limits: Limits,
    mut draining: Draining,
) {
    let requests = Requests::default();
    let mut watch = Watch::new(requests.clone(), site.service().clock().clone(), &limits);
    let held = Held::nothing(Arc::clone(site.service().held()));
    let mut begun = Begun::new(stream, requests.clone(), held);
    // Whoever has said nothing yet is not owed an answer.
    let spoken = until(pin!(begun.is_http2()), &mut watch, &mut draining).await;
    let Why::Over(Ok(is_http2)) = spoken else { return };
    // The short way knows nothing of certificates.
    if !is_http2 && peer.name.is_none() {
        let quick = Quick { site: &*site, begun: &mut begun, requests: &requests };
        let end = |_: Pin<&mut _>| requests.end();
        let next = live(pin!(quick.run()), end, &mut watch, &limits, &mut draining).await;
        if next != Some(Next::Hyper) {
            return;
        }
    }
    if !is_http2 {
        let service = answering(site, requests, peer, false);
        let connection = http1(&limits).serve_connection(TokioIo::new(begun), service);
        let end = |connection: Pin<&mut conn::http1::Connection<_, _>>| {
            connection.graceful_shutdown();
        };
        live(pin!(connection), end, &mut watch, &limits, &mut draining).await;
        return;
    }
    if site.calls().is_none() {
        let connection = http2_of(site, requests, peer, &limits, begun);
        let end = |connection: Pin<&mut conn::http2::Connection<_, _, _>>| {
            connection.graceful_shutdown();
        };
        live(pin!(connection), end, &mut watch, &limits, &mut draining).await;
    } else if let Some(short) = short_http2(&site, begun, &requests, &peer, &limits) {
        let end = |_: Pin<&mut _>| requests.end();
        live(pin!(short.run()), end, &mut watch, &limits, &mut draining).await;
    }
}

/// The short way for a connection of HTTP/2, with hyper at its side.
fn short_http2<'c, S: Site, T: AsyncRead + AsyncWrite + Unpin>(
    site: &'c Arc<S>,
    begun: Begun<T>,
    requests: &'c Requests,
    peer: &'c Peer,
    limits: &'c Limits,
) -> Option<Http2<'c, T>> {
    let (slow, all, whose, most) = (Arc::clone(site), requests.clone(), peer.clone(), *limits);
    let start = Box::new(move |far| -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let connection = http2_of(slow, all, whose, &most, far);
        // What ends it early, it has told.
        Box::pin(async move { _ = connection.await })
    });
    let (calls, clock) = (site.calls()?, site.service().clock());
    Some(Http2::new(begun, Serving { calls, requests, clock, peer, limits, start }))
}

/// How requests are answered that come through hyper.
fn answering<S: Site>(
    site: Arc<S>,
    requests: Requests,
    peer: Peer,
    is_http2: bool,
) -> impl HttpService<S::Body> {
    service_fn(move |request| {
        let (site, requests, one) = (Arc::clone(&site), requests.clone(), requests.begin());
        let peer = peer.clone();
        async move {
            let mut answer = site.answer(request, peer).await;
            site.began(&mut answer, one);
            let strike = answer.extensions().get::<Strike>();
            if strike.is_some_and(|strike| requests.strike() || *strike == Strike::Last) {
                requests.end();
                respond::end(&mut answer, is_http2);
            }
            if is_http2 {
                answer = Sent::until_sent(answer, site.service().held());
            }
            Ok::<_, Infallible>(answer)
        }
    })
}

/// What hyper needs to know of whoever answers.
trait HttpService<B>:
    hyper::service::Service<
        Request<Incoming>,
        Response = Response<B>,
        Error = Infallible,
        Future: Send + 'static,
    > + Send
    + 'static
{
}

impl<B, S> HttpService<B> for S where
    S: hyper::service::Service<
            Request<Incoming>,
            Response = Response<B>,
            Error = Infallible,
            Future: Send + 'static,
        > + Send
        + 'static
{
}

/// A connection of HTTP/2, by hyper.
fn http2_of<S: Site, T: AsyncRead + AsyncWrite + Unpin>(
    site: Arc<S>,
    requests: Requests,
    peer: Peer,
    limits: &Limits,
    stream: T,
) -> conn::http2::Connection<TokioIo<T>, impl HttpService<S::Body>, TokioExecutor> {
    conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        // What stands between requests cannot be told from half of one here. Whoever is in the
        // middle of something cannot answer to a ping, and has no longer than patience.
        .keep_alive_interval(limits.patience / 2)
        .keep_alive_timeout(limits.patience / 2)
        .max_concurrent_streams(STREAMS)
        // What a connection can send that nobody has read yet.
        .initial_stream_window_size(STREAM_BYTES)
        .initial_connection_window_size(CONNECTION_BYTES)
        .max_send_buf_size(STREAM_BYTES as usize)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .serve_connection(TokioIo::new(stream), answering(site, requests, peer, true))
}

/// How HTTP/1.1 is spoken.
pub(crate) fn http1(limits: &Limits) -> conn::http1::Builder {
    let mut builder = conn::http1::Builder::new();
    builder
        // Time is watched here. What hyper has for that costs an allocation, a timer and a further
        // attempt to read for every request.
        .header_read_timeout(None)
        // Who says that nothing more comes still wants the answer.
        .half_close(true)
        .max_buf_size(limits.header_bytes.max(SMALLEST_BUFFER))
        // Answers are short: to copy them is less than to hand them over in pieces.
        .writev(false);
    builder
}

/// Serves a connection of HTTP/2 that needs no socket, until the client has gone.
pub(crate) async fn serve_http2<S: Site>(site: Arc<S>, stream: DuplexStream, limits: Limits) {
    let (requests, peer) = (Requests::default(), Peer::default());
    let held = Held::nothing(Arc::clone(site.service().held()));
    let mut begun = Begun::new(stream, requests.clone(), held);
    if let Ok(true) = begun.is_http2().await
        && let Some(short) = short_http2(&site, begun, &requests, &peer, &limits)
    {
        short.run().await;
    }
}

/// What the short way takes for a plain request that is all here: its path, and its body.
pub(crate) fn plain_post(bytes: &[u8]) -> Option<(&str, &[u8])> {
    match Head::read(bytes) {
        Head::Post { path, body } => Some((path, bytes.get(body)?)),
        Head::Partial | Head::Other => None,
    }
}

/// Lets a connection live as long as it may, and returns what it ends with by itself. `end` tells it
/// not to take any further requests.
async fn live<C: Future>(
    mut connection: Pin<&mut C>,
    end: impl Fn(Pin<&mut C>),
    watch: &mut Watch<SystemClock>,
    limits: &Limits,
    draining: &mut Draining,
) -> Option<C::Output> {
    match until(connection.as_mut(), watch, draining).await {
        Why::Over(over) => return Some(over),
        Why::Draining => {
            end(connection.as_mut());
            // It is cut off when the time to drain is over.
            connection.await;
        }
        Why::Late(Late::Silent) => {
            end(connection.as_mut());
            let _ = tokio::time::timeout(limits.patience, connection).await;
        }
        // It has had its time.
        Why::Late(Late::Owing) => {}
    }
    None
}

/// Goes on with a connection until there is a reason not to.
async fn until<C: Future>(
    mut connection: Pin<&mut C>,
    watch: &mut Watch<SystemClock>,
    draining: &mut Draining,
) -> Why<C::Output> {
    let mut drains = pin!(draining.begin());
    poll_fn(|context| {
        // What ends a connection early is the client's affair: it has gone, or does not speak HTTP,
        // in which case it has been told.
        if let Poll::Ready(over) = connection.as_mut().poll(context) {
            return Poll::Ready(Why::Over(over));
        }
        if drains.as_mut().poll(context).is_ready() {
            return Poll::Ready(Why::Draining);
        }
        watch.poll(context).map(Why::Late)
    })
    .await
}

/// Why a connection is not served any more.
enum Why<T> {
    Over(T),
    Draining,
    Late(Late),
}

/// Says that there are too many connections.
async fn refuse(mut stream: Stream) {
    // Whoever does not take it at once goes without.
    let _ = stream.write_all(respond::TOO_MANY_CONNECTIONS).await;
    let _ = stream.shutdown().await;
}

/// Requests under way at once on one connection of HTTP/2.
const STREAMS: u32 = 128;

/// What is taken in of one of them, and of all, before it is read.
const STREAM_BYTES: u32 = 64 << 10;
const CONNECTION_BYTES: u32 = 256 << 10;

/// The least that hyper can do with.
const SMALLEST_BUFFER: usize = 8192;
