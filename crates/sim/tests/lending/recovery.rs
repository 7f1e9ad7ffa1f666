//! Law: what dead nodes held comes back within the time of a lease; and what a store has forgotten
//! is nobody's gain.

use std::num::NonZeroU32;

use tollgate_sim::{Fleet, MILLI, Plan, SECOND, Subject};

fn subjects() -> [Subject; 5] {
    [
        Subject::bucket("1k/s").unwrap(),
        Subject::bucket("1k/s burst 10k").unwrap(),
        Subject::fixed("1k/s").unwrap(),
        Subject::sliding("1k/s").unwrap(),
        Subject::permits(NonZeroU32::new(400).unwrap()),
    ]
}

fn fleet(subject: &Subject, pause: u64) -> Fleet {
    Fleet::new(Plan::calm(7, subject.clone(), 8, pause)).unwrap()
}

#[test]
fn what_dead_nodes_held_is_back_within_a_lease() {
    for subject in subjects() {
        let mut fleet = fleet(&subject, 4 * SECOND / 1_000);
        fleet.run_until(Plan::START + 2 * SECOND + SECOND * 2 / 5).unwrap();
        fleet.kill_all();
        // What is on its way arrives, and nothing is sent any more.
        fleet.run_until(fleet.now() + SECOND / 100).unwrap();
        let (_, lent) = fleet.books();
        assert!(lent > 0, "{subject:?} was not lent, so nothing is shown");
        fleet.run_until(fleet.now() + fleet.hold()).unwrap();
        assert_eq!(fleet.books().1, 0, "{subject:?}");
    }
}

/// After 50 ms or eight times as long as it usually is between requests, twice if a lease was just
/// renewed, and the way to the store;
/// permits when those who have them are done.
#[test]
fn what_idle_nodes_hold_goes_back_soon() {
    for (subject, soon) in subjects().into_iter().zip([300, 300, 300, 300, 400]) {
        let mut fleet = fleet(&subject, 16 * SECOND / 1_000);
        fleet.run_until(Plan::START + 2 * SECOND + SECOND * 2 / 5).unwrap();
        assert!(fleet.books().1 > 0, "{subject:?} was not lent, so nothing is shown");
        fleet.fall_silent();
        fleet.run_until(fleet.now() + soon * MILLI).unwrap();
        assert_eq!(fleet.books().1, 0, "{subject:?}");
    }
}

#[test]
fn a_fleet_whose_nodes_all_died_passes_as_much_as_ever_soon_after() {
    for subject in [Subject::bucket("1k/s").unwrap(), Subject::fixed("1k/s").unwrap()] {
        let mut fleet = fleet(&subject, 4 * SECOND / 1_000);
        fleet.run_until(Plan::START + 3 * SECOND).unwrap();
        fleet.kill_all();
        fleet.revive();
        fleet.run_until(fleet.now() + fleet.hold()).unwrap();
        let before = fleet.outcome().passed;
        fleet.run_until(fleet.now() + 20 * SECOND).unwrap();
        let passed = fleet.outcome().passed - before;
        assert!(passed >= 19_800, "{subject:?}: {passed} of 20000");
    }
}

/// A node dies every second, each with what it holds: that is lost, but little else.
#[test]
fn deaths_cost_no_more_than_what_the_dead_held() {
    let calm = Plan::calm(7, Subject::bucket("1k/s").unwrap(), 10, 5 * SECOND / 1_000);
    let plan = Plan { lasts: 60 * SECOND, deaths: Some(SECOND), ..calm };
    let outcome = Fleet::run(&plan).unwrap();
    assert!(outcome.passed >= 60_000, "{outcome:?}");
}
