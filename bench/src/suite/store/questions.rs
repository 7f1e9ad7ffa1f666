//! How often a node asks the store about one key, however often it is asked about it itself.
//!
//! What counts is the busiest second of the busiest node, but for the first: there it finds out what it
//! needs, and every request that comes before the first answer does asks for itself. Some limits are far
//! above what is asked for, and some are a tenth of it. Requests come at random, which is harder than
//! evenly: several at once may find less than was expected for one.

use std::thread;
use std::time::Duration;

use tollgate_core::lease::Terms;
use tollgate_sim::Subject;
use tollgate_sim::figures::{Hot, HotFigures, hot};

use super::arrivals::Pace;
use super::client::Client;
use super::course::{Nodes, wait};
use super::real::{Fleet, NODES};
use crate::error::BenchError;
use crate::report::{Reach, Row, Unit, count_of};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;
use crate::suite::doors::process::Server;
use crate::suite::doors::scrape;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    real(session)?;
    simulated(session)?;
    whatever_comes(session)
}

/// One key at a time, at five real nodes.
fn real(session: &mut Session) -> Result<(), BenchError> {
    let names = REAL.map(|rate| name("five real nodes", rate));
    if !session.wants_any(&names) {
        return Ok(());
    }
    let fleet = Fleet::start(session, &rules())?;
    let mut clients = fleet.clients()?;
    for (rate, name) in REAL.into_iter().zip(names) {
        session.progress.say(&name);
        let mut counts = Vec::new();
        for limit in limits(rate) {
            // What was lent of the last key goes back before.
            wait(PAUSE);
            let path = path(rate, &limit);
            clients.0.iter_mut().for_each(|client| client.turn_to("alice", &path));
            counts.push((limit, fleet.count(&mut clients, rate, seconds(session))?));
        }
        session.add(row(name, &counts));
    }
    Ok(())
}

/// The same in virtual time, where a question and its answer take from two to four milliseconds.
fn simulated(session: &mut Session) -> Result<(), BenchError> {
    for rate in SIMULATED {
        let name = name("simulated, 5 nodes", rate);
        if !session.wants(&name) {
            continue;
        }
        session.progress.say(&name);
        let mut counts = Vec::new();
        for quota in limits(rate) {
            let subject = Subject::bucket(&quota)?;
            counts.push((quota, Counts::of(session, rate, subject)?));
        }
        session.add(row(name, &counts));
    }
    Ok(())
}

/// Many rates and limits, all the time and in bursts of many lengths, and nodes that are all as busy or one of
/// which is busier. What counts is the node that asks most often over twenty seconds.
fn whatever_comes(session: &mut Session) -> Result<(), BenchError> {
    let name = "simulated, 5 nodes: questions of one about a key, whatever comes".to_owned();
    if !session.wants(&name) {
        return Ok(());
    }
    session.progress.say(&name);
    let (nodes, seconds) = (NODES as u64, 4 * seconds(session));
    let bursts = || BURSTS.into_iter().filter(|_| !session.scale.is_quick()).map(Some);
    let (mut worst, mut most, mut first, mut above, mut all) = (Worst::default(), 0, 0, 0, 0);
    let mut loads = 0;
    let both =
        |quota| RATES.into_iter().flat_map(move |rate| HEAVIER.map(|times| (quota, rate, times)));
    for (quota, rate, heavier) in LIMITS.into_iter().flat_map(both) {
        let subject = Subject::bucket(quota)?;
        for millis in bursts().chain([None]) {
            let fleet = Hot {
                keys: 1,
                sample: 1,
                nodes,
                per_second: (nodes - 1 + heavier) * rate,
                bursts: millis.map(Duration::from_millis),
                heavier,
                seconds,
                ..Hot::of(subject.clone())
            };
            let figures = hot(&fleet)?;
            worst.meets(figures.busiest_lease, quota, &fleet);
            most = most.max(figures.most_in_a_second);
            first = first.max(figures.most_in_the_first);
            (above, all) = (above + figures.above_twelve, all + figures.seconds);
            loads += 1;
        }
    }
    let note = format!(
        "the most of {loads} loads, on average over {seconds} s: {}; {above} of {all} seconds of single nodes \
         have more than 12, and {most} at the most, but for the first",
        worst.load
    );
    let row =
        Row::alone(name, Unit::PerSecond, worst.mean).beside("in the first second", first as f64);
    session.add(row.promising(Reach::AtMost(12.0, Unit::PerSecond)).noting(note));
    Ok(())
}

/// The load of which a node asks most often, on average.
#[derive(Default)]
struct Worst {
    mean: f64,
    load: String,
}

impl Worst {
    fn meets(&mut self, mean: f64, quota: &str, fleet: &Hot) {
        if mean > self.mean {
            let Hot { per_second, nodes, bursts, heavier, .. } = fleet;
            let rate = per_second / (nodes - 1 + heavier);
            let when =
                bursts.map_or_else(|| "all the time".to_owned(), |burst| format!("{burst:?} long"));
            let who =
                if *heavier > 1 { format!(" and {heavier} times that") } else { String::new() };
            *self = Self { mean, load: format!("{quota}, {rate}/s{who}, {when}") };
        }
    }
}

fn name(fleet: &str, rate: u64) -> String {
    format!("{fleet}: questions of one about a key, {}/s", count_of(rate as usize))
}

pub(super) fn row(name: String, counts: &[(String, Counts)]) -> Row {
    let of = |(limit, counts): &(String, Counts)| {
        let Counts { first, most, mean } = counts;
        format!("{limit}: {first} in the first second, then up to {most}, {mean:.1} on average")
    };
    let note = counts.iter().map(of).collect::<Vec<_>>().join("; ");
    let most = |of: fn(&Counts) -> u64| counts.iter().map(|(_, counts)| of(counts)).max();
    let later = most(|counts| counts.most).unwrap_or(0) as f64;
    let first = most(|counts| counts.first).unwrap_or(0) as f64;
    let row = Row::alone(name, Unit::PerSecond, later).beside("in the first second", first);
    row.promising(Reach::AtMost(12.0, Unit::PerSecond)).noting(note)
}

/// Questions of the busiest node in a second.
pub(super) struct Counts {
    first: u64,
    /// In the busiest second but for the first.
    most: u64,
    /// In all of these.
    pub(super) mean: f64,
}

impl From<HotFigures> for Counts {
    fn from(figures: HotFigures) -> Self {
        let HotFigures { most_in_the_first, most_in_a_second, busiest_lease, .. } = figures;
        Self { first: most_in_the_first, most: most_in_a_second, mean: busiest_lease }
    }
}

impl Counts {
    /// In virtual time, at so many requests a second to each node.
    pub(super) fn of(session: &Session, rate: u64, subject: Subject) -> Result<Self, BenchError> {
        let (nodes, seconds) = (NODES as u64, 4 * seconds(session));
        let (keys, per_second) = (KEYS, KEYS * nodes * rate);
        let some = Hot { keys, sample: keys, nodes, per_second, seconds, ..Hot::of(subject) };
        Ok(hot(&some)?.into())
    }
}

impl Fleet {
    /// Asks each node so often in a second, and counts how often it asks then.
    fn count(
        &self,
        clients: &mut Nodes<Client>,
        rate: u64,
        seconds: u64,
    ) -> Result<Counts, BenchError> {
        let mut counts = vec![self.exchanges()?];
        let watch = Stopwatch::start();
        // Somebody else looks, so that nobody stops asking meanwhile.
        let looked = thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let at = |second| {
                    wait(Duration::from_secs(second).saturating_sub(watch.elapsed()));
                    self.exchanges()
                };
                (1..=seconds + 1).map(at).collect::<Result<Vec<_>, _>>()
            });
            clients.run(seconds + 1, Pace::Random(rate as f64))?;
            let lost = |_| BenchError::Child("whoever counts is gone".to_owned());
            looking.join().map_err(lost)?
        });
        counts.extend(looked?);
        let mut each = counts.windows(2).map(|pair| most_since(&pair[0], &pair[1]));
        let first = each.next().unwrap_or(0);
        let all = most_since(&counts[1], &counts[counts.len() - 1]);
        Ok(Counts { first, most: each.max().unwrap_or(0), mean: all as f64 / seconds as f64 })
    }

    /// How often each node has asked its store.
    fn exchanges(&self) -> Result<Vec<u64>, BenchError> {
        let of = |node: &Server| {
            let text = scrape::get(node.status, "/metrics")?;
            let mut counts = text
                .lines()
                .filter_map(|line| line.strip_prefix("tollgate_store_exchanges_total "));
            let none = || BenchError::Child(format!("nothing of exchanges in:\n{text}"));
            counts.next().and_then(|count| count.parse().ok()).ok_or_else(none)
        };
        self.nodes.iter().map(of).collect()
    }
}

/// The most that one node has more.
fn most_since(before: &[u64], after: &[u64]) -> u64 {
    after.iter().zip(before).map(|(after, before)| after - before).max().unwrap_or(0)
}

/// Twice what nodes are asked for, and a tenth of it. If that is so little in a second that it is not lent,
/// it is as much in a minute.
pub(super) fn limits(rate: u64) -> [String; 2] {
    let all = rate * NODES as u64;
    let tenth = if all < 10 * Terms::LEAST_TOKENS {
        format!("{}/min", 6 * all)
    } else {
        format!("{}/s", all / 10)
    };
    [format!("{}/s", 2 * all), tenth]
}

/// A rule for each rate and limit, and one for those who only meet the store.
fn rules() -> String {
    let rule = |(rate, limit): (u64, String)| {
        let path = path(rate, &limit);
        let name = path.trim_start_matches('/');
        format!(
            "{{ name: {name}, match: {{ path: {path} }}, key: [user], limit: {limit}, \
             on_store_failure: deny }}"
        )
    };
    let limits = REAL.into_iter().flat_map(|rate| limits(rate).map(|limit| (rate, limit)));
    let meet = "{ name: meet, match: { path: / }, key: [user], limit: 1k/s }".to_owned();
    format!("rules: [{}]", limits.map(rule).chain([meet]).collect::<Vec<_>>().join(", "))
}

/// Two rates may have the same limit, and each its own rule.
fn path(rate: u64, limit: &str) -> String {
    format!("/r{rate}-{}", limit.replace('/', "-"))
}

/// For so many seconds after the first.
fn seconds(session: &Session) -> u64 {
    if session.scale.is_quick() { 1 } else { 5 }
}

/// Requests in a second to each node.
const REAL: [u64; 3] = [10, 100, 2_000];
const SIMULATED: [u64; 4] = [10, 100, 1_000, 10_000];

/// What is tried where everything is: limits, requests in a second to each node, and milliseconds of
/// requests, which are followed by as many of silence.
const LIMITS: [&str; 5] = ["50/s", "200/s", "1k/s", "5k/s", "6k/min"];
const RATES: [u64; 6] = [10, 30, 100, 300, 1_000, 3_000];
const BURSTS: [u64; 10] = [30, 70, 110, 170, 220, 300, 420, 500, 600, 900];

/// And how many times as often as the others one node is asked.
const HEAVIER: [u64; 2] = [1, 6];

/// So many keys of each kind are simulated.
const KEYS: u64 = 4;

/// Longer than it takes until what is lent and not used goes back.
const PAUSE: Duration = Duration::from_millis(1_500);
