//! Which calls are answered here.

use std::time::Duration;

use super::{Calls, hpack};
use crate::web::deadline::{self, Deadline, TIMEOUT};

/// A call that is answered here.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) stream: u32,
    pub(super) method: u8,
    /// By how much its window differs from that of others.
    pub(super) extra: i64,
    /// When the caller has given up, if it has said that.
    pub(super) deadline: Option<Deadline>,
}

/// One whose message is not all here.
pub(super) struct Pending {
    pub(super) call: Call,
    pub(super) body: Vec<u8>,
}

/// What the headers of a request say, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// As the standard counts.
    pub(super) bytes: usize,
    is_post: bool,
    is_grpc: bool,
    method: Option<u8>,
    /// How long the caller waits.
    pub(super) time: Option<Duration>,
}

impl Seen {
    #[inline]
    pub(super) fn header(&mut self, name: &[u8], value: &[u8], calls: &dyn Calls) {
        self.bytes += name.len() + value.len() + hpack::OVERHEAD;
        match name {
            b":method" => self.is_post = value == b"POST",
            b":path" => self.method = calls.method(value),
            b"content-type" => self.is_grpc = is_grpc(value),
            _ if name == TIMEOUT.as_bytes() => self.time = deadline::timeout(value),
            _ => {}
        }
    }

    /// The method that is called, if it is answered here.
    pub(super) const fn call(&self) -> Option<u8> {
        if self.is_post && self.is_grpc { self.method } else { None }
    }
}

/// Whether gRPC is spoken, in protocol buffers, and nothing else is said about it.
fn is_grpc(content: &[u8]) -> bool {
    matches!(content, b"application/grpc" | b"application/grpc+proto")
}

/// Writes the headers of a call, with what is left of the time that the caller waits.
pub(super) fn put(to: &mut Vec<u8>, path: &str, left: Option<&str>) {
    let headers: [(&[u8], &[u8]); 5] = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.as_bytes()),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ];
    headers.into_iter().for_each(|(name, value)| hpack::put(to, name, value));
    if let Some(left) = left {
        hpack::put(to, TIMEOUT.as_bytes(), left.as_bytes());
    }
}
