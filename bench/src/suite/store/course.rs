//! What nodes let pass in the course of time, beside what may have passed.
//!
//! Time begins before the first request is sent. What was heard until some moment is held against what
//! may have passed until then, so too many cannot hide; in the end, all that passed is held against what
//! may have passed until the last request was sent. Bursts are held against that one by one: in the second
//! of silence before each of them the bucket has filled, whatever was left in it.

use std::time::Duration;

use super::arrivals::{Arrivals, Pace};
use crate::error::BenchError;
use crate::report::{Across, Line, Panel, Unit};
use crate::stopwatch::Stopwatch;
use crate::suite::doors::process::pause;

/// Somebody who is asked whether requests may pass, and answers when it can.
pub(super) trait Node {
    /// Asks so many times.
    fn ask(&mut self, times: u64) -> Result<(), BenchError>;

    /// Takes the answers that are there.
    fn hear(&mut self) -> Result<(), BenchError>;

    /// What was asked and answered so far.
    fn tally(&self) -> Tally;
}

/// How many requests there were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) passed: u64,
}

/// What passed over time.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Every tenth of a second: what passed until then, and what one limiter would have let pass that
    /// had seen everything that was answered.
    points: Vec<(f64, f64)>,
    pub(super) asked: u64,
    pub(super) passed: u64,
    /// What may have passed until the last request was sent.
    may_pass: f64,
    /// By how much more passed at the worst moment, in per cent of what may have.
    pub(super) over_percent: f64,
}

impl Course {
    /// By how much less passed in the end, in per cent of what may have.
    pub(super) fn under_percent(&self) -> f64 {
        (100.0 * (1.0 - self.passed as f64 / self.may_pass)).max(0.0)
    }

    /// Draws its first seconds beside those of others who were asked the same.
    pub(super) fn panel(&self, quantity: &'static str, synced: &Self) -> Panel {
        let tenths = self.points.len().min(synced.points.len()).min(DRAWN);
        let passed = |course: &Self| course.points[..tenths].iter().map(|point| point.0).collect();
        let ideal = |course: &Self| course.points[..tenths].iter().map(|point| point.1).collect();
        Panel {
            quantity,
            unit: Unit::Admitted,
            across: Across::Tenths,
            keys: (1..=tenths).collect(),
            lines: vec![
                Line::beside(LENDING, passed(self), ideal(self)),
                Line::beside(IDEAL, ideal(self), ideal(self)),
                Line::beside(SYNCED, passed(synced), ideal(synced)),
            ],
        }
    }

    /// Adds a burst, and the silence before it.
    fn add(&mut self, burst: &Self) {
        let (passed, ideal) = self.points.last().copied().unwrap_or_default();
        self.points.extend([(passed, ideal)].repeat(burst.points.len()));
        self.points.extend(burst.points.iter().map(|point| (passed + point.0, ideal + point.1)));
        self.asked += burst.asked;
        self.passed += burst.passed;
        self.may_pass += burst.may_pass;
        self.over_percent = self.over_percent.max(burst.over_percent);
    }
}

/// All who share a limit.
pub(super) struct Nodes<N>(pub(super) Vec<N>);

impl<N: Node> Nodes<N> {
    /// Asks for a second, again and again, each time after a second of silence.
    pub(super) fn run_in_bursts(&mut self, bursts: usize) -> Result<Course, BenchError> {
        let mut all = Course::default();
        for _ in 0..bursts {
            wait(SILENCE);
            all.add(&self.run(1, PACE)?);
        }
        Ok(all)
    }

    /// Asks each node at that pace, whatever the answers are. What could not be asked in time is caught up
    /// on.
    pub(super) fn run(&mut self, seconds: u64, pace: Pace) -> Result<Course, BenchError> {
        let mut arrivals: Vec<_> =
            (0..self.0.len() as u64).map(|node| Arrivals::new(pace, node)).collect();
        let before: Vec<_> = self.0.iter().map(Node::tally).collect();
        let (watch, mut last_sent) = (Stopwatch::start(), Duration::ZERO);
        let may = |since: Duration| BURST + RATE * since.as_secs_f64();
        let too_many = |passed: u64, now| 100.0 * (passed as f64 / may(now) - 1.0);
        let (mut points, mut over_percent) = (Vec::new(), 0.0_f64);
        while watch.elapsed() < Duration::from_secs(seconds) {
            last_sent = watch.elapsed();
            for ((node, before), arrivals) in self.0.iter_mut().zip(&before).zip(&mut arrivals) {
                let due = arrivals.until(last_sent);
                node.ask(due - (node.tally().asked - before.asked))?;
                node.hear()?;
            }
            let (tally, now) = (self.since(&before), watch.elapsed());
            over_percent = over_percent.max(too_many(tally.passed, now));
            // If a moment took longer than that, its points are the same.
            while now.as_millis() as usize / 100 > points.len()
                && points.len() + 1 < tenths(seconds)
            {
                points.push((tally.passed as f64, may(now).min(tally.answered as f64)));
            }
            pause();
        }
        self.hear_all()?;
        let Tally { asked, passed, .. } = self.since(&before);
        let may_pass = may(last_sent);
        points.resize(tenths(seconds), (passed as f64, may_pass.min(asked as f64)));
        over_percent = over_percent.max(too_many(passed, watch.elapsed()));
        Ok(Course { points, asked, passed, may_pass, over_percent })
    }

    /// Waits for all answers.
    pub(super) fn hear_all(&mut self) -> Result<(), BenchError> {
        let watch = Stopwatch::start();
        let is_behind = |node: &N| node.tally().answered < node.tally().asked;
        while self.0.iter().any(is_behind) {
            if watch.elapsed() > PATIENCE {
                return Err(BenchError::Child("a node does not answer".to_owned()));
            }
            self.0.iter_mut().try_for_each(Node::hear)?;
            pause();
        }
        Ok(())
    }

    /// What came since then, of all nodes.
    fn since(&self, before: &[Tally]) -> Tally {
        let mut all = Tally::default();
        for (node, before) in self.0.iter().zip(before) {
            let now = node.tally();
            all.asked += now.asked - before.asked;
            all.answered += now.answered - before.answered;
            all.passed += now.passed - before.passed;
        }
        all
    }
}

/// Lets time pass.
pub(super) fn wait(time: Duration) {
    let watch = Stopwatch::start();
    while watch.elapsed() < time {
        pause();
    }
}

const fn tenths(seconds: u64) -> usize {
    10 * seconds as usize
}

/// The lines of all pictures of what passes.
pub(super) const LENDING: &str = "lending";
pub(super) const IDEAL: &str = "may pass";
pub(super) const SYNCED: &str = "synced counters";

/// So many tenths of a second are drawn.
pub(super) const DRAWN: usize = 100;

/// The limit, and as many requests to each of five nodes that there are ten times as many.
pub(super) const BURST: f64 = 1_000.0;
pub(super) const RATE: f64 = 1_000.0;
pub(super) const PACE: Pace = Pace::Even(2_000.0);

/// Between bursts: in this time an empty bucket is full again.
const SILENCE: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(10);
