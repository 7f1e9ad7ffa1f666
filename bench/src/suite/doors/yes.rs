//! A rate limit service that says yes to everybody, and looks at nothing: what Envoy's question costs
//! without an answer that anybody thought about.
//!
//! It speaks as much of HTTP/2 as that takes. Requests are not read, only counted off by their ends.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::http2::{
    ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, SETTINGS, WINDOW_UPDATE, frame,
};
use super::process::address;
use crate::error::BenchError;

/// Takes no further connections when this is dropped; those that it has end with their clients.
pub(super) struct Yes {
    pub(super) port: u16,
    ended: Arc<AtomicBool>,
}

impl Yes {
    pub(super) fn start() -> Result<Self, BenchError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(BenchError::Network)?;
        let port = listener.local_addr().map_err(BenchError::Network)?.port();
        let ended = Arc::new(AtomicBool::new(false));
        let yes = Self { port, ended: Arc::clone(&ended) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // Whoever goes away in the middle of something is not missed.
                thread::spawn(move || stream.and_then(serve));
            }
        });
        Ok(yes)
    }
}

impl Drop for Yes {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // It waits for somebody to come.
        let _ = TcpStream::connect(address(self.port));
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.read_exact(&mut [0; b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()])?;
    let (mut input, mut output) = (Vec::new(), Vec::new());
    frame(&mut output, SETTINGS, 0, 0, &[]);
    let mut room = [0; 65_536];
    loop {
        stream.write_all(&output)?;
        output.clear();
        match stream.read(&mut room)? {
            0 => return Ok(()),
            read => input.extend_from_slice(&room[..read]),
        }
        let done = answer(&input, &mut output);
        input.drain(..done);
    }
}

/// Answers the frames in `input`, and says how many bytes of it are done with.
fn answer(input: &[u8], output: &mut Vec<u8>) -> usize {
    let (mut rest, mut taken) = (input, 0);
    while let Some((header, behind)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let Some((payload, behind)) = behind.split_at_checked(length) else { break };
        let (kind, flags) = (header[3], header[4]);
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        match kind {
            SETTINGS if flags & ACK == 0 => frame(output, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(output, PING, ACK, 0, payload),
            DATA => {
                taken += length as u32;
                if flags & END_STREAM != 0 {
                    frame(output, HEADERS, END_HEADERS, stream, BEGIN);
                    frame(output, DATA, 0, stream, YES);
                    frame(output, HEADERS, END_HEADERS | END_STREAM, stream, END);
                }
            }
            _ => {}
        }
        rest = behind;
    }
    if taken > 0 {
        frame(output, WINDOW_UPDATE, 0, 0, &taken.to_be_bytes());
    }
    input.len() - rest.len()
}

/// `:status: 200` and `content-type: application/grpc`.
const BEGIN: &[u8] = b"\x88\x0f\x10\x10application/grpc";

/// A message of two bytes: the overall code is that for OK.
const YES: &[u8] = &[0, 0, 0, 0, 2, 8, 1];

/// `grpc-status: 0`.
const END: &[u8] = b"\x00\x0bgrpc-status\x010";
