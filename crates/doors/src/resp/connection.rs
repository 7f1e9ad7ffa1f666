//! A connection from its first byte to its last.
//!
//! ```text
//!   +-> write what is left ------ the client does not read: wait, and take nothing new
//!   |      |
//!   |   read once --------------- nothing there: wait
//!   |      |
//!   |   decide all that is there
//!   |      |
//!   +-- write once
//! ```
//!
//! A connection that waits holds no buffers: bytes are read into one that belongs to the thread, and
//! answers are written from another. Only what is left over, the beginning of a command or answers
//! that a client does not read, is kept with the connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use tollgate::Sleep;

use crate::connection::{Peer, Stream};
use crate::door::Name;
use crate::drain::Draining;
use crate::held::{Held, OverBudget, SHORT};
use crate::resp::Resp;
use crate::resp::patience::{Patience, Waiting};
use crate::resp::pipeline::{self, Answered, Next};
use crate::resp::session::Session;
use crate::service;

/// Serves a client until it goes, breaks the protocol, takes too long, or nobody is to be served any
/// more.
pub(super) async fn serve(door: Arc<Resp>, stream: Stream, peer: Peer, mut draining: Draining) {
    let mut connection = Connection::new(door, stream, peer);
    let (mut drains, mut drained) = (pin!(draining.begin()), false);
    poll_fn(|context| {
        let turn = match connection.poll(context) {
            // An error means that the client has gone: there is nobody to tell.
            Poll::Ready(Ok(Turn::Last) | Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(turn)) => turn,
            Poll::Pending => Turn::Waits(connection.waiting()),
        };
        drained = drained || drains.as_mut().poll(context).is_ready();
        match turn {
            // Whatever was received is answered, unless the client does not read.
            Turn::Waits(Waiting::Answers) => {}
            _ if drained => return Poll::Ready(()),
            _ => {}
        }
        let waiting = match turn {
            Turn::Waits(waiting) => waiting,
            _ => {
                // Others come first.
                context.waker().wake_by_ref();
                match connection.waiting() {
                    // Whoever keeps us busy without the password has no longer than others.
                    waiting @ Waiting::Password => waiting,
                    _ => return Poll::Pending,
                }
            }
        };
        let clock = connection.door.service.clock();
        connection.patience.poll(waiting, clock, context)
    })
    .await;
    // Whether the client hears of it or not: over TLS there is something to say, which one that does
    // not read will not hear.
    let patience = connection.door.limits.patience;
    let _ = tokio::time::timeout(patience, connection.stream.shutdown()).await;
    if matches!(connection.next, Next::End) {
        // Few connections end like this, and none should be larger for it.
        let heard = Box::pin(hear_out(connection.stream));
        let _ = tokio::time::timeout(patience.min(MOST_HEARD), heard).await;
    }
}

/// Takes what a client still sends, so that it hears why it has to go: where bytes are left unread,
/// the network breaks the connection off and drops answers that are on their way.
async fn hear_out(mut stream: Stream) {
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

/// Tells a client that there are too many of them.
pub(super) async fn refuse(mut stream: Stream) {
    // Whoever does not take it at once goes without.
    let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
    let _ = stream.shutdown().await;
}

struct Connection {
    stream: Stream,
    door: Arc<Resp>,
    session: Session,
    /// What was read and not answered.
    input: Vec<u8>,
    next: Next,
    /// Answers that the client has not taken, and how many bytes of them it has.
    output: Vec<u8>,
    written: usize,
    patience: Patience,
    /// What is asked of a store, before it goes on.
    fetching: Option<Sleep>,
    turn: service::Turn,
    /// Of what was read last, and is not answered.
    together: service::Together,
    /// For what is long of all that.
    held: Held,
}

/// What a turn of a connection has come to.
enum Turn {
    /// There is more to do, but others come first.
    More,
    Waits(Waiting),
    Last,
}

/// What all connections of a thread use in turn.
struct Room {
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static ROOM: RefCell<Room> =
        const { RefCell::new(Room { input: Vec::new(), output: Vec::new() }) };
}

impl Connection {
    fn new(door: Arc<Resp>, stream: Stream, peer: Peer) -> Self {
        Self {
            stream,
            session: Session::new(peer, door.password.as_ref()),
            input: Vec::new(),
            next: Next::Read { needs: 1 },
            output: Vec::new(),
            written: 0,
            patience: Patience::new(&door.limits),
            fetching: None,
            turn: service::Turn::First,
            together: service::Together::default(),
            held: Held::nothing(Arc::clone(door.service.held())),
            door,
        }
    }

    /// Goes on until there is nothing to do, or it is the turn of others.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Turn>> {
        ROOM.with_borrow_mut(|room| {
            loop {
                ready!(self.poll_flush(context))?;
                if let Some(fetching) = &mut self.fetching {
                    ready!(fetching.as_mut().poll(context));
                    self.fetching = None;
                    self.together.waited(&self.door.service);
                }
                let read = match self.next {
                    Next::End => return Poll::Ready(Ok(Turn::Last)),
                    Next::Write => {
                        let bytes = mem::take(&mut self.input);
                        self.input = self.answer(bytes, &mut room.output);
                        CHUNK
                    }
                    Next::Read { needs } => ready!(self.poll_read(needs, room, context))?,
                };
                if read == 0 {
                    return Poll::Ready(Ok(Turn::Last));
                }
                self.write(&mut room.output, context)?;
                if let Err(OverBudget) = self.hold() {
                    self.refuse()?;
                }
                if read >= CHUNK {
                    return Poll::Ready(Ok(Turn::More));
                }
            }
        })
    }

    /// What it waits for.
    fn waiting(&self) -> Waiting {
        if !self.session.is_authenticated() {
            return Waiting::Password;
        }
        // Whoever waits for a store has asked, and is answered.
        if !self.output.is_empty() || self.fetching.is_some() {
            return Waiting::Answers;
        }
        match self.input.is_empty() && self.session.holds_little() {
            true => Waiting::Nothing,
            false => Waiting::Command,
        }
    }

    /// Reads what is there, and answers it. No more than that is read at once: if the client has
    /// sent less than there was room for, it is not asked again before it sends more.
    fn poll_read(
        &mut self,
        needs: usize,
        room: &mut Room,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        // What is left over is little, mostly, and goes in front of what comes. A long command is
        // read to where it stays.
        let long = self.input.len() > CHUNK;
        let mut bytes = match long {
            true => mem::take(&mut self.input),
            false => {
                let mut bytes = mem::take(&mut room.input);
                bytes.clear();
                bytes.extend_from_slice(&self.input);
                bytes
            }
        };
        // What a client has not sent takes no room, whatever it announces.
        bytes.reserve(CHUNK);
        let read = pin!(self.stream.read_buf(&mut bytes)).poll(context);
        match read.is_ready() {
            true => self.together.more(&self.door.service),
            false => self.together.apart(),
        }
        let is_enough = matches!(read, Poll::Ready(Ok(1..))) && bytes.len() >= needs;
        if long {
            self.input = if is_enough { self.answer(bytes, &mut room.output) } else { bytes };
            return read;
        }
        let done = match is_enough {
            true => self.answer_some(&bytes, &mut room.output),
            false => 0,
        };
        if read.is_ready() {
            self.input.clear();
            match bytes.get(done..) {
                None | Some([]) => self.input = Vec::new(),
                Some(rest) => self.input.extend_from_slice(rest),
            }
        }
        room.input = bytes;
        read
    }

    /// Answers the commands in `bytes`, and returns what is left of them.
    fn answer(&mut self, mut bytes: Vec<u8>, output: &mut Vec<u8>) -> Vec<u8> {
        let done = self.answer_some(&bytes, output);
        bytes.drain(..done);
        if bytes.len() <= CHUNK {
            bytes.shrink_to_fit();
        }
        bytes
    }

    /// Answers the commands in `bytes`, and says how many of them are done with.
    fn answer_some(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> usize {
        let wrong = self.session.wrong_passwords();
        let turn = mem::take(&mut self.turn);
        let turn = (turn, &mut self.together);
        let answered = pipeline::answer(&self.door, &mut self.session, bytes, turn, output);
        let Answered { bytes: done, next, wait } = answered;
        self.next = next;
        if let Some((wait, turn)) = wait {
            self.fetching = Some(wait);
            self.turn = turn;
        }
        if self.session.wrong_passwords() != wrong {
            self.guessed(self.session.wrong_passwords() - wrong);
        }
        if done > 0 {
            self.patience.renew();
        }
        done
    }

    /// The client has said so many wrong passwords.
    #[cold]
    fn guessed(&mut self, wrong: u8) {
        (0..wrong).for_each(|_| self.door.service.metrics().wrong_secret(Name::Resp));
        if self.session.has_said_too_many() {
            self.next = Next::End;
        }
    }

    /// Writes answers, and keeps what the client does not take at once.
    fn write(&mut self, answers: &mut Vec<u8>, context: &mut Context<'_>) -> io::Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let taken = match Pin::new(&mut self.stream).poll_write(context, answers) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(taken) => taken,
            Poll::Pending => Ok(0),
        };
        if let Ok(taken) = taken {
            self.output.extend_from_slice(&answers[taken..]);
        }
        answers.clear();
        // One long answer is not remembered for ever.
        answers.shrink_to(MOST_KEPT);
        taken.map(|_| ())
    }

    /// Writes the answers that the client had not taken.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.output.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.written < self.output.len() {
            let left = &self.output[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.written += taken,
            }
        }
        (self.output, self.written) = (Vec::new(), 0);
        self.patience.renew();
        self.hold()?;
        Poll::Ready(Ok(()))
    }

    /// Accounts for what is long of all that is kept.
    fn hold(&mut self) -> Result<(), OverBudget> {
        let long = |buffer: &Vec<u8>| match buffer.capacity() {
            ..=SHORT => 0,
            bytes => bytes,
        };
        let waiting = self.session.transaction.as_ref().map_or(0, |waiting| waiting.held());
        let waiting = if waiting > SHORT { waiting } else { 0 };
        self.held.hold(long(&self.input) + long(&self.output) + waiting)
    }

    /// Ends it, because there is no room for what it keeps. A client that does not read is not told.
    fn refuse(&mut self) -> io::Result<()> {
        self.input = Vec::new();
        self.session.transaction = None;
        self.next = Next::End;
        self.hold()?;
        self.output.extend_from_slice(NO_ROOM);
        Ok(())
    }
}

/// How long a client is listened to that has been told to go.
const MOST_HEARD: Duration = Duration::from_secs(1);

/// How much is read at once.
const CHUNK: usize = SHORT;

const NO_ROOM: &[u8] = b"-ERR too many long commands come at once: try again\r\n";

/// How much room for answers a thread keeps.
const MOST_KEPT: usize = 64 << 10;

#[cfg(test)]
mod tests;
