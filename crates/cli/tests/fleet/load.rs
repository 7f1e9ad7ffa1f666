//! Requests at a steady rate, from many clients, and what came of them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{now, pass};

/// One client for each address, all of which ask about one key.
pub(crate) struct Load {
    clients: Vec<Client>,
    ends: Arc<AtomicBool>,
}

struct Client {
    allowed: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
    thread: JoinHandle<Span>,
}

/// When a client has asked.
#[derive(Clone, Copy)]
struct Span {
    first_sent: Instant,
    first_heard: Instant,
    last_sent: Instant,
    last_heard: Instant,
}

/// What came of a load.
pub(crate) struct Outcome {
    pub(crate) allowed: u64,
    pub(crate) answered: u64,
    /// From the first question to the last answer, and from the first answer to the last question.
    pub(crate) longest: Duration,
    pub(crate) shortest: Duration,
}

/// How often a client sends.
const PAUSE: Duration = Duration::from_millis(10);

impl Load {
    /// So many requests from each client every ten milliseconds, as long as `is_on` says that it is
    /// its turn.
    pub(crate) fn begin(
        nodes: &[SocketAddr],
        each: usize,
        is_on: impl Fn(usize, Duration) -> bool + Send + Sync + 'static,
    ) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (is_on, began) = (Arc::new(is_on), now());
        let client = |(number, address): (usize, &SocketAddr)| {
            let (allowed, answered) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.set_nodelay(true).unwrap();
            let (counts, ends) = ((Arc::clone(&allowed), Arc::clone(&answered)), Arc::clone(&ends));
            let is_on = Arc::clone(&is_on);
            let thread = thread::spawn(move || {
                let is_on = |_: &()| is_on(number, began.elapsed_now());
                ask(stream, each, &counts, &ends, is_on)
            });
            Client { allowed, answered, thread }
        };
        let clients = nodes.iter().enumerate().map(client).collect();
        Self { clients, ends }
    }

    /// How many answers each client has heard so far.
    pub(crate) fn answered(&self) -> Vec<u64> {
        self.clients.iter().map(|client| client.answered.load(Ordering::Relaxed)).collect()
    }

    pub(crate) fn allowed(&self) -> u64 {
        self.clients.iter().map(|client| client.allowed.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn end(self) -> Outcome {
        self.ends.store(true, Ordering::Relaxed);
        let (mut allowed, mut answered, mut spans) = (0, 0, Vec::new());
        for client in self.clients {
            spans.push(client.thread.join().unwrap());
            allowed += client.allowed.load(Ordering::Relaxed);
            answered += client.answered.load(Ordering::Relaxed);
        }
        let least = |of: fn(&Span) -> Instant| spans.iter().map(of).min().unwrap();
        let most = |of: fn(&Span) -> Instant| spans.iter().map(of).max().unwrap();
        Outcome {
            allowed,
            answered,
            longest: most(|span| span.last_heard) - least(|span| span.first_sent),
            shortest: most(|span| span.last_sent) - least(|span| span.first_heard),
        }
    }
}

trait Elapsed {
    fn elapsed_now(&self) -> Duration;
}

impl Elapsed for Instant {
    fn elapsed_now(&self) -> Duration {
        now() - *self
    }
}

/// Asks until it is told to end, or nobody is there any more.
fn ask(
    mut stream: TcpStream,
    each: usize,
    (allowed, answered): &(Arc<AtomicU64>, Arc<AtomicU64>),
    ends: &AtomicBool,
    is_on: impl Fn(&()) -> bool,
) -> Span {
    let question =
        b"*5\r\n$8\r\nTG.CHECK\r\n$4\r\npath\r\n$4\r\n/hot\r\n$4\r\nuser\r\n$5\r\nalice\r\n";
    let questions = question.repeat(each);
    let begin = now();
    let mut span =
        Span { first_sent: begin, first_heard: begin, last_sent: begin, last_heard: begin };
    let (mut bytes, mut is_first) = (Vec::new(), true);
    while !ends.load(Ordering::Relaxed) {
        let sent = now();
        if is_on(&()) {
            if stream.write_all(&questions).is_err() {
                return span;
            }
            for _ in 0..each {
                let Some(is_allowed) = hear(&mut stream, &mut bytes) else { return span };
                allowed.fetch_add(u64::from(is_allowed), Ordering::Relaxed);
                answered.fetch_add(1, Ordering::Relaxed);
            }
            span.last_heard = now();
            span.last_sent = sent;
            if is_first {
                (is_first, span.first_sent, span.first_heard) = (false, sent, span.last_heard);
            }
        }
        pass(PAUSE.saturating_sub(now() - sent));
    }
    span
}

/// Whether the next answer of eight parts is a yes; `None` if nobody is there any more.
fn hear(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<bool> {
    loop {
        if let Some((length, is_allowed)) = answer(bytes) {
            bytes.drain(..length);
            return Some(is_allowed);
        }
        let mut more = [0; 16 << 10];
        match stream.read(&mut more) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&more[..read]),
        }
    }
}

/// An answer that is all here: its length, and whether it is a yes.
fn answer(bytes: &[u8]) -> Option<(usize, bool)> {
    let line = |from: usize| {
        let length = bytes.get(from..)?.windows(2).position(|pair| pair == b"\r\n")?;
        Some((&bytes[from..from + length], from + length + 2))
    };
    let (head, mut at) = line(0)?;
    assert_eq!(head, b"*8", "{}", String::from_utf8_lossy(bytes));
    let mut is_allowed = None;
    for _ in 0..8 {
        let (part, next) = line(at)?;
        at = next;
        is_allowed = is_allowed.or_else(|| Some(part == b":0"));
        if let Some(length) = part.strip_prefix(b"$")
            && let Ok(length) = String::from_utf8_lossy(length).parse::<usize>()
        {
            at += length + 2;
        }
    }
    (at <= bytes.len()).then_some((at, is_allowed?))
}
