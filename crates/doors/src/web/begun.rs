//! A connection of which the first bytes were read, to find out what is spoken on it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A connection of which the first bytes were read. They are read again.
#[derive(Debug)]
pub(super) struct Begun<S> {
    stream: S,
    first: [u8; PREFACE.len()],
    read: usize,
    read_again: usize,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, first: [0; PREFACE.len()], read: 0, read_again: 0 }
    }

    /// Whether HTTP/2 is spoken. As many bytes are read as it takes to know, which is one or two for
    /// whoever does not.
    pub(super) async fn is_http2(&mut self) -> io::Result<bool> {
        while self.read < PREFACE.len() {
            let read = self.stream.read(&mut self.first[self.read..]).await?;
            self.read += read;
            if read == 0 || !PREFACE.starts_with(&self.first[..self.read]) {
                return Ok(false);
            }
        }
        Ok(true)
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
        if this.read_again < this.read {
            let rest = &this.first[this.read_again..this.read];
            let now = rest.len().min(room.remaining());
            room.put_slice(&rest[..now]);
            this.read_again += now;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
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
            let mut begun = Begun::new(server);
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
