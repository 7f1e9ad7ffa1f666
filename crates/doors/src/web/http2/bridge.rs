//! What is left to hyper: streams, long messages, and whatever is not gRPC.
//!
//! Hyper has a connection of its own, within this process. What comes on streams that are left to it
//! goes there, and what it says goes out, frame by frame. Streams have other numbers there: hyper
//! wants them in order, and a call that is left to it late would come out of it. Headers are packed
//! anew on their way in, because how they were packed depends on those of other streams. Hyper is
//! told to have nothing remembered, so that headers on their way out may wait, or be left out.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};

use super::frame::{self, Frame, Head, Reason, flag, kind};
use super::outgoing::{DEFAULT, Windows};
use crate::held::Held;
use crate::web::CONNECTION_BYTES;
use crate::web::begun::PREFACE;

/// Begins to serve the other end of a connection within this process.
pub(in crate::web) type Start = Box<dyn FnOnce(DuplexStream) -> Serving + Send>;

type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection within this process.
pub(super) struct Bridge {
    near: DuplexStream,
    serving: Option<Serving>,
    /// What is to go in, and what has come out.
    into: Vec<u8>,
    from: BytesMut,
    /// The streams that are open.
    streams: Vec<Stream>,
    next: u32,
    /// What hyper allows to be sent that was allowed already.
    known: u32,
    /// What the client has no room for yet: the bytes of frames that go as they are. No more than a
    /// window of them, because hyper is told of room only when they go.
    waiting: VecDeque<(u32, Box<[u8]>)>,
    /// How many bytes that is.
    held: Held,
    bytes: usize,
    /// Whether hyper has agreed to what it was told first.
    is_agreed: bool,
    /// Why it has ended.
    reason: u32,
}

/// A stream here and there.
struct Stream {
    here: u32,
    there: u32,
    /// How many of its frames wait.
    waiting: u32,
}

impl Bridge {
    pub(super) fn new(start: Option<Start>, initial: i64, held: Held) -> Self {
        let (near, far) = tokio::io::duplex(ROOM);
        let mut bridge = Self {
            near,
            serving: start.map(|start| start(far)),
            into: PREFACE.to_vec(),
            from: BytesMut::new(),
            streams: Vec::new(),
            next: 1,
            known: CONNECTION_BYTES - DEFAULT,
            waiting: VecDeque::new(),
            held,
            bytes: 0,
            is_agreed: false,
            reason: Reason::Internal as u32,
        };
        // Nothing is to be remembered.
        bridge.put_settings(&[(1, 0), (4, initial as u32)]);
        bridge
    }

    /// How many streams are open.
    pub(super) const fn open(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn is_used(&self) -> bool {
        !self.streams.is_empty() || !self.waiting.is_empty()
    }

    pub(super) fn has(&self, stream: u32) -> bool {
        self.streams.iter().any(|one| one.here == stream)
    }

    /// Why hyper has ended, as HTTP/2 numbers it.
    pub(super) const fn reason(&self) -> u32 {
        self.reason
    }

    /// A stream is over: what is left of it is not sent.
    pub(super) fn forget(&mut self, stream: u32) {
        self.streams.retain(|one| one.here != stream);
        let (mut free, mut bytes) = (0, 0);
        self.waiting.retain(|(of, frame)| {
            if *of == stream {
                free += data_length(frame);
                bytes += frame.len();
            }
            *of != stream
        });
        self.bytes -= bytes;
        self.make_room(free);
    }

    /// What the client takes of each stream at first.
    pub(super) fn set(&mut self, initial: i64) {
        self.put_settings(&[(4, initial as u32)]);
    }

    fn put_settings(&mut self, settings: &[(u16, u32)]) {
        frame::put_head(&mut self.into, 6 * settings.len(), kind::SETTINGS, 0, 0);
        for (name, value) in settings {
            self.into.extend_from_slice(&name.to_be_bytes());
            self.into.extend_from_slice(&value.to_be_bytes());
        }
    }

    /// Leaves a stream to hyper, with headers that refer to no others.
    pub(super) fn open_stream(&mut self, stream: u32, is_last: bool, block: &[u8]) {
        self.streams.push(Stream { here: stream, there: self.next, waiting: 0 });
        self.next += 2;
        self.go_on(stream, is_last, block);
    }

    /// Hands on headers.
    pub(super) fn go_on(&mut self, stream: u32, is_last: bool, block: &[u8]) {
        let (there, flags) = (self.there(stream), if is_last { flag::END_STREAM } else { 0 });
        frame::put_block(&mut self.into, there, flags, block);
    }

    /// Hands on a part of a body.
    pub(super) fn go_on_with(&mut self, stream: u32, is_last: bool, body: &[u8]) {
        let (there, flags) = (self.there(stream), if is_last { flag::END_STREAM } else { 0 });
        frame::put(&mut self.into, kind::DATA, flags, there, body);
    }

    /// Hands on what came before, and how much more room the client has for the answer.
    pub(super) fn continue_with(&mut self, stream: u32, body: &[u8], extra: i64) {
        for piece in body.chunks(frame::LONGEST) {
            self.go_on_with(stream, false, piece);
        }
        if let Ok(more @ 1..) = u32::try_from(extra) {
            let there = self.there(stream);
            frame::put_increment(&mut self.into, there, more);
        }
    }

    /// Hands on a frame as it is, but for the number of its stream.
    pub(super) fn forward(&mut self, frame: Frame<'_>) {
        let Head { kind, flags, stream, .. } = frame.head;
        let there = self.there(stream);
        frame::put(&mut self.into, kind, flags, there, frame.payload);
    }

    /// The number that a stream has there.
    fn there(&self, stream: u32) -> u32 {
        self.streams.iter().find(|one| one.here == stream).map_or(0, |one| one.there)
    }

    /// Goes on, and writes what hyper has said to `out`. Ready when hyper has ended.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
        windows: &mut Windows,
    ) -> io::Result<Poll<()>> {
        loop {
            let wrote = self.poll_in(context)?;
            let is_over = match &mut self.serving {
                Some(serving) => serving.as_mut().poll(context).is_ready(),
                None => return Ok(Poll::Ready(())),
            };
            let read = self.poll_out(context)?;
            let passed = self.pass_on(out, windows)? | self.send_waiting(out, windows);
            if is_over {
                self.serving = None;
                return Ok(Poll::Ready(()));
            }
            if !wrote && !read && !passed {
                return Ok(Poll::Pending);
            }
        }
    }

    fn poll_in(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut wrote = 0;
        while wrote < self.into.len() {
            match Pin::new(&mut self.near).poll_write(context, &self.into[wrote..])? {
                Poll::Ready(some) => wrote += some,
                Poll::Pending => break,
            }
        }
        self.into.drain(..wrote);
        if self.into.is_empty() {
            self.into = Vec::new();
        }
        Ok(wrote > 0)
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut room = [0; 4096];
        let mut some = ReadBuf::new(&mut room);
        match Pin::new(&mut self.near).poll_read(context, &mut some)? {
            Poll::Ready(()) => self.from.extend_from_slice(some.filled()),
            Poll::Pending => return Ok(false),
        }
        Ok(!some.filled().is_empty())
    }

    /// Passes on frames. Whether there was any.
    fn pass_on(&mut self, out: &mut Vec<u8>, windows: &mut Windows) -> io::Result<bool> {
        let mut from = mem::take(&mut self.from);
        let mut any = false;
        while let Some(frame) = Frame::read(&from) {
            let (head, mut length) = (frame.head, frame.bytes.len());
            match head.kind {
                kind::SETTINGS if head.has(flag::ACK) => self.agree(out),
                kind::SETTINGS => frame::put(&mut self.into, kind::SETTINGS, flag::ACK, 0, &[]),
                kind::GOAWAY => self.leave(frame.payload),
                // It knows what it wanted to know.
                kind::PING if head.has(flag::ACK) => {}
                kind::WINDOW_UPDATE if head.stream == 0 => self.allow(frame, out, windows),
                kind::PING => out.extend_from_slice(frame.bytes),
                kind::HEADERS => {
                    // All of them or none: nothing may come in between.
                    let Some(all) = block_length(&from) else { break };
                    length = all;
                    self.pass(head, &from[..all], out, windows);
                }
                _ => self.pass(head, frame.bytes, out, windows),
            }
            from.advance(length);
            any = true;
        }
        // What waits for nothing takes no room.
        self.from = if from.is_empty() { BytesMut::new() } else { from };
        self.held.hold(self.bytes)?;
        Ok(any)
    }

    /// Passes on what is said on a stream, or keeps it until there is room.
    fn pass(&mut self, head: Head, bytes: &[u8], out: &mut Vec<u8>, windows: &mut Windows) {
        // What is said after the end of a stream is that it has ended.
        let Some(place) = self.streams.iter().position(|one| one.there == head.stream) else {
            return;
        };
        let (here, waits) = (self.streams[place].here, self.streams[place].waiting > 0);
        let bytes = renumbered(bytes, here);
        let length = data_length(&bytes);
        let is_reset = head.kind == kind::RST_STREAM;
        if is_reset && bytes.ends_with(&[0; 4]) && waits {
            // All is well, and behind the rest.
        } else if is_reset {
            self.forget(here);
            return out.extend_from_slice(&bytes);
        } else if head.kind == kind::WINDOW_UPDATE {
            return out.extend_from_slice(&bytes);
        } else if !waits && length as i64 <= windows.out {
            windows.out -= length as i64;
            self.make_room(length);
            out.extend_from_slice(&bytes);
            if head.has(flag::END_STREAM) {
                self.streams.swap_remove(place);
            }
            return;
        }
        self.streams[place].waiting += 1;
        self.bytes += bytes.len();
        self.waiting.push_back((here, bytes));
    }

    /// Passes on what has waited for room. Whether there was any.
    fn send_waiting(&mut self, out: &mut Vec<u8>, windows: &mut Windows) -> bool {
        let mut any = false;
        while let Some((_, bytes)) = self.waiting.front()
            && data_length(bytes) as i64 <= windows.out
            && let Some((stream, bytes)) = self.waiting.pop_front()
        {
            let length = data_length(&bytes);
            windows.out -= length as i64;
            self.make_room(length);
            self.bytes -= bytes.len();
            out.extend_from_slice(&bytes);
            any = true;
            if let Some(place) = self.streams.iter().position(|one| one.here == stream) {
                self.streams[place].waiting -= 1;
                if ends(&bytes) && self.streams[place].waiting == 0 {
                    self.streams.swap_remove(place);
                }
            }
        }
        any
    }

    /// Hyper has agreed to what it was told: first here, and then by the client, who is told so when
    /// what was said before has gone.
    fn agree(&mut self, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        frame::put(&mut bytes, kind::SETTINGS, flag::ACK, 0, &[]);
        match (mem::replace(&mut self.is_agreed, true), self.waiting.is_empty()) {
            (false, _) => {}
            (true, true) => out.extend_from_slice(&bytes),
            (true, false) => {
                self.bytes += bytes.len();
                self.waiting.push_back((0, bytes.into()));
            }
        }
    }

    /// Hyper leaves, and says why.
    fn leave(&mut self, payload: &[u8]) {
        if let Some([_, _, _, _, code @ ..]) = payload.first_chunk::<8>() {
            self.reason = u32::from_be_bytes(*code);
        }
    }

    /// Lets hyper send more.
    fn make_room(&mut self, bytes: usize) {
        if bytes > 0 {
            frame::put_increment(&mut self.into, 0, bytes as u32);
        }
    }

    /// Hyper lets the client send more.
    fn allow(&mut self, frame: Frame<'_>, out: &mut Vec<u8>, windows: &mut Windows) {
        let more = frame.increment().map_or(0, |more| more as u32);
        let known = more.min(self.known);
        self.known -= known;
        if more > known {
            windows.allow(more - known, out);
        }
    }
}

/// How much of a window a frame takes.
fn data_length(bytes: &[u8]) -> usize {
    Head::read(bytes).filter(|head| head.kind == kind::DATA).map_or(0, |head| head.length)
}

/// Whether a stream ends with this frame.
fn ends(bytes: &[u8]) -> bool {
    Head::read(bytes).is_some_and(|head| match head.kind {
        kind::DATA | kind::HEADERS => head.has(flag::END_STREAM),
        kind => kind == kind::RST_STREAM,
    })
}

/// The same frames of another stream.
fn renumbered(bytes: &[u8], stream: u32) -> Box<[u8]> {
    let mut bytes: Box<[u8]> = bytes.into();
    let mut begin = 0;
    while let Some(head) = Head::read(&bytes[begin..]) {
        bytes[begin + 5..begin + 9].copy_from_slice(&stream.to_be_bytes());
        begin += Head::BYTES + head.length;
    }
    bytes
}

/// How long a block of headers is, in all of its frames, if all of them are here.
fn block_length(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    loop {
        let frame = Frame::read(&bytes[length..])?;
        length += frame.bytes.len();
        if frame.head.has(flag::END_HEADERS) {
            return Some(length);
        }
    }
}

/// How much is under way between here and there.
const ROOM: usize = 16 << 10;
