//! How long it takes until the first answer.

use super::peers::Programs;
use super::process::Server;
use super::scrape;
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;

pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let name = "from start to the first answer".to_owned();
    if !session.wants(&name) {
        return Ok(());
    }
    let mut times = Vec::new();
    for round in 1..=session.scale.long_rounds {
        session.progress.say(&format!("{name}: round {round}"));
        let begin = Stopwatch::start();
        let server = Server::tollgate(programs, "--http")?;
        scrape::get(server.status, "/readyz")?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let row = Row::alone(name, Unit::Milliseconds, median(times));
    session.add(row.promising(Reach::AtMost(1_000.0, Unit::Milliseconds)));
    Ok(())
}
