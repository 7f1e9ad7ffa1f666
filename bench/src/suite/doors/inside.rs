//! Time inside the server, from the bytes of a question to those of its answer, at half of what it
//! can do.

use std::io::Write as _;
use std::time::Duration;

use super::KEYS;
use super::grpc;
use super::http;
use super::pace::{self, Paced};
use super::peers::Programs;
use super::process::Server;
use super::resp::{Load, THROTTLE};
use super::scrape::Inside;
use crate::error::BenchError;
use crate::report::{Reach, Row, Unit};
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let names = |door: &str| {
        ["99 %", "99.9 %"]
            .map(|share| format!("{door} at half of saturation, {share} inside the server"))
    };
    let resp = names("RESP");
    if session.wants_any(&resp) {
        let server = Server::tollgate(programs, "--resp")?;
        let load = Load { connections: 16, pipeline: 1, requests: 200_000 }.scaled(session);
        session.progress.say("RESP: saturation");
        let most = load.rate(programs, server.port, &THROTTLE)? * 1e3;
        measure(session, &server, "resp", resp, most / 2.0, |key, text| {
            let key = format!("key:{:012}", key as usize % KEYS);
            // A text takes whatever is written to it.
            let _ = write!(
                text,
                "*5\r\n$11\r\nCL.THROTTLE\r\n${}\r\n{key}\r\n$2\r\n99\r\n$4\r\n1000\r\n$2\r\n60\r\n",
                key.len()
            );
        })?;
    }
    for (door, question) in [("Envoy RLS", &grpc::LIMIT), ("native gRPC", &grpc::CHECK)] {
        let grpc = names(door);
        if session.wants_any(&grpc) {
            let server = grpc::server(programs)?;
            session.progress.say(&format!("{door}: saturation"));
            let most = grpc::rate(session, server.port, question)? * 1e3;
            measure_on(session, &server, "grpc", grpc, most / 2.0, |per_second, lasting| {
                grpc::paced(server.port, question, per_second, lasting)
            })?;
        }
    }
    let http = names("HTTP");
    if session.wants_any(&http) {
        let server = Server::tollgate(programs, "--http")?;
        session.progress.say("HTTP: saturation");
        let most = http::rate(session, programs, server.port, &http::OURS)? * 1e3;
        measure(session, &server, "http", http, most / 2.0, |key, text| {
            let body = format!("{{\"user\":\"key:{}\"}}", key as usize % KEYS);
            let _ = write!(
                text,
                "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
        })?;
    }
    Ok(())
}

fn measure(
    session: &mut Session,
    server: &Server,
    door: &str,
    names: [String; 2],
    per_second: f64,
    question: fn(u64, &mut Vec<u8>),
) -> Result<(), BenchError> {
    measure_on(session, server, door, names, per_second, |per_second, lasting| {
        pace::ask(server.port, per_second, lasting, question)
    })
}

fn measure_on(
    session: &mut Session,
    server: &Server,
    door: &str,
    names: [String; 2],
    per_second: f64,
    ask: impl FnOnce(f64, Duration) -> Result<Paced, BenchError>,
) -> Result<(), BenchError> {
    session.progress.say(&format!("{door}: {per_second:.0} a second"));
    let lasting = Duration::from_secs(if session.scale.is_quick() { 1 } else { 10 });
    let before = Inside::read(server, door)?;
    let Paced { asked, late } = ask(per_second, lasting)?;
    let inside = Inside::read(server, door)?.since(&before);
    let reached = asked as f64 / lasting.as_secs_f64();
    let note = format!(
        "{reached:.0} of {per_second:.0} a second were asked, {late} were left out; \
         {:.0} were timed",
        inside.count()
    );
    for (name, (share, most)) in names.into_iter().zip([(0.99, 50.0), (0.999, 1_000.0)]) {
        let row = Row::alone(name, Unit::Microseconds, inside.within(share)).noting(note.clone());
        session.add(row.promising(Reach::AtMost(most, Unit::Microseconds)));
    }
    Ok(())
}
