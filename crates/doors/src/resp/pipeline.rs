//! All commands that some bytes hold, answered in order. Those that follow each other and ask for
//! decisions are decided together.

use smallvec::SmallVec;

use crate::connection::Limits;
use crate::resp::Resp;
use crate::resp::asked::{Asked, Naming};
use crate::resp::command::{self, Command, Verb};
use crate::resp::frame::{Arguments, Decoded, ProtocolError, decode, words};
use crate::resp::info;
use crate::resp::reply::Replies;
use crate::resp::session::Session;
use crate::resp::throttle;

/// What came of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// So many of them are done with.
    pub(crate) bytes: usize,
    pub(crate) next: Next,
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
    output: &mut Vec<u8>,
) -> Answered {
    let mut arguments = Arguments::new();
    let mut batch = Batch::default();
    let replies = Replies { protocol: session.protocol, bytes: output };
    let mut answering = Answering { door, session, replies };
    let mut at = 0;
    let next = loop {
        let bounds = answering.session.bounds(&door.limits);
        let flow = match decode(&bytes[at..], bounds, &mut arguments) {
            Ok(Decoded::Command { length }) => {
                at += length;
                answering.take(&arguments, &mut batch)
            }
            Ok(Decoded::Line { line, length }) => {
                at += length;
                answering.decide(&mut batch);
                match words(line, bounds) {
                    Ok(words) => answering.line(&words),
                    Err(error) => answering.refuse(error),
                }
            }
            Ok(Decoded::Nothing { length }) => {
                at += length;
                Flow::Goes
            }
            Ok(Decoded::Incomplete { needs }) => break Next::Read { needs },
            Err(error) => {
                answering.decide(&mut batch);
                answering.refuse(error)
            }
        };
        match flow {
            Flow::Goes if answering.replies.bytes.len() >= MANY => break Next::Write,
            Flow::Goes => {}
            Flow::Ends => break Next::End,
        }
    };
    answering.decide(&mut batch);
    Answered { bytes: at, next }
}

/// Whether anything comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Goes,
    Ends,
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
                self.decide(batch);
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
        if !checks || !batch.throttles.is_empty() || batch.checks.len() == BATCH {
            self.decide(batch);
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
                    self.decide(batch);
                    self.replies.error(&format!("ERR {error}"));
                }
            }
            Verb::Exec => self.execute(),
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
        let Self { door, session, replies } = self;
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
            Verb::Peek => door.peek(arguments, session.client_cert(), replies),
            Verb::Reset => door.reset(arguments, session.client_cert(), replies),
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
            Verb::Check | Verb::Quit | Verb::Exec => {}
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
        let Limits { batch, body_bytes, .. } = &self.door.limits;
        match transaction.add(arguments, &self.door.limits) {
            true => self.replies.simple("QUEUED"),
            false => self.replies.error(&format!(
                "ERR a transaction has at most {batch} commands and {body_bytes} bytes: \
                 say EXEC sooner"
            )),
        }
    }

    /// Answers what has come since `MULTI`, as one.
    #[inline(never)]
    fn execute(&mut self) {
        let Some(transaction) = self.session.transaction.take() else {
            return self.replies.error("ERR EXEC without MULTI");
        };
        if transaction.is_broken() {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return self.replies.error(text);
        }
        self.replies.array(transaction.len());
        let bounds = self.session.bounds(&self.door.limits);
        let (mut rest, mut arguments) = (transaction.bytes(), Arguments::new());
        let mut batch = Batch::default();
        while let Ok(Decoded::Command { length }) = decode(rest, bounds, &mut arguments) {
            rest = &rest[length..];
            self.take(&arguments, &mut batch);
        }
        self.decide(&mut batch);
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
        let flow = self.take(&arguments, &mut batch);
        self.decide(&mut batch);
        flow
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

    /// Decides what waits for it, and answers it in order.
    #[inline]
    fn decide(&mut self, batch: &mut Batch<'_>) {
        if !batch.throttles.is_empty() {
            throttle::decide(&self.door.service, batch.form, &batch.throttles, &mut self.replies);
            batch.throttles.clear();
        }
        if batch.checks.len() > 0 {
            self.door.check(&batch.checks, self.session.client_cert(), &mut self.replies);
            batch.checks.clear();
        }
    }
}

/// The most commands that are decided together.
const BATCH: usize = 32;

/// After so many bytes answers are written before more is decided.
const MANY: usize = 16 << 10;
