//! Laws: whatever happens, the limit holds; and what is left and what is lent are never more than
//! there can be. The fleet looks at both after every step.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use tollgate_sim::{Fleet, Loss, MILLI, Outcome, Plan, SECOND, Subject, schedule, trace};

/// Runs the schedules of these seeds. Every limit has met every kind of trouble in them.
fn run(seeds: std::ops::Range<u64>) {
    let mut sums = BTreeMap::<String, Outcome>::new();
    for seed in seeds {
        let subject = Plan::troubled(seed).unwrap().subject.to_string();
        match schedule(seed, Loss::Known) {
            Ok(outcome) => *sums.entry(subject).or_default() += outcome,
            Err(failure) => panic!(
                "{failure}\nagain: tollgate lab lending --schedules 1 --seed {seed}\n{}\n{}",
                failure.plan,
                failure.trace.join("\n")
            ),
        }
    }
    assert_eq!(sums.len(), 20, "{sums:?}");
    let mut beyond = 0;
    for (subject, sum) in sums {
        let nodes = [sum.deaths, sum.freezes, sum.cuts];
        let store = [sum.losses, sum.restarts - sum.losses, sum.takeovers];
        assert!(nodes.iter().chain(&store).all(|count| *count > 0), "{subject}: {sum:?}");
        let is_lent = !subject.starts_with("shaping");
        assert_eq!(sum.local > 0, is_lent, "{subject}: {sum:?}");
        // Nodes that are out of touch, and stores that forget, end no requests.
        assert!(sum.beyond == 0 || subject.ends_with("permits"), "{subject}: {sum:?}");
        beyond += sum.beyond;
    }
    assert!(beyond > 0, "no request went on for longer than its lease");
}

/// In two halves, for machines with two cores.
#[test]
fn thousands_of_schedules_break_no_promise() {
    run(0..SCHEDULES);
}

#[test]
fn thousands_of_other_schedules_break_none_either() {
    run(1_000_000..1_000_000 + SCHEDULES);
}

/// If that was not noticed, nothing else would be.
#[test]
fn a_store_that_forgets_and_does_not_know_it_is_found_out() {
    let failure = (0..50).find_map(|seed| schedule(seed, Loss::Unnoticed).err()).unwrap();
    let again = schedule(failure.seed, Loss::Unnoticed).unwrap_err();
    assert_eq!(again, failure, "it fails again in the same way");
    assert!(!failure.trace.is_empty());
}

/// The same of a replica that takes what it knows for all there is: what it knows better is what keeps the
/// limit.
#[test]
fn a_replica_that_believes_all_it_knows_is_found_out() {
    let permits = Subject::permits(NonZeroU32::new(5).unwrap());
    let limits = [Subject::bucket("100/s"), Subject::fixed("1k/s"), Subject::sliding("1k/s")];
    for subject in limits.map(Result::unwrap).into_iter().chain([permits]) {
        let run = |seed, loss| {
            let troubled = Plan::troubled_of(subject.clone(), seed);
            let plan = Plan { restarts: None, takeovers: Some(SECOND), loss, ..troubled };
            Fleet::run(&plan).map(|outcome| outcome.takeovers)
        };
        let seed = (0..100).find(|seed| run(*seed, Loss::Unnoticed).is_err());
        let seed = seed.unwrap_or_else(|| panic!("{subject:?} holds anyway"));
        assert!(run(seed, Loss::Known).is_ok_and(|takeovers| takeovers > 0), "{subject:?}");
    }
}

/// What is excepted from the promise is no more than that: the fleet looks at it after every step.
#[test]
fn what_a_replica_had_not_heard_of_a_long_window_passes_twice() {
    let passes_in_a_day = |seed| {
        let calm = Plan::calm(seed, Subject::daily("200/day").unwrap(), 8, 50 * MILLI);
        let plan = Plan { takeovers: Some(SECOND / 2), ..calm };
        let mut fleet = Fleet::new(plan).unwrap();
        fleet.run_until(Plan::START + 3 * SECOND).unwrap();
        let before = fleet.outcome().passed;
        fleet.run_until(fleet.now() + 10 * SECOND).unwrap();
        fleet.outcome().passed - before
    };
    assert!((0..20).map(passes_in_a_day).any(|passed| passed > 200));
}

/// The same of one that slides, and counts in the next window as well. By then what passed twice has become no
/// more, and what the replica knew of the window before is still known.
#[test]
fn what_a_replica_had_not_heard_of_a_long_sliding_window_passes_twice_and_no_more() {
    let mut twice = 0;
    for quota in ["200/2min", "100/61s", "60/5min"] {
        let subject = Subject::sliding(quota).unwrap();
        for seed in 0..100 {
            let troubled = Plan::troubled_of(subject.clone(), seed);
            let plan = Plan { takeovers: Some(SECOND), ..troubled };
            let mut fleet = Fleet::new(plan.clone()).unwrap().traced(20);
            // Across the end of a window, and of a second one where that is a minute.
            if let Err(broken) = fleet.run_until(Plan::START + 80 * SECOND) {
                panic!(
                    "{quota} {seed}: {broken}\n{}",
                    fleet.trace().collect::<Vec<_>>().join("\n")
                );
            }
        }
        // Replicas that hear of nothing when a window ends.
        for seed in 0..100 {
            let pause = 20 * SECOND / subject.capacity();
            let calm = Plan::calm(seed, subject.clone(), 8, pause);
            let plan = Plan { takeovers: Some(2 * SECOND), lag: 3 * SECOND, ..calm };
            let mut fleet = Fleet::new(plan).unwrap();
            let end = Plan::START + 40 * SECOND;
            fleet.run_until(end).unwrap_or_else(|broken| panic!("{quota} {seed}: {broken}"));
        }
        let passes_in_a_window = |seed| {
            let calm = Plan::calm(seed, subject.clone(), 8, 50 * MILLI);
            let mut fleet = Fleet::new(Plan { takeovers: Some(SECOND / 2), ..calm }).unwrap();
            // No window ends until then.
            fleet.run_until(Plan::START + 3 * SECOND - 1).unwrap();
            fleet.outcome().passed
        };
        let most = (0..20).map(passes_in_a_window).max().unwrap();
        twice += u32::from(most > subject.capacity());
    }
    assert_eq!(twice, 3, "nothing passed twice, so nothing is shown");
}

/// Requests that last for longer than a lease, and more of them than there are permits for.
#[test]
fn no_more_permits_are_in_use_than_there_are_while_all_is_well() {
    let subject = Subject::permits(NonZeroU32::new(20).unwrap());
    let calm = Plan::calm(7, subject, 8, 50 * MILLI);
    let plan = Plan { lasts: 30 * SECOND, work: 6 * SECOND, drift: 10, ..calm };
    let outcome = Fleet::run(&plan).unwrap();
    assert!(outcome.passed > 100 && outcome.beyond == 0, "{outcome:?}");
}

#[test]
fn a_schedule_is_a_function_of_its_seed() {
    let end = |seed| trace(seed, Loss::Known, 100).unwrap();
    assert_eq!((end(1), end(2)), (end(1), end(2)));
    assert_ne!(end(1), end(2));
}

const SCHEDULES: u64 = 1_000;
