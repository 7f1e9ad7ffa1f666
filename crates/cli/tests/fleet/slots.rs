//! So many at once, over all nodes.

use crate::redis::{Redis, until};
use crate::{Fleet, check};

const ASKED: &str = r#"{"path":"/export","user":"alice"}"#;

#[test]
fn permits_of_a_node_that_was_killed_come_back_and_never_are_there_more() {
    let redis = Redis::start(&[]);
    let rules = "rules: [{ name: exports, key: [user], concurrent: 6, on_store_failure: deny }]";
    let mut fleet = Fleet::start(3, &redis.url(), rules);
    let addresses = fleet.addresses("http");
    // What is under way has a ticket, and nobody says that it has ended.
    let take = |node: usize| check(addresses[node], ASKED) == 200;
    for node in [0, 1, 2] {
        for _ in 0..2 {
            until("there is a permit", || take(node).then_some(()));
        }
    }
    for _ in 0..50 {
        assert!(!(0..3).any(take), "six are out");
    }
    fleet.nodes[2].process.signal("KILL");
    fleet.nodes[2].process.wait();
    for _ in 0..2 {
        until("a permit of the dead has come back", || take(0).then_some(()));
    }
    for _ in 0..50 {
        assert!(!(0..2).any(take), "six are out again");
    }
}
