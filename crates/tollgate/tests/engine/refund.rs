//! What is given back can be spent again, and no more than that.

use crate::{engine, get, left, passing};

#[test]
fn what_is_given_back_can_be_spent_again() {
    for algorithm in ["token_bucket", "fixed_window", "sliding_window", "sliding_log"] {
        let (engine, _) = engine(&format!(
            "rules:
  - {{ name: a, key: [user], limit: 9/h, algorithm: {algorithm}, overrides: {{ bob: 3/h }} }}
  - {{ name: twice, key: [], limit: 90/h, cost: 2 }}"
        ));
        for (user, most) in [("alice", 9), ("bob", 3)] {
            let user = [("user", user)];
            let request = get("/").attributes(&user);
            assert_eq!(passing(&engine, &request, 20), most as usize, "{algorithm}");
            let spent = left(&engine, "twice", &request).unwrap();
            engine.refund(&request.cost(2));
            assert_eq!(left(&engine, "a", &request), Some(2), "{algorithm}");
            assert_eq!(left(&engine, "twice", &request), Some(spent + 4));
            engine.refund(&request.cost(1_000));
            assert_eq!(left(&engine, "a", &request), Some(most), "{algorithm}: not more than all");
        }
    }
}

#[test]
fn slots_and_rules_that_do_not_apply_stay_as_they_are() {
    let (engine, _) = engine(
        "rules:
  - { name: slots, match: { path: /export }, key: [], concurrent: 1 }
  - { name: others, match: { path: /other }, key: [], limit: 5/h }",
    );
    let held = engine.decide(&get("/export"));
    assert!(held.is_allowed() && engine.decide(&get("/other")).is_allowed());
    engine.refund(&get("/export"));
    assert!(!engine.decide(&get("/export")).is_allowed());
    assert_eq!(left(&engine, "others", &get("/other")), Some(4));
}
