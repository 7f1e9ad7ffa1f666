//! Slots: held by rulings, and given back whatever becomes of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate::{Engine, ManualClock, Outcome, Request, Retry, RuleSet, Ruling};

use crate::{MINUTE, TICK, engine, exchange, get, left, passing};

const ACME: [(&str, &str); 1] = [("account", "acme")];
const BOLT: [(&str, &str); 1] = [("account", "bolt")];

fn export() -> Request<'static> {
    get("/exports").attributes(&ACME)
}

/// As many as get a slot.
fn hold(engine: &Engine<ManualClock>, times: usize) -> Vec<Ruling> {
    (0..times).map(|_| engine.decide(&export())).filter(|ruling| ruling.is_allowed()).collect()
}

#[test]
fn slots_are_held_by_rulings_and_come_back_when_these_are_dropped_or_reported() {
    let (engine, _) = engine("rules: [{ name: slots, key: [account], concurrent: 3 }]");
    let mut held = hold(&engine, 9);
    assert_eq!(held.len(), 3);
    let denied = engine.decide(&export());
    assert_eq!((denied.rule(), denied.decision().retry()), (Some("slots"), Some(Retry::OnReturn)));
    assert!(engine.decide(&get("/").attributes(&BOLT)).is_allowed(), "others have their own");
    drop(denied);
    held.pop();
    held.extend(hold(&engine, 9));
    assert_eq!(held.len(), 3);
    let outcome = Outcome { status: Some(200), headers: &[] };
    engine.report(held.pop().unwrap(), &export(), &outcome);
    assert_eq!(left(&engine, "slots", &export()), Some(1));
    thread::scope(|scope| scope.spawn(|| drop(held)).join().unwrap());
    assert_eq!(left(&engine, "slots", &export()), Some(3));
}

#[test]
fn who_only_looks_holds_nothing() {
    let (engine, _) = engine("rules: [{ name: slots, key: [account], concurrent: 1 }]");
    let looks: Vec<_> = (0..5).map(|_| engine.peek(&export())).collect();
    assert!(looks.iter().all(|ruling| ruling.is_allowed()));
    let held = hold(&engine, 2);
    assert_eq!(held.len(), 1);
    assert!(!engine.peek(&export()).is_allowed());
}

#[test]
fn slots_whose_holders_died_come_back_on_time() {
    let (engine, clock) =
        engine("rules: [{ name: slots, key: [account], concurrent: 2, expires: 1min }]");
    std::mem::forget(hold(&engine, 1));
    clock.advance(MINUTE / 2);
    let young = hold(&engine, 9);
    assert_eq!(young.len(), 1);
    clock.advance(MINUTE / 2 - TICK);
    assert_eq!(hold(&engine, 9).len(), 0);
    clock.advance(TICK);
    let next = hold(&engine, 9);
    assert_eq!(next.len(), 1, "the other one is half a minute younger");
    clock.advance(MINUTE);
    let late = hold(&engine, 9);
    assert_eq!(late.len(), 2);
    drop((young, next));
    assert_eq!(left(&engine, "slots", &export()), Some(0), "who is late gives nothing back");
}

#[test]
fn a_request_that_another_rule_denies_holds_no_slot() {
    for (first, second) in [("few", "slots"), ("slots", "few")] {
        let rule = |name| match name {
            "few" => "{ name: few, key: [], limit: 2/h }",
            _ => "{ name: slots, key: [account], concurrent: 5 }",
        };
        let (engine, _) = engine(&format!("rules: [{}, {}]", rule(first), rule(second)));
        let held = hold(&engine, 9);
        let denied: Vec<_> = (0..9).map(|_| engine.decide(&export())).collect();
        assert_eq!((held.len(), denied[0].rule()), (2, Some("few")));
        assert_eq!(
            left(&engine, "slots", &export()),
            Some(3),
            "denials are kept, and hold nothing"
        );
        drop(held);
        assert_eq!(left(&engine, "slots", &export()), Some(5));
    }
}

#[test]
fn a_request_that_finds_no_slot_spends_nothing_and_takes_no_other_slot() {
    let (engine, _) = engine(
        "rules:
  - { name: many, key: [], concurrent: 9 }
  - { name: rate, key: [], limit: 9/h }
  - { name: slots, key: [account], concurrent: 2 }",
    );
    let held = hold(&engine, 9);
    assert_eq!(held.len(), 2);
    let denied = engine.decide(&export());
    let each: Vec<_> = denied.each().map(|each| each.decision().remaining()).collect();
    assert_eq!(each, [7, 7, 0]);
    assert_eq!(left(&engine, "many", &export()), Some(7));
    assert_eq!(left(&engine, "rate", &export()), Some(7));
}

#[test]
fn threads_never_hold_more_slots_than_there_are_and_lose_none() {
    let (engine, _) = engine("rules: [{ name: slots, key: [account], concurrent: 3 }]");
    let out = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let ruling = engine.decide(&export());
                    if ruling.is_allowed() {
                        let others = out.fetch_add(1, Ordering::SeqCst);
                        assert!(others < 3, "{others} were out already");
                        thread::yield_now();
                        out.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(hold(&engine, 9).len(), 3);
}

#[test]
fn fewer_slots_are_free_only_once_enough_are_back() {
    let (engine, _) = engine("rules: [{ name: slots, key: [account], concurrent: 10 }]");
    let mut held = hold(&engine, 5);
    exchange(&engine, "rules: [{ name: slots, key: [account], concurrent: 3 }]");
    for out in [5, 4, 3] {
        assert_eq!((held.len(), passing(&engine, &export(), 3)), (out, 0));
        drop(held.pop());
    }
    held.extend(hold(&engine, 9));
    assert_eq!(held.len(), 3);
}

#[test]
fn more_slots_are_more_by_as_many() {
    let (engine, _) = engine("rules: [{ name: slots, key: [account], concurrent: 10 }]");
    let held = hold(&engine, 5);
    exchange(&engine, "rules: [{ name: slots, key: [account], concurrent: 20 }]");
    let more = hold(&engine, 40);
    assert_eq!(more.len(), 15);
    drop((held, more));
    assert_eq!(left(&engine, "slots", &export()), Some(20));
}

#[test]
fn slots_that_get_tiers_or_another_time_know_what_is_out() {
    let (engine, clock) = engine("rules: [{ name: slots, key: [account], concurrent: 5 }]");
    std::mem::forget(hold(&engine, 3));
    let tiers = "tiers: { from: claims.plan, known: [free, pro], else: pro }\n";
    let slots = "concurrent: { free: 1, pro: 4 }, expires: 1min";
    exchange(&engine, &format!("{tiers}rules: [{{ name: slots, key: [account], {slots} }}]"));
    let held = hold(&engine, 9);
    assert_eq!(held.len(), 1);
    clock.advance(MINUTE);
    assert_eq!(left(&engine, "slots", &export()), Some(4), "they have a time now");
}

/// Both were accepted, and did nothing.
#[test]
fn what_means_nothing_for_slots_is_refused() {
    for field in ["block_for: 1min", "count_if: response.status == 401", "limit: 5/s"] {
        let text = format!("rules: [{{ name: a, key: [], concurrent: 5, {field} }}]");
        let error = RuleSet::parse(&text).expect_err("it would do nothing").to_string();
        let name = field.split(':').next().unwrap();
        assert!(error.contains(name) && error.contains("`concurrent`"), "{error}");
    }
}
