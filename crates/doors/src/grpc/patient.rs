//! Messages of a stream that come in time, once they have begun.
//!
//! A stream may be silent for as long as its client likes, but only between messages: what has come
//! of one is held, and so is the stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use tollgate::{Sleep, SystemClock, Timer as _};
use tonic::Status;

use crate::grpc::frame::PREFIX;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A body with messages. It ends with an error if the rest of one does not come in time.
pub(super) struct Patient<B> {
    body: B,
    messages: Messages,
    clock: SystemClock,
    patience: Duration,
    /// Set while the rest of a message is waited for. To send it slowly does not make it longer.
    timer: Option<Sleep>,
}

/// Whether something has to come before anybody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// A call that has one message.
    Expected,
    /// A stream of them.
    Whenever,
}

impl<B> Patient<B> {
    pub(super) const fn new(body: B, first: First, clock: SystemClock, patience: Duration) -> Self {
        Self { body, messages: Messages::new(first), clock, patience, timer: None }
    }
}

impl<B: Body<Data = bytes::Bytes> + Unpin> Body for Patient<B>
where
    B::Error: Into<Error>,
{
    type Data = bytes::Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Error>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let ended = frame.data_ref().is_some_and(|data| this.messages.pass(data));
                if ended {
                    this.timer = None;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other.map(|frame| frame.map_err(Into::into))),
            Poll::Pending if this.messages.is_one_owed() => {
                let sleep = || this.clock.sleep(this.patience);
                ready!(this.timer.get_or_insert_with(sleep).as_mut().poll(context));
                let why = "the message did not come in time: send it faster";
                Poll::Ready(Some(Err(Status::deadline_exceeded(why).into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Where bytes stand in the messages that they are.
#[derive(Clone, Copy, Debug)]
struct Messages {
    /// What stands before a message, as far as it has come.
    prefix: [u8; PREFIX],
    /// So much of it has come.
    known: usize,
    /// So much of the message behind it is still to come.
    rest: usize,
    is_expected: bool,
}

impl Messages {
    const fn new(first: First) -> Self {
        let is_expected = matches!(first, First::Expected);
        Self { prefix: [0; PREFIX], known: 0, rest: 0, is_expected }
    }

    /// Whether a message has begun, or must be there, and has not come whole.
    const fn is_one_owed(&self) -> bool {
        self.known > 0 || self.is_expected
    }

    /// More bytes have come. Says whether a message ended in them.
    fn pass(&mut self, mut bytes: &[u8]) -> bool {
        let mut ended = false;
        while !bytes.is_empty() {
            let of_prefix = bytes.len().min(PREFIX - self.known);
            let (begin, behind) = bytes.split_at(of_prefix);
            self.prefix[self.known..self.known + of_prefix].copy_from_slice(begin);
            self.known += of_prefix;
            if of_prefix > 0 && self.known == PREFIX {
                let [_, length @ ..] = self.prefix;
                // Nothing is that long where it would not fit.
                self.rest = u32::from_be_bytes(length) as usize;
            }
            let of_message = if self.known == PREFIX { behind.len().min(self.rest) } else { 0 };
            self.rest -= of_message;
            bytes = &behind[of_message..];
            if self.known == PREFIX && self.rest == 0 {
                (self.known, self.is_expected, ended) = (0, false, true);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_is_owed_from_its_first_byte_to_its_last() {
        let mut messages = Messages::new(First::Whenever);
        assert!(!messages.is_one_owed(), "silence between messages is good");
        assert!(!messages.pass(b"\0\0\0") && messages.is_one_owed());
        assert!(!messages.pass(b"\0\x02a") && messages.is_one_owed());
        assert!(messages.pass(b"b") && !messages.is_one_owed());
        assert!(messages.pass(b"\0\0\0\0\0") && !messages.is_one_owed(), "one with nothing in it");
        assert!(messages.pass(b"\0\0\0\0\x01a\0") && messages.is_one_owed(), "another has begun");
    }

    #[test]
    fn one_that_is_expected_is_owed_before_it_begins() {
        let mut messages = Messages::new(First::Expected);
        assert!(messages.is_one_owed());
        assert!(!messages.pass(b"\0\0\0\0") && messages.is_one_owed());
        assert!(messages.pass(b"\0") && !messages.is_one_owed());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_bytes_are_split(
            lengths in prop::collection::vec(0..300_usize, 1..6),
            splits in prop::collection::vec(0..400_usize, 0..40),
        ) {
            let message = |length: &usize| {
                let prefix = [&[0][..], &(*length as u32).to_be_bytes()].concat();
                [prefix, vec![7; *length]].concat()
            };
            let bytes: Vec<_> = lengths.iter().flat_map(message).collect();
            let mut ends = Vec::new();
            for length in &lengths {
                ends.push(ends.last().copied().unwrap_or(0) + PREFIX + length);
            }
            let (mut messages, mut at) = (Messages::new(First::Whenever), 0_usize);
            for split in splits.into_iter().chain([usize::MAX]) {
                let next = at.saturating_add(split).min(bytes.len());
                let ended = messages.pass(&bytes[at..next]);
                prop_assert_eq!(ended, ends.iter().any(|end| (at + 1..=next).contains(end)));
                at = next;
                prop_assert_eq!(messages.is_one_owed(), at > 0 && !ends.contains(&at));
            }
        }
    }
}
