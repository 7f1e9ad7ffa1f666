//! What can be asked for, and how clients find out.

use crate::resp::reply::Replies;
use crate::resp::throttle::Form;

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A limit that comes along, and how much is told of the decision.
    Throttle(Form),
    Delete,
    Check,
    Peek,
    Reset,
    Report,
    Ping,
    Echo,
    Hello,
    Auth,
    Client,
    Info,
    Select,
    Command,
    Config,
    Quit,
    ResetConnection,
    Multi,
    Exec,
    Discard,
    Watch,
    Unwatch,
}

/// A command, as clients learn of it.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its name, in small letters.
    pub(crate) name: &'static str,
    pub(crate) verb: Verb,
    /// How many arguments it takes, its name among them; if negative, at least so many.
    arity: i64,
    summary: &'static str,
}

impl Command {
    /// The command of this name, in whatever letters.
    #[inline]
    pub(crate) fn find(name: &[u8]) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether it can have so many arguments, its name among them.
    #[inline]
    pub(crate) const fn takes(&self, arguments: usize) -> bool {
        // No command has more arguments than fit.
        let given = arguments as i64;
        if self.arity < 0 { given >= -self.arity } else { given == self.arity }
    }

    /// Whether it is answered to those who have not said the password.
    pub(crate) const fn is_for_anybody(&self) -> bool {
        matches!(self.verb, Verb::Auth | Verb::Hello | Verb::Quit | Verb::ResetConnection)
    }

    /// Whether it waits for `EXEC` if it comes after `MULTI`.
    pub(crate) const fn is_queued(&self) -> bool {
        !matches!(
            self.verb,
            Verb::Multi
                | Verb::Exec
                | Verb::Discard
                | Verb::Watch
                | Verb::Quit
                | Verb::ResetConnection
        )
    }

    /// Whether its first argument is a key.
    const fn has_key(&self) -> bool {
        matches!(self.verb, Verb::Throttle(_) | Verb::Delete | Verb::Watch)
    }

    /// Whether all of them are.
    const fn has_keys(&self) -> bool {
        matches!(self.verb, Verb::Delete | Verb::Watch)
    }
}

/// `COMMAND`: all of them, or what is asked about them.
pub(crate) fn answer(arguments: &[&[u8]], replies: &mut Replies<'_>) {
    let [_, rest @ ..] = arguments else { return };
    let Some((subcommand, names)) = rest.split_first() else {
        replies.array(COMMANDS.len());
        return COMMANDS.iter().for_each(|command| describe(command, replies));
    };
    match &*subcommand.to_ascii_lowercase() {
        b"count" => replies.integer(COMMANDS.len() as i64),
        b"list" => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| replies.text(command.name));
        }
        b"info" if names.is_empty() => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| describe(command, replies));
        }
        b"info" => {
            replies.array(names.len());
            for name in names {
                match Command::find(name) {
                    Some(command) => describe(command, replies),
                    None => replies.null(),
                }
            }
        }
        b"docs" => {
            let is_asked_for = |command: &&Command| {
                let called = |name: &&[u8]| command.name.as_bytes().eq_ignore_ascii_case(name);
                names.is_empty() || names.iter().any(called)
            };
            let asked_for = || COMMANDS.iter().filter(is_asked_for);
            replies.map(asked_for().count());
            asked_for().for_each(|command| document(command, replies));
        }
        _ => unknown_subcommand("COMMAND", subcommand, replies),
    }
}

/// There is no such part of a command.
pub(crate) fn unknown_subcommand(command: &str, subcommand: &[u8], replies: &mut Replies<'_>) {
    let shown = String::from_utf8_lossy(&subcommand[..subcommand.len().min(SHOWN)]);
    replies.error(&format!("ERR unknown subcommand '{shown}'. Try {command} HELP."));
}

/// There is no such command: as Redis says it, with the beginning of what was sent.
pub(crate) fn unknown(arguments: &[&[u8]], replies: &mut Replies<'_>) {
    let Some((name, rest)) = arguments.split_first() else { return };
    let shown =
        |bytes: &[u8], most| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    let mut text =
        format!("ERR unknown command '{}', with args beginning with: ", shown(name, SHOWN));
    let mut room = SHOWN;
    for argument in rest {
        if room == 0 {
            break;
        }
        let shown = shown(argument, room);
        room = room.saturating_sub(argument.len());
        text += "'";
        text += &shown;
        text += "' ";
    }
    replies.error(&text);
}

/// In the ten parts that Redis 7 has.
fn describe(command: &Command, replies: &mut Replies<'_>) {
    let key = i64::from(command.has_key());
    replies.array(10);
    replies.text(command.name);
    replies.integer(command.arity);
    replies.set(1);
    replies.simple("fast");
    // The first key, the last, and how far they are from each other.
    replies.integer(key);
    replies.integer(if command.has_keys() { -1 } else { key });
    replies.integer(key);
    replies.set(0);
    replies.array(0);
    replies.array(0);
    replies.array(0);
}

fn document(command: &Command, replies: &mut Replies<'_>) {
    replies.text(command.name);
    replies.map(3);
    replies.text("summary");
    replies.text(command.summary);
    replies.text("since");
    replies.text("0.1.0");
    replies.text("group");
    replies.text(match command.verb {
        Verb::Throttle(_) | Verb::Check | Verb::Peek | Verb::Reset | Verb::Report => "module",
        Verb::Delete => "generic",
        Verb::Info | Verb::Config | Verb::Command => "server",
        Verb::Multi | Verb::Exec | Verb::Discard | Verb::Watch | Verb::Unwatch => "transactions",
        _ => "connection",
    });
}

const fn command(name: &'static str, verb: Verb, arity: i64, summary: &'static str) -> Command {
    Command { name, verb, arity, summary }
}

/// What is asked for most comes first.
static COMMANDS: [Command; 23] = [
    command(
        "cl.throttle",
        Verb::Throttle(Form::Numbers),
        -1,
        "Lets a request of a key pass, or not.",
    ),
    command(
        "tollgate.allow",
        Verb::Throttle(Form::YesOrNo),
        -1,
        "CL.THROTTLE, answered with 1 or 0.",
    ),
    command("tg.check", Verb::Check, -1, "Lets a request pass if the rules allow it."),
    command("tg.peek", Verb::Peek, -1, "What TG.CHECK would answer."),
    command("tg.reset", Verb::Reset, -3, "Gives the keys of a request everything back."),
    command("tg.report", Verb::Report, -2, "Says how a request ended."),
    command(
        "del",
        Verb::Delete,
        -2,
        "Gives keys of CL.THROTTLE and TOLLGATE.ALLOW everything back.",
    ),
    command("multi", Verb::Multi, 1, "Begins a transaction: what follows waits for EXEC."),
    command("exec", Verb::Exec, 1, "Answers all that has come since MULTI."),
    command("discard", Verb::Discard, 1, "Forgets all that has come since MULTI."),
    command("watch", Verb::Watch, -2, "Does nothing: no key can change half."),
    command("unwatch", Verb::Unwatch, 1, "Does nothing, as WATCH does."),
    command("ping", Verb::Ping, -1, "Answers PONG, or what it is given."),
    command("echo", Verb::Echo, 2, "Answers what it is given."),
    command("hello", Verb::Hello, -1, "Begins a connection, with a version of the protocol."),
    command("auth", Verb::Auth, -2, "Says the password."),
    command("client", Verb::Client, -2, "What is known about this connection."),
    command("info", Verb::Info, -1, "What is known about this server."),
    command("select", Verb::Select, 2, "Chooses the one database there is, 0."),
    command("command", Verb::Command, -1, "What commands there are."),
    command("config", Verb::Config, -2, "What is set, as far as clients ask."),
    command("quit", Verb::Quit, -1, "Ends the connection."),
    command("reset", Verb::ResetConnection, 1, "Begins the connection anew."),
];

/// So much of what was sent is shown in an error.
const SHOWN: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::reply::Protocol;

    fn answered(ask: impl Fn(&mut Replies<'_>)) -> String {
        let mut bytes = Vec::new();
        ask(&mut Replies { bytes: &mut bytes, protocol: Protocol::Resp2 });
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn commands_are_found_in_any_letters() {
        for name in ["cl.throttle", "CL.THROTTLE", "Cl.Throttle"] {
            let found = Command::find(name.as_bytes()).map(|command| command.verb);
            assert_eq!(found, Some(Verb::Throttle(Form::Numbers)), "{name}");
        }
        assert!(Command::find(b"cl.throttl").is_none() && Command::find(b"").is_none());
    }

    #[test]
    fn every_command_is_told_of() {
        let all = answered(|replies| answer(&[b"command"], replies));
        assert!(all.starts_with("*23\r\n*10\r\n$11\r\ncl.throttle\r\n"), "{all}");
        let one = answered(|replies| answer(&[b"command", b"info", b"PING", b"nope"], replies));
        assert!(
            one.starts_with("*2\r\n*10\r\n$4\r\nping\r\n") && one.ends_with("$-1\r\n"),
            "{one}"
        );
        let count = answered(|replies| answer(&[b"command", b"COUNT"], replies));
        assert_eq!(count, ":23\r\n");
        let docs = answered(|replies| answer(&[b"command", b"docs", b"echo"], replies));
        assert!(docs.starts_with("*2\r\n$4\r\necho\r\n*6\r\n$7\r\nsummary\r\n"), "{docs}");
    }

    #[test]
    fn what_is_unknown_is_shown_on_one_line_and_in_part() {
        let long = [b'a'; 1000];
        let text = answered(|replies| unknown(&[b"get\r\n+OK", b"a\nb", &long, b"c"], replies));
        assert!(
            text.starts_with(
                "-ERR unknown command 'get  +OK', with args beginning with: 'a b' 'aaa"
            )
        );
        assert_eq!(text.matches(['\r', '\n']).count(), 2, "{text}");
        assert!(text.len() < 250 && !text.contains("'c'"), "{text}");
        let bytes = answered(|replies| unknown(&[b"\xff\x00"], replies));
        assert!(bytes.starts_with("-ERR unknown command '\u{fffd}\0'"), "{bytes}");
    }
}
