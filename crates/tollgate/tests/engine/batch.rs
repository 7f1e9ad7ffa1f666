//! Many requests at once are decided as one after the other.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Engine, ManualClock, Outcome, Request, Ruling, Seed};

use crate::{MINUTE, engine, get, passing, rules};

const RATES: &str = "
tiers: { from: claims.plan, known: [free, pro], else: free }
rules:
  - { name: per-user, match: { path: /v1/** }, key: [user], limit: { free: 3/min, pro: 9/min },
      overrides: { user-1: 2/min } }
  - { name: writes, match: { method: POST }, key: [user, path], limit: 2/min, algorithm: sliding_window }
  - { name: logs, match: { path: /v1/logs }, key: [user], limit: 4/min, algorithm: sliding_log }
  - { name: all, key: [], limit: 40/min, cost: { attribute: header.x-cost } }";

const EVERYTHING: &str = "
  - { name: slots, match: { path: /v1/logs }, key: [user], concurrent: 2 }
  - { name: blocks, match: { method: POST }, key: [user], limit: 3/min, block_for: 2min }
  - { name: failures, key: [user], limit: 5/min, count_if: response.status == 401 }
  - { name: trial, key: [user], limit: 2/min, mode: shadow }";

const USERS: [&str; 4] = ["user-0", "user-1", "user-2", ""];
const PATHS: [&str; 4] = ["/v1/items", "/v1/logs", "/v2//items/../logs", "/"];

/// One request, and what becomes of it.
#[derive(Clone, Debug)]
struct Visit {
    user: usize,
    path: usize,
    write: bool,
    pro: bool,
    cost: Option<u8>,
    /// What its ruling is kept for, how it ends, or neither.
    ends: Option<u16>,
}

fn visit() -> impl Strategy<Value = Visit> {
    let ends = prop_oneof![Just(None), Just(Some(200)), Just(Some(401))];
    (0..4usize, 0..4usize, any::<bool>(), any::<bool>(), prop::option::of(0..4u8), ends).prop_map(
        |(user, path, write, pro, cost, ends)| Visit { user, path, write, pro, cost, ends },
    )
}

/// The attributes and headers of a visit.
type Said<'a> = ([(&'a str, &'a str); 2], Vec<(&'a str, &'a str)>);

fn said(visit: &Visit) -> Said<'static> {
    let cost = visit.cost.map(|cost| ("x-cost", ["0", "1", "2", "many"][usize::from(cost)]));
    let plan = if visit.pro { "pro" } else { "free" };
    ([("user", USERS[visit.user]), ("claims.plan", plan)], cost.into_iter().collect())
}

fn request<'a>(visit: &Visit, (attributes, headers): &'a Said<'_>) -> Request<'a> {
    let method = if visit.write { "POST" } else { "GET" };
    Request::new(method, PATHS[visit.path]).attributes(attributes).headers(headers)
}

/// What is done with a ruling: reported, or kept until the end.
fn end(
    engine: &Engine<ManualClock>,
    (visit, request): (&Visit, &Request<'_>),
    ruling: Ruling,
    kept: &mut Vec<tollgate::UnderWay>,
) -> String {
    let text = format!("{ruling:?} {} {:?}", ruling.is_allowed(), ruling.decision());
    match visit.ends {
        Some(status) => {
            engine.report(ruling, request, &Outcome { status: Some(status), headers: &[] });
        }
        None => kept.push(ruling.keep()),
    }
    text
}

fn new_engine(text: &str) -> (Engine<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    let builder = Engine::builder(rules(text)).seed(Seed::new(7)).keys(200);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

fn compare(text: &str, batches: &[(Vec<Visit>, u64)]) {
    let ((together, clock), (alone, other_clock)) = (new_engine(text), new_engine(text));
    let (mut kept, mut other_kept) = (Vec::new(), Vec::new());
    for (visits, passes) in batches {
        let said: Vec<_> = visits.iter().map(said).collect();
        let requests: Vec<_> = visits.iter().zip(&said).map(|(v, said)| request(v, said)).collect();
        let mut rulings = Vec::new();
        together.decide_batch(&requests, |at, ruling| {
            assert_eq!(at, rulings.len());
            rulings.push(end(&together, (&visits[at], &requests[at]), ruling, &mut kept));
        });
        let singly: Vec<_> = visits
            .iter()
            .zip(&requests)
            .map(|it| end(&alone, it, alone.decide(it.1), &mut other_kept))
            .collect();
        assert_eq!(rulings, singly);
        for clock in [&clock, &other_clock] {
            clock.advance(Duration::from_secs(*passes));
        }
        kept.truncate(3);
        other_kept.truncate(3);
    }
    assert_eq!(together.failures(), alone.failures());
    assert_eq!(together.top(99), alone.top(99));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_batch_is_its_requests_one_by_one(
        batches in prop::collection::vec((prop::collection::vec(visit(), 0..50), 0..90u64), 1..6),
    ) {
        compare(RATES, &batches);
        compare(&format!("{RATES}{EVERYTHING}"), &batches);
    }
}

#[test]
fn rules_that_are_exchanged_in_the_middle_decide_about_whoever_comes_next() {
    let (engine, _) = engine("rules: [{ name: old, key: [], limit: 100/h }]");
    let requests = vec![get("/"); 40];
    let mut decided = Vec::new();
    engine.decide_batch(&requests, |at, ruling| {
        if at == 3 {
            engine.exchange(rules("rules: [{ name: new, key: [], limit: 100/h }]")).unwrap();
        }
        let each = ruling.each().next().unwrap();
        decided.push((each.name().to_owned(), each.decision().remaining()));
    });
    let old = decided.iter().take_while(|(name, _)| name == "old").count();
    assert!((4..40).contains(&old), "those that had begun end with the old ones: {old}");
    for (at, (name, remaining)) in decided.iter().enumerate() {
        let (rule, spent) = if at < old { ("old", at + 1) } else { ("new", at + 1 - old) };
        assert_eq!((name.as_str(), *remaining), (rule, 100 - spent as u64), "at {at}");
    }
}

#[test]
fn an_empty_batch_decides_nothing() {
    let (engine, clock) = engine("rules: [{ name: a, key: [], limit: 1/min }]");
    engine.decide_batch(&[], |_, _| panic!("nobody asked"));
    clock.advance(MINUTE);
    assert_eq!(passing(&engine, &get("/"), 2), 1);
}

#[test]
fn a_ruling_that_is_lent_holds_what_is_not_taken_until_its_turn_ends() {
    let (engine, _) = engine("rules: [{ name: slots, key: [], concurrent: 1 }]");
    let requests = [get("/"); 20];
    let mut allowed = 0;
    engine.decide_each(&requests, |_, ruling| {
        allowed += u32::from(ruling.is_allowed());
        assert!(!engine.peek(&get("/")).is_allowed(), "its slot is taken");
    });
    assert_eq!(allowed, 20, "each has found the slot free");
    let mut under_way = Vec::new();
    engine.decide_each(&requests, |at, ruling| {
        assert_eq!(ruling.is_allowed(), at == 0);
        under_way.push(ruling.take_under_way());
    });
    assert!(under_way[0].needs_report() && !under_way[1].needs_report());
    drop(under_way);
    assert!(engine.decide(&get("/")).is_allowed());
}
