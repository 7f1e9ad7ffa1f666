//! What is left to hyper: streams, long messages, and whatever is not gRPC.
//!
//! Hyper has a connection of its own, within this process. What comes on streams that are left to it
//! goes there, and what it says goes out, frame by frame and under the same numbers. Headers are
//! packed anew on their way in, because how they were packed depends on those of other streams. On
//! their way out they stay as they are: what is [sent here](super::outgoing) has the client remember
//! nothing, so that it remembers what hyper has sent, and only that.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};

use super::frame::{self, Frame, Head, Reason, flag, kind};
use super::outgoing::{DEFAULT, Windows};
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
    into: BytesMut,
    from: BytesMut,
    /// The streams that are open.
    streams: Vec<u32>,
    /// What hyper allows to be sent that was allowed already.
    known: u32,
    /// Answers that the client has no room for: their streams, and frames as they are. No more than
    /// a window of them, because hyper is told of room only when they go.
    waiting: VecDeque<(u32, Box<[u8]>)>,
}

impl Bridge {
    pub(super) fn new(start: Option<Start>, settings: &[Option<u32>]) -> Self {
        let (near, far) = tokio::io::duplex(ROOM);
        let mut into = PREFACE.to_vec();
        let all: Vec<u8> = (0_u16..)
            .zip(settings)
            .filter_map(|(name, value)| Some((name, (*value)?)))
            .flat_map(|(name, value)| {
                let ([n0, n1], [v0, v1, v2, v3]) = (name.to_be_bytes(), value.to_be_bytes());
                [n0, n1, v0, v1, v2, v3]
            })
            .collect();
        frame::put(&mut into, kind::SETTINGS, 0, 0, &all);
        Self {
            near,
            serving: start.map(|start| start(far)),
            into: BytesMut::from(&*into),
            from: BytesMut::new(),
            streams: Vec::new(),
            known: CONNECTION_BYTES - DEFAULT,
            waiting: VecDeque::new(),
        }
    }

    /// How many streams are open.
    pub(super) const fn open(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn is_used(&self) -> bool {
        !self.streams.is_empty() || !self.waiting.is_empty()
    }

    pub(super) fn has(&self, stream: u32) -> bool {
        self.streams.contains(&stream)
    }

    /// A stream is over: what is left of it is not sent.
    pub(super) fn forget(&mut self, stream: u32) {
        self.streams.retain(|open| *open != stream);
        let mut free = 0;
        self.waiting.retain(|(of, bytes)| {
            if *of == stream {
                free += data_length(bytes);
            }
            *of != stream
        });
        self.make_room(free);
    }

    /// Leaves a stream to hyper, with headers that refer to no others.
    pub(super) fn open_stream(&mut self, stream: u32, is_last: bool, block: &[u8]) {
        self.streams.push(stream);
        self.go_on(stream, is_last, block);
    }

    /// Hands on headers.
    pub(super) fn go_on(&mut self, stream: u32, is_last: bool, block: &[u8]) {
        let mut frames = Vec::new();
        frame::put_block(&mut frames, stream, if is_last { flag::END_STREAM } else { 0 }, block);
        self.into.extend_from_slice(&frames);
    }

    /// Hands on a part of a body that came before. What it took of the window is free again.
    pub(super) fn continue_with(&mut self, stream: u32, body: &[u8]) {
        self.known += body.len() as u32;
        let mut frames = Vec::new();
        for piece in body.chunks(frame::LONGEST) {
            frame::put(&mut frames, kind::DATA, 0, stream, piece);
        }
        self.into.extend_from_slice(&frames);
    }

    /// Hands on a frame as it is.
    pub(super) fn forward(&mut self, frame: Frame<'_>) {
        self.into.extend_from_slice(frame.bytes);
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
            let passed = self.pass_on(out, windows) || self.send_waiting(out, windows);
            if is_over {
                self.serving = None;
                return Ok(Poll::Ready(()));
            }
            if !wrote && !read && !passed {
                return Ok(Poll::Pending);
            }
        }
    }

    /// Hyper is gone, and so are its streams.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        for stream in self.streams.drain(..) {
            frame::put_reset(out, stream, Reason::RefusedStream);
        }
    }

    fn poll_in(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut any = false;
        while !self.into.is_empty() {
            match Pin::new(&mut self.near).poll_write(context, &self.into)? {
                Poll::Ready(wrote) => self.into.advance(wrote),
                Poll::Pending => return Ok(any),
            }
            any = true;
        }
        self.into = BytesMut::new();
        Ok(any)
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
    fn pass_on(&mut self, out: &mut Vec<u8>, windows: &mut Windows) -> bool {
        let mut from = mem::take(&mut self.from);
        let mut any = false;
        while let Some(frame) = Frame::read(&from) {
            let (head, mut length) = (frame.head, frame.bytes.len());
            match head.kind {
                kind::SETTINGS if !head.has(flag::ACK) => self.settle(),
                // It leaves, or it knows what it wanted to know.
                kind::SETTINGS | kind::GOAWAY => {}
                kind::PING if head.has(flag::ACK) => {}
                kind::WINDOW_UPDATE if head.stream == 0 => self.allow(frame, out, windows),
                kind::DATA => self.pass(head, frame.bytes, out, windows),
                kind::HEADERS => {
                    // All of them or none: nothing may come in between.
                    let Some(all) = block_length(&from) else { break };
                    length = all;
                    self.pass(head, &from[..all], out, windows);
                }
                _ => out.extend_from_slice(frame.bytes),
            }
            if head.kind == kind::RST_STREAM {
                self.forget(head.stream);
            }
            from.advance(length);
            any = true;
        }
        // What waits for nothing takes no room.
        self.from = if from.is_empty() { BytesMut::new() } else { from };
        any
    }

    /// Passes on a part of an answer, or keeps it until there is room.
    fn pass(&mut self, head: Head, bytes: &[u8], out: &mut Vec<u8>, windows: &mut Windows) {
        let length = if head.kind == kind::DATA { head.length } else { 0 };
        let waits = self.waiting.iter().any(|(stream, _)| *stream == head.stream);
        if waits || length as i64 > windows.out {
            self.waiting.push_back((head.stream, bytes.into()));
        } else {
            windows.out -= length as i64;
            out.extend_from_slice(bytes);
            self.make_room(length);
        }
        if head.has(flag::END_STREAM) {
            self.streams.retain(|open| *open != head.stream);
        }
    }

    /// Passes on what has waited for room. Whether there was any.
    fn send_waiting(&mut self, out: &mut Vec<u8>, windows: &mut Windows) -> bool {
        let mut any = false;
        while let Some((_, bytes)) = self.waiting.front()
            && data_length(bytes) as i64 <= windows.out
            && let Some((_, bytes)) = self.waiting.pop_front()
        {
            let length = data_length(&bytes);
            windows.out -= length as i64;
            out.extend_from_slice(&bytes);
            self.make_room(length);
            any = true;
        }
        any
    }

    /// Lets hyper send more.
    fn make_room(&mut self, bytes: usize) {
        if bytes > 0 {
            let mut frame = Vec::new();
            frame::put_increment(&mut frame, 0, bytes as u32);
            self.into.extend_from_slice(&frame);
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

    /// Agrees to what hyper wants, which the client has heard from us.
    fn settle(&mut self) {
        let mut frame = Vec::new();
        frame::put(&mut frame, kind::SETTINGS, flag::ACK, 0, &[]);
        self.into.extend_from_slice(&frame);
    }
}

/// How much of a window a frame takes.
fn data_length(bytes: &[u8]) -> usize {
    Head::read(bytes).filter(|head| head.kind == kind::DATA).map_or(0, |head| head.length)
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
const ROOM: usize = 64 << 10;
