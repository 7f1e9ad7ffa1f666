//! Rule files that change under traffic: what was spent of a shared limit, and who holds a slot, goes on.

use std::fs;

use crate::redis::{Redis, until};
use crate::support::Server;
use crate::{Fleet, check};

const ALICE: &str = r#"{"path":"/","user":"alice"}"#;

fn rules(limit: &str, more: &str) -> String {
    format!("rules: [{{ name: per-user, key: [user], limit: {limit}{more} }}]")
}

impl Fleet {
    /// Writes other rules to the files of all nodes, and waits until they are in force.
    fn change(&self, rules: &str) {
        let changes = |node: &Server| {
            let lines = node.process.output();
            lines.iter().filter(|line| line.contains("rules are in force")).count()
        };
        let before: Vec<_> = self.nodes.iter().map(changes).collect();
        for node in &self.nodes {
            fs::write(node.rules(), rules).unwrap();
        }
        for (node, before) in self.nodes.iter().zip(before) {
            until("other rules are in force", || (changes(node) > before).then_some(()));
        }
    }

    /// How many of so many pass, at all nodes in turn.
    fn passing(&self, times: usize) -> usize {
        let addresses = self.addresses("http");
        (0..times).filter(|at| check(addresses[at % addresses.len()], ALICE) == 200).count()
    }
}

#[test]
fn a_changed_limit_of_all_nodes_is_no_second_budget() {
    let algorithms = ["token_bucket", "sliding_window", "sliding_log"];
    for algorithm in algorithms {
        let redis = Redis::start(&[]);
        let strict = format!(", consistency: strict, algorithm: {algorithm}");
        let fleet = Fleet::patient("1", 3, &redis.url(), &rules("300/week", &strict));
        assert_eq!(fleet.passing(200), 200, "{algorithm}");
        // Another one of the largest comes back every half an hour.
        for (limit, left) in [("250/week", 50), ("330/week", 80), ("100/week", 0), ("331/week", 1)]
        {
            fleet.change(&rules(limit, &strict));
            assert_eq!(fleet.passing(left + 30), left, "{algorithm}: {limit}");
        }
        // An algorithm goes on with what another has counted.
        fleet.change(&rules(
            "400/week",
            ", consistency: strict, algorithm: leaky_bucket, burst: 400",
        ));
        assert_eq!(fleet.passing(100), 69, "{algorithm}");
    }
}

#[test]
fn a_changed_limit_that_is_lent_is_no_second_budget_either() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::patient("1", 3, &redis.url(), &rules("3000/week", ""));
    assert_eq!(fleet.passing(600), 600);
    fleet.change(&rules("1000/week", ""));
    let passed = fleet.passing(600);
    assert!(passed <= 400, "{passed} of 400 that are left");
    fleet.change(&rules("1100/week", ""));
    let more = fleet.passing(700);
    assert!(passed + more <= 500, "{passed} and {more} of 500");
}

#[test]
fn a_changed_number_of_slots_goes_on_with_those_who_hold_one() {
    let redis = Redis::start(&[]);
    let slots =
        |most: u32| format!("rules: [{{ name: exports, key: [user], concurrent: {most} }}]");
    let fleet = Fleet::patient("1", 2, &redis.url(), &slots(4));
    let take = |fleet: &Fleet, node: usize| {
        let address = fleet.nodes[node].address("http");
        until("there is a permit", || (check(address, ALICE) == 200).then_some(()));
    };
    // What is under way has a ticket, and nobody says that it has ended.
    (0..4).for_each(|at| take(&fleet, at % 2));
    assert_eq!(fleet.passing(50), 0, "four are out");
    fleet.change(&slots(3));
    assert_eq!(fleet.passing(50), 0, "more are out than there are");
    fleet.change(&slots(6));
    (0..2).for_each(|at| take(&fleet, at));
    assert_eq!(fleet.passing(50), 0, "six are out");
    assert_eq!(
        redis.cli(&["--raw", "KEYS", "tg:{user=alice}:*"]),
        "tg:{user=alice}:default/exports:permits"
    );
}
