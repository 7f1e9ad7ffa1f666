//! A connection of which the first bytes were read, to find out what is spoken on it.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::web::silence::{Owed, Requests};

/// A connection of which the first bytes were read. They are read again. It notes what the client
/// owes.
#[derive(Debug)]
pub(super) struct Begun<S> {
    stream: S,
    /// What was read from the stream, and not from this.
    unread: BytesMut,
    requests: Requests,
    /// In HTTP/2 not everything that comes between requests is the beginning of one.
    http2: bool,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    pub(super) fn new(stream: S, requests: Requests) -> Self {
        Self { stream, unread: BytesMut::new(), requests, http2: false }
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
            if poll_fn(|context| self.poll_more(context)).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Reads more from the stream.
    pub(super) fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // What is still there is moved to the front if there is no other room.
        self.unread.reserve(LEAST_ROOM);
        pin!(self.stream.read_buf(&mut self.unread)).poll(context)
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.unread
    }

    pub(super) const fn unread_mut(&mut self) -> &mut BytesMut {
        &mut self.unread
    }

    /// More has come, or what was here is handed on.
    #[inline]
    fn heard(&self, bytes: usize) {
        if bytes > 0 && !self.http2 {
            self.requests.owes(Owed::Rest);
        }
    }

    /// Something was written, or the client does not take it.
    #[inline]
    fn wrote(&self, wrote: &Poll<io::Result<usize>>) {
        match wrote {
            Poll::Ready(_) => self.requests.taken(),
            Poll::Pending => self.requests.owes(Owed::Taking),
        }
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
            this.heard(room.filled().len() - before);
            return read;
        }
        let now = this.unread.len().min(room.remaining());
        room.put_slice(&this.unread.split_to(now));
        this.heard(now);
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
        this.wrote(&wrote);
        wrote
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.wrote(&wrote);
        wrote
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
const LEAST_ROOM: usize = 2048;

/// What HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    use super::*;

    /// What is taken to be spoken, and what is read after that.
    fn told(bytes: &[u8]) -> (bool, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = UnixStream::pair().unwrap();
            client.write_all(bytes).await.unwrap();
            drop(client);
            let mut begun = Begun::new(server, Requests::default());
            let is_http2 = begun.is_http2().await.unwrap();
            let mut all = Vec::new();
            begun.read_to_end(&mut all).await.unwrap();
            (is_http2, all)
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost(begin in 0..=PREFACE.len(), rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [&PREFACE[..begin], &rest].concat();
            prop_assert_eq!(told(&bytes), (bytes.starts_with(PREFACE), bytes));
        }
    }
}
