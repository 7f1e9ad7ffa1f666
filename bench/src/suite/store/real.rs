//! What real nodes let pass: five `tollgate serve` with a Redis between them, in real time.
//!
//! Time begins before the first request is sent. What was heard until some moment is held against what
//! may have passed until then, so too many cannot hide; in the end, all that passed is held against what
//! may have passed until the last request was sent. Bursts are held against that one by one: in the second
//! of silence before each of them the bucket has filled, whatever was left in it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::server;
use crate::error::BenchError;
use crate::report::{Across, Line, Panel, Reach, Row, Unit};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;
use crate::suite::doors::peers::tollgate;
use crate::suite::doors::process::{Server, connect, pause};
use crate::suite::doors::scrape;

/// Measures, and returns what is to be drawn.
pub(super) fn run(session: &mut Session) -> Result<Option<Panel>, BenchError> {
    let [over, under, asks] = ["too many", "too few", "exchanges of one about one hot key"]
        .map(|what| format!("five real nodes: {what}"));
    let [over_in_bursts, under_in_bursts] =
        ["too many", "too few"].map(|what| format!("five real nodes, bursts: {what}"));
    if !session.wants_any([&over, &under, &asks, &over_in_bursts, &under_in_bursts]) {
        return Ok(None);
    }
    let (tollgate, redis) = (tollgate(session)?, server::start()?);
    let store = server::url(&redis);
    let flags = ["--store", &store, "--threads", "1", "--log-level", "error"];
    let start = |_| Server::node(&tollgate, "--resp", RULES, &flags);
    let nodes = (0..NODES).map(start).collect::<Result<Vec<_>, _>>()?;
    session.progress.say("five real nodes");
    let (seconds, bursts) = if session.scale.is_quick() { (2, 1) } else { (10, 10) };
    let mut clients = Clients::of(&nodes)?;
    let course = clients.run(seconds, || exchanges(&nodes))?;
    add(session, [over, under], 0.1, &course);
    session.progress.say("five real nodes, bursts");
    add(session, [over_in_bursts, under_in_bursts], 0.3, &clients.run_in_bursts(bursts)?);
    let later = course.exchanges.iter().skip(1).copied().max().unwrap_or(0);
    let note = format!("in the busiest second, {} in the first", course.exchanges[0]);
    let row = Row::alone(asks, Unit::PerSecond, later as f64).noting(note);
    session.add(row.promising(Reach::AtMost(12.0, Unit::PerSecond)));
    let (passed, may): (Vec<_>, Vec<_>) = course.points.into_iter().unzip();
    let line = |subject, values| Line { subject, values };
    Ok(Some(Panel {
        quantity: "5 real nodes",
        unit: Unit::Admitted,
        across: Across::Seconds,
        keys: (1..=passed.len()).collect(),
        lines: vec![line("lending", passed), line("may pass", may)],
    }))
}

/// What passed beside what may have.
fn add(session: &mut Session, [over, under]: [String; 2], may_lack: f64, course: &Course) {
    let note = format!("{} of {} passed", course.passed, course.asked);
    let row = Row::alone(over, Unit::Percent, course.over_percent).noting(note);
    session.add(row.promising(Reach::AtMost(0.0, Unit::Percent)));
    let row = Row::alone(under, Unit::Percent, course.under_percent());
    session.add(row.promising(Reach::AtMost(may_lack, Unit::Percent)));
}

/// What passed over time.
#[derive(Default)]
struct Course {
    /// Every second: what passed until then, and what may have.
    points: Vec<(f64, f64)>,
    asked: u64,
    passed: u64,
    /// What may have passed until the last request was sent.
    may_pass: f64,
    /// By how much more passed at the worst moment, in per cent of what may have.
    over_percent: f64,
    /// How often the busiest node has asked the store, in each second.
    exchanges: Vec<u64>,
}

impl Course {
    /// By how much less passed in the end, in per cent of what may have.
    fn under_percent(&self) -> f64 {
        (100.0 * (1.0 - self.passed as f64 / self.may_pass)).max(0.0)
    }
}

/// How often each node has asked its store.
fn exchanges(nodes: &[Server]) -> Result<Vec<u64>, BenchError> {
    let of = |node: &Server| {
        let text = scrape::get(node.status, "/metrics")?;
        let mut counts =
            text.lines().filter_map(|line| line.strip_prefix("tollgate_store_exchanges_total "));
        let none = || BenchError::Child(format!("nothing of exchanges in:\n{text}"));
        counts.next().and_then(|count| count.parse().ok()).ok_or_else(none)
    };
    nodes.iter().map(of).collect()
}

/// One for each node.
struct Clients(Vec<Client>);

impl Clients {
    /// Connects, and has every node meet its store, with another key than the one that counts.
    fn of(nodes: &[Server]) -> Result<Self, BenchError> {
        let clients = nodes.iter().map(Client::of).collect::<Result<Vec<_>, _>>()?;
        let mut clients = Self(clients);
        for client in &mut clients.0 {
            client.ask("somebody", 1)?;
        }
        clients.hear_all()?;
        Ok(clients)
    }

    /// Asks for a second, again and again, each time after a second of silence.
    fn run_in_bursts(&mut self, bursts: usize) -> Result<Course, BenchError> {
        let mut all = Course::default();
        for _ in 0..bursts {
            let watch = Stopwatch::start();
            while watch.elapsed() < SILENCE {
                pause();
            }
            let burst = self.run(1, || Ok(Vec::new()))?;
            all.asked += burst.asked;
            all.passed += burst.passed;
            all.may_pass += burst.may_pass;
            all.over_percent = all.over_percent.max(burst.over_percent);
        }
        Ok(all)
    }

    /// Asks evenly, whatever the answers are. What could not be asked in time is caught up on.
    fn run(
        &mut self,
        seconds: usize,
        asked: impl Fn() -> Result<Vec<u64>, BenchError>,
    ) -> Result<Course, BenchError> {
        for client in &mut self.0 {
            (client.asked, client.answered, client.passed) = (0, 0, 0);
        }
        let (mut before, mut exchanges) = (asked()?, Vec::new());
        let (watch, mut last_sent) = (Stopwatch::start(), Duration::ZERO);
        let may = |since: Duration| BURST + RATE * since.as_secs_f64();
        let too_many = |passed: u64, now| 100.0 * (passed as f64 / may(now) - 1.0);
        let (mut points, mut over_percent) = (Vec::new(), 0.0_f64);
        while watch.elapsed() < Duration::from_secs(seconds as u64) {
            last_sent = watch.elapsed();
            let due = 1 + (last_sent.as_secs_f64() * PER_SECOND / NODES as f64) as u64;
            for client in &mut self.0 {
                client.ask("alice", due - client.asked)?;
                client.hear()?;
            }
            let (passed, now) = (self.passed(), watch.elapsed());
            over_percent = over_percent.max(too_many(passed, now));
            if now.as_secs() as usize > points.len() && points.len() + 1 < seconds {
                points.push((passed as f64, may(now)));
                let after = asked()?;
                let each = after.iter().zip(&before).map(|(after, before)| after - before);
                exchanges.push(each.max().unwrap_or(0));
                before = after;
            }
            pause();
        }
        self.hear_all()?;
        let passed = self.passed();
        points.push((passed as f64, may(last_sent)));
        Ok(Course {
            points,
            asked: self.0.iter().map(|client| client.asked).sum(),
            passed,
            may_pass: may(last_sent),
            exchanges,
            over_percent: over_percent.max(too_many(passed, watch.elapsed())),
        })
    }

    /// Waits for all answers.
    fn hear_all(&mut self) -> Result<(), BenchError> {
        let watch = Stopwatch::start();
        while self.0.iter().any(|client| client.answered < client.asked) {
            if watch.elapsed() > PATIENCE {
                return Err(BenchError::Child("a node does not answer".to_owned()));
            }
            self.0.iter_mut().try_for_each(Client::hear)?;
            pause();
        }
        Ok(())
    }

    fn passed(&self) -> u64 {
        self.0.iter().map(|client| client.passed).sum()
    }
}

/// A connection to a node.
struct Client {
    stream: TcpStream,
    /// What of an answer is there.
    heard: Vec<u8>,
    asked: u64,
    answered: u64,
    passed: u64,
}

impl Client {
    fn of(node: &Server) -> Result<Self, BenchError> {
        let stream = connect(node.port)?;
        stream.set_nodelay(true).map_err(BenchError::Network)?;
        stream.set_nonblocking(true).map_err(BenchError::Network)?;
        Ok(Self { stream, heard: Vec::new(), asked: 0, answered: 0, passed: 0 })
    }

    /// Asks so many times about a user.
    fn ask(&mut self, user: &str, times: u64) -> Result<(), BenchError> {
        let question =
            format!("*3\r\n$8\r\nTG.CHECK\r\n$4\r\nuser\r\n${}\r\n{user}\r\n", user.len());
        self.asked += times;
        let questions = question.repeat(times as usize);
        self.stream.write_all(questions.as_bytes()).map_err(BenchError::Network)
    }

    /// Takes the answers that are there. Each begins with its length and whether it is a denial.
    fn hear(&mut self) -> Result<(), BenchError> {
        let mut more = [0; 16 << 10];
        match self.stream.read(&mut more) {
            Ok(0) => return Err(BenchError::Child("a node closed a connection".to_owned())),
            Ok(read) => self.heard.extend_from_slice(&more[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(BenchError::Network(error)),
        }
        let length = YES.len();
        let mut at = 0;
        while let Some(answer) = self.heard.get(at..at + length) {
            let is_yes = answer == YES;
            if is_yes || answer == NO {
                self.answered += 1;
                self.passed += u64::from(is_yes);
                at += length;
            } else {
                at += 1;
            }
        }
        self.heard.drain(..at);
        Ok(())
    }
}

const NODES: usize = 5;
const RULES: &str = "rules: [{ name: hot, key: [user], limit: 1k/s, on_store_failure: deny }]";
const BURST: f64 = 1_000.0;
const RATE: f64 = 1_000.0;
const PER_SECOND: f64 = 10_000.0;
const PATIENCE: Duration = Duration::from_secs(10);

/// Between bursts: in this time an empty bucket is full again.
const SILENCE: Duration = Duration::from_secs(1);

/// How answers of eight parts begin.
const YES: &[u8] = b"*8\r\n:0\r\n";
const NO: &[u8] = b"*8\r\n:1\r\n";
