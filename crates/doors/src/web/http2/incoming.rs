//! What comes: frame by frame.

use std::mem;

use tokio::io::{AsyncRead, AsyncWrite};
use tollgate::Clock as _;

use super::frame::{self, Frame, Reason, flag, kind};
use super::hpack::{self, Malformed};
use super::request::{Call, Pending, Seen};
use super::{Ending, FAREWELL, Http2};
use crate::web::STREAMS;
use crate::web::deadline::Deadline;

/// What the client has said of itself.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// The latest stream that it has opened.
    pub(super) last: u32,
    is_greeted: bool,
    /// Headers that are not all here: their stream, whether it ends with them, and what has come.
    block: Option<(u32, bool)>,
    bytes: Vec<u8>,
}

impl Peers {
    pub(super) const fn is_in_headers(&self) -> bool {
        self.block.is_some()
    }

    /// Whether a stream was never opened.
    const fn is_idle(&self, stream: u32) -> bool {
        stream > self.last || stream.is_multiple_of(2)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Http2<'_, T> {
    /// Takes a frame. An error ends the connection.
    #[inline]
    pub(super) fn take(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let head = frame.head;
        if !self.peers.is_greeted {
            self.peers.is_greeted = head.kind == kind::SETTINGS && !head.has(flag::ACK);
        }
        let is_in_order = match self.peers.block {
            Some((stream, _)) => head.kind == kind::CONTINUATION && head.stream == stream,
            None => head.kind != kind::CONTINUATION,
        };
        if !self.peers.is_greeted || !is_in_order {
            return Err(Reason::Protocol);
        }
        match head.kind {
            kind::DATA => self.data(frame),
            kind::HEADERS => self.begin_headers(frame),
            kind::CONTINUATION => self.continue_headers(frame),
            kind::RST_STREAM => self.reset(frame),
            kind::SETTINGS => self.settings(frame),
            kind::PING => self.ping(frame),
            kind::WINDOW_UPDATE => self.make_room(frame),
            kind::PUSH_PROMISE => Err(Reason::Protocol),
            kind::PRIORITY if head.length != 5 => Err(Reason::FrameSize),
            // Who goes first is ours to say; that it goes, we will see; and what nobody knows is
            // nothing.
            _ => Ok(()),
        }
    }

    #[inline]
    fn data(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let (stream, is_last) = (frame.head.stream, frame.head.has(flag::END_STREAM));
        if self.peers.is_idle(stream) {
            return Err(Reason::Protocol);
        }
        let data = frame.unpadded()?;
        self.windows.take(frame.payload.len())?;
        let Some(place) = self.pending.iter().rposition(|one| one.call.stream == stream) else {
            match self.bridge.as_mut().filter(|bridge| bridge.has(stream)) {
                Some(bridge) => bridge.forward(frame),
                // It was answered before it had said all.
                None => self.windows.free(frame.payload.len(), &mut self.out),
            }
            return Ok(());
        };
        // What is only there to fill up is done with.
        let padding = frame.payload.len() - data.len();
        self.windows.free(padding, &mut self.out);
        let held: usize = self.pending.iter().map(|one| one.body.len()).sum();
        let is_long = self.pending[place].body.len() + data.len() > self.limits.body_bytes;
        if is_long || (!is_last && held + data.len() > MOST_HELD) {
            let pending = self.pending.swap_remove(place);
            self.hand_over(pending);
            self.bridge().go_on_with(stream, is_last, data);
            return Ok(());
        }
        if !is_last {
            if padding > 0 {
                frame::put_increment(&mut self.out, stream, padding as u32);
            }
            self.pending[place].body.extend_from_slice(data);
            return Ok(());
        }
        let Pending { call, mut body } = self.pending.swap_remove(place);
        self.windows.free(body.len() + data.len(), &mut self.out);
        match body.is_empty() {
            true => self.answer(call, data),
            false => {
                body.extend_from_slice(data);
                self.answer(call, &body);
            }
        }
        Ok(())
    }

    #[inline]
    fn begin_headers(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let head = frame.head;
        if head.stream.is_multiple_of(2) {
            return Err(Reason::Protocol);
        }
        let (block, is_last) = (frame.block()?, head.has(flag::END_STREAM));
        if head.has(flag::END_HEADERS) {
            return self.headers(head.stream, is_last, block);
        }
        self.peers.block = Some((head.stream, is_last));
        self.peers.bytes.extend_from_slice(block);
        Ok(())
    }

    fn continue_headers(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let bytes = &mut self.peers.bytes;
        if bytes.len() + frame.payload.len() > self.limits.header_bytes {
            return Err(Reason::EnhanceYourCalm);
        }
        bytes.extend_from_slice(frame.payload);
        // One that brings nothing would cost nothing, however many there are.
        if frame.payload.is_empty() && !frame.head.has(flag::END_HEADERS) {
            return Err(Reason::EnhanceYourCalm);
        }
        if frame.head.has(flag::END_HEADERS)
            && let Some((stream, is_last)) = self.peers.block.take()
        {
            let bytes = mem::take(bytes);
            return self.headers(stream, is_last, &bytes);
        }
        Ok(())
    }

    /// Takes the headers of a request, or what stands behind its body.
    #[inline]
    fn headers(&mut self, stream: u32, is_last: bool, block: &[u8]) -> Result<(), Reason> {
        let (mut seen, mut copy) = (Seen::default(), mem::take(&mut self.block));
        copy.clear();
        let (calls, most) = (self.calls, self.limits.header_bytes);
        let each = |name: &[u8], value: &[u8]| {
            seen.header(name, value, calls);
            if seen.bytes <= most {
                hpack::put(&mut copy, name, value);
            }
        };
        self.headers.read(block, each).map_err(|Malformed| Reason::Compression)?;
        match self.peers.is_idle(stream) {
            true => {
                self.peers.last = stream;
                self.open_stream(stream, is_last, &seen, &copy);
            }
            false => self.end_stream(stream, is_last, &copy)?,
        }
        // One long block is not remembered for ever.
        copy.shrink_to(KEPT);
        self.block = copy;
        Ok(())
    }

    #[inline]
    fn open_stream(&mut self, stream: u32, is_last: bool, seen: &Seen, copy: &[u8]) {
        if self.ending == Ending::Heard || self.open() >= STREAMS as usize {
            return frame::put_reset(&mut self.out, stream, Reason::RefusedStream);
        }
        if seen.bytes > self.limits.header_bytes {
            return self.refuse_headers(stream);
        }
        let Some(method) = seen.call() else {
            return self.bridge().open_stream(stream, is_last, copy);
        };
        let deadline = seen.time.map(|time| Deadline::new(self.clock.now(), time));
        let call = Call { stream, method, extra: 0, deadline };
        match is_last {
            true => self.answer(call, &[]),
            false => self.pending.push(Pending { call, body: Vec::new() }),
        }
    }

    /// What stands behind a body ends it.
    fn end_stream(&mut self, stream: u32, is_last: bool, copy: &[u8]) -> Result<(), Reason> {
        if let Some(bridge) = self.bridge.as_mut().filter(|bridge| bridge.has(stream)) {
            bridge.go_on(stream, is_last, copy);
            return Ok(());
        }
        let Some(place) = self.pending.iter().position(|one| one.call.stream == stream) else {
            return Ok(());
        };
        if !is_last {
            return Err(Reason::Protocol);
        }
        let Pending { call, body } = self.pending.swap_remove(place);
        self.windows.free(body.len(), &mut self.out);
        self.answer(call, &body);
        Ok(())
    }

    fn reset(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let stream = frame.head.stream;
        frame.number()?;
        if self.peers.is_idle(stream) {
            return Err(Reason::Protocol);
        }
        self.drop_stream(stream);
        if let Some(bridge) = self.bridge.as_mut().filter(|bridge| bridge.has(stream)) {
            bridge.forward(frame);
            bridge.forget(stream);
        }
        Ok(())
    }

    /// A stream is over, whatever was still to be done on it.
    fn drop_stream(&mut self, stream: u32) {
        for one in self.pending.extract_if(.., |one| one.call.stream == stream) {
            self.windows.free(one.body.len(), &mut self.out);
        }
        self.delayed.retain(|one| one.call.stream != stream);
        self.sending.retain(|one| one.stream != stream);
    }

    fn settings(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let head = frame.head;
        match (head.has(flag::ACK), head.stream, head.length % 6) {
            (true, 0, _) if head.length == 0 => return Ok(()),
            (false, 0, 0) => {}
            (_, 0, _) => return Err(Reason::FrameSize),
            _ => return Err(Reason::Protocol),
        }
        for setting in frame.payload.as_chunks::<6>().0 {
            let [n0, n1, v0, v1, v2, v3] = *setting;
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            match u16::from_be_bytes([n0, n1]) {
                1 if value < TABLE => self.windows.fewer = Some(value),
                2 if value > 1 => return Err(Reason::Protocol),
                4 if value > frame::STREAM => return Err(Reason::FlowControl),
                4 => {
                    let more = i64::from(value) - self.windows.initial;
                    self.windows.initial = value.into();
                    self.sending.iter_mut().for_each(|one| one.window += more);
                }
                5 if !(frame::LONGEST as u32..1 << 24).contains(&value) => {
                    return Err(Reason::Protocol);
                }
                _ => {}
            }
        }
        match &mut self.bridge {
            // It says when it keeps to them.
            Some(bridge) => bridge.set(self.windows.initial),
            None => frame::put(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]),
        }
        self.send_on();
        Ok(())
    }

    fn ping(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        if frame.head.length != 8 {
            return Err(Reason::FrameSize);
        }
        if frame.head.stream != 0 {
            return Err(Reason::Protocol);
        }
        if !frame.head.has(flag::ACK) {
            frame::put(&mut self.out, kind::PING, flag::ACK, 0, frame.payload);
        } else if frame.payload == FAREWELL {
            if self.ending == Ending::Told {
                self.ending = Ending::Heard;
                frame::put_goaway(&mut self.out, self.peers.last, Reason::None as u32);
            }
        } else if let Some(bridge) = &mut self.bridge {
            bridge.forward(frame);
        }
        Ok(())
    }

    fn make_room(&mut self, frame: Frame<'_>) -> Result<(), Reason> {
        let (stream, more) = (frame.head.stream, frame.increment()?);
        if stream == 0 {
            self.windows.out += more;
            if more == 0 || self.windows.out > MOST_ROOM {
                return Err(if more == 0 { Reason::Protocol } else { Reason::FlowControl });
            }
            self.send_on();
            return Ok(());
        }
        if self.peers.is_idle(stream) {
            return Err(Reason::Protocol);
        }
        if let Some(bridge) = self.bridge.as_mut().filter(|bridge| bridge.has(stream)) {
            bridge.forward(frame);
            return Ok(());
        }
        let initial = self.windows.initial;
        let pending = self.pending.iter_mut().map(|one| &mut one.call);
        let calls = pending.chain(self.delayed.iter_mut().map(|one| &mut one.call));
        let calls = calls.map(|call| (call.stream, &mut call.extra, initial));
        let sending = self.sending.iter_mut().map(|one| (one.stream, &mut one.window, 0));
        let mut all = calls.chain(sending);
        let Some((_, window, beside)) = all.find(|(open, ..)| *open == stream) else {
            return Ok(());
        };
        *window += more;
        let is_too_much = *window + beside > MOST_ROOM;
        drop(all);
        if more == 0 || is_too_much {
            let reason = if more == 0 { Reason::Protocol } else { Reason::FlowControl };
            self.drop_stream(stream);
            frame::put_reset(&mut self.out, stream, reason);
            return Ok(());
        }
        self.send_on();
        Ok(())
    }
}

/// How many bytes of messages that are not all here are kept here.
const MOST_HELD: usize = 16 << 10;

/// How much room for headers is kept.
const KEPT: usize = 1024;

/// The largest window there is.
const MOST_ROOM: i64 = frame::STREAM as i64;

/// How many bytes of headers a client remembers that says nothing else.
const TABLE: u32 = 4096;
