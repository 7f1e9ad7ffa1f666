//! Who asks a real node.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use super::course::{Node, Tally};
use crate::error::BenchError;
use crate::suite::doors::process::{Server, connect};

/// A connection to a node, over which one question is asked again and again.
pub(super) struct Client {
    stream: TcpStream,
    question: String,
    /// What of an answer is there.
    heard: Vec<u8>,
    tally: Tally,
}

impl Client {
    pub(super) fn of(node: &Server) -> Result<Self, BenchError> {
        let stream = connect(node.port)?;
        stream.set_nodelay(true).map_err(BenchError::Network)?;
        stream.set_nonblocking(true).map_err(BenchError::Network)?;
        let (question, heard) = (String::new(), Vec::new());
        Ok(Self { stream, question, heard, tally: Tally::default() })
    }

    /// From now on it asks about this user and path.
    pub(super) fn turn_to(&mut self, user: &str, path: &str) {
        self.question = String::from("*5\r\n");
        for word in ["TG.CHECK", "user", user, "path", path] {
            self.question += &format!("${}\r\n{word}\r\n", word.len());
        }
    }
}

impl Node for Client {
    fn ask(&mut self, times: u64) -> Result<(), BenchError> {
        self.tally.asked += times;
        let questions = self.question.repeat(times as usize);
        self.stream.write_all(questions.as_bytes()).map_err(BenchError::Network)
    }

    /// Each answer begins with its length and whether it is a denial.
    fn hear(&mut self) -> Result<(), BenchError> {
        let mut more = [0; 16 << 10];
        match self.stream.read(&mut more) {
            Ok(0) => return Err(BenchError::Child("a node closed a connection".to_owned())),
            Ok(read) => self.heard.extend_from_slice(&more[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(BenchError::Network(error)),
        }
        let length = YES.len();
        let mut at = 0;
        while let Some(answer) = self.heard.get(at..at + length) {
            let is_yes = answer == YES;
            if is_yes || answer == NO {
                self.tally.answered += 1;
                self.tally.passed += u64::from(is_yes);
                at += length;
            } else {
                at += 1;
            }
        }
        self.heard.drain(..at);
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

/// How answers of eight parts begin.
const YES: &[u8] = b"*8\r\n:0\r\n";
const NO: &[u8] = b"*8\r\n:1\r\n";
