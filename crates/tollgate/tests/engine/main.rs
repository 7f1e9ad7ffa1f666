//! Decisions by rules: all that apply or none, also while rules are exchanged.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod all_or_nothing;
mod batch;
mod blocks;
mod exchange;
mod heavy;
mod inspect;
mod keys;
mod limits;
mod model;
mod modes;
mod outcomes;
mod refund;
mod slots;
mod stats;
mod switches;
mod together;
mod traffic;
mod under_way;

use std::time::Duration;

use tollgate::{Engine, ManualClock, Request, RuleSet, Ruling};

const MINUTE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_nanos(1);

fn rules(text: &str) -> RuleSet {
    RuleSet::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// An engine with a clock that stands still.
fn engine(text: &str) -> (Engine<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Engine::builder(rules(text)).clock(clock.clone()).build().unwrap(), clock)
}

fn exchange(engine: &Engine<ManualClock>, text: &str) {
    engine.exchange(rules(text)).unwrap();
}

/// How many of so many equal requests pass, one after the other.
fn passing(engine: &Engine<ManualClock>, request: &Request<'_>, times: usize) -> usize {
    (0..times).filter(|_| engine.decide(request).is_allowed()).count()
}

/// What a rule has left for a request; `None` if it does not apply.
fn left(engine: &Engine<ManualClock>, rule: &str, request: &Request<'_>) -> Option<u64> {
    let ruling = engine.peek(request);
    let it = ruling.each().find(|each| each.name() == rule)?;
    Some(it.decision().remaining())
}

/// The rules that apply, in order.
fn names(ruling: &Ruling) -> Vec<&str> {
    ruling.each().map(|each| each.name()).collect()
}

fn get(path: &str) -> Request<'_> {
    Request::new("GET", path)
}
