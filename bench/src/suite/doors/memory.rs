//! What the server keeps in memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::peers::Programs;
use super::process::{Server, address};
use crate::error::BenchError;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let idle = "resident memory, idle".to_owned();
    let full = format!("resident memory, {} keys more", count_of(session.scale.medium));
    if !session.wants_any([&idle, &full]) {
        return Ok(());
    }
    session.progress.say("memory of the server");
    let server = Server::tollgate(programs, "--resp")?;
    let before = server.resident()?;
    let row = Row::alone(idle, Unit::Megabytes, before / 1e6);
    session.add(row.promising(Reach::AtMost(25.0, Unit::Megabytes)));
    // Half of them counted by what the command says, half by a rule.
    let keys = session.scale.medium;
    fill(&server, keys / 2, |key, text| {
        let key = format!("key:{key:012}");
        let _ = write!(
            text,
            "*5\r\n$11\r\nCL.THROTTLE\r\n$16\r\n{key}\r\n$2\r\n99\r\n$3\r\n100\r\n$4\r\n3600\r\n"
        );
    })?;
    fill(&server, keys - keys / 2, |key, text| {
        let _ = write!(text, "*3\r\n$8\r\nTG.CHECK\r\n$4\r\nuser\r\n$12\r\n{key:012}\r\n");
    })?;
    let row = Row::alone(full, Unit::Megabytes, (server.resident()? - before) / 1e6);
    session.add(row.promising(Reach::AtMost(40.0, Unit::Megabytes)));
    Ok(())
}

/// Asks about every key once, in pipelines of a thousand.
fn fill(
    server: &Server,
    keys: usize,
    question: impl Fn(usize, &mut Vec<u8>),
) -> Result<(), BenchError> {
    let mut stream = TcpStream::connect(address(server.port)).map_err(BenchError::Print)?;
    let mut text = Vec::new();
    for first in (0..keys).step_by(PIPELINE) {
        text.clear();
        let count = PIPELINE.min(keys - first);
        for key in first..first + count {
            question(key, &mut text);
        }
        stream.write_all(&text).map_err(BenchError::Print)?;
        answers(&mut stream, count)?;
    }
    Ok(())
}

/// Reads so many answers. Each is an array, and none of what is in one is.
fn answers(stream: &mut TcpStream, count: usize) -> Result<(), BenchError> {
    let (mut seen, mut room, mut line_begins) = (0, [0; 65_536], true);
    let mut last_ended = false;
    while seen < count || !last_ended {
        let read = stream.read(&mut room).map_err(BenchError::Print)?;
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
