//! A way to a real server on which it seems to be another: an older one, or one that is far away.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A way to a server, which is as good as none until somebody says otherwise. Its threads end with the
/// connections, and the last one with this process.
pub(crate) struct Relay {
    port: u16,
    way: Arc<Way>,
}

/// What becomes of answers on their way.
#[derive(Default)]
struct Way {
    is_old: AtomicBool,
    /// How long they take.
    time: Mutex<Duration>,
    time_changes: Condvar,
    /// How often somebody was brought some.
    brought: AtomicU64,
}

impl Relay {
    /// To a server of this machine.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = Arc::<Way>::default();
        let back = Arc::clone(&way);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // If nobody is there, whoever has called is told so.
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) {
                    connect(client, server, Arc::clone(&back));
                }
            }
        });
        Self { port, way }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on the server's version begins with a 5, or with what it does begin with.
    pub(crate) fn seems_old(&self, is_old: bool) {
        self.way.is_old.store(is_old, Ordering::Relaxed);
    }

    /// From now on an answer takes so long, also one that is on its way.
    pub(crate) fn answers_take(&self, time: Duration) {
        *self.way.time.lock().unwrap() = time;
        self.way.time_changes.notify_all();
    }

    /// How often something has come back: at least once for each time that somebody has asked.
    pub(crate) fn brought(&self) -> u64 {
        self.way.brought.load(Ordering::Relaxed)
    }
}

impl Way {
    /// Waits until what was said at some moment is there.
    fn wait(&self, said: Instant) {
        let mut time = self.time.lock().unwrap();
        loop {
            let left = (said + *time).saturating_duration_since(now());
            if left.is_zero() {
                return;
            }
            time = self.time_changes.wait_timeout(time, left).unwrap().0;
        }
    }

    /// Makes a server old that is meant to be, whose version may be cut in two.
    fn make(&self, bytes: &mut [u8], matched: &mut usize) {
        for byte in bytes {
            if *matched == VERSION.len() && self.is_old.load(Ordering::Relaxed) {
                *byte = b'5';
            }
            *matched = match VERSION.get(*matched) {
                Some(next) if next == byte => *matched + 1,
                _ => usize::from(*byte == VERSION[0]),
            };
        }
    }
}

/// Has both talk to each other until one of them has gone, and then the other has as well.
fn connect(client: TcpStream, server: TcpStream, way: Arc<Way>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let (client_in, server_in) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (said, to_bring) = mpsc::sync_channel(MOST_ON_THEIR_WAY);
    let seen_on = Arc::clone(&way);
    thread::spawn(move || pass_on(client_in, server));
    thread::spawn(move || listen(server_in, &seen_on, &said));
    thread::spawn(move || bring(&to_bring, client, &way));
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Hears what a server says, and when. Meanwhile what it has said before is on its way.
fn listen(mut server: TcpStream, way: &Way, said: &SyncSender<(Instant, Vec<u8>)>) {
    let (mut bytes, mut matched) = ([0; 65_536], 0);
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        let heard = now();
        way.make(&mut bytes[..count], &mut matched);
        if said.send((heard, bytes[..count].to_vec())).is_err() {
            break;
        }
    }
}

fn bring(said: &Receiver<(Instant, Vec<u8>)>, mut client: TcpStream, way: &Way) {
    for (heard, bytes) in said {
        way.wait(heard);
        if client.write_all(&bytes).is_err() {
            break;
        }
        way.brought.fetch_add(1, Ordering::Relaxed);
    }
    let _ = client.shutdown(Shutdown::Both);
}

#[expect(clippy::disallowed_methods, reason = "tests of real processes run in real time")]
fn now() -> Instant {
    Instant::now()
}

/// What stands before the version in whatever a server says about itself.
const VERSION: &[u8] = b"redis_version:";

/// Whoever says more than this at once waits until some of it is there.
const MOST_ON_THEIR_WAY: usize = 1_024;
