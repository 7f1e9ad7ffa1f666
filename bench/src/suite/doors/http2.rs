//! A client of HTTP/2 that does as little as it can: the load of gRPC must not be what is measured.
//!
//! It asks the same question all the time, with headers that are in the table of the connection from
//! the second on, as those of any client are, and does not read answers further than to their end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use super::process::connect;
use crate::error::BenchError;

/// A connection on which one method is called.
pub(super) struct Calls {
    stream: TcpStream,
    path: &'static str,
    /// What is to be sent.
    output: Vec<u8>,
    /// What was received, and not looked at.
    input: Vec<u8>,
    /// The number of the next call.
    next: u32,
    /// How many bytes of messages may be sent.
    window: i64,
    /// Calls that are not answered.
    pub(super) open: usize,
    /// Messages that came. There must be one for each answer: otherwise that was an error.
    messages: u64,
    answers: u64,
}

impl Calls {
    pub(super) fn open(port: u16, path: &'static str) -> Result<Self, BenchError> {
        let stream = connect(port)?;
        stream.set_nodelay(true).map_err(BenchError::Network)?;
        let mut output = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // Nothing is pushed, and whatever comes is taken at once.
        let mut settings = vec![0, 2, 0, 0, 0, 0, 0, 4];
        settings.extend(WIDEST.to_be_bytes());
        frame(&mut output, SETTINGS, 0, 0, &settings);
        frame(&mut output, WINDOW_UPDATE, 0, 0, &(WIDEST - 65_535).to_be_bytes());
        let input = Vec::new();
        let mut calls = Self {
            stream,
            path,
            output,
            input,
            next: 1,
            window: 65_535,
            open: 0,
            messages: 0,
            answers: 0,
        };
        calls.send()?;
        Ok(calls)
    }

    pub(super) fn set_nonblocking(&self) -> Result<(), BenchError> {
        self.stream.set_nonblocking(true).map_err(BenchError::Network)
    }

    /// Whether the other end takes another message now.
    pub(super) const fn has_room(&self) -> bool {
        self.window >= LONGEST
    }

    /// Adds a call with this message to what is to be sent.
    pub(super) fn add(&mut self, message: &[u8]) {
        let length = message.len() + 5;
        self.window -= length as i64;
        let block = if self.next == 1 { first_headers(self.path) } else { HEADERS_AGAIN.to_vec() };
        frame(&mut self.output, HEADERS, END_HEADERS, self.next, &block);
        head(&mut self.output, length, DATA, END_STREAM, self.next);
        self.output.push(0);
        self.output.extend((message.len() as u32).to_be_bytes());
        self.output.extend_from_slice(message);
        self.next += 2;
        self.open += 1;
    }

    /// Sends what is to be sent.
    pub(super) fn send(&mut self) -> Result<(), BenchError> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent.map_err(BenchError::Network)
    }

    /// Takes what has come, and says how many calls were answered.
    pub(super) fn take(&mut self) -> Result<usize, BenchError> {
        let mut room = [0; 65_536];
        match self.stream.read(&mut room) {
            Ok(0) => return Err(BenchError::Child("the server closed a connection".to_owned())),
            Ok(read) => self.input.extend_from_slice(&room[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(BenchError::Network(error)),
        }
        let input = std::mem::take(&mut self.input);
        let (mut rest, before) = (&input[..], self.answers);
        while let Some((header, behind)) = rest.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let Some((payload, behind)) = behind.split_at_checked(length) else { break };
            self.frame(header[3], header[4], header[5..] == [0; 4], payload)?;
            rest = behind;
        }
        self.input = rest.to_vec();
        if !self.output.is_empty() {
            self.send()?;
        }
        let answered = (self.answers - before) as usize;
        self.open -= answered;
        match self.messages >= self.answers {
            true => Ok(answered),
            false => Err(BenchError::Child("a call was refused".to_owned())),
        }
    }

    fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        of_connection: bool,
        payload: &[u8],
    ) -> Result<(), BenchError> {
        match kind {
            DATA => self.messages += 1,
            HEADERS if flags & END_STREAM != 0 => self.answers += 1,
            SETTINGS if flags & ACK == 0 => frame(&mut self.output, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(&mut self.output, PING, ACK, 0, payload),
            WINDOW_UPDATE if of_connection => {
                let more = payload.first_chunk::<4>().copied().unwrap_or_default();
                self.window += i64::from(u32::from_be_bytes(more));
            }
            RST_STREAM | GOAWAY => {
                return Err(BenchError::Child(format!("the server ends: {payload:?}")));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Headers that the other end notes in its table, in this order.
fn first_headers(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x44][..], path),
        (&[0x41], "localhost"),
        (&[0x5f], "application/grpc"),
        (b"\x40\x02te", "trailers"),
    ] {
        block.extend_from_slice(name);
        // Short: one byte is enough.
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// The same by their places in the table: the last is the first there.
const HEADERS_AGAIN: [u8; 6] = [0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe];

pub(super) fn frame(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    head(to, payload.len(), kind, flags, stream);
    to.extend_from_slice(payload);
}

fn head(to: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    to.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    to.extend_from_slice(&[kind, flags]);
    to.extend_from_slice(&stream.to_be_bytes());
}

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// No message is longer, in bytes.
const LONGEST: i64 = 8_192;

/// The widest window that there is.
const WIDEST: u32 = (1 << 31) - 1;
