//! A connection of which the first bytes were read, to find out what is spoken on it.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::held::{Budget, Held, SHORT};
use crate::web::silence::{Owed, Requests};

/// A connection of which the first bytes were read. They are read again. It notes what the client
/// owes, and accounts for headers and answers that are long.
#[derive(Debug)]
pub(super) struct Begun<S> {
    stream: S,
    /// What was read from the stream, and not from this.
    unread: BytesMut,
    requests: Requests,
    /// How many bytes have come since the last answer.
    head: usize,
    held: Held,
    /// In HTTP/2 not everything that comes between requests is the beginning of one.
    http2: bool,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    pub(super) fn new(stream: S, requests: Requests, held: Held) -> Self {
        Self { stream, unread: BytesMut::new(), requests, head: 0, held, http2: false }
    }

    /// Whether HTTP/2 is spoken. As much is read as it takes to know.
    pub(super) async fn is_http2(&mut self) -> io::Result<bool> {
        loop {
            let known = self.unread.len().min(PREFACE.len());
            if self.unread[..known] != PREFACE[..known] {
                return Ok(false);
            }
            if known == PREFACE.len() {
                self.http2 = true;
                self.requests.owes(Owed::Nothing);
                return Ok(true);
            }
            if known > 0 {
                self.requests.owes(Owed::Rest);
            }
            if poll_fn(|context| self.poll_more(LEAST_ROOM, context)).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Reads more from the stream.
    pub(super) fn poll_more(
        &mut self,
        room: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        // What is still there is moved to the front if there is no other room.
        self.unread.reserve(room);
        pin!(self.stream.read_buf(&mut self.unread)).poll(context)
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.unread
    }

    /// What long answers are accounted to.
    pub(super) const fn budget(&self) -> &Arc<Budget> {
        self.held.budget()
    }

    pub(super) const fn unread_mut(&mut self) -> &mut BytesMut {
        &mut self.unread
    }

    /// More has come, or what was here is handed on.
    #[inline]
    fn heard(&mut self, bytes: usize) -> io::Result<()> {
        if bytes == 0 || self.http2 {
            return Ok(());
        }
        self.requests.owes(Owed::Rest);
        self.head += bytes;
        // Whoever reads a body accounts for it.
        match self.head > SHORT && !self.requests.is_under_way() {
            true => Ok(self.held.hold(self.head)?),
            false => Ok(()),
        }
    }

    /// So many bytes were to be written, and some of them were, or the client does not take them.
    #[inline]
    fn wrote(&mut self, bytes: usize, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.head = 0;
        match wrote {
            Poll::Ready(_) => {
                self.requests.taken();
                self.held.hold(0)?;
            }
            Poll::Pending => {
                self.requests.owes(Owed::Taking);
                self.held.hold(if bytes > SHORT { bytes } else { 0 })?;
            }
        }
        wrote
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.unread.is_empty() {
            let before = room.filled().len();
            let read = Pin::new(&mut this.stream).poll_read(context, room);
            this.heard(room.filled().len() - before)?;
            return read;
        }
        let now = this.unread.len().min(room.remaining());
        room.put_slice(&this.unread.split_to(now));
        this.heard(now)?;
        if this.unread.is_empty() {
            // Nobody reads into it any more.
            this.unread = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.wrote(bytes.len(), wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.wrote(bytes.iter().map(|some| some.len()).sum(), wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// The least that there is room for when more is read: most requests are shorter.
pub(super) const LEAST_ROOM: usize = 2048;

/// What HTTP/2 begins with.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[cfg(test)]
mod tests {

    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    use super::*;

    fn begun(stream: UnixStream, budget: &Arc<Budget>) -> Begun<UnixStream> {
        Begun::new(stream, Requests::default(), Held::nothing(Arc::clone(budget)))
    }

    /// What is taken to be spoken, and what is read after that.
    fn told(bytes: &[u8]) -> (bool, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = UnixStream::pair().unwrap();
            client.write_all(bytes).await.unwrap();
            drop(client);
            let mut begun = begun(server, &Arc::new(Budget::new(0)));
            let is_http2 = begun.is_http2().await.unwrap();
            let mut all = Vec::new();
            begun.read_to_end(&mut all).await.unwrap();
            (is_http2, all)
        })
    }

    #[tokio::test(flavor = "current_thread")]
    async fn long_headers_and_answers_are_accounted_for() {
        let budget = Arc::new(Budget::new(SHORT + 1000));
        let (mut client, server) = UnixStream::pair().unwrap();
        let mut begun = begun(server, &budget);
        let mut room = [0; 1000];
        let mut hear = async |begun: &mut Begun<UnixStream>| {
            client.write_all(&[b'a'; 1000]).await.unwrap();
            begun.read_exact(&mut room).await
        };
        for _ in 0..SHORT / 1000 {
            hear(&mut begun).await.unwrap();
        }
        assert_eq!(budget.held(), 0, "so much is nobody's business");
        hear(&mut begun).await.unwrap();
        assert_eq!(budget.held(), SHORT / 1000 * 1000 + 1000);
        assert_eq!(hear(&mut begun).await.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        // An answer ends it.
        begun.write_all(b"b").await.unwrap();
        assert_eq!((budget.held(), budget.refused()), (0, 1));
        // Nobody takes this one.
        let long = vec![b'b'; 8 << 20];
        assert_eq!(begun.write_all(&long).await.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        budget.allow(8 << 20);
        let mut writing = Box::pin(begun.write_all(&long));
        let pending = poll_fn(|context| Poll::Ready(writing.as_mut().poll(context).is_pending()));
        assert!(pending.await && budget.held() > 1 << 20, "{}", budget.held());
        drop(writing);
        drop(begun);
        assert_eq!(budget.held(), 0);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(begin in 0..=PREFACE.len(), rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [&PREFACE[..begin], &rest].concat();
            prop_assert_eq!(told(&bytes), (bytes.starts_with(PREFACE), bytes));
        }
    }
}
