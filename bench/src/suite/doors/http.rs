//! HTTP, beside another limiter's server.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::peers::Programs;
use super::process::Server;
use super::{KEYS, output};
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let name = format!("HTTP, {} keys, 64 connections", count_of(KEYS));
    if !session.wants(&name) {
        return Ok(());
    }
    let ours = Server::tollgate(programs, "--http")?;
    let crab = Server::throttlecrab(programs)?;
    let (mut rates, mut peers) = (Vec::new(), Vec::new());
    for round in 1..=session.scale.long_rounds {
        session.progress.say(&format!("{name}: round {round}"));
        rates.push(rate(session, programs, ours.port, &OURS)?);
        peers.push(rate(session, programs, crab.port, &CRAB)?);
    }
    let peer = ("throttlecrab-server", median(peers));
    let row = Row::against(name, Unit::ThousandsPerSecond, median(rates), peer);
    session.add(row.promising(Reach::Times(1.5)));
    Ok(())
}

/// What is asked: a path, and a body around the number of a key.
pub(super) struct Question {
    path: &'static str,
    before: &'static str,
    after: &'static str,
}

pub(super) const OURS: Question =
    Question { path: "/v1/check", before: r#"{"user":"key:"#, after: r#""}"# };

const CRAB: Question = Question {
    path: "/throttle",
    before: r#"{"key":"key:"#,
    after: r#"","max_burst":100,"count_per_period":1000,"period":60,"quantity":1}"#,
};

/// Thousands of answers per second, as wrk sees them. All of them must be good.
pub(super) fn rate(
    session: &Session,
    programs: &Programs,
    port: u16,
    question: &Question,
) -> Result<f64, BenchError> {
    let script = Script::write(port, question)?;
    let seconds = if session.scale.is_quick() { "1s" } else { "6s" };
    let text = output(
        Command::new(&programs.wrk)
            .args(["-t1", "-c64", "-d", seconds, "-s"])
            .arg(&script.0)
            .arg(format!("http://127.0.0.1:{port}{}", question.path)),
    )?;
    let why = || BenchError::Program { name: "wrk".to_owned(), why: text.clone() };
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(why());
    }
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    let rate = line.and_then(|rate| rate.trim().parse::<f64>().ok());
    Ok(rate.ok_or_else(why)? / 1e3)
}

/// A script for wrk, gone with its row.
struct Script(PathBuf);

impl Script {
    fn write(port: u16, question: &Question) -> Result<Self, BenchError> {
        let path = std::env::temp_dir().join(format!("tollgate-bench-{port}.lua"));
        let Question { before, after, .. } = question;
        let text = format!(
            "wrk.method = 'POST'\nwrk.headers['content-type'] = 'application/json'\n\
             local random, format = math.random, wrk.format\n\
             function request()\n  return format(nil, nil, nil, '{before}' .. random({KEYS}) .. \
             '{after}')\nend\n"
        );
        fs::write(&path, text).map_err(|source| BenchError::File { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // A small file that stays behind does no harm.
        let _ = fs::remove_file(&self.0);
    }
}
