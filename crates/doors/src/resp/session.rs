//! What is known about a connection, and the commands that change it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tollgate::NewStart;

use crate::connection::{Limits, Peer};
use crate::resp::command::unknown_subcommand;
use crate::resp::frame::{Bounds, integer};
use crate::resp::reply::{Protocol, Replies};
use crate::resp::transaction::Transaction;
use crate::secret::Secret;

/// What is known about a connection.
#[derive(Debug)]
pub(crate) struct Session {
    id: u64,
    peer: Peer,
    pub(crate) protocol: Protocol,
    authenticated: bool,
    /// How many wrong passwords it has said.
    wrong: u8,
    name: Box<[u8]>,
    library: Box<[u8]>,
    library_version: Box<[u8]>,
    /// What has come since `MULTI`.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// What came of the `TG.RESET` that a store was asked for.
    pub(crate) reset: Option<Arc<OnceLock<NewStart>>>,
}

impl Session {
    /// Of a client that must say the password first, if there is one.
    pub(crate) fn new(peer: Peer, password: Option<&Secret>) -> Self {
        Self {
            // Numbers are unique, and say nothing else.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            peer,
            protocol: Protocol::default(),
            authenticated: password.is_none(),
            wrong: 0,
            name: Box::default(),
            library: Box::default(),
            library_version: Box::default(),
            transaction: None,
            reset: None,
        }
    }

    /// Whether it may ask for more than to be let in.
    pub(crate) const fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// How many wrong passwords it has said. After too many no other is looked at.
    pub(crate) const fn wrong_passwords(&self) -> u8 {
        self.wrong
    }

    pub(crate) const fn has_said_too_many(&self) -> bool {
        self.wrong >= MOST_WRONG
    }

    /// Whom the certificate is for that it has shown; empty if it has shown none.
    pub(crate) fn client_cert(&self) -> &str {
        self.peer.name()
    }

    /// What its commands may take: little before it has said the password.
    pub(crate) const fn bounds(&self, limits: &Limits) -> Bounds {
        match self.authenticated {
            true => {
                Bounds { arguments: limits.batch, bytes: limits.body_bytes, unauthenticated: false }
            }
            false => Bounds { arguments: 10, bytes: 16 << 10, unauthenticated: true },
        }
    }

    /// Whether it may be silent for as long as it likes: no large transaction waits for its end.
    pub(crate) fn holds_little(&self) -> bool {
        self.transaction.as_ref().is_none_or(|it| it.bytes().len() <= LITTLE)
    }

    /// `RESET`: as if it had just begun.
    pub(crate) fn reset(&mut self, password: Option<&Secret>) {
        self.protocol = Protocol::default();
        self.authenticated = password.is_none();
        self.name = Box::default();
        self.transaction = None;
    }

    /// `AUTH [user] password`.
    pub(crate) fn auth(
        &mut self,
        arguments: &[&[u8]],
        password: Option<&Secret>,
        replies: &mut Replies<'_>,
    ) {
        let (user, given) = match arguments {
            [_, given] => (USER, *given),
            [_, user, given] => (*user, *given),
            _ => return replies.error("ERR syntax error"),
        };
        if password.is_none() && arguments.len() == 2 {
            return replies.error(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            );
        }
        match self.let_in(user, given, password) {
            true => replies.ok(),
            false => replies.error(WRONG_PASSWORD),
        }
    }

    /// Lets in whoever knows the password.
    fn let_in(&mut self, user: &[u8], given: &[u8], password: Option<&Secret>) -> bool {
        let right = match (password, str::from_utf8(given)) {
            (None, _) => true,
            (Some(_), _) if self.has_said_too_many() => false,
            (Some(password), Ok(given)) => password.is(given),
            (Some(_), Err(_)) => false,
        };
        let right = right && user == USER;
        self.authenticated |= right;
        self.wrong = self.wrong.saturating_add(u8::from(!right && password.is_some()));
        right
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`.
    pub(crate) fn hello(
        &mut self,
        arguments: &[&[u8]],
        password: Option<&Secret>,
        replies: &mut Replies<'_>,
    ) {
        let wish = match Hello::read(arguments) {
            Ok(wish) => wish,
            Err(error) => return replies.error(error),
        };
        if let Some((user, given)) = wish.auth
            && !self.let_in(user, given, password)
        {
            return replies.error(WRONG_PASSWORD);
        }
        if !self.authenticated {
            return replies.error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise \
                 the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the \
                 client and select the RESP protocol version at the same time",
            );
        }
        if let Some(name) = wish.name
            && let Err(error) = self.set_name(name)
        {
            return replies.error(error);
        }
        self.protocol = wish.protocol.unwrap_or(self.protocol);
        replies.protocol = self.protocol;
        replies.map(7);
        for (field, value) in [("server", "tollgate"), ("version", REDIS_VERSION)] {
            replies.text(field);
            replies.text(value);
        }
        replies.text("proto");
        replies.integer(self.protocol.number());
        replies.text("id");
        // There are not that many connections.
        replies.integer(self.id as i64);
        for (field, value) in [("mode", "standalone"), ("role", "master")] {
            replies.text(field);
            replies.text(value);
        }
        replies.text("modules");
        replies.array(0);
    }

    /// `CLIENT subcommand`.
    pub(crate) fn client(&mut self, arguments: &[&[u8]], replies: &mut Replies<'_>) {
        let [_, subcommand, rest @ ..] = arguments else { return };
        let done = match (&*subcommand.to_ascii_lowercase(), rest) {
            (b"id", []) => return replies.integer(self.id as i64),
            (b"getname", []) if self.name.is_empty() => return replies.null(),
            (b"getname", []) => return replies.bulk(&self.name),
            (b"info", []) => return replies.verbatim(&self.line()),
            (b"setname", [name]) => self.set_name(name),
            (b"setinfo", [field, value]) => self.set_info(field, value),
            // Nothing is ever evicted, touched, or sent unasked.
            (b"no-evict" | b"no-touch", [_]) => Ok(()),
            (b"tracking", [switch]) if switch.eq_ignore_ascii_case(b"off") => Ok(()),
            (b"reply", [switch]) if switch.eq_ignore_ascii_case(b"on") => Ok(()),
            (
                b"id" | b"getname" | b"info" | b"setname" | b"setinfo" | b"no-evict" | b"no-touch",
                _,
            ) => Err("ERR wrong number of arguments for 'client' command"),
            _ => return unknown_subcommand("CLIENT", subcommand, replies),
        };
        match done {
            Ok(()) => replies.ok(),
            Err(error) => replies.error(error),
        }
    }

    fn set_name(&mut self, name: &[u8]) -> Result<(), &'static str> {
        self.name = word(name)
            .ok_or("ERR Client names cannot contain spaces, newlines or special characters, and have at most 128 of them")?;
        Ok(())
    }

    fn set_info(&mut self, field: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let known = match &*field.to_ascii_lowercase() {
            b"lib-name" => &mut self.library,
            b"lib-ver" => &mut self.library_version,
            _ => return Err("ERR Unrecognized option: it is LIB-NAME or LIB-VER"),
        };
        *known = word(value)
            .ok_or("ERR lib-name and lib-ver cannot contain spaces, newlines or special characters, and have at most 128 of them")?;
        Ok(())
    }

    /// As `CLIENT INFO` has it.
    fn line(&self) -> String {
        let shown = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let mut line = format!("id={} addr=", self.id);
        // A text takes whatever is written to it.
        let _ = match self.peer.ip {
            Some(peer) => write!(line, "{peer}"),
            None => write!(line, "unix"),
        };
        let _ = writeln!(
            line,
            " name={} db=0 user=default lib-name={} lib-ver={} resp={}",
            shown(&self.name),
            shown(&self.library),
            shown(&self.library_version),
            self.protocol.number(),
        );
        line
    }
}

/// What a client wishes that says `HELLO`.
#[derive(Default)]
struct Hello<'a> {
    protocol: Option<Protocol>,
    auth: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    fn read(arguments: &[&'a [u8]]) -> Result<Self, &'static str> {
        let mut wish = Self::default();
        let [_, version, rest @ ..] = arguments else { return Ok(wish) };
        wish.protocol = Some(match integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err("NOPROTO unsupported protocol version"),
            None => return Err("ERR Protocol version is not an integer or out of range"),
        });
        let mut rest = rest;
        while let [option, values @ ..] = rest {
            rest = match (&*option.to_ascii_lowercase(), values) {
                (b"auth", [user, password, behind @ ..]) => {
                    wish.auth = Some((user, password));
                    behind
                }
                (b"setname", [name, behind @ ..]) => {
                    wish.name = Some(name);
                    behind
                }
                _ => {
                    return Err(
                        "ERR Syntax error in HELLO: AUTH <user> <password> and SETNAME <name> are known",
                    );
                }
            };
        }
        Ok(wish)
    }
}

/// A name that can stand in a line between others.
fn word(bytes: &[u8]) -> Option<Box<[u8]>> {
    let fits = bytes.len() <= LONGEST_NAME && bytes.iter().all(u8::is_ascii_graphic);
    fits.then(|| bytes.into())
}

/// What clients take us for: they leave out what older ones do not know.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// The only user there is.
const USER: &[u8] = b"default";

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// So many wrong passwords end a connection.
const MOST_WRONG: u8 = 10;

const LONGEST_NAME: usize = 128;

/// So many bytes a connection may hold for ever.
const LITTLE: usize = 16 << 10;

static NEXT: AtomicU64 = AtomicU64::new(1);
