//! Laws: whatever happens, the limit holds; and what is left and what is lent are never more than
//! there can be. The fleet looks at both after every step.

use std::collections::BTreeSet;

use tollgate_sim::{Loss, Outcome, Plan, schedule, trace};

/// Runs the schedules of these seeds, and says what came of all of them.
fn run(seeds: std::ops::Range<u64>) -> Outcome {
    let mut sum = Outcome::default();
    for seed in seeds {
        match schedule(seed, Loss::Known) {
            Ok(outcome) => sum += outcome,
            Err(failure) => panic!("{failure}\n{}\n{}", failure.plan, failure.trace.join("\n")),
        }
    }
    sum
}

/// In two halves, for machines with two cores.
#[test]
fn thousands_of_schedules_break_no_promise() {
    let sum = run(0..SCHEDULES);
    assert!(sum.local > 0 && sum.deaths > 0 && sum.freezes > 0, "{sum:?}");
    assert!(sum.cuts > 0 && sum.losses > 0 && sum.losses < sum.restarts, "{sum:?}");
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

#[test]
fn a_schedule_is_a_function_of_its_seed() {
    let end = |seed| trace(seed, Loss::Known, 100).unwrap();
    assert_eq!((end(1), end(2)), (end(1), end(2)));
    assert_ne!(end(1), end(2));
}

#[test]
fn every_kind_of_trouble_comes_with_every_limit() {
    let mut seen = BTreeSet::new();
    for seed in 0..5_000 {
        let plan = Plan::troubled(seed).unwrap();
        let troubles = [plan.deaths, plan.freezes, plan.cuts, plan.restarts];
        if troubles.iter().all(Option::is_some) {
            seen.insert(plan.subject.to_string());
        }
    }
    assert_eq!(seen.len(), 20, "{seen:?}");
}

const SCHEDULES: u64 = 1_000;
