//! Many requests of one key at once: nobody is denied what the store has.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tollgate::{Engine, ManualClock, Request, Reserve, SharingConfig};

use crate::{Fleet, root, run, settle};

/// A key that comes often, and to which some of 6000 is lent.
async fn busy(rules: &str) -> Fleet {
    let fleet = Fleet::new(1, rules);
    for _ in 0..100 {
        assert!(fleet.passes(0, &root()).await);
        fleet.pass(Duration::from_millis(1)).await;
    }
    fleet
}

/// How many of these pass with what is kept for them.
fn passing_with(
    engine: &Engine<ManualClock>,
    requests: &[Request<'_>],
    reserve: &mut Reserve,
) -> usize {
    let mut passed = 0;
    engine.decide_each_with(requests, reserve, |_, it| passed += usize::from(it.is_allowed()));
    passed
}

#[test]
fn a_batch_that_needs_more_than_is_lent_gets_it() {
    run(async {
        let fleet = busy("rules: [{ name: a, key: [], limit: 6000/min }]").await;
        let before = fleet.nodes[0].sharing().unwrap();
        assert!(before.keys == 1, "{before:?}");
        assert_eq!(fleet.passing_at_once(0, &[root(); 3_000]).await, 3_000);
        let after = fleet.nodes[0].sharing().unwrap();
        assert!(after.exchanges <= before.exchanges + 2, "as one sum: {after:?}");
    });
}

#[test]
fn a_batch_of_a_new_key_is_one_question() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], limit: 6000/min }]");
        assert_eq!(fleet.passing_at_once(0, &[root(); 100]).await, 100);
        assert_eq!(fleet.nodes[0].sharing().unwrap().exchanges, 1);
    });
}

#[test]
fn a_batch_that_needs_more_than_there_is_gets_what_there_is() {
    run(async {
        for rules in [
            "rules: [{ name: a, key: [], limit: 100/day }]",
            "rules: [{ name: a, key: [], limit: 100/day, consistency: strict }]",
            "rules: [{ name: a, key: [], limit: 100/s }]",
        ] {
            let fleet = Fleet::new(2, rules);
            assert_eq!(fleet.passing_at_once(0, &[root().cost(93)]).await, 1);
            assert_eq!(fleet.passing_at_once(1, &[root(); 20]).await, 7, "{rules}");
            assert_eq!(fleet.passing_at_once(1, &[root(); 20]).await, 0, "{rules}");
        }
    });
}

#[test]
fn requests_of_a_batch_with_several_limits_get_all_of_them() {
    run(async {
        let rules = "rules:
  - { name: wide, key: [], limit: 6000/min }
  - { name: narrow, key: [], limit: 1000/day }";
        let fleet = busy(rules).await;
        assert_eq!(fleet.passing_at_once(0, &[root(); 850]).await, 850);
        assert_eq!(fleet.passing_at_once(0, &[root(); 60]).await, 50);
    });
}

#[test]
fn costs_of_a_batch_are_added_up() {
    run(async {
        let fleet = busy("rules: [{ name: a, key: [], limit: 6000/min }]").await;
        let requests = [0, 700, 0, 1_300, 2_000, 0].map(|cost| root().cost(cost));
        assert_eq!(fleet.passing_at_once(0, &requests).await, 6);
    });
}

#[test]
fn permits_of_a_batch_are_asked_for_in_all() {
    run(async {
        let fleet = Fleet::new(2, "rules: [{ name: a, key: [], concurrent: 10 }]");
        let held = fleet.decided_at_once(0, &[root(); 7]).await;
        assert!(held.iter().all(|ruling| ruling.is_allowed()));
        let rest = fleet.decided_at_once(1, &[root(); 5]).await;
        assert_eq!(rest.iter().filter(|ruling| ruling.is_allowed()).count(), 3);
        assert_eq!(fleet.passing_at_once(1, &[root(); 5]).await, 0);
    });
}

#[test]
fn a_request_that_finds_what_it_fetched_taken_by_others_is_fetched_for_again() {
    run(async {
        let fleet = busy("rules: [{ name: a, key: [], limit: 6000/min }]").await;
        let (engine, request) = (&fleet.nodes[0], root());
        while engine.try_decide(&request).is_ok() {}
        let wait = engine.try_decide(&request).expect_err("nothing is lent any more");
        let since = wait.since();
        wait.fetch().await;
        while engine.decide(&request).is_allowed() {}
        let wait = engine.try_decide_again(&request, since).expect_err("others were faster");
        assert_eq!(wait.since(), since, "its time is not longer for it");
        wait.fetch().await;
        assert!(engine.decide(&request).is_allowed(), "the store has thousands");
        let wait = engine.try_decide_again(&request, since).expect_err("that was somebody else");
        wait.fetch().await;
        assert!(engine.try_decide_again(&request, since).unwrap().is_allowed());
    });
}

#[test]
fn what_is_kept_for_a_batch_is_taken_by_nobody_else() {
    run(async {
        let fleet = busy("rules: [{ name: a, key: [], limit: 6000/min }]").await;
        let (engine, request, requests) = (&fleet.nodes[0], root(), [root(); 5]);
        let mut reserve = engine.reserve(&requests, &[]).expect("as much is lent");
        while engine.try_decide(&request).is_ok() {}
        assert_eq!(passing_with(engine, &requests, &mut reserve), 5);
        assert!(!engine.decide(&request).is_allowed(), "there was no more");
    });
}

#[test]
fn what_a_batch_leaves_goes_back() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 6000/min }]";
        let all = |fleet: &Fleet| {
            (0..).take_while(|_| fleet.nodes[0].try_decide(&root()).is_ok()).count()
        };
        let lent = all(&busy(rules).await);
        let fleet = busy(rules).await;
        let (engine, requests) = (&fleet.nodes[0], [root(); 5]);
        let mut reserve = engine.reserve(&requests, &[]).expect("as much is lent");
        assert_eq!(passing_with(engine, &requests[..2], &mut reserve), 2);
        drop(reserve);
        assert_eq!(all(&fleet), lent - 2);
    });
}

#[test]
fn what_the_store_said_to_a_batch_that_is_given_up_is_there_for_others() {
    run(async {
        let fleet =
            Fleet::new(1, "rules: [{ name: a, key: [], limit: 100/day, consistency: strict }]");
        let (engine, requests) = (&fleet.nodes[0], [root(); 5]);
        let wait = engine.reserve(&requests, &[]).expect_err("the store decides");
        let since = wait.since();
        wait.fetch().await;
        drop(engine.reserve_again(&requests, since).expect("it has decided"));
        let mut reserve = engine.reserve_again(&requests, since).expect("nothing is lost");
        assert_eq!(passing_with(engine, &requests, &mut reserve), 5);
        assert_eq!(engine.sharing().unwrap().exchanges, 5);
    });
}

#[test]
fn what_the_store_said_to_a_batch_that_something_else_denies_is_undone_at_once() {
    run(async {
        let fleet =
            Fleet::new(1, "rules: [{ name: a, key: [], limit: 100/s, consistency: strict }]");
        let (engine, requests) = (&fleet.nodes[0], [root(); 5]);
        let wait = engine.reserve(&requests, &[]).expect_err("the store decides");
        let since = wait.since();
        wait.fetch().await;
        engine.reserve_again(&requests, since).expect("it has decided").give_up();
        settle().await;
        assert_eq!(fleet.left(0, "a", &root()).await, 100);
    });
}

#[test]
fn permits_that_are_kept_for_a_batch_are_taken_by_nobody_else() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], concurrent: 10 }]");
        let (engine, requests) = (&fleet.nodes[0], [root(); 3]);
        drop(fleet.decided_at_once(0, &requests).await);
        let mut reserve = engine.reserve(&requests, &[]).expect("they are here");
        let mut held = Vec::new();
        while let Ok(ruling) = engine.try_decide(&root()) {
            held.push(ruling);
        }
        assert_eq!(passing_with(engine, &requests, &mut reserve), 3);
    });
}

#[test]
fn a_batch_does_not_count_on_what_others_can_take_while_it_waits() {
    run(async {
        let fleet = busy("rules: [{ name: a, key: [], limit: 6000/min }]").await;
        let (engine, request, requests) = (&fleet.nodes[0], root(), [root(); 1_000]);
        let wait = engine.reserve(&requests, &[]).expect_err("less is lent");
        let since = wait.since();
        wait.fetch().await;
        while engine.try_decide(&request.cost(50)).is_ok() {}
        let wait = engine.reserve_again(&requests, since).expect_err("others were faster");
        while engine.try_decide(&request).is_ok() {}
        wait.fetch().await;
        let mut reserve = engine.reserve_again(&requests, since).expect("the store has decided");
        assert_eq!(passing_with(engine, &requests, &mut reserve), 1_000);
    });
}

/// The store has lent the last of it to this node, and the answer is on its way when the store denies
/// a request that asks once more.
#[test]
fn who_is_denied_gets_what_is_on_its_way() {
    run(async {
        let patient = SharingConfig { timeout: Duration::from_mins(1), ..Default::default() };
        let fleet = Fleet::with(2, "rules: [{ name: a, key: [], limit: 6000/min }]", &patient);
        for _ in 0..100 {
            assert!(fleet.passes(0, &root()).await);
            fleet.pass(Duration::from_millis(1)).await;
        }
        let (engine, request) = (&fleet.nodes[0], root());
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        while engine.try_decide(&request).is_ok() {}
        settle().await;
        fleet.shop.is_slow.store(false, Ordering::Relaxed);
        let rest = fleet.left(1, "a", &request).await;
        assert!(fleet.passes(1, &request.cost(rest)).await);
        assert!(!fleet.passes(1, &request).await, "nothing is left in the store");

        let since = engine.try_decide(&request).expect_err("nothing is here").since();
        let wait = engine.try_decide_again(&request, since).expect_err("still nothing");
        let decided = async {
            wait.fetch().await;
            engine.decide(&request).is_allowed()
        };
        let handed_over = async {
            settle().await;
            fleet.shop.handed_over.notify_one();
        };
        assert!(tokio::join!(decided, handed_over).0);
    });
}

#[test]
fn the_second_time_ends_with_the_first() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 6000/min, on_store_failure: deny }]";
        let fleet = busy(rules).await;
        let (engine, request) = (&fleet.nodes[0], root());
        while engine.try_decide(&request).is_ok() {}
        let since = engine.try_decide(&request).expect_err("nothing is lent any more").since();
        fleet.clock.advance(Duration::from_millis(50));
        let before = engine.sharing().unwrap();
        let ruling = engine.try_decide_again(&request, since).expect("its time is over");
        assert!(!ruling.is_allowed(), "its rule decides");
        let after = engine.sharing().unwrap();
        assert_eq!((after.exchanges, after.degraded), (before.exchanges, before.degraded + 1));
    });
}

#[test]
fn all_who_wait_for_one_key_get_what_the_store_has() {
    run(async {
        let fleet = busy("rules: [{ name: a, key: [], limit: 6000/min }]").await;
        fleet.shop.is_far.store(true, Ordering::Relaxed);
        let request = root();
        let wait = || Box::pin(fleet.passes(0, &request));
        let mut waiting: Vec<_> = (0..1_000).map(|_| (wait(), None)).collect();
        poll_fn(|context| {
            for (one, passed) in waiting.iter_mut().filter(|(_, passed)| passed.is_none()) {
                if let Poll::Ready(passes) = Pin::new(one).poll(context) {
                    *passed = Some(passes);
                }
            }
            let is_done = waiting.iter().all(|(_, passed)| passed.is_some());
            if is_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let passed = waiting.iter().filter(|(_, passed)| *passed == Some(true)).count();
        assert_eq!(passed, 1_000);
    });
}

#[test]
fn those_who_look_at_once_hear_what_the_store_has() {
    run(async {
        for limit in ["100/day", "10/day", "100/day, consistency: strict"] {
            let rules = format!("rules: [{{ name: a, key: [path], limit: {limit} }}]");
            let fleet = Fleet::new(2, &rules);
            let [a, b] = ["/a", "/b"].map(|path| Request::new("GET", path));
            assert_eq!(fleet.passing_at_once(0, &[a.cost(4)]).await, 1);
            let (engine, peeks) = (&fleet.nodes[1], [a, b, a, a.cost(0)]);
            let wait = engine.reserve(&[], &peeks).expect_err("nothing is lent here");
            wait.fetch().await;
            let left = peeks.map(|peek| engine.peek(&peek).decision());
            let used = left.map(|decision| decision.limit() - decision.remaining());
            assert_eq!(used, [4, 0, 4, 4], "{limit}");
        }
    });
}

#[test]
fn a_batch_gets_as_many_permits_as_there_are() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], concurrent: 10 }]");
        for _ in 0..2 {
            let mut held = fleet.decided_at_once(0, &[root(); 12]).await;
            held.retain(|ruling| ruling.is_allowed());
            assert_eq!(held.len(), 10);
        }
    });
}

#[test]
fn permits_of_a_batch_are_the_rules_to_give_if_the_store_does_not_answer() {
    run(async {
        let rules = "rules: [{ name: a, key: [], concurrent: 10, on_store_failure: allow }]";
        let fleet = Fleet::new(1, rules);
        fleet.shop.go();
        assert_eq!(fleet.passing_at_once(0, &[root(); 3]).await, 3);
    });
}

/// A lease ends with its window, and what the store said when it had nothing left is good for longer.
#[test]
fn a_batch_that_comes_when_a_window_has_just_ended_asks_the_store() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 100/s, algorithm: sliding_window }]";
        let fleet = Fleet::new(1, rules);
        fleet.pass(Duration::from_millis(970)).await;
        assert_eq!(fleet.passing_at_once(0, &[root(); 110]).await, 100);
        assert_eq!(fleet.passing(&root(), 10).await, 0);
        fleet.pass(Duration::from_millis(40)).await;
        let (engine, requests) = (&fleet.nodes[0], [root(); 2]);
        let wait = engine.reserve(&requests, &[]).expect_err("nobody knows of this window");
        let since = wait.since();
        wait.fetch().await;
        let wait = engine.reserve_again(&requests, since).expect_err("there is not so much");
        wait.fetch().await;
        let mut reserve = engine.reserve_again(&requests, since).expect("the store has decided");
        assert_eq!(passing_with(engine, &requests, &mut reserve), 1);
        assert_eq!(engine.sharing().unwrap().degraded, 0);
    });
}
