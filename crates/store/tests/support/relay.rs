//! A way to a real server on which it seems to be another.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What stands before the version in whatever a server says about itself.
const VERSION: &[u8] = b"redis_version:";

/// A way to a server on which its version begins with another digit, as long as it is meant to.
pub(crate) struct Relay {
    pub(crate) port: u16,
    pub(crate) is_old: Arc<AtomicBool>,
}

impl Relay {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_old = Arc::new(AtomicBool::new(true));
        let is_still_old = Arc::clone(&is_old);
        // Each ends with its connection, and all with this process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { return };
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let is_old = Arc::clone(&is_still_old);
                thread::spawn(move || pass_on(client, server, |_| {}));
                thread::spawn(move || {
                    let mut matched = 0;
                    pass_on(ends.1, ends.0, |byte| {
                        if matched == VERSION.len() && is_old.load(Ordering::Relaxed) {
                            *byte = b'5';
                        }
                        matched = match VERSION.get(matched) {
                            Some(next) if next == byte => matched + 1,
                            _ => usize::from(*byte == VERSION[0]),
                        };
                    });
                });
            }
        });
        Self { port, is_old }
    }
}

/// Passes on what comes until there is an end of it, each byte as it is made.
fn pass_on(mut from: TcpStream, mut to: TcpStream, mut make: impl FnMut(&mut u8)) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        bytes[..count].iter_mut().for_each(&mut make);
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}
