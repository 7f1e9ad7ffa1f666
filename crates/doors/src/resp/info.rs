//! What clients ask about the server before they trust it.

use std::fmt::Write as _;

use crate::connection::Limits;
use crate::resp::command::unknown_subcommand;
use crate::resp::reply::Replies;
use crate::resp::session::REDIS_VERSION;

/// `INFO [section ...]`.
pub(crate) fn info(arguments: &[&[u8]], replies: &mut Replies<'_>) {
    let asked = arguments.get(1..).unwrap_or_default();
    let all = |name: &[u8]| {
        ["all", "everything", "default"].iter().any(|all| name.eq_ignore_ascii_case(all.as_bytes()))
    };
    let mut text = String::new();
    for (section, fields) in SECTIONS {
        let is_asked_for = asked.is_empty()
            || asked.iter().any(|name| name.eq_ignore_ascii_case(section.as_bytes()) || all(name));
        if !is_asked_for {
            continue;
        }
        if !text.is_empty() {
            text += "\r\n";
        }
        // A text takes whatever is written to it.
        let _ = write!(text, "# {section}\r\n");
        for (name, value) in *fields {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    replies.verbatim(&text);
}

/// `CONFIG GET name ...`: what programs ask for that would like to know whom they talk to.
pub(crate) fn config(arguments: &[&[u8]], limits: &Limits, replies: &mut Replies<'_>) {
    let [_, subcommand, names @ ..] = arguments else { return };
    if !subcommand.eq_ignore_ascii_case(b"get") {
        return unknown_subcommand("CONFIG", subcommand, replies);
    }
    if names.is_empty() {
        return replies.error("ERR wrong number of arguments for 'config|get' command");
    }
    let most = limits.connections.to_string();
    let known = [
        ("save", ""),
        ("appendonly", "no"),
        ("databases", "1"),
        ("maxclients", &most),
        ("maxmemory", "0"),
        ("timeout", "0"),
    ];
    let is_asked_for = |setting: &&(&str, &str)| {
        let called =
            |name: &&[u8]| *name == b"*" || name.eq_ignore_ascii_case(setting.0.as_bytes());
        names.iter().any(called)
    };
    let asked_for = || known.iter().filter(is_asked_for);
    replies.map(asked_for().count());
    for (name, value) in asked_for() {
        replies.text(name);
        replies.text(value);
    }
}

type Section = (&'static str, &'static [(&'static str, &'static str)]);

const SECTIONS: &[Section] = &[
    (
        "Server",
        &[
            ("redis_version", REDIS_VERSION),
            ("redis_mode", "standalone"),
            ("server_name", "tollgate"),
            ("tollgate_version", env!("CARGO_PKG_VERSION")),
        ],
    ),
    ("Persistence", &[("loading", "0")]),
    ("Replication", &[("role", "master"), ("connected_slaves", "0")]),
    ("Cluster", &[("cluster_enabled", "0")]),
    ("Keyspace", &[]),
];
