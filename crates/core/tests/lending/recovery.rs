//! Law: what dead nodes held comes back within the time of a lease; and what a store has forgotten
//! is nobody's gain.

use crate::fleet::Fleet;
use crate::plan::{MILLI, Plan, SECOND, Subject};

const SUBJECTS: [Subject; 5] = [
    Subject::Bucket("1k/s"),
    Subject::Bucket("1k/s burst 10k"),
    Subject::Fixed("1k/s"),
    Subject::Sliding("1k/s"),
    Subject::Permits(400),
];

#[test]
fn what_dead_nodes_held_is_back_within_a_lease() {
    for subject in SUBJECTS {
        let mut fleet = Fleet::new(Plan::calm(7, subject, 8, 4 * SECOND / 1_000));
        fleet.run_until(Subject::START + 2 * SECOND + SECOND * 2 / 5).unwrap();
        fleet.kill_all();
        // What is on its way arrives, and nothing is sent any more.
        fleet.run_until(fleet.now + SECOND / 100).unwrap();
        let (_, lent) = fleet.books();
        assert!(lent > 0, "{subject:?} was not lent, so nothing is shown");
        fleet.run_until(fleet.now + fleet.hold()).unwrap();
        assert_eq!(fleet.books().1, 0, "{subject:?}");
    }
}

/// After 50 ms, and the way to the store; permits when those who have them are done.
#[test]
fn what_idle_nodes_hold_goes_back_soon() {
    for (subject, soon) in SUBJECTS.into_iter().zip([60, 60, 60, 60, 400]) {
        let mut fleet = Fleet::new(Plan::calm(7, subject, 8, 16 * SECOND / 1_000));
        fleet.run_until(Subject::START + 2 * SECOND + SECOND * 2 / 5).unwrap();
        assert!(fleet.books().1 > 0, "{subject:?} was not lent, so nothing is shown");
        fleet.fall_silent();
        fleet.run_until(fleet.now + soon * MILLI).unwrap();
        assert_eq!(fleet.books().1, 0, "{subject:?}");
    }
}

#[test]
fn a_fleet_whose_nodes_all_died_passes_as_much_as_ever_soon_after() {
    for subject in [Subject::Bucket("1k/s"), Subject::Fixed("1k/s")] {
        let mut fleet = Fleet::new(Plan::calm(7, subject, 8, 4 * SECOND / 1_000));
        fleet.run_until(Subject::START + 3 * SECOND).unwrap();
        fleet.kill_all();
        fleet.revive();
        fleet.run_until(fleet.now + fleet.hold()).unwrap();
        let before = fleet.outcome.passed;
        fleet.run_until(fleet.now + 20 * SECOND).unwrap();
        let passed = fleet.outcome.passed - before;
        assert!(passed >= 19_800, "{subject:?}: {passed} of 20000");
    }
}

/// A node dies every second, each with what it holds: that is lost, but little else.
#[test]
fn deaths_cost_no_more_than_what_the_dead_held() {
    let calm = Plan::calm(7, Subject::Bucket("1k/s"), 10, 5 * SECOND / 1_000);
    let plan = Plan { lasts: 60 * SECOND, deaths: Some(SECOND), ..calm };
    let outcome = Fleet::run(&plan).unwrap();
    assert!(outcome.passed >= 60_000, "{outcome:?}");
}
