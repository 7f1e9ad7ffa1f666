//! A load that keeps to a rate, whatever the answers: what a server does when it is not saturated.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::process::connect;
use crate::error::BenchError;
use crate::keys;
use crate::stopwatch::Stopwatch;

/// A connection on which questions are asked.
pub(super) trait Asking {
    /// How many can be under way at once.
    const MOST: u64;

    /// Takes answers that are there, and says how many more questions can be asked.
    fn room(&mut self) -> Result<u64, BenchError>;

    /// Asks a question. This is different for every number.
    fn ask(&mut self, number: u64);

    /// Sends what was asked.
    fn send(&mut self) -> Result<(), BenchError>;
}

/// Asks one question after another, evenly, over some connections in turn. The next question of a
/// connection waits until it has an answer, so none is ever pipelined.
pub(super) fn ask(
    port: u16,
    per_second: f64,
    lasting: Duration,
    question: fn(u64, &mut Vec<u8>),
) -> Result<Paced, BenchError> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = connect(port)?;
        stream.set_nodelay(true).map_err(BenchError::Network)?;
        stream.set_nonblocking(true).map_err(BenchError::Network)?;
        connections.push(Connection { stream, waiting: false, text: Vec::new(), question });
    }
    ask_on(&mut connections, per_second, lasting)
}

/// The same over connections that are open, each with as many under way as it can have.
pub(super) fn ask_on<A: Asking>(
    connections: &mut [A],
    per_second: f64,
    lasting: Duration,
) -> Result<Paced, BenchError> {
    let mut paced = Paced { asked: 0, late: 0 };
    let count = connections.len() as u64;
    let begin = Stopwatch::start();
    while begin.elapsed() < lasting {
        let due = (begin.elapsed().as_secs_f64() * per_second) as u64;
        let share = due.saturating_sub(paced.asked + paced.late).div_ceil(count);
        for connection in connections.iter_mut() {
            let left = due.saturating_sub(paced.asked + paced.late);
            let now = connection.room()?.min(share).min(left);
            if now > 0 {
                (0..now).for_each(|place| connection.ask(keys::mix(paced.asked + place)));
                connection.send()?;
                paced.asked += now;
            }
        }
        // What could not be asked in time is not caught up on: that would be a burst.
        let behind = due.saturating_sub(paced.asked + paced.late);
        if behind > count * A::MOST {
            paced.late += behind;
        }
    }
    Ok(paced)
}

/// How it went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    pub(super) asked: u64,
    /// Questions that were not asked because the load itself did not get to it.
    pub(super) late: u64,
}

struct Connection {
    stream: TcpStream,
    waiting: bool,
    text: Vec<u8>,
    question: fn(u64, &mut Vec<u8>),
}

impl Asking for Connection {
    const MOST: u64 = 1;

    fn ask(&mut self, number: u64) {
        self.text.clear();
        (self.question)(number, &mut self.text);
    }

    fn send(&mut self) -> Result<(), BenchError> {
        self.waiting = true;
        self.stream.write_all(&self.text).map_err(BenchError::Network)
    }

    /// Answers are short, and come in one piece.
    fn room(&mut self) -> Result<u64, BenchError> {
        if !self.waiting {
            return Ok(1);
        }
        let mut room = [0; 4096];
        match self.stream.read(&mut room) {
            Ok(0) => Err(BenchError::Child("the server closed a connection".to_owned())),
            Ok(_) => {
                self.waiting = false;
                Ok(1)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(BenchError::Network(error)),
        }
    }
}

const CONNECTIONS: usize = 16;
