//! RESP, beside a Redis that counts and decides nothing.

use std::process::Command;

use super::peers::Programs;
use super::process::Server;
use super::{KEYS, output};
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let keys = count_of(KEYS);
    let pipelined = format!("RESP, {keys} keys, 16 connections x 16 pipelined");
    let yes_or_no = format!("{pipelined}, yes or no");
    let single = format!("RESP, {keys} keys, 64 connections, not pipelined");
    let many = Load { connections: 16, pipeline: 16, requests: 3_000_000 };
    let few = Load { connections: 64, pipeline: 1, requests: 400_000 };
    let loads = [
        (pipelined, many, THROTTLE, 1.2),
        (yes_or_no, many, ALLOW, 1.2),
        (single, few, THROTTLE, 1.0),
    ];
    for (name, load, command, reach) in loads {
        if !session.wants(&name) {
            continue;
        }
        let load = load.scaled(session);
        let (ours, redis) = (Server::tollgate(programs, "--resp")?, Server::redis(programs)?);
        let (mut rates, mut peers) = (Vec::new(), Vec::new());
        for round in 1..=session.scale.long_rounds {
            session.progress.say(&format!("{name}: round {round}"));
            rates.push(load.rate(programs, ours.port, &command)?);
            peers.push(load.rate(programs, redis.port, &INCR)?);
        }
        let peer = ("INCR on Redis", median(peers));
        let row = Row::against(name, Unit::ThousandsPerSecond, median(rates), peer);
        session.add(row.promising(Reach::Times(reach)));
    }
    Ok(())
}

/// How redis-benchmark asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) pipeline: usize,
    pub(super) requests: usize,
}

impl Load {
    pub(super) fn scaled(self, session: &Session) -> Self {
        let part = if session.scale.is_quick() { 20 } else { 1 };
        Self { requests: self.requests / part, ..self }
    }

    /// Thousands of answers per second.
    pub(super) fn rate(
        self,
        programs: &Programs,
        port: u16,
        command: &[&str],
    ) -> Result<f64, BenchError> {
        let number = |number: usize| number.to_string();
        let text = output(
            Command::new(&programs.redis_benchmark)
                .args(["--csv", "-p", &port.to_string()])
                .args(["-c", &number(self.connections), "-P", &number(self.pipeline)])
                .args(["-n", &number(self.requests), "-r", &number(KEYS)])
                .args(command),
        )?;
        // A header, and a line of quoted figures: the second is the rate.
        let line = text.lines().last().unwrap_or_default();
        let rate = line.rsplit("\",\"").nth(6).and_then(|rate| rate.parse::<f64>().ok());
        let why = || BenchError::Program { name: "redis-benchmark".to_owned(), why: text.clone() };
        Ok(rate.ok_or_else(why)? / 1e3)
    }
}

/// A hundred at once, a thousand a minute.
pub(super) const THROTTLE: [&str; 5] = ["CL.THROTTLE", "key:__rand_int__", "99", "1000", "60"];
/// The same, for an answer as short as that of `INCR`.
const ALLOW: [&str; 5] = ["TOLLGATE.ALLOW", "key:__rand_int__", "99", "1000", "60"];
const INCR: [&str; 2] = ["INCR", "key:__rand_int__"];
