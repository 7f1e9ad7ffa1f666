//! Callers who give up before the store has had its time.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate::{Clock as _, SharingConfig, Tick};

use crate::paused::{GRAIN, Remote, now, run};
use crate::root;

/// What the callers have.
const HASTE: Duration = Duration::from_millis(15);

fn rule(limit: &str, policy: &str) -> String {
    format!("rules: [{{ name: a, key: [], {limit}, on_store_failure: {policy} }}]")
}

impl Remote {
    fn ask(&self) -> JoinHandle<(bool, Duration)> {
        self.ask_within(Duration::MAX)
    }

    /// Whether a request passes whose caller gives up after so long, and how long it waited.
    fn ask_within(&self, time: Duration) -> JoinHandle<(bool, Duration)> {
        let (engine, begin, until) = (self.engine.clone(), now(), self.clock.now().after(time));
        tokio::spawn(async move {
            let mut ruling = engine.try_decide(&root());
            while let Err(wait) = ruling {
                let since = wait.since();
                wait.until(until).fetch().await;
                ruling = engine.try_decide_again(&root(), since);
            }
            (ruling.unwrap().is_allowed(), now() - begin)
        })
    }

    /// The same for several at once: how many of them pass.
    fn ask_at_once(&self, requests: usize, until: Tick) -> JoinHandle<(usize, Duration)> {
        let (engine, begin) = (self.engine.clone(), now());
        tokio::spawn(async move {
            let requests = vec![root(); requests];
            let mut reserve = engine.reserve(&requests, &[]);
            while let Err(wait) = reserve {
                let since = wait.since();
                wait.until(until).fetch().await;
                reserve = engine.reserve_again(&requests, since);
            }
            let mut passing = 0;
            let each =
                |_, ruling: &mut tollgate::Ruling| passing += usize::from(ruling.is_allowed());
            engine.decide_each_with(&requests, &mut reserve.unwrap(), each);
            (passing, now() - begin)
        })
    }

    /// What is left of the limit.
    async fn left(&self) -> u64 {
        let engine = self.engine.clone();
        let look = tokio::spawn(async move {
            if let Err(wait) = engine.try_peek(&root()) {
                wait.fetch().await;
            }
            engine.peek(&root()).decision().remaining()
        });
        self.pass(40).await;
        look.await.unwrap()
    }
}

#[test]
fn who_gives_up_before_the_store_has_answered_has_the_word_of_its_rule_by_then() {
    run(async {
        let limits = ["limit: 10/day", "limit: 10/day, consistency: strict", "concurrent: 10"];
        for (limit, policy) in limits.iter().flat_map(|limit| [(limit, "allow"), (limit, "deny")]) {
            let remote = Remote::new(&rule(limit, policy), 1_000, SharingConfig::default());
            for round in 0..3 {
                let all: Vec<_> = (0..3).map(|_| remote.ask_within(HASTE)).collect();
                let patient = remote.ask();
                remote.pass(60).await;
                for one in all {
                    let (passes, waited) = one.await.unwrap();
                    assert_eq!(passes, policy == "allow", "{limit}, {policy}, {round}");
                    assert!(waited <= HASTE + GRAIN, "{limit}, {policy}, {round}: {waited:?}");
                }
                assert_eq!(patient.await.unwrap().0, policy == "allow");
            }
        }
    });
}

#[test]
fn many_at_once_have_it_by_then_as_well() {
    run(async {
        let limits = ["limit: 10/day", "limit: 10/day, consistency: strict", "concurrent: 10"];
        for (limit, policy) in limits.iter().flat_map(|limit| [(limit, "allow"), (limit, "deny")]) {
            let remote = Remote::new(&rule(limit, policy), 1_000, SharingConfig::default());
            let passing = remote.ask_at_once(5, remote.clock.now().after(HASTE));
            remote.pass(20).await;
            assert!(passing.is_finished(), "{limit}, {policy}");
            let (passing, waited) = passing.await.unwrap();
            assert_eq!(passing, if policy == "allow" { 5 } else { 0 }, "{limit}, {policy}");
            assert!(waited <= HASTE + GRAIN, "{limit}, {policy}: {waited:?}");
        }
    });
}

#[test]
fn what_a_store_spends_in_its_own_time_for_those_who_gave_up_is_undone() {
    run(async {
        let limit = "limit: 10/day, consistency: strict";
        for (policy, left) in [("deny", 10), ("allow", 2)] {
            let remote = Remote::new(&rule(limit, policy), 20, SharingConfig::default());
            for _ in 0..8 {
                let one = remote.ask_within(HASTE);
                remote.pass(30).await;
                assert_eq!(one.await.unwrap().0, policy == "allow");
            }
            let stats = remote.engine.sharing().unwrap();
            assert_eq!((stats.failures, stats.late, stats.degraded), (0, 0, 8), "{policy}");
            remote.pass(200).await;
            // What is spent too late for one pays for what its rule let pass, unless that is just being told.
            let most = if policy == "allow" { 12 } else { 16 };
            assert!((8..=most).contains(&remote.far.asked()), "{policy}: {}", remote.far.asked());
            assert_eq!(remote.left().await, left, "what has passed is paid once: {policy}");
        }
    });
}

/// The store spends the last of the limit for somebody whose rule has let him pass meanwhile. The same is
/// owed until the answer is here, and it may just be looked for then with what it could be paid.
#[test]
fn what_is_spent_too_late_stays_spent_also_while_what_passed_is_being_paid() {
    run(async {
        let rule = rule("limit: 1/day, consistency: strict", "allow");
        for before in 0..100 {
            let remote = Remote::new(&rule, 20, SharingConfig::default());
            remote.pass(before).await;
            let one = remote.ask_within(HASTE);
            remote.pass(300).await;
            assert_eq!(one.await.unwrap(), (true, HASTE));
            assert_eq!(remote.left().await, 0, "asked after {before} ms");
        }
    });
}

/// Whoever gave up is decided when the answer is here, because he is late himself. Which of two who are just
/// being decided passes does not matter.
#[test]
fn with_what_is_spent_too_late_one_passes_who_is_late_himself_or_another_but_not_both() {
    run(async {
        for policy in ["allow", "deny"] {
            let rule = rule("limit: 1/day, consistency: strict", policy);
            let remote = Remote::new(&rule, 20, SharingConfig::default());
            let (engine, until) = (remote.engine.clone(), remote.clock.now().after(HASTE));
            let wait = engine.try_decide(&root()).expect_err("the store has to be asked");
            let since = wait.since();
            let fetch = tokio::spawn(wait.until(until).fetch());
            remote.pass(21).await;
            fetch.await.unwrap();
            let other = remote.ask();
            remote.pass(25).await;
            let late = engine.try_decide_again(&root(), since).expect("it was fetched for");
            let passing = [other.await.unwrap().0, late.is_allowed()];
            assert_eq!(passing.into_iter().filter(|passes| *passes).count(), 1, "{policy}");
            remote.pass(500).await;
            assert_eq!(remote.left().await, 0, "{policy}");
            assert_eq!(engine.sharing().unwrap().degraded, 0, "{policy}");
        }
    });
}

#[test]
fn what_nobody_comes_for_after_all_is_undone() {
    run(async {
        let rule = rule("limit: 1/day, consistency: strict", "allow");
        let remote = Remote::new(&rule, 20, SharingConfig::default());
        let wait = remote.engine.try_decide(&root()).expect_err("the store has to be asked");
        let fetch = tokio::spawn(wait.until(remote.clock.now().after(HASTE)).fetch());
        remote.pass(500).await;
        fetch.await.unwrap();
        assert_eq!(remote.left().await, 1);
    });
}

/// Whoever gave up has asked before the key began anew, and is answered after that.
#[test]
fn what_was_spent_before_a_new_start_does_not_come_back_after_it() {
    run(async {
        for policy in ["deny", "allow"] {
            let rule = rule("limit: 1/day, consistency: strict", policy);
            let remote = Remote::new(&rule, 20, SharingConfig::default());
            let first = remote.ask_within(Duration::from_millis(5));
            remote.pass(7).await;
            assert_eq!(first.await.unwrap().0, policy == "allow");
            let engine = remote.engine.clone();
            let start =
                tokio::spawn(async move { engine.reset_waiting(&root(), None).unwrap().await });
            remote.pass(1).await;
            let second = remote.ask();
            remote.pass(60).await;
            assert_eq!(start.await.unwrap().counters, 1, "{policy}");
            assert!(second.await.unwrap().0, "it has begun anew: {policy}");
            let third = remote.ask();
            remote.pass(60).await;
            assert!(!third.await.unwrap().0, "that was all of it: {policy}");
            remote.pass(300).await;
            assert_eq!(remote.left().await, 0, "{policy}");
        }
    });
}

#[test]
fn what_is_lent_too_late_for_one_is_for_whoever_comes_next() {
    run(async {
        let remote = Remote::new(&rule("limit: 100/s", "deny"), 20, SharingConfig::default());
        let mut passing = 0;
        for _ in 0..20 {
            let one = remote.ask_within(HASTE);
            remote.pass(25).await;
            passing += usize::from(one.await.unwrap().0);
        }
        assert!(passing > 12, "{passing} of 20 found something here");
    });
}

/// Those who wait for the answer hear of it, and so do those who do not.
#[test]
fn who_gives_up_and_goes_on_has_the_store_asked_as_seldom_as_who_waits() {
    run(async {
        let mut asked = Vec::new();
        for time in [Duration::MAX, HASTE] {
            let remote = Remote::new(&rule("limit: 5/h", "deny"), 20, SharingConfig::default());
            let all = remote.ask_at_once(5, Tick::MAX);
            remote.pass(60).await;
            assert_eq!(all.await.unwrap().0, 5);
            for _ in 0..1_000 {
                remote.ask_within(time);
                remote.pass(1).await;
            }
            asked.push(remote.far.asked());
        }
        let [patient, hasty] = asked[..] else { panic!("{asked:?}") };
        assert!((20..300).contains(&patient) && hasty <= patient * 5 / 4, "{asked:?}");
    });
}

#[test]
fn a_store_is_left_alone_for_what_it_does_in_its_own_time_only() {
    run(async {
        let limit = "limit: 10/day, consistency: strict";
        let remote = Remote::new(&rule(limit, "deny"), 1_000, SharingConfig::default());
        let all: Vec<_> = (0..5).map(|_| remote.ask_within(HASTE)).collect();
        remote.pass(45).await;
        assert!(all.iter().all(JoinHandle::is_finished));
        let stats = remote.engine.sharing().unwrap();
        assert_eq!((stats.degraded, stats.failures), (5, 0));
        remote.pass(10).await;
        let stats = remote.engine.sharing().unwrap();
        assert_eq!((stats.failures, stats.is_degraded), (5, true));
    });
}

#[test]
fn who_waits_for_the_question_of_somebody_who_gave_up_has_its_answer() {
    run(async {
        let remote = Remote::new(&rule("limit: 100/s", "deny"), 20, SharingConfig::default());
        let hasty = remote.ask_at_once(3, remote.clock.now().after(HASTE));
        let patient = remote.ask_at_once(3, Tick::MAX);
        remote.pass(18).await;
        assert_eq!(hasty.await.unwrap(), (0, HASTE));
        assert_eq!(remote.far.asked(), 1, "one has asked for both");
        remote.pass(7).await;
        let (passing, waited) = patient.await.unwrap();
        assert_eq!(passing, 3);
        assert!(waited <= Duration::from_millis(20) + GRAIN, "{waited:?}");
    });
}

#[test]
fn who_has_given_up_on_arrival_does_not_wait_and_the_store_is_asked_for_those_who_come_next() {
    run(async {
        // What a rule lets pass is paid with the answer, and what is lent is for those who come next. If neither
        // is so, the answer is of no use to anybody.
        for (limit, policy, asked) in [
            ("limit: 100/day", "allow", &[1][..]),
            ("limit: 100/day", "deny", &[0, 1]),
            ("limit: 100/day, consistency: strict", "allow", &[0, 0]),
        ] {
            let remote = Remote::new(&rule(limit, policy), 20, SharingConfig::default());
            for asked in asked {
                let none = remote.ask_within(Duration::ZERO);
                remote.pass(10).await;
                assert_eq!(none.await.unwrap(), (policy == "allow", Duration::ZERO));
                assert_eq!(remote.far.asked(), *asked, "{limit}, {policy}");
            }
        }
    });
}

/// Those who find too little in the answer to another's question have the time to ask themselves.
#[test]
fn many_who_come_one_after_the_other_are_all_decided_by_a_store_that_is_not_late() {
    run(async {
        let limits = ["limit: 400/min", "limit: 330/s"];
        let takes = [1, 3, 8, 11, 16, 20, 24];
        for (limit, takes) in limits.iter().flat_map(|limit| takes.map(|takes| (limit, takes))) {
            let remote = Remote::new(&rule(limit, "deny"), takes, SharingConfig::default());
            for _ in 0..3 {
                let one = remote.ask();
                remote.pass(30).await;
                assert!(one.await.unwrap().0);
                remote.clock.advance(Duration::from_secs(20));
            }
            let mut all = Vec::new();
            for _ in 0..30 {
                all.extend((0..10).map(|_| remote.ask()));
                remote.pass(1).await;
            }
            remote.pass(60).await;
            for one in all {
                assert!(one.await.unwrap().0, "there is enough for all: {limit}, {takes} ms");
            }
            assert_eq!(remote.engine.sharing().unwrap().degraded, 0, "{limit}, {takes} ms");
        }
    });
}

#[test]
fn the_log_says_how_long_the_store_had() {
    run(async {
        let remote = Remote::new(&rule("limit: 10/day", "deny"), 40, SharingConfig::default());
        let hasty = remote.ask_within(HASTE);
        remote.pass(20).await;
        assert!(!hasty.await.unwrap().0);
        let said = timeout(Duration::ZERO, remote.engine.lapse()).await.expect("it is known");
        assert!(said.reason.contains("within 15ms"), "{said:?}");
    });
}

/// Those beyond the first 16,384 that gave up before the store had answered.
#[test]
fn no_more_questions_go_on_for_nobody_than_there_is_room_for() {
    run(async {
        let limit = "limit: 100k/day, algorithm: fixed_window, consistency: strict";
        let config = SharingConfig { timeout: Duration::from_secs(2), ..Default::default() };
        let remote = Remote::new(&rule(limit, "deny"), 100, config);
        let mut all = Vec::new();
        for _ in 0..20 {
            all.extend((0..1_000).map(|_| remote.ask_within(HASTE)));
            remote.pass(1).await;
        }
        remote.pass(20).await;
        assert!(all.iter().all(JoinHandle::is_finished));
        remote.pass(400).await;
        let spent = 100_000 - remote.left().await;
        assert_eq!(spent, 20_000 - 16_384, "of the others nothing is undone");
        let one = remote.ask_within(HASTE);
        remote.pass(400).await;
        assert!(!one.await.unwrap().0);
        assert_eq!(100_000 - remote.left().await, spent, "there is room again");
    });
}
