//! What the server keeps in memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::peers::Programs;
use super::process::{Server, connect};
use crate::error::BenchError;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let idle = "resident memory, idle".to_owned();
    let keys = count_of(session.scale.medium);
    let [by_rules, by_command] =
        ["rules", "CL.THROTTLE"].map(|by| format!("resident memory, {keys} keys more, by {by}"));
    if session.wants(&idle) {
        session.progress.say("memory of the server");
        let server = Server::tollgate(programs, "--resp")?;
        let row = Row::alone(idle, Unit::Megabytes, server.resident()? / 1e6);
        session.add(row.promising(Reach::AtMost(25.0, Unit::Megabytes)));
    }
    grown(session, programs, by_rules, |key, text| {
        // A text takes whatever is written to it.
        let _ = write!(text, "*3\r\n$8\r\nTG.CHECK\r\n$4\r\nuser\r\n$12\r\n{key:012}\r\n");
    })?;
    grown(session, programs, by_command, |key, text| {
        let _ = write!(
            text,
            "*5\r\n$11\r\nCL.THROTTLE\r\n$16\r\nkey:{key:012}\r\n$2\r\n99\r\n$3\r\n100\r\n$4\r\n3600\r\n"
        );
    })
}

/// What a server takes more than an idle one once it has been asked about so many keys.
fn grown(
    session: &mut Session,
    programs: &Programs,
    name: String,
    question: impl Fn(usize, &mut Vec<u8>),
) -> Result<(), BenchError> {
    if !session.wants(&name) {
        return Ok(());
    }
    session.progress.say(&name);
    let server = Server::tollgate(programs, "--resp")?;
    let before = server.resident()?;
    fill(&server, session.scale.medium, question)?;
    let row = Row::alone(name, Unit::Megabytes, (server.resident()? - before) / 1e6);
    session.add(row.promising(Reach::AtMost(40.0, Unit::Megabytes)));
    Ok(())
}

/// Asks about every key once, in pipelines of a thousand.
fn fill(
    server: &Server,
    keys: usize,
    question: impl Fn(usize, &mut Vec<u8>),
) -> Result<(), BenchError> {
    let mut stream = connect(server.port)?;
    let mut text = Vec::new();
    for first in (0..keys).step_by(PIPELINE) {
        text.clear();
        let count = PIPELINE.min(keys - first);
        for key in first..first + count {
            question(key, &mut text);
        }
        stream.write_all(&text).map_err(BenchError::Network)?;
        answers(&mut stream, count)?;
    }
    Ok(())
}

/// Reads so many answers. Each is an array, and none of what is in one is.
fn answers(stream: &mut TcpStream, count: usize) -> Result<(), BenchError> {
    let (mut seen, mut room, mut line_begins) = (0, [0; 65_536], true);
    let mut last_ended = false;
    while seen < count || !last_ended {
        let read = stream.read(&mut room).map_err(BenchError::Network)?;
        for byte in &room[..read] {
            if line_begins && *byte == b'-' {
                let text = String::from_utf8_lossy(&room[..read]).into_owned();
                return Err(BenchError::Child(text));
            }
            seen += usize::from(line_begins && *byte == b'*');
            line_begins = *byte == b'\n';
        }
        last_ended = line_begins;
        if read == 0 {
            return Err(BenchError::Child("the server closed a connection".to_owned()));
        }
    }
    Ok(())
}

const PIPELINE: usize = 1_000;
