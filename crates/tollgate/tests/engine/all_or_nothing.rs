//! A request that one rule denies spends nothing from the others, whoever else is asking.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{Engine, ManualClock, Request, Retry};

use crate::{engine, get, left, passing, rules};

#[test]
fn a_request_that_one_rule_denies_spends_nothing_from_the_others() {
    for few in ["token_bucket", "fixed_window", "sliding_window", "sliding_log"] {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let rules = [
                "- { name: many, key: [], limit: 100/h }".to_owned(),
                format!("- {{ name: few, key: [user], limit: 2/h, algorithm: {few} }}"),
                "- { name: log, key: [user], limit: 50/h, algorithm: sliding_log }".to_owned(),
            ];
            let text = order.map(|at| rules[at].as_str()).join("\n");
            let (engine, _) = engine(&format!("rules:\n{text}"));
            let (alice, bob) = ([("user", "alice")], [("user", "bob")]);
            let (alice, bob) = (get("/").attributes(&alice), get("/").attributes(&bob));
            assert_eq!(passing(&engine, &alice, 9), 2, "{text}");
            let denied = engine.decide(&alice);
            assert_eq!((denied.rule(), denied.is_allowed()), (Some("few"), false));
            assert_eq!(left(&engine, "many", &alice), Some(98), "{text}");
            assert_eq!(left(&engine, "log", &alice), Some(48), "{text}");
            assert_eq!(passing(&engine, &bob, 9), 2, "{text}");
        }
    }
}

#[test]
fn a_denial_says_what_is_left_of_the_others_without_it() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let rules = [
            "- { name: many, key: [], limit: 100/h }",
            "- { name: few, key: [user], limit: 2/h }",
            "- { name: window, key: [user], limit: 50/h, algorithm: fixed_window }",
        ];
        let text = order.map(|at| rules[at]).join("\n");
        let (engine, _) = engine(&format!("rules:\n{text}"));
        let alice = [("user", "alice")];
        let alice = get("/").attributes(&alice);
        assert_eq!(passing(&engine, &alice, 2), 2);
        // A cost that fits is denied for a while, one that never fits for ever.
        for (cost, retry) in [(1, Retry::After(HALF_AN_HOUR)), (3, Retry::Never)] {
            let denied = engine.decide(&alice.cost(cost));
            assert_eq!(denied.decision().retry(), Some(retry), "{text}");
            for each in denied.each() {
                let told = (each.is_allowed(), each.decision().remaining());
                let expected = match each.name() {
                    "many" => (true, 98),
                    "few" => (false, 0),
                    _ => (true, 48),
                };
                assert_eq!(told, expected, "{}: {text}", each.name());
            }
        }
    }
}

const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

#[test]
fn each_rule_takes_its_own_cost() {
    let (engine, _) = engine(
        "rules:
  - { name: requests, key: [], limit: 10/h }
  - { name: points, key: [], limit: 10/h, cost: { attribute: header.x-cost } }",
    );
    let cost = |cost| engine.decide(&get("/").headers(&[("x-cost", cost)]));
    assert!(cost("7").is_allowed());
    assert_eq!(cost("4").rule(), Some("points"));
    let never = cost("11");
    assert_eq!(never.decision().retry(), Some(Retry::Never));
    assert!(cost("3").is_allowed());
    assert_eq!(left(&engine, "requests", &get("/")), Some(8));
}

/// Runs the same work in four threads, and adds up what it returns.
fn in_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// What passed, by user and by address.
#[derive(Default)]
struct Passed {
    users: [AtomicU64; 3],
    ips: [AtomicU64; 3],
    all: AtomicU64,
}

const USERS: [&str; 3] = ["alice", "bob", "carol"];

fn ask(engine: &Engine<ManualClock>, passed: &Passed, user: usize, ip: usize) {
    let attributes = [("user", USERS[user])];
    let request = get("/").attributes(&attributes).peer([192, 0, 2, ip as u8].into());
    if engine.decide(&request).is_allowed() {
        passed.users[user].fetch_add(1, Ordering::Relaxed);
        passed.ips[ip].fetch_add(1, Ordering::Relaxed);
        passed.all.fetch_add(1, Ordering::Relaxed);
    }
}

fn crowd(engine: &Engine<ManualClock>, passed: &Passed) {
    // Two threads that bring a key at once may count it too high.
    (0..3).for_each(|at| ask(engine, passed, at, at));
    in_threads(|thread| {
        for turn in 0..300 {
            ask(engine, passed, (turn + thread) as usize % 3, (turn / 3) as usize % 3);
        }
        0
    });
}

#[test]
fn threads_never_pass_the_bound_of_any_rule_and_lose_nothing_of_it() {
    for round in 0..30u64 {
        let (users, ips) = (20 + round, 25);
        let (engine, _) = engine(&format!(
            "rules:
  - {{ name: all, key: [], limit: 60/h }}
  - {{ name: trial, key: [], limit: 5/h, mode: shadow }}
  - {{ name: users, key: [user], limit: {users}/h, algorithm: sliding_window }}
  - {{ name: slots, key: [user], concurrent: 3 }}
  - {{ name: ips, key: [ip], limit: {ips}/h, algorithm: sliding_log }}"
        ));
        let passed = Passed::default();
        crowd(&engine, &passed);
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let all = count(&passed.all);
        assert!(all <= 60, "{all} passed");
        for (at, user) in USERS.into_iter().enumerate() {
            let (of_user, of_ip) = (count(&passed.users[at]), count(&passed.ips[at]));
            assert!(of_user <= users && of_ip <= ips, "{of_user} of {users}, {of_ip} of {ips}");
            let attributes = [("user", user)];
            let request = get("/").attributes(&attributes).peer([192, 0, 2, at as u8].into());
            let left = |rule| left(&engine, rule, &request).unwrap();
            assert_eq!(left("slots"), 3, "nobody holds a slot any more");
            // Limits this small lend nothing: what is gone has passed.
            assert_eq!((left("users"), left("ips")), (users - of_user, ips - of_ip));
            assert_eq!(left("all"), 60 - all);
        }
    }
}

#[test]
fn the_sum_of_threads_is_exact_where_one_rule_is_the_strictest() {
    for algorithm in ["token_bucket", "fixed_window", "sliding_window", "sliding_log"] {
        for _ in 0..20 {
            let text = format!(
                "rules:
  - {{ name: wide, key: [], limit: 90/h }}
  - {{ name: narrow, key: [], limit: 40/h, algorithm: {algorithm} }}"
            );
            let engine = Engine::builder(rules(&text)).clock(ManualClock::new()).build().unwrap();
            // Two threads that bring a key at once may count it too high.
            assert!(engine.decide(&get("/")).is_allowed());
            let request = Request::new("GET", "/");
            let passed = in_threads(|_| passing(&engine, &request, 30) as u64);
            assert_eq!(passed + 1, 40, "{algorithm}");
            assert_eq!(left(&engine, "wide", &request), Some(50), "{algorithm}");
        }
    }
}
