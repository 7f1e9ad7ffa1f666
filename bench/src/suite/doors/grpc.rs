//! gRPC, beside another limiter's server, with one load for both.

use std::time::Duration;

use super::KEYS;
use super::http2::Calls;
use super::pace::{self, Asking, Paced};
use super::peers::Programs;
use super::process::Server;
use crate::error::BenchError;
use crate::keys;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let keys = count_of(KEYS);
    let name = format!("Envoy RLS, {keys} keys, 4 connections x 64 in flight");
    if session.wants(&name) {
        let (ours, crab) = (server(programs)?, Server::throttlecrab_grpc(programs)?);
        let (mut rates, mut peers) = (Vec::new(), Vec::new());
        for round in 1..=session.scale.long_rounds {
            session.progress.say(&format!("{name}: round {round}"));
            rates.push(rate(session, ours.port, &LIMIT)?);
            peers.push(rate(session, crab.port, &CRAB)?);
        }
        let peer = ("throttlecrab-server's gRPC", median(peers));
        let row = Row::against(name, Unit::ThousandsPerSecond, median(rates), peer);
        session.add(row.promising(Reach::Times(1.5)));
    }
    let name = format!("native gRPC, {keys} keys, batches of {BATCH}, in decisions");
    if session.wants(&name) {
        let ours = server(programs)?;
        let (mut batches, mut singles) = (Vec::new(), Vec::new());
        for round in 1..=session.scale.long_rounds {
            session.progress.say(&format!("{name}: round {round}"));
            batches.push(rate(session, ours.port, &MANY)? * BATCH as f64);
            singles.push(rate(session, ours.port, &CHECK)?);
        }
        let peer = ("single checks", median(singles));
        let row = Row::against(name, Unit::ThousandsPerSecond, median(batches), peer);
        session.add(row.promising(Reach::Times(10.0)));
    }
    Ok(())
}

/// Ours, with rules for whoever asks here.
pub(super) fn server(programs: &Programs) -> Result<Server, BenchError> {
    Server::tollgate_with(programs, "--grpc", RULES)
}

/// What is asked: a method, and its message about the key of this number.
pub(super) struct Question {
    pub(super) path: &'static str,
    pub(super) message: fn(u64, &mut Vec<u8>),
    /// How many calls are made to measure, and how many of them differ.
    calls: u64,
    messages: u64,
}

pub(super) const LIMIT: Question = Question {
    path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    message: |number, to| {
        field(to, 1, b"bench");
        let (mut entry, mut descriptor) = (Vec::new(), Vec::new());
        field(&mut entry, 1, b"user");
        field(&mut entry, 2, key(number).as_bytes());
        field(&mut descriptor, 1, &entry);
        field(to, 2, &descriptor);
    },
    calls: 400_000,
    messages: KEYS as u64,
};

pub(super) const CHECK: Question = Question {
    path: "/tollgate.v1.Tollgate/Check",
    message: check,
    calls: 400_000,
    messages: KEYS as u64,
};

const MANY: Question = Question {
    path: "/tollgate.v1.Tollgate/CheckBatch",
    message: |number, to| {
        let mut one = Vec::new();
        for place in 0..BATCH {
            one.clear();
            check(keys::mix(number ^ place << 40), &mut one);
            field(to, 1, &one);
        }
    },
    calls: 20_000,
    messages: KEYS as u64 / BATCH,
};

const CRAB: Question = Question {
    path: "/throttlecrab.RateLimiter/Throttle",
    message: |number, to| {
        field(to, 1, key(number).as_bytes());
        // A hundred at once, a thousand a minute, and one now.
        to.extend_from_slice(&[0x10, 100, 0x18, 0xe8, 0x07, 0x20, 60, 0x28, 1]);
    },
    calls: 200_000,
    messages: KEYS as u64,
};

fn check(number: u64, to: &mut Vec<u8>) {
    let mut attribute = Vec::new();
    field(&mut attribute, 1, b"user");
    field(&mut attribute, 2, key(number).as_bytes());
    field(to, 5, &attribute);
}

fn key(number: u64) -> String {
    format!("key:{}", number as usize % KEYS)
}

/// A field of a message that has a length. What is asked is short.
fn field(to: &mut Vec<u8>, number: u8, content: &[u8]) {
    to.extend_from_slice(&[number << 3 | 2, content.len() as u8]);
    to.extend_from_slice(content);
}

/// Thousands of answers per second, to a single thread that has so many calls under way.
pub(super) fn rate(session: &Session, port: u16, question: &Question) -> Result<f64, BenchError> {
    let total = if session.scale.is_quick() { question.calls / 20 } else { question.calls };
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Calls::open(port, question.path)?);
    }
    // Made before the clock is started, so that what is asked costs nothing.
    let messages = (0..total.min(question.messages)).map(|number| {
        let mut message = Vec::new();
        (question.message)(keys::mix(number), &mut message);
        message
    });
    let messages: Vec<_> = messages.collect();
    let mut next = messages.iter().cycle();
    let (mut asked, mut answered) = (0, 0);
    let begin = Stopwatch::start();
    while answered < total {
        for calls in &mut connections {
            while calls.open < IN_FLIGHT && asked < total && calls.has_room() {
                let Some(message) = next.next() else { break };
                calls.add(message);
                asked += 1;
            }
            calls.send()?;
            if calls.open > 0 {
                answered += calls.take()? as u64;
            }
        }
    }
    Ok(total as f64 / begin.elapsed().as_secs_f64() / 1e3)
}

/// Asks evenly, over as many connections, and with as many calls under way, as where the rate was
/// found.
pub(super) fn paced(
    port: u16,
    question: &Question,
    per_second: f64,
    lasting: Duration,
) -> Result<Paced, BenchError> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let calls = Calls::open(port, question.path)?;
        calls.set_nonblocking()?;
        let (message, room) = (question.message, Vec::new());
        connections.push(Asked { calls, message, room });
    }
    pace::ask_on(&mut connections, per_second, lasting)
}

/// A connection on which calls are made.
struct Asked {
    calls: Calls,
    message: fn(u64, &mut Vec<u8>),
    room: Vec<u8>,
}

impl Asking for Asked {
    const MOST: u64 = IN_FLIGHT as u64;

    fn room(&mut self) -> Result<u64, BenchError> {
        self.calls.take()?;
        let free = IN_FLIGHT.saturating_sub(self.calls.open) as u64;
        Ok(if self.calls.has_room() { free } else { 0 })
    }

    fn ask(&mut self, number: u64) {
        self.room.clear();
        (self.message)(number, &mut self.room);
        self.calls.add(&self.room);
    }

    fn send(&mut self) -> Result<(), BenchError> {
        self.calls.send()
    }
}

const RULES: &str = "rules:
  - { name: per-entry, match: { domain: bench }, key: [descriptor.user], limit: 1000/min, burst: 100 }
  - { name: per-user, key: [user], limit: 1000/min, burst: 100 }";

const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 64;
const BATCH: u64 = 100;
