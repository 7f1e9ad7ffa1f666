//! A connection: its bytes, who is at the other end, and what it may take.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;
use tollgate::{Clock as _, Tick};

use crate::door::Name;
use crate::service::Service;
use crate::tls::Tls;
use crate::vigil;

/// What a client may take of a door. Whatever goes beyond is refused in the way of its protocol.
///
/// ```
/// let limits = tollgate_doors::Limits::default();
/// assert_eq!(limits.body_bytes, 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections a door has at once; one more is told so, and closed. Each takes a few KB,
    /// and more only of `held_bytes`. Too low turns clients away; too high lets them take the memory.
    pub connections: usize,
    /// The longest headers of a request, in bytes.
    pub header_bytes: usize,
    /// The longest body, or command of RESP, in bytes.
    pub body_bytes: usize,
    /// How many bytes all connections together hold of requests that are not complete, and of answers
    /// that are not taken, beyond a few KB each. Whoever needs more is refused, and may try again.
    /// Too low turns away long requests when many come at once; too high lets them take the memory.
    pub held_bytes: usize,
    /// How many requests one body, or how many arguments one command of RESP has.
    pub batch: usize,
    /// How long a client may take to send a request that it has begun, and to take its answer.
    pub patience: Duration,
    /// How long a connection of HTTP may be silent between requests.
    pub idle: Duration,
    /// How many requests are under way at once whose end is still to be told: those of rules with
    /// `concurrent` or `count_if`. One more is refused. Each takes about a kilobyte.
    pub tickets: usize,
    /// How long the end of a request may be told. After that what it held is free, and what it was
    /// charged is spent. Too short lets more pass at once than `concurrent` says.
    pub ticket_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_000,
            header_bytes: 32 << 10,
            body_bytes: 1 << 20,
            held_bytes: 256 << 20,
            batch: 1_000,
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            tickets: 100_000,
            ticket_time: Duration::from_secs(600),
        }
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Where it is, unless it is a process of this machine at a Unix socket.
    pub(crate) ip: Option<IpAddr>,
    /// Whom its certificate is for, if it has shown one.
    pub(crate) name: Option<Arc<str>>,
}

impl Peer {
    /// Whom its certificate is for, as requests have it: empty if nobody knows.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// A connection that was accepted, not yet known to any runtime.
#[derive(Debug)]
pub(crate) enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Accepted {
    /// Joins the runtime that this is called in, and begins what is spoken below the protocol: TLS,
    /// if there is any, but not at a Unix socket, where nobody listens in. Says whom a certificate is
    /// for.
    pub(crate) async fn join(
        self,
        meter: Meter,
        tls: Option<&Tls>,
    ) -> io::Result<(Stream, Option<Arc<str>>)> {
        let (socket, name) = match (self, tls) {
            (Self::Tcp(stream), None) => (Socket::Tcp(TcpStream::from_std(stream)?), None),
            (Self::Tcp(stream), Some(tls)) => {
                let stream = TcpStream::from_std(stream)?;
                let (stream, name) = tls.accept(meter.door, stream).await?;
                (Socket::Tls(Box::new(stream)), name)
            }
            (Self::Unix(stream), _) => (Socket::Unix(UnixStream::from_std(stream)?), None),
        };
        Ok((Stream { socket, meter }, name))
    }
}

/// The bytes of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    meter: Meter,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// How long answers take: from the first bytes that were read to the next that are written. Here
/// all doors have it, at the cost of two looks at the clock.
#[derive(Debug)]
pub(crate) struct Meter {
    service: Arc<Service>,
    door: Name,
    /// When what is not answered yet began to come.
    came: Option<Tick>,
}

impl Meter {
    pub(crate) const fn new(service: Arc<Service>, door: Name) -> Self {
        Self { service, door, came: None }
    }

    #[inline]
    fn read(&mut self) {
        if self.came.is_none() {
            self.came = Some(self.service.clock().now());
        }
    }

    #[inline]
    fn wrote(&mut self) {
        if let Some(came) = self.came.take() {
            let took = self.service.clock().now().since(came);
            self.service.metrics().served_in(self.door, took);
            vigil::answered();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { socket, meter } = self.get_mut();
        let before = room.filled().len();
        if let Socket::Tls(stream) = socket {
            // What was written before may still be here: whoever waits for an answer sends nothing.
            if let Poll::Ready(Err(error)) = Pin::new(stream).poll_flush(context) {
                return Poll::Ready(Err(error));
            }
        }
        let read = match socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, room),
            Socket::Tls(stream) => Pin::new(stream).poll_read(context, room),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, room),
        };
        if room.filled().len() > before {
            meter.read();
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { socket, meter } = self.get_mut();
        let wrote = match socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tls(stream) => poll_encrypt(stream, context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        if let Poll::Ready(Ok(1..)) = &wrote {
            meter.wrote();
        }
        wrote
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { socket, meter } = self.get_mut();
        let wrote = match socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Socket::Tls(stream) => {
                let first = bytes.iter().find(|bytes| !bytes.is_empty());
                poll_encrypt(stream, context, first.map_or(&[], |bytes| bytes))
            }
            Socket::Unix(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        };
        if let Poll::Ready(Ok(1..)) = &wrote {
            meter.wrote();
        }
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        // What is encrypted is copied anyway.
        !matches!(self.socket, Socket::Tls(_))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(context),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// Writes a piece, once all that was written before has gone: otherwise a client that does not read
/// would have its answers pile up where nobody sees them.
fn poll_encrypt(
    stream: &mut TlsStream<TcpStream>,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    ready!(Pin::new(&mut *stream).poll_flush(context))?;
    let piece = &bytes[..bytes.len().min(PIECE)];
    let wrote = ready!(Pin::new(&mut *stream).poll_write(context, piece))?;
    // What does not go at once goes with what is read or written next.
    match Pin::new(stream).poll_flush(context) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        _ => Poll::Ready(Ok(wrote)),
    }
}

/// How much is encrypted at once: a record of TLS.
const PIECE: usize = 16 << 10;
