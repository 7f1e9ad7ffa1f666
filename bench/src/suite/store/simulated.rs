//! What whole fleets do, in virtual time.

use tollgate_sim::Subject;
use tollgate_sim::figures::{
    Accuracy, Course, Crowd, Decisions, Hot, Load, Sharing, accuracy, crowd, hot,
};

use super::course::{DRAWN, IDEAL, LENDING, SYNCED};
use crate::error::BenchError;
use crate::report::{Across, Growth, Line, Panel, Reach, Row, Unit, count_of};
use crate::suite::Session;

/// Draws them beside a real fleet, if that was asked for.
pub(super) fn run(session: &mut Session, real: Vec<Panel>) -> Result<(), BenchError> {
    round_trips(session)?;
    exchanges(session)?;
    let rows = session.rows();
    for (load, words, most) in
        [(Load::Steady, "steady", 0.1), (Load::Bursts, "bursts", 0.3), (Load::Turns, "turns", 0.3)]
    {
        for (nodes, thousands) in fleets(session).iter().copied() {
            let fleet = Accuracy::of(nodes, load).of_thousands(thousands);
            passed(session, &fleet, words, most)?;
        }
    }
    // Who looks for something else is not shown what passes.
    if session.rows() > rows || !real.is_empty() {
        draw(session, real)?;
    }
    Ok(())
}

/// What passes in ten seconds of a load of ten times the limit.
fn draw(session: &mut Session, real: Vec<Panel>) -> Result<(), BenchError> {
    let mut panels = Vec::new();
    for (nodes, load, quantity) in [
        (1, Load::Steady, "1 node, simulated, steady load"),
        (1, Load::Bursts, "1 node, simulated, bursts"),
        (5, Load::Steady, "5 nodes, simulated, steady load"),
        (5, Load::Bursts, "5 nodes, simulated, bursts"),
        (10, Load::Steady, "10 nodes, simulated, steady load"),
        (10, Load::Bursts, "10 nodes, simulated, bursts"),
        (50, Load::Steady, "50 nodes, simulated, steady load"),
        (50, Load::Bursts, "50 nodes, simulated, bursts"),
    ] {
        let fleet = Accuracy { seconds: DRAWN as u64 / 10, ..Accuracy::of(nodes, load) };
        let lent = accuracy(&fleet, Sharing::Lending)?;
        let synced = accuracy(&fleet, Sharing::CounterSync)?;
        let passed = |course: &Course| course.points.iter().map(|point| point.1 as f64).collect();
        let ideal = |course: &Course| course.points.iter().map(|point| point.2 as f64).collect();
        panels.push(Panel {
            quantity,
            unit: Unit::Admitted,
            across: Across::Tenths,
            keys: (1..=lent.points.len()).collect(),
            lines: vec![
                Line::beside(LENDING, passed(&lent), ideal(&lent)),
                Line::beside(IDEAL, ideal(&lent), ideal(&lent)),
                Line::beside(SYNCED, passed(&synced), ideal(&synced)),
            ],
        });
    }
    panels.extend(real);
    session.draw(Growth { title: TITLE.to_owned(), about: ABOUT.to_owned(), panels });
    Ok(())
}

/// How many decisions wait for the store, of keys of which some are asked for all the time and most
/// of them seldom.
fn round_trips(session: &mut Session) -> Result<(), BenchError> {
    let fleet = if session.scale.is_quick() { Crowd::brief() } else { Crowd::default() };
    let (keys, nodes) = (count_of(fleet.keys as usize), fleet.nodes);
    let all = format!("simulated, Zipf over {keys} keys, {nodes} nodes, asked of the store");
    let fast = format!("{all}, keys above 10/s");
    let [all_allowed, fast_allowed] =
        [&all, &fast].map(|name| format!("{name}, of what is allowed"));
    if !session.wants_any([&all, &all_allowed, &fast, &fast_allowed]) {
        return Ok(());
    }
    session.progress.say(&all);
    let figures = crowd(&fleet)?;
    let slower = crowd(&Crowd { per_second: fleet.per_second / 10, ..fleet })?;
    let of_all = figures.all;
    let note = format!(
        "limits from 100/min on, {:.0} requests a second, {:.0} exchanges a second; {}; at a tenth of \
         the requests {:.1} %, and {:.3} % for keys above 10/s",
        of_all.requests(),
        figures.exchanges,
        shares(&of_all),
        100.0 * slower.all.waited(),
        100.0 * slower.fast.waited()
    );
    add_waited(session, all, of_all.waited(), 10.0, Some(note));
    add_waited(session, all_allowed, of_all.waited_of_allowed(), 10.0, None);
    let note = format!(
        "{:.0} % of all requests are for these; {}; the key that asks most often {:.2} %",
        100.0 * figures.fast.requests() / of_all.requests(),
        shares(&figures.fast),
        100.0 * figures.worst_fast.waited()
    );
    add_waited(session, fast, figures.fast.waited(), 1.0, Some(note));
    add_waited(session, fast_allowed, figures.fast.waited_of_allowed(), 1.0, None);
    Ok(())
}

/// How many are allowed and denied, and how many of these were asked of the store.
fn shares(decisions: &Decisions) -> String {
    let allowed = 100.0 * decisions.allowed / decisions.requests();
    let [of_allowed, of_denied] =
        [decisions.waited_of_allowed(), decisions.waited_of_denied()].map(|part| 100.0 * part);
    format!(
        "{allowed:.1} % are allowed, of which {of_allowed:.3} % were asked, and {:.1} % denied, of which \
         {of_denied:.3} % were",
        100.0 - allowed
    )
}

fn add_waited(session: &mut Session, name: String, part: f64, most: f64, note: Option<String>) {
    let row = Row::alone(name, Unit::Percent, 100.0 * part);
    let row = row.promising(Reach::AtMost(most, Unit::Percent));
    session.add(Row { note, ..row });
}

/// How often the store is asked about keys that are hot.
fn exchanges(session: &mut Session) -> Result<(), BenchError> {
    let fleet = Hot::of(Subject::bucket(QUOTA)?);
    let fleet = if session.scale.is_quick() { fleet.brief() } else { fleet };
    let asked = count_of(fleet.per_second as usize);
    let all = format!(
        "simulated, {} nodes, {asked} decisions/s for {} keys, exchanges",
        fleet.nodes, fleet.keys
    );
    if !session.wants(&all) {
        return Ok(());
    }
    session.progress.say(&all);
    let figures = hot(&fleet)?;
    let note = format!("{} hot keys of {QUOTA}", fleet.keys);
    let row = Row::alone(all, Unit::PerSecond, figures.exchanges);
    session.add(row.promising(Reach::AtMost(10_000.0, Unit::PerSecond)).noting(note));
    Ok(())
}

/// What passes beside what may, in a load of ten times the limit.
///
/// What is short at the end of a run is luck in part, so there are several: none of them may pass too
/// many, and what they lack on the average is what a fleet lacks.
fn passed(
    session: &mut Session,
    fleet: &Accuracy,
    words: &str,
    most: f64,
) -> Result<(), BenchError> {
    let Accuracy { nodes, quota, .. } = fleet;
    let over = format!("simulated, {nodes} nodes, {quota}, {words}: too many");
    let under = format!("simulated, {nodes} nodes, {quota}, {words}: too few");
    if !session.wants_any([&over, &under]) {
        return Ok(());
    }
    session.progress.say(&over);
    let seeds = seeds(session, fleet);
    let lent = Spread::of(fleet, Sharing::Lending, seeds)?;
    let synced = Spread::of(fleet, Sharing::CounterSync, seeds)?;
    let note = format!(
        "the most of {seeds} seeds; counters that are synced every 100 ms: {:.1} %",
        synced.most_over()
    );
    let row = Row::alone(over, Unit::Percent, lent.most_over()).noting(note);
    session.add(row.promising(Reach::AtMost(0.0, Unit::Percent)));
    let (best, worst) = lent.best_and_worst_under();
    let mut note = format!(
        "the mean of {seeds} seeds; best {best:.3} %, worst {worst:.3} %, {} above {most} %",
        lent.under.iter().filter(|under| **under > most).count()
    );
    // Where most of it cannot be helped, that is said.
    let waiting = fleet.waiting_percent();
    if fleet.load == Load::Bursts && waiting > most / 2.0 {
        let pause = 1_000.0 * *nodes as f64 / fleet.per_second as f64;
        note += &format!(
            "; a node is asked once in {pause:.0} ms, so a token waits for as long: \
             {waiting:.2} % alone"
        );
    }
    let row = Row::alone(under, Unit::Percent, lent.mean_under()).noting(note);
    session.add(row.promising(Reach::AtMost(most, Unit::Percent)));
    Ok(())
}

/// What each of several runs passed too many and too few, in per cent.
#[derive(Default)]
struct Spread {
    over: Vec<f64>,
    under: Vec<f64>,
}

impl Spread {
    /// Runs the fleet with as many seeds, the first of which is its own.
    fn of(fleet: &Accuracy, sharing: Sharing, seeds: u64) -> Result<Self, BenchError> {
        let mut spread = Self::default();
        for more in 0..seeds {
            let fleet = Accuracy { seed: fleet.seed + more, ..fleet.clone() };
            let course = accuracy(&fleet, sharing)?;
            spread.over.push(course.over_percent);
            spread.under.push(course.under_percent);
        }
        Ok(spread)
    }

    fn most_over(&self) -> f64 {
        self.over.iter().copied().fold(0.0, f64::max)
    }

    fn mean_under(&self) -> f64 {
        self.under.iter().sum::<f64>() / self.under.len() as f64
    }

    fn best_and_worst_under(&self) -> (f64, f64) {
        let under = || self.under.iter().copied();
        (under().fold(f64::INFINITY, f64::min), under().fold(0.0, f64::max))
    }
}

/// How many runs there are of a fleet. Ten times as many requests take ten times as long, and leave
/// less to chance.
fn seeds(session: &Session, fleet: &Accuracy) -> u64 {
    match fleet.per_second {
        _ if session.scale.is_quick() => 1,
        ..=10_000 => 12,
        _ => 4,
    }
}

/// How many nodes, and how many thousands they may let pass in a second.
fn fleets(session: &Session) -> &'static [(u64, u64)] {
    if session.scale.is_quick() { &[(5, 1)] } else { &[(1, 1), (5, 1), (10, 1), (50, 1), (50, 10)] }
}

/// Of hot keys, which are asked for half of it.
const QUOTA: &str = "10k/s";

const TITLE: &str = "How many more requests pass than may, in the course of time";
const ABOUT: &str = "A limit of 1000/s, asked for 10,000 times a second. 0: what one limiter lets pass that \
                     sees every request at once. Bursts are a second of silence and a second of requests.";
