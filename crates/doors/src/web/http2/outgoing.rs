//! What goes out: answers, as far as the client has room for them.

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite};

use super::frame::{self, LONGEST, Reason, flag, kind};
use super::{Call, Called, Delayed, Http2, Until, hpack};
use crate::connection::Limits;
use crate::service::Turn;
use crate::web::deadline;
use crate::web::{CONNECTION_BYTES, NO_ROOM, STREAM_BYTES, STREAMS, kept};
use tollgate::Timer as _;

/// How much may be sent, either way.
#[derive(Debug)]
pub(super) struct Windows {
    /// What the client takes on all streams together, and on each at first.
    pub(super) out: i64,
    pub(super) initial: i64,
    /// What we take on all streams together, and what of that is free again and not yet told.
    pub(super) taken: i64,
    free: u32,
    /// The client wants fewer headers to be remembered: the next ones have to say that they are.
    pub(super) fewer: Option<u32>,
}

/// An answer that waits for room.
pub(super) struct Sending {
    pub(super) stream: u32,
    pub(super) message: Bytes,
    pub(super) window: i64,
}

impl Default for Windows {
    fn default() -> Self {
        let (out, initial) = (DEFAULT.into(), DEFAULT.into());
        Self { out, initial, taken: CONNECTION_BYTES.into(), free: 0, fewer: None }
    }
}

impl Windows {
    /// So many bytes came.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Reason> {
        // No frame is longer than the longest.
        self.taken -= bytes as i64;
        if self.taken < 0 { Err(Reason::FlowControl) } else { Ok(()) }
    }

    /// So many bytes are done with. Tells the client when it has not much more left than that: what
    /// hyper has not told of either is out of reach as well.
    #[inline]
    pub(super) fn free(&mut self, bytes: usize, out: &mut Vec<u8>) {
        self.free += bytes as u32;
        if i64::from(self.free) > self.taken / 2 {
            let free = std::mem::take(&mut self.free);
            self.allow(free, out);
        }
    }

    /// Lets the client send more.
    pub(super) fn allow(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.taken += i64::from(bytes);
        frame::put_increment(out, 0, bytes);
    }
}

/// What a connection begins with.
pub(super) fn greet(out: &mut Vec<u8>, limits: &Limits) {
    let header_bytes = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
    let settings = [(3, STREAMS), (4, STREAM_BYTES), (6, header_bytes)];
    frame::put_head(out, 6 * settings.len(), kind::SETTINGS, 0, 0);
    for (name, value) in settings {
        out.extend_from_slice(&u16::to_be_bytes(name));
        out.extend_from_slice(&u32::to_be_bytes(value));
    }
    frame::put_increment(out, 0, CONNECTION_BYTES - DEFAULT);
}

impl<T: AsyncRead + AsyncWrite + Unpin> Http2<'_, T> {
    /// Answers a call.
    #[inline]
    pub(super) fn answer(&mut self, call: Call, body: &[u8]) {
        self.answer_at(call, body, Turn::First);
    }

    #[inline]
    pub(super) fn answer_at(&mut self, call: Call, body: &[u8], turn: Turn) {
        let message = match self.calls.call(call.method, body, self.peer, turn) {
            Called::Message(message, delay) if delay.is_zero() => Ok(message),
            Called::Message(message, delay) => {
                let until = Until::Over(self.clock.sleep(delay), message);
                return self.keep_back(call, until);
            }
            Called::Wait(_) if self.kept_back() + body.len() > MOST_KEPT_BACK => {
                Err((RESOURCE_EXHAUSTED, NO_ROOM.to_owned()))
            }
            Called::Wait(wait) => {
                let (turn, body) = (Turn::after(&wait), body.to_vec());
                let fetch = Box::pin(deadline::within(call.deadline, wait).fetch());
                return self.keep_back(call, Until::Fetched { fetch, turn, body });
            }
            Called::Refusal(code, message) => Err((code, message)),
        };
        // Nobody could look in between.
        self.requests.once();
        match message {
            Ok(message) => self.send(call, message),
            Err((code, message)) => self.refuse(call.stream, code, &message),
        }
    }

    fn keep_back(&mut self, call: Call, until: Until) {
        self.delayed.push(Delayed { call, until, _one: self.requests.begin() });
    }

    /// The bytes of calls that wait for a store.
    fn kept_back(&self) -> usize {
        let bytes = |one: &Delayed| match &one.until {
            Until::Fetched { body, .. } => body.len(),
            Until::Over(..) => 0,
        };
        self.delayed.iter().map(bytes).sum()
    }

    /// Sends an answer, or as much of it as there is room for.
    #[inline]
    pub(super) fn send(&mut self, call: Call, message: Bytes) {
        let Call { stream, extra, .. } = call;
        let (window, length) = (self.windows.initial + extra, message.len() as i64);
        let is_short = message.len() <= LONGEST && self.sending.is_empty();
        if is_short
            && length <= window
            && length <= self.windows.out
            && self.windows.fewer.is_none()
        {
            self.windows.out -= length;
            let out = &mut self.out;
            out.reserve(ANSWER.len() + WELL.len() + 3 * frame::Head::BYTES + message.len());
            frame::put(out, kind::HEADERS, flag::END_HEADERS, stream, ANSWER);
            frame::put(out, kind::DATA, 0, stream, &message);
            return put_end(out, stream);
        }
        match kept::held(message, self.begun.budget()) {
            Ok(message) => {
                self.put_headers(stream, flag::END_HEADERS, ANSWER);
                self.sending.push(Sending { stream, message, window });
                self.send_on();
            }
            Err(_) => self.refuse(stream, RESOURCE_EXHAUSTED, NO_ROOM),
        }
    }

    /// Sends what there is room for now.
    pub(super) fn send_on(&mut self) {
        let (out, windows) = (&mut self.out, &mut self.windows);
        self.sending.retain_mut(|Sending { stream, message, window }| {
            while !message.is_empty() {
                let room = (*window).min(windows.out).min(LONGEST as i64);
                let Ok(room @ 1..) = usize::try_from(room) else { return true };
                let length = room.min(message.len());
                frame::put(out, kind::DATA, 0, *stream, &message[..length]);
                message.advance(length);
                *window -= length as i64;
                windows.out -= length as i64;
            }
            put_end(out, *stream);
            false
        });
    }

    /// Ends a call with a code, and says why.
    pub(super) fn refuse(&mut self, stream: u32, code: u16, message: &str) {
        let mut block = ANSWER.to_vec();
        hpack::put(&mut block, b"grpc-status", itoa::Buffer::new().format(code).as_bytes());
        hpack::put(&mut block, b"grpc-message", message.as_bytes());
        self.put_headers(stream, flag::END_HEADERS | flag::END_STREAM, &block);
    }

    /// Refuses a request whose headers are too long.
    pub(super) fn refuse_headers(&mut self, stream: u32) {
        self.put_headers(stream, flag::END_HEADERS | flag::END_STREAM, b"\x08\x03431");
        frame::put_reset(&mut self.out, stream, Reason::None);
    }

    fn put_headers(&mut self, stream: u32, flags: u8, block: &[u8]) {
        let Some(fewer) = self.windows.fewer.take() else {
            return frame::put(&mut self.out, kind::HEADERS, flags, stream, block);
        };
        let mut longer = Vec::new();
        hpack::put_room(&mut longer, fewer);
        longer.extend_from_slice(block);
        frame::put(&mut self.out, kind::HEADERS, flags, stream, &longer);
    }
}

/// Ends an answer: all is well.
#[inline]
fn put_end(out: &mut Vec<u8>, stream: u32) {
    frame::put(out, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, WELL);
}

/// `:status: 200` and `content-type: application/grpc`. Nothing that a client has to remember: what
/// hyper sends on the same connection has it remember things, and numbers them.
const ANSWER: &[u8] = b"\x88\x0f\x10\x10application/grpc";

/// `grpc-status: 0`.
const WELL: &[u8] = b"\x00\x0bgrpc-status\x010";

const RESOURCE_EXHAUSTED: u16 = 8;

/// The windows of whoever says nothing else.
pub(super) const DEFAULT: u32 = 65_535;

/// The most that is kept of calls that wait for a store, of one connection.
const MOST_KEPT_BACK: usize = 1 << 20;
