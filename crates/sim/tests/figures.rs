//! The figures that lending has to reach, in runs as short as they tell something.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate_sim::figures::{
    Accuracy, Course, Crowd, Hot, Limits, Load, Sharing, accuracy, crowd, hot,
};
use tollgate_sim::{Fleet, Pace, Plan, SECOND, Subject};

#[test]
fn nine_of_ten_requests_of_a_crowd_need_no_question() {
    let same = |quota: &str| Limits::Same(quota.into());
    for limits in [same("100/min"), same("1k/min"), Limits::Tiers] {
        let figures = crowd(&Crowd { limits, sample: 4, ..Crowd::default() }).unwrap();
        assert!((450e3..550e3).contains(&figures.all.requests()), "{figures:?}");
        assert!(figures.all.waited() <= 0.1, "{figures:?}");
        assert!(figures.fast.waited() <= 0.01, "{figures:?}");
    }
}

#[test]
fn those_that_pass_need_few_questions_as_well() {
    let figures = crowd(&Crowd { sample: 4, ..Crowd::default() }).unwrap();
    assert!(figures.all.allowed > 4.0 * figures.all.denied, "most pass: {figures:?}");
    assert!(figures.fast.allowed > 4.0 * figures.fast.denied, "most pass: {figures:?}");
    assert!(figures.fast.denied > 0.0, "some do not: {figures:?}");
    assert!(figures.all.waited_of_allowed() <= 0.1, "{figures:?}");
    assert!(figures.fast.waited_of_allowed() <= 0.01, "{figures:?}");
    assert!(figures.worst_fast.waited() <= 0.01, "{figures:?}");
}

#[test]
fn hot_keys_ask_the_store_seldom_whether_they_pass_or_not() {
    for quota in ["10k/s", "1k/s"] {
        let few = Hot { sample: 1, seconds: 5, ..Hot::of(bucket(quota)) };
        let figures = hot(&few).unwrap();
        assert!(figures.requests > 490e3 && figures.exchanges < 10e3, "{quota}: {figures:?}");
        assert!(figures.busiest_lease <= 12.0, "{quota}: {figures:?}");
        assert!(figures.local > 0.999, "{quota}: {figures:?}");
    }
}

/// Requests that are some ten milliseconds apart come with pauses after which a node would give back what it
/// has, and then ask again.
#[test]
fn keys_that_are_neither_hot_nor_cold_ask_the_store_as_seldom() {
    for (quota, per_node) in [("100/s", 80), ("200/s", 100), ("300/s", 100), ("1k/s", 120)] {
        let (keys, nodes) = (8, 5);
        let per_second = per_node * keys * nodes;
        let some = Hot { keys, sample: keys, nodes, per_second, ..Hot::of(bucket(quota)) };
        let figures = hot(&some).unwrap();
        assert!(figures.most_in_a_second <= 12, "{quota}, {per_node}/s: {figures:?}");
    }
}

/// Until the first answer is there requests ask for themselves, and a node that does not know yet what it needs asks
/// more often.
#[test]
fn the_first_second_of_a_key_has_no_flood_of_questions() {
    for (quota, per_node) in [("100k/s", 10_000), ("5k/s", 10_000), ("500/s", 1_000), ("50/s", 100)]
    {
        let (keys, nodes) = (2, 5);
        let per_second = per_node * keys * nodes;
        let busy =
            Hot { keys, sample: keys, nodes, per_second, seconds: 4, ..Hot::of(bucket(quota)) };
        let figures = hot(&busy).unwrap();
        assert!(figures.most_in_the_first <= 30, "{quota}, {per_node}/s: {figures:?}");
        assert!(figures.most_in_a_second <= 12, "{quota}, {per_node}/s: {figures:?}");
    }
}

/// Whatever comes in a silence is found out anew: what is lent goes back, and is asked for again.
#[test]
fn keys_that_come_in_bursts_ask_the_store_as_seldom() {
    for (quota, per_node, millis) in [
        ("5k/s", 500, 100),
        ("500/s", 3_000, 170),
        ("1k/s", 500, 220),
        ("100/s", 3_000, 300),
        ("200/s", 1_000, 600),
        ("1k/s", 3_000, 900),
    ] {
        let (keys, nodes) = (4, 5);
        let per_second = per_node * keys * nodes;
        let bursts = Some(Duration::from_millis(millis));
        let hot_keys =
            Hot { keys, sample: keys, nodes, per_second, bursts, ..Hot::of(bucket(quota)) };
        let figures = hot(&hot_keys).unwrap();
        let load = format!("{quota}, {per_node}/s, {millis} ms: {figures:?}");
        assert!(figures.busiest_lease <= 12.0, "{load}");
        assert!(figures.most_in_a_second <= 20, "{load}");
        assert!(figures.most_in_the_first <= 25, "{load}");
        assert!(figures.requests > 0.4 * per_second as f64, "{load}");
    }
}

/// The others hold what they do not need when one node is busier, and it asks for the rest.
#[test]
fn the_busiest_of_unlike_nodes_asks_as_seldom() {
    let (keys, nodes, heavier) = (2, 5, 6);
    for (quota, per_node, millis) in
        [("1k/s", 200, None), ("1k/s", 120, Some(300)), ("100/s", 40, None), ("10k/s", 3_000, None)]
    {
        let per_second = per_node * keys * (nodes - 1 + heavier);
        let (subject, bursts) = (bucket(quota), millis.map(Duration::from_millis));
        let unlike =
            Hot { keys, sample: keys, nodes, per_second, bursts, heavier, ..Hot::of(subject) };
        let figures = hot(&unlike).unwrap();
        assert!(figures.busiest_lease <= 12.0, "{per_node}/s, {millis:?}: {figures:?}");
        let least = if millis.is_some() { 0.4 } else { 0.9 };
        assert!(figures.requests > least * per_second as f64, "{figures:?}");
    }
}

/// As long as a lease lasts for a quarter of a second or so.
#[test]
fn short_leases_need_no_more_questions() {
    for per_node in [150, 800, 3_000] {
        let (keys, nodes) = (2, 5);
        let per_second = per_node * keys * nodes;
        let subject = bucket("1k/s burst 500");
        let short = Hot { keys, sample: keys, nodes, per_second, ..Hot::of(subject) };
        let figures = hot(&short).unwrap();
        assert!(figures.busiest_lease <= 12.0, "{per_node}/s: {figures:?}");
    }
}

/// Limits that refill in less than a second have leases that last for a tenth of one.
#[test]
fn short_leases_are_renewed_before_they_are_used_up_and_no_more_often() {
    // And so often: docs/sharing.md says so of busy keys.
    for (quota, most) in [("210", 25.0), ("300", 18.0), ("400", 14.0), ("500", 12.0)] {
        let (keys, nodes) = (2, 5);
        let subject = bucket(&format!("1k/s burst {quota}"));
        for per_second in [2 * 800, 2 * 5 * 800] {
            let short = Hot { keys, sample: keys, nodes, per_second, ..Hot::of(subject.clone()) };
            let figures = hot(&short).unwrap();
            assert!(figures.local > 0.99, "{quota}: {figures:?}");
            assert!(figures.busiest_lease <= most, "{quota}: {figures:?}");
        }
    }
}

/// Windows and leaky buckets are lent as token buckets are.
#[test]
fn whatever_else_is_lent_needs_no_more_questions() {
    let (keys, nodes) = (2, 5);
    let loads = [(10, 100, "s"), (100, 1_000, "s"), (100, 50, "s"), (100, 6_000, "min")];
    let faster = [(1_000, 10_000, "s"), (1_000, 500, "s"), (1_000, 30_000, "min")];
    for (per_node, count, period) in loads.into_iter().chain(faster) {
        for subject in no_token_buckets(count, period) {
            let per_second = per_node * keys * nodes;
            let fleet = Hot { keys, sample: keys, nodes, per_second, ..Hot::of(subject.clone()) };
            let figures = hot(&fleet).unwrap();
            let load = format!("{subject}, {per_node}/s: {figures:?}");
            assert!(figures.most_in_a_second <= 12, "{load}");
            assert!(figures.requests > 0.9 * per_second as f64, "{load}");
            let bursts = Some(Duration::from_millis(300));
            let figures = hot(&Hot { bursts, ..fleet }).unwrap();
            let load = format!("{subject}, {per_node}/s in bursts: {figures:?}");
            assert!(figures.busiest_lease <= 12.0, "{load}");
            assert!(figures.most_in_a_second <= 20, "{load}");
        }
    }
}

/// So many in that period, in each of the other ways.
fn no_token_buckets(count: u64, period: &str) -> [Subject; 3] {
    let quota = format!("{count}/{period}");
    let police = Subject::police(&format!("{quota} burst {count}"));
    [Subject::fixed(&quota), Subject::sliding(&quota), police].map(Result::unwrap)
}

/// Permits are asked for when one is missing, so a single second may have more.
#[test]
fn permits_need_no_more_questions_on_the_average() {
    let (keys, nodes) = (2, 5);
    // Each is out for 150 ms: there are twice as many as it takes, as many, half or a tenth of them.
    for (per_node, permits) in [
        (10, 15),
        (10, 3),
        (100, 150),
        (100, 75),
        (100, 37),
        (100, 7),
        (1_000, 1_500),
        (1_000, 375),
    ] {
        let subject = Subject::permits(NonZeroU32::new(permits).unwrap());
        let per_second = per_node * keys * nodes;
        let fleet = Hot { keys, sample: keys, nodes, per_second, ..Hot::of(subject) };
        let figures = hot(&fleet).unwrap();
        let load = format!("{permits} permits, {per_node}/s: {figures:?}");
        assert!(figures.busiest_lease <= 12.0, "{load}");
        assert!(figures.most_in_a_second <= 25, "{load}");
        assert!(figures.requests > 0.9 * per_second as f64, "{load}");
    }
}

/// What is not needed at one half of the nodes is, at the other.
#[test]
fn permits_move_to_nodes_that_need_them() {
    let permits = Subject::permits(NonZeroU32::new(200).unwrap());
    let calm = Plan::calm(1, permits, 5, SECOND / 800);
    let turns = Some(SECOND);
    let mut fleet = Fleet::new(Plan { pace: Pace::About(SECOND / 800), turns, ..calm }).unwrap();
    fleet.run_until(Plan::START + 30 * SECOND).unwrap();
    // All of them all the time would be 40,000: each is out for 150 ms.
    let passed = fleet.outcome().passed;
    assert!(passed > 30_000, "{passed}");
}

/// Of fifty nodes some have just been lent something that they have not been asked for yet: in ten seconds it is
/// partly chance how much that is.
#[test]
fn lending_passes_never_more_and_hardly_less_than_may() {
    for nodes in [1, 5, 10, 50] {
        let under = |seed| lent(nodes, Load::Steady, seed).under_percent;
        let mean = (1..=SEEDS).map(under).sum::<f64>() / SEEDS as f64;
        assert!(mean <= 0.1, "{nodes} nodes: {mean}");
        let turns = lent(nodes.max(2), Load::Turns, 1).under_percent;
        assert!(turns <= 0.3, "{nodes} nodes: {turns}");
    }
}

#[test]
fn bursts_find_what_has_come_in_since_the_last() {
    for (nodes, seed) in [(1, 1), (1, 2), (1, 3), (1, 4), (5, 1), (5, 2), (10, 1), (10, 2)] {
        let under = lent(nodes, Load::Bursts, seed).under_percent;
        assert!(under <= 0.3, "{nodes} nodes, seed {seed}: {under}");
    }
    // A token waits for 5 ms here until its node is asked again, which is a quarter of a per cent.
    let mean = (1..=4).map(|seed| lent(50, Load::Bursts, seed).under_percent).sum::<f64>() / 4.0;
    assert!(mean <= 0.55, "fifty nodes: {mean}");
}

/// What passes of what is lent, which is never more than may.
fn lent(nodes: u64, load: Load, seed: u64) -> Course {
    let fleet = Accuracy { seed, ..Accuracy::of(nodes, load) };
    let course = accuracy(&fleet, Sharing::Lending).unwrap();
    assert_eq!(course.over_percent, 0.0, "{nodes} nodes, {load:?}, seed {seed}");
    assert_eq!(course.points.len() as u64, 10 * fleet.seconds, "{nodes} nodes, {load:?}");
    course
}

#[test]
fn counters_that_are_compared_now_and_then_pass_more_than_may() {
    let fleet = Accuracy::of(20, Load::Steady);
    let course = accuracy(&fleet, Sharing::CounterSync).unwrap();
    assert!(course.over_percent > 50.0, "{}", course.over_percent);
    assert!(course.under_percent < 1.0, "what was too much is paid back");
    let alone = accuracy(&Accuracy::of(1, Load::Bursts), Sharing::CounterSync).unwrap();
    assert_eq!((alone.over_percent, alone.under_percent), (0.0, 0.0), "one node has nobody to ask");
}

fn bucket(quota: &str) -> Subject {
    Subject::bucket(quota).unwrap()
}

/// So many runs together leave little to chance.
const SEEDS: u64 = 12;
