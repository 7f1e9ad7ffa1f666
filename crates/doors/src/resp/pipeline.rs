//! All commands that some bytes hold, answered in order. Those that follow each other and ask for
//! decisions are decided together.

mod gather;

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tollgate::{Reserve, Sleep, Wait};

use crate::connection::Limits;
use crate::resp::Resp;
use crate::resp::asked::{Asked, Naming};
use crate::resp::command::{self, Command, Verb};
use crate::resp::frame::{Arguments, Decoded, ProtocolError, decode, words};
use crate::resp::info;
use crate::resp::reply::Replies;
use crate::resp::session::Session;
use crate::resp::throttle;
use crate::service::{Together, Turn};

/// What came of some bytes.
pub(crate) struct Answered {
    /// So many of them are done with.
    pub(crate) bytes: usize,
    pub(crate) next: Next,
    /// What is to be waited for before it goes on, if there is anything, and which turn it is then.
    pub(crate) wait: Option<(Sleep, Turn)>,
}

impl Answered {
    /// So many bytes are done with, and something is waited for before it goes on: in the time that
    /// all have who came together.
    fn halted(bytes: usize, halt: Halt, in_time: impl FnOnce(Wait) -> Wait) -> Self {
        let wait: (Sleep, Turn) = match halt {
            Halt::Wait(wait) => {
                let wait = in_time(wait);
                let turn = Turn::after(&wait);
                (Box::pin(wait.fetch()), turn)
            }
            Halt::Reset(reset) => (reset, Turn::Now),
        };
        Self { bytes, next: Next::Write, wait: Some(wait) }
    }
}

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// With more bytes: the next command has so many at least.
    Read { needs: usize },
    /// With the bytes that are there, once the answers are written.
    Write,
    /// Not at all, once the answers are written.
    End,
}

/// Answers the commands in `bytes`, until they end or the answers are many.
pub(crate) fn answer(
    door: &Resp,
    session: &mut Session,
    bytes: &[u8],
    (turn, together): (Turn, &mut Together),
    output: &mut Vec<u8>,
) -> Answered {
    let mut arguments = Arguments::new();
    let mut batch = Batch::default();
    let replies = Replies { protocol: session.protocol, bytes: output };
    let mut answering = Answering { door, session, replies, turn, kept: None, halt: None };
    let in_time = |wait| together.wait(wait, &door.service);
    let mut at = match answering.resume(bytes) {
        Ok(done) => done,
        Err(wait) => return Answered::halted(0, Halt::Wait(wait), in_time),
    };
    // Where the first command is that is not answered.
    let mut open = at;
    let next = loop {
        if batch.is_empty() {
            open = at;
        }
        let bounds = answering.session.bounds(&door.limits);
        let flow = match decode(&bytes[at..], bounds, &mut arguments) {
            Ok(Decoded::Command { length }) => {
                let begin = at;
                at += length;
                let flow = answering.take(&arguments, &mut batch);
                // All before it is answered, and must not be carried out again: it is the first of
                // its batch, or waits for itself.
                match flow {
                    Flow::Goes if batch.len() == 1 => open = begin,
                    Flow::Waits if batch.is_empty() => open = begin,
                    _ => {}
                }
                flow
            }
            Ok(Decoded::Line { line, length }) => match answering.decide(&mut batch) {
                Flow::Goes => {
                    open = at;
                    at += length;
                    match words(line, bounds) {
                        Ok(words) => answering.line(&words),
                        Err(error) => answering.refuse(error),
                    }
                }
                flow => flow,
            },
            Ok(Decoded::Nothing { length }) => {
                at += length;
                Flow::Goes
            }
            Ok(Decoded::Incomplete { needs }) => break Next::Read { needs },
            Err(error) => match answering.decide(&mut batch) {
                Flow::Goes => answering.refuse(error),
                flow => flow,
            },
        };
        match flow {
            Flow::Waits => break Next::Write,
            Flow::Goes if answering.replies.bytes.len() >= MANY => break Next::Write,
            Flow::Goes => {}
            Flow::Ends => break Next::End,
        }
    };
    match answering.last(&mut batch) {
        None => Answered { bytes: at, next, wait: None },
        Some(halt) => Answered::halted(open, answering.and_behind(halt, &bytes[open..]), in_time),
    }
}

/// Whether anything comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Goes,
    Ends,
    /// A store has to be asked: what is not answered comes again.
    Waits,
}

/// Why it cannot go on yet.
enum Halt {
    /// A store has to be asked for what is to be decided.
    Wait(Wait),
    /// A store has to forget a key. Operators ask for that: it has a time of its own.
    Reset(Sleep),
}

/// Commands that wait to be decided together: of one kind at a time.
#[derive(Default)]
struct Batch<'a> {
    throttles: SmallVec<[throttle::Asked<'a>; BATCH]>,
    /// Of all throttles: how they are answered.
    form: throttle::Form,
    checks: Asked<'a>,
}

/// A client that is being answered.
struct Answering<'d> {
    door: &'d Resp,
    session: &'d mut Session,
    replies: Replies<'d>,
    /// Of what is decided next.
    turn: Turn,
    /// What is kept for commands that are carried out in one go.
    kept: Option<Reserve>,
    halt: Option<Halt>,
}

impl Batch<'_> {
    fn len(&self) -> usize {
        self.throttles.len() + self.checks.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Answering<'_> {
    /// Takes in a command: answers it, or lets it wait for others of its kind.
    #[inline]
    fn take<'a>(&mut self, arguments: &[&'a [u8]], batch: &mut Batch<'a>) -> Flow {
        let Some(name) = arguments.first() else { return Flow::Goes };
        let known = Command::find(name);
        if let Some(&Command { verb: Verb::Throttle(form), .. }) = known
            && self.session.is_authenticated()
            && self.session.transaction.is_none()
            && let Ok(asked) = throttle::read(arguments)
        {
            if batch.throttles.len() == BATCH || batch.form != form || batch.checks.len() > 0 {
                if self.decide(batch) == Flow::Waits {
                    return Flow::Waits;
                }
                batch.form = form;
            }
            batch.throttles.push(asked);
            return Flow::Goes;
        }
        self.take_other(known, arguments, batch)
    }

    #[inline(never)]
    fn take_other<'a>(
        &mut self,
        known: Option<&Command>,
        arguments: &[&'a [u8]],
        batch: &mut Batch<'a>,
    ) -> Flow {
        let checks = matches!(known, Some(Command { verb: Verb::Check, .. }));
        let is_apart = !checks || !batch.throttles.is_empty() || batch.checks.len() == BATCH;
        if is_apart && self.decide(batch) == Flow::Waits {
            return Flow::Waits;
        }
        let Some(command) = known else { return self.unknown(arguments) };
        if !self.session.is_authenticated() && !command.is_for_anybody() {
            self.replies.error("NOAUTH Authentication required.");
            return Flow::Goes;
        }
        if !command.takes(arguments.len()) {
            let error = format!("wrong number of arguments for '{}' command", command.name);
            if command.verb == Verb::Exec {
                // It ends a transaction also if it is wrong itself.
                self.session.transaction = None;
                let text = format!("EXECABORT Transaction discarded because of: {error}");
                self.replies.error(&text);
                return Flow::Goes;
            }
            self.replies.error(&format!("ERR {error}"));
            return self.spoiled();
        }
        if self.session.transaction.is_some() && command.is_queued() {
            self.queue(command, arguments);
            return Flow::Goes;
        }
        match command.verb {
            Verb::Check => {
                if let Err(error) = batch.checks.add(arguments, Naming::Nothing) {
                    if self.decide(batch) == Flow::Waits {
                        return Flow::Waits;
                    }
                    self.replies.error(&format!("ERR {error}"));
                }
            }
            Verb::Exec => return self.execute(),
            Verb::Reset => return self.reset(arguments),
            Verb::Peek => {
                let Self { door, session, replies, turn, .. } = self;
                let told = door.peek(arguments, session.client_cert(), *turn, replies);
                return self.waits(told);
            }
            Verb::Quit => {
                self.replies.ok();
                return Flow::Ends;
            }
            verb => self.answer(verb, arguments),
        }
        Flow::Goes
    }

    /// Answers a command that is for itself.
    fn answer(&mut self, verb: Verb, arguments: &[&[u8]]) {
        let Self { door, session, replies, .. } = self;
        let password = door.password.as_ref();
        match verb {
            Verb::Ping => match arguments {
                [_, text] => replies.bulk(text),
                [_] => replies.simple("PONG"),
                _ => replies.error("ERR wrong number of arguments for 'ping' command"),
            },
            Verb::Echo => replies.bulk(arguments.get(1).copied().unwrap_or_default()),
            Verb::Hello => session.hello(arguments, password, replies),
            Verb::Auth => session.auth(arguments, password, replies),
            Verb::Client => session.client(arguments, replies),
            Verb::Info => info::info(arguments, replies),
            Verb::Config => info::config(arguments, &door.limits, replies),
            Verb::Command => command::answer(arguments, replies),
            Verb::Select => match arguments.get(1) {
                Some(&b"0") => replies.ok(),
                _ => replies.error("ERR DB index is out of range: there is only 0"),
            },
            Verb::ResetConnection => {
                session.reset(password);
                replies.protocol = session.protocol;
                replies.simple("RESET");
            }
            // What is right has been taken in before.
            Verb::Throttle(form) => {
                if let Err(wrong) = throttle::read(arguments) {
                    throttle::refuse(form, wrong, replies);
                }
            }
            Verb::Delete => {
                let keys = arguments.get(1..).unwrap_or_default().iter();
                let reset = keys.filter(|key| door.service.reset_throttle(key)).count();
                replies.integer(reset as i64);
            }
            Verb::Report => door.report(arguments, replies),
            Verb::Multi => match session.transaction {
                Some(_) => replies.error("ERR MULTI calls can not be nested"),
                None => {
                    session.transaction = Some(Box::default());
                    replies.ok();
                }
            },
            Verb::Discard => match session.transaction.take() {
                Some(_) => replies.ok(),
                None => replies.error("ERR DISCARD without MULTI"),
            },
            Verb::Watch => match session.transaction {
                Some(_) => replies.error("ERR WATCH inside MULTI is not allowed"),
                None => replies.ok(),
            },
            Verb::Unwatch => replies.ok(),
            Verb::Check | Verb::Peek | Verb::Reset | Verb::Quit | Verb::Exec => {}
        }
    }

    /// Keeps a command for `EXEC`.
    fn queue(&mut self, command: &Command, arguments: &[&[u8]]) {
        let Some(transaction) = &mut self.session.transaction else { return };
        // All commands there are, again and again: answers are to stay in proportion to questions.
        if command.verb == Verb::Command {
            transaction.spoil();
            return self.replies.error("ERR Command not allowed inside a transaction");
        }
        if command.verb == Verb::Reset && self.door.service.engine().health().is_some() {
            transaction.spoil();
            let text = "ERR the store has to be asked, which a transaction cannot wait for: \
                        send TG.RESET by itself";
            return self.replies.error(text);
        }
        let Limits { batch, body_bytes, .. } = &self.door.limits;
        match transaction.add(arguments, &self.door.limits) {
            true => self.replies.simple("QUEUED"),
            false => self.replies.error(&format!(
                "ERR a transaction has at most {batch} commands and {body_bytes} bytes: \
                 say EXEC sooner"
            )),
        }
    }

    /// How it goes on after something was told, or was not.
    fn waits(&mut self, told: Result<(), Wait>) -> Flow {
        match told {
            Ok(()) => {
                // The next one has its first turn, unless it is carried out with others.
                self.turn = if self.kept.is_some() { Turn::Now } else { Turn::First };
                Flow::Goes
            }
            Err(wait) => {
                self.halt = Some(Halt::Wait(wait));
                Flow::Waits
            }
        }
    }

    /// Gives keys everything back. Where a store has to forget them that is waited for, and answered
    /// when the command comes again.
    fn reset(&mut self, arguments: &[&[u8]]) -> Flow {
        let Self { door, session, replies, .. } = self;
        if let Some(done) = session.reset.take() {
            self.turn = Turn::First;
            match done.get() {
                Some(start) => replies.new_start(start),
                None => replies.error("ERR it broke off: try again"),
            }
            return Flow::Goes;
        }
        let Some(reset) = door.reset(arguments, session.client_cert(), replies) else {
            return Flow::Goes;
        };
        let done = Arc::new(OnceLock::new());
        session.reset = Some(Arc::clone(&done));
        let reset = Box::pin(async move { _ = done.set(reset.await) });
        self.halt = Some(Halt::Reset(reset));
        Flow::Waits
    }

    /// A command that is not even kept: if others are, none of them is carried out.
    fn spoiled(&mut self) -> Flow {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.spoil();
        }
        Flow::Goes
    }

    /// Answers what somebody has typed.
    fn line(&mut self, words: &[Vec<u8>]) -> Flow {
        let arguments: Arguments<'_> = words.iter().map(Vec::as_slice).collect();
        let mut batch = Batch::default();
        match self.take(&arguments, &mut batch) {
            Flow::Goes => self.decide(&mut batch),
            flow => flow,
        }
    }

    fn unknown(&mut self, arguments: &[&[u8]]) -> Flow {
        let is = |name: &[u8]| arguments[0].eq_ignore_ascii_case(name);
        // A browser that was talked into sending something here: what it sends is not to be taken
        // for commands.
        if is(b"post") || is(b"host:") {
            return Flow::Ends;
        }
        match self.session.is_authenticated() {
            true => command::unknown(arguments, &mut self.replies),
            false => self.replies.error("NOAUTH Authentication required."),
        }
        self.spoiled()
    }

    fn refuse(&mut self, error: ProtocolError) -> Flow {
        self.replies.error(&format!("ERR Protocol error: {error}"));
        Flow::Ends
    }

    /// Decides what waits for it, if nothing else has to be waited for first. What is to be waited for.
    fn last(&mut self, batch: &mut Batch<'_>) -> Option<Halt> {
        if self.halt.is_none() {
            self.decide(batch);
        }
        self.halt.take()
    }

    /// Decides what waits for it, and answers it in order.
    #[inline]
    fn decide(&mut self, batch: &mut Batch<'_>) -> Flow {
        if !batch.throttles.is_empty() {
            throttle::decide(&self.door.service, batch.form, &batch.throttles, &mut self.replies);
            batch.throttles.clear();
        }
        if batch.checks.len() > 0 {
            let client = self.session.client_cert();
            let how = (self.turn, self.kept.as_mut());
            let told = self.door.check(&batch.checks, client, how, &mut self.replies);
            if self.waits(told) == Flow::Waits {
                return Flow::Waits;
            }
            batch.checks.clear();
        }
        Flow::Goes
    }
}

/// The most commands that are decided together.
const BATCH: usize = 32;

/// After so many bytes answers are written before more is decided.
const MANY: usize = 16 << 10;
