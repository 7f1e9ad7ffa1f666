//! A short way for calls of gRPC over HTTP/2.
//!
//! Hyper can do everything that HTTP/2 has: each call is a task there, its body comes through a
//! channel, and its headers go through maps. A call with one short message and one answer needs none
//! of that. It is answered here, straight from the bytes that were read into the bytes that are
//! written. Whatever is not as plain as that, stream by stream, is [left to hyper](bridge).
//!
//! ```text
//!   +-> write what is left ------ the client does not read: wait, and take nothing new
//!   |      |
//!   |   what hyper has said, and answers that had to wait
//!   |      |
//!   |   read once --------------- nothing there: wait
//!   |      |
//!   +-- answer all calls that are there
//! ```
//!
//! ```text
//!   frame      what HTTP/2 consists of
//!   hpack      headers as it packs them
//!   request    which calls are answered here
//!   incoming   what comes
//!   outgoing   what goes, as far as the client has room for it
//!   bridge     what is left to hyper
//! ```

mod bridge;
mod frame;
mod hpack;
mod incoming;
mod outgoing;
mod request;

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tollgate::{Clock as _, Sleep, SystemClock, Timer as _, Wait};

use crate::connection::{Limits, Peer};
use crate::held::Held;
use crate::service::Turn;
use crate::web::begun::{Begun, PREFACE};
use crate::web::silence::{OneRequest, Owed, Requests};
use bridge::{Bridge, Start};
use frame::{Frame, Head, Reason};
use hpack::Headers;
use incoming::Peers;
use outgoing::{Sending, Windows};
use request::{Call, Pending};

/// Calls with one message and one answer.
pub(crate) trait Calls: Send + Sync {
    /// The number of the method at a path, if calls of it are answered at once.
    fn method(&self, path: &[u8]) -> Option<u8>;

    /// Where the method of this number is.
    fn path(&self, method: u8) -> &'static str;

    /// Answers a call, of which all is here.
    fn call(&self, method: u8, body: &[u8], peer: &Peer, turn: Turn) -> Called;
}

/// What a call is answered.
pub(crate) enum Called {
    /// A message as calls carry it, and for how long it is to be kept back.
    Message(Bytes, Duration),
    /// A store has to be asked first. Nothing was decided.
    Wait(Wait),
    /// The call ends with this code of gRPC. What is said about it is fit for a header.
    Refusal(u16, String),
}

/// A connection.
pub(super) struct Http2<'c, T> {
    calls: &'c dyn Calls,
    requests: &'c Requests,
    clock: &'c SystemClock,
    peer: &'c Peer,
    limits: &'c Limits,
    begun: Begun<T>,
    /// What is to be written, and how much of it was.
    out: Vec<u8>,
    written: usize,
    headers: Headers,
    /// Of the request whose headers are being read, as hyper is to have them.
    block: Vec<u8>,
    peers: Peers,
    windows: Windows,
    /// Calls whose messages are not all here.
    pending: Vec<Pending>,
    /// When those up to this one have been here for a while.
    lingering: Option<(Sleep, u32)>,
    /// Until when the client has to take something, if it has to.
    stuck: Option<Sleep>,
    /// Answers that wait for their time, and those that wait for room.
    delayed: Vec<Delayed>,
    sending: Vec<Sending>,
    start: Option<Start>,
    bridge: Option<Box<Bridge>>,
    ending: Ending,
    is_over: bool,
}

/// An answer that is kept back.
struct Delayed {
    call: Call,
    until: Until,
    _one: OneRequest,
}

/// What an answer is kept back for.
enum Until {
    /// A while.
    Over(Sleep, Bytes),
    /// A store is asked, and then the call is made, at this turn.
    Fetched { fetch: Sleep, turn: Turn, body: Vec<u8> },
}

impl Until {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Over(future, _) | Self::Fetched { fetch: future, .. } => {
                future.as_mut().poll(context)
            }
        }
    }
}

/// How far the end of a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It goes on.
    No,
    /// The client was told. What it has sent before it heard of that is answered.
    Told,
    /// It has heard. Nothing that comes from now on is answered.
    Heard,
    /// It sends nothing more.
    Silent,
}

/// How a connection is served.
pub(super) struct Serving<'c> {
    pub(super) calls: &'c dyn Calls,
    pub(super) requests: &'c Requests,
    pub(super) clock: &'c SystemClock,
    pub(super) peer: &'c Peer,
    pub(super) limits: &'c Limits,
    /// Begins to leave streams to hyper.
    pub(super) start: Start,
}

impl<'c, T: AsyncRead + AsyncWrite + Unpin> Http2<'c, T> {
    /// A connection whose preface was read and is still there.
    pub(super) fn new(mut begun: Begun<T>, serving: Serving<'c>) -> Self {
        let Serving { calls, requests, clock, peer, limits, start } = serving;
        begun.unread_mut().advance(PREFACE.len());
        let mut out = Vec::new();
        outgoing::greet(&mut out, limits);
        Self {
            calls,
            requests,
            clock,
            peer,
            limits,
            begun,
            out,
            written: 0,
            headers: Headers::default(),
            block: Vec::new(),
            peers: Peers::default(),
            windows: Windows::default(),
            pending: Vec::new(),
            lingering: None,
            stuck: None,
            delayed: Vec::new(),
            sending: Vec::new(),
            start: Some(start),
            bridge: None,
            ending: Ending::No,
            is_over: false,
        }
    }

    /// Serves until the client goes or breaks the protocol, or is told to go and has its answers.
    pub(super) async fn run(mut self) {
        // An error means that the client has gone: there is nobody to tell.
        if poll_fn(|context| self.poll(context)).await.is_ok() {
            let _ = self.begun.shutdown().await;
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut read = 0;
        loop {
            ready!(self.poll_flush(context))?;
            if self.is_over {
                return Poll::Ready(Ok(()));
            }
            self.poll_delayed(context);
            self.poll_bridge(context)?;
            self.end_if_told();
            if !self.out.is_empty() {
                continue;
            }
            if self.is_done() {
                return Poll::Ready(Ok(()));
            }
            if self.take_frames() {
                continue;
            }
            if read >= AT_ONCE {
                // Others come first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.ending == Ending::Silent {
                return Poll::Pending;
            }
            match self.begun.poll_more(ROOM, context)? {
                Poll::Ready(0) => self.ending = Ending::Silent,
                Poll::Ready(more) => read += more,
                Poll::Pending => {
                    self.note_what_is_owed();
                    if self.poll_lingering(context) {
                        continue;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Takes frames that are here, until there is enough to write. Whether there was any.
    fn take_frames(&mut self) -> bool {
        // Not in `self` meanwhile: what is done with them changes the rest.
        let mut bytes = mem::take(self.begun.unread_mut());
        let mut taken = 0;
        while self.out.len() < AT_ONCE && !self.is_over {
            let rest = &bytes[taken..];
            let length = Head::read(rest).map_or(0, |head| head.length);
            let result = match Frame::read(rest) {
                _ if length > frame::LONGEST => Err(Reason::FrameSize),
                None => break,
                Some(frame) => {
                    taken += frame.bytes.len();
                    self.take(frame)
                }
            };
            if let Err(reason) = result {
                frame::put_goaway(&mut self.out, self.peers.last, reason as u32);
                self.is_over = true;
            }
        }
        bytes.advance(taken);
        *self.begun.unread_mut() = bytes;
        taken > 0 || self.is_over
    }

    /// Writes what is there.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let left = &self.out[self.written..];
            match Pin::new(&mut self.begun).poll_write(context, left)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(wrote) => self.written += wrote,
                Poll::Pending => {
                    // Not only where nothing else is under way: nobody else would notice.
                    let (clock, patience) = (self.clock, self.limits.patience);
                    let stuck = self.stuck.get_or_insert_with(|| clock.sleep(patience));
                    ready!(stuck.as_mut().poll(context));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            self.stuck = None;
        }
        self.written = 0;
        self.out.clear();
        // One long answer is not remembered for ever.
        self.out.shrink_to(ROOM);
        Poll::Ready(Ok(()))
    }

    /// Sends answers whose time has come.
    fn poll_delayed(&mut self, context: &mut Context<'_>) {
        let mut place = 0;
        while let Some(delayed) = self.delayed.get_mut(place) {
            if delayed.until.poll(context).is_pending() {
                place += 1;
                continue;
            }
            let Delayed { call, until, .. } = self.delayed.swap_remove(place);
            match until {
                Until::Over(_, message) => self.send(call, message),
                Until::Fetched { turn, body, .. } => self.answer_at(call, &body, turn),
            }
        }
    }

    fn poll_bridge(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(bridge) = &mut self.bridge else { return Ok(()) };
        if bridge.poll(context, &mut self.out, &mut self.windows)?.is_ready() {
            // Only a client that breaks the protocol makes it end, or one that is not heard of.
            frame::put_goaway(&mut self.out, self.peers.last, bridge.reason());
            self.is_over = true;
        }
        Ok(())
    }

    /// Leaves calls to hyper whose messages do not come: it knows for how long to wait. Whether
    /// there were any.
    fn poll_lingering(&mut self, context: &mut Context<'_>) -> bool {
        if self.pending.is_empty() {
            self.lingering = None;
            return false;
        }
        let (clock, last) = (self.clock, self.peers.last);
        let (sleep, until) = self.lingering.get_or_insert_with(|| (clock.sleep(LINGERING), last));
        if sleep.as_mut().poll(context).is_pending() {
            return false;
        }
        let until = *until;
        self.lingering = None;
        for old in self.pending.extract_if(.., |one| one.call.stream <= until).collect::<Vec<_>>() {
            self.hand_over(old);
        }
        true
    }

    /// What the client has to do next, if it is waited for.
    fn note_what_is_owed(&mut self) {
        let is_begun = !self.begun.unread().is_empty() || self.peers.is_in_headers();
        self.requests.owes(match () {
            () if is_begun => Owed::Rest,
            () if !self.sending.is_empty() => Owed::Taking,
            () => Owed::Nothing,
        });
        if self.begun.unread().is_empty() {
            // A connection that waits holds no buffers.
            *self.begun.unread_mut() = BytesMut::new();
            self.out = Vec::new();
        }
    }

    /// Tells the client to go, if it is to.
    fn end_if_told(&mut self) {
        if self.ending == Ending::No && self.requests.is_ending() {
            self.ending = Ending::Told;
            frame::put_goaway(&mut self.out, frame::STREAM, Reason::None as u32);
            frame::put(&mut self.out, frame::kind::PING, 0, 0, &FAREWELL);
        }
    }

    /// Whether there is nothing left to do.
    fn is_done(&self) -> bool {
        let is_bridged = || self.bridge.as_ref().is_some_and(|bridge| bridge.is_used());
        match self.ending {
            Ending::No | Ending::Told => false,
            Ending::Heard => {
                self.pending.is_empty()
                    && self.delayed.is_empty()
                    && self.sending.is_empty()
                    && !is_bridged()
            }
            // Half a message stays half a message, and nobody makes room.
            Ending::Silent => self.delayed.is_empty() && !self.has_frame(),
        }
    }

    fn has_frame(&self) -> bool {
        Frame::read(self.begun.unread()).is_some()
    }

    /// How many streams are open.
    fn open(&self) -> usize {
        let bridged = self.bridge.as_ref().map_or(0, |bridge| bridge.open());
        self.pending.len() + self.delayed.len() + self.sending.len() + bridged
    }

    /// Leaves a call to hyper of which a part is here. What that took of the windows is still taken.
    fn hand_over(&mut self, pending: Pending) {
        let mut block = mem::take(&mut self.block);
        block.clear();
        let Pending { call, body } = pending;
        let left = call.deadline.map(|deadline| deadline.left(self.clock.now()));
        request::put(&mut block, self.calls.path(call.method), left.as_deref());
        let bridge = self.bridge();
        bridge.open_stream(call.stream, false, &block);
        bridge.continue_with(call.stream, &body, call.extra);
        self.block = block;
    }

    /// What is left to hyper goes there.
    fn bridge(&mut self) -> &mut Bridge {
        let (start, initial) = (&mut self.start, self.windows.initial);
        let budget = self.begun.budget();
        self.bridge.get_or_insert_with(|| {
            Box::new(Bridge::new(start.take(), initial, Held::nothing(Arc::clone(budget))))
        })
    }
}

/// How much is read at once, and how much room is kept for what is written.
const ROOM: usize = 16 << 10;

/// After so much it is the turn of others, or time to write.
const AT_ONCE: usize = 64 << 10;

/// How long half a message stays here.
const LINGERING: Duration = Duration::from_millis(100);

/// What a client says back that has heard that it is to go.
const FAREWELL: [u8; 8] = *b"farewell";

#[cfg(test)]
mod tests;
