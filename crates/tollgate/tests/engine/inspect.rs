//! A look into single keys, and giving them everything back.

use std::time::Duration;

use tollgate::{KeyState, Mode, Request, Retry, Under};

use crate::{MINUTE, engine, exchange, get, passing};

const ALICE: [(&str, &str); 1] = [("user", "alice")];

const PLANS: &str = "tiers: { from: claims.plan, known: [free, pro, gold], else: free }
rules:
  - { name: a, key: [user], limit: { free: 5/h, pro: 50/h, gold: unlimited } }";

fn alice() -> Request<'static> {
    get("/").attributes(&ALICE)
}

fn on_plan<'a>(attributes: &'a [(&'a str, &'a str); 2]) -> Request<'a> {
    get("/").attributes(attributes)
}

/// The rules, whose limits they are, and what is used of how much.
fn used(states: &[KeyState]) -> Vec<(&str, String, u64, u64)> {
    let used = |state: &KeyState| (state.under.to_string(), state.used(), state.decision.limit());
    let each = states.iter().map(|state| (state.rule.as_str(), used(state)));
    each.map(|(rule, (under, used, limit))| (rule, under, used, limit)).collect()
}

#[test]
fn every_rule_whose_key_the_request_has_is_shown() {
    let (engine, _) = engine(
        "rules:
  - { name: writes, match: { method: POST, path: /v1/** }, key: [user], limit: 5/h }
  - { name: per-ip, key: [ip], limit: 5/h }
  - { name: both, key: [user, ip/24], limit: 5/h }
  - { name: trial, key: [user], limit: 7/h, mode: shadow }
  - { name: old, key: [user], limit: 8/h, mode: off }
  - { name: everybody, key: [], limit: 9/h }",
    );
    assert!(engine.decide(&alice()).is_allowed());
    let states = engine.inspect(&alice());
    let said = |name, used, limit| (name, "rule".to_owned(), used, limit);
    let alone =
        [said("writes", 0, 5), said("trial", 1, 7), said("old", 0, 8), said("everybody", 1, 9)];
    assert_eq!(used(&states), alone);
    assert_eq!(states.iter().map(|state| state.number).collect::<Vec<_>>(), [0, 3, 4, 5]);
    assert_eq!([states[1].mode, states[2].mode], [Mode::Shadow, Mode::Off]);
    assert!(states[3].key.is_empty());

    let placed = alice().peer("192.0.2.7".parse().unwrap());
    let states = engine.inspect(&placed);
    assert_eq!(states.len(), 6);
    let parts = [("user", "alice"), ("ip/24", "192.0.2.0")];
    assert_eq!(states[2].key, parts.map(|(part, value)| (part.to_owned(), value.to_owned())));
}

#[test]
fn a_key_says_how_much_is_left_and_when_more_comes() {
    let (engine, clock) = engine("rules: [{ name: a, key: [user], limit: 4/h, cost: 2 }]");
    assert_eq!(passing(&engine, &alice(), 1), 1);
    let [state] = &engine.inspect(&alice())[..] else { panic!("one rule") };
    assert_eq!((state.used(), state.decision.remaining()), (2, 2));
    assert_eq!(state.decision.retry_after(), None);
    assert_eq!(state.decision.reset_after(), MINUTE * 30);
    assert_eq!(passing(&engine, &alice(), 1), 1);
    clock.advance(MINUTE * 15);
    let [state] = &engine.inspect(&alice())[..] else { panic!("one rule") };
    assert_eq!((state.used(), state.decision.remaining()), (3, 1));
    assert_eq!(state.decision.retry_after(), Some(MINUTE * 15), "a request costs 2");
    assert_eq!(state.limit, "token bucket of 4/h");
}

#[test]
fn looking_changes_nothing() {
    let (engine, _) = engine("rules: [{ name: a, key: [user], limit: 3/h, block_for: 1h }]");
    assert_eq!(passing(&engine, &alice(), 2), 2);
    let before = engine.inspect(&alice());
    assert!((0..9).all(|_| engine.inspect(&alice()) == before));
    assert_eq!(passing(&engine, &alice(), 9), 1);
}

#[test]
fn without_a_plan_all_that_know_something_are_shown() {
    let (engine, _) = engine(PLANS);
    let [free, pro] =
        [[("user", "alice"), ("claims.plan", "free")], [("user", "alice"), ("claims.plan", "pro")]];
    let nothing_yet = engine.inspect(&alice());
    assert_eq!(used(&nothing_yet), [("a", "tier free".to_owned(), 0, 5)], "the usual one");
    assert_eq!(passing(&engine, &on_plan(&pro), 3), 3);
    assert_eq!(nothing_yet[0].under, Under::Tier("free".to_owned()));
    let both = [("a", "tier free".to_owned(), 0, 5), ("a", "tier pro".to_owned(), 3, 50)];
    assert_eq!(used(&engine.inspect(&alice())), both);
    assert_eq!(used(&engine.inspect(&on_plan(&pro))), both[1..]);
    assert_eq!(used(&engine.inspect(&on_plan(&free))), both[..1]);
    assert_eq!(engine.reset(&alice(), None), Ok(1));
    assert_eq!(used(&engine.inspect(&on_plan(&pro))), [("a", "tier pro".to_owned(), 0, 50)]);
}

#[test]
fn a_key_with_a_limit_of_its_own_is_shown_under_that() {
    let (engine, _) =
        engine(&PLANS.replace("unlimited }", "unlimited }, overrides: { alice: 2/h }"));
    assert_eq!(passing(&engine, &alice(), 3), 2);
    let own = |used| [("a", "override".to_owned(), used, 2)];
    assert_eq!(used(&engine.inspect(&alice())), own(2));
    assert_eq!(engine.reset(&alice(), Some("a")), Ok(1));
    assert_eq!(used(&engine.inspect(&alice())), own(0));
}

#[test]
fn months_that_begin_on_any_day_are_shown_where_something_was_spent() {
    let (engine, _) = engine(
        "rules: [{ name: a, key: [user], limit: 5/month,
          window: { calendar: month, timezone: UTC, anchor: account.billing_day } }]",
    );
    let days = |states: Vec<KeyState>| -> Vec<_> {
        states.iter().map(|state| (state.month_begins, state.used())).collect()
    };
    assert_eq!(days(engine.inspect(&alice())), [(Some(1), 0)]);
    let tenth = [("user", "alice"), ("account.billing_day", "10")];
    assert_eq!(passing(&engine, &get("/").attributes(&tenth), 2), 2);
    assert_eq!(days(engine.inspect(&alice())), [(Some(1), 0), (Some(10), 2)]);
    assert_eq!(days(engine.inspect(&get("/").attributes(&tenth))), [(Some(10), 2)]);
}

#[test]
fn slots_are_shown_as_so_many_of_so_many() {
    let (engine, _) = engine("rules: [{ name: a, key: [user], concurrent: 2 }]");
    let held = [(); 2].map(|()| engine.decide(&alice()));
    let [state] = &engine.inspect(&alice())[..] else { panic!("one rule") };
    assert_eq!((state.used(), state.decision.limit(), state.limit.as_str()), (2, 2, "2 at once"));
    assert_eq!(state.decision.retry(), Some(Retry::OnReturn));
    assert_eq!(engine.reset(&alice(), None), Ok(0), "what is under way is under way");
    drop(held);
    assert_eq!(engine.inspect(&alice())[0].used(), 0);
}

#[test]
fn a_reset_ends_a_block_and_says_what_it_changed() {
    let (engine, clock) = engine(
        "rules:
  - { name: a, key: [user], limit: 1/s, block_for: 10min }
  - { name: b, key: [], limit: 9/h }",
    );
    assert_eq!(passing(&engine, &alice(), 2), 1);
    clock.advance(MINUTE);
    let states = engine.inspect(&alice());
    assert_eq!(states[0].blocked_for, Some(MINUTE * 9));
    assert_eq!((states[0].used(), states[1].blocked_for), (0, None));
    assert_eq!(engine.reset(&alice(), Some("a")), Ok(1), "the second was back already");
    assert_eq!(engine.inspect(&alice())[0].blocked_for, None);
    assert_eq!(passing(&engine, &alice(), 2), 1);
    let bob = [("user", "bob")];
    assert_eq!(engine.reset(&get("/").attributes(&bob), Some("a")), Ok(0), "that is another key");
    assert_eq!(engine.reset(&alice(), None), Ok(3), "a second, a block, and everybody's");
    assert_eq!(engine.reset(&alice(), None), Ok(0));
}

#[test]
fn a_reset_holds_for_what_was_spent_before_the_limit_changed() {
    let (engine, _) = engine("rules: [{ name: a, key: [user], limit: 5/day }]");
    assert_eq!(passing(&engine, &alice(), 9), 5);
    exchange(&engine, "rules: [{ name: a, key: [user], limit: 7/day, algorithm: fixed_window }]");
    assert_eq!(engine.inspect(&alice())[0].used(), 5);
    assert_eq!(engine.reset(&alice(), None), Ok(1));
    assert_eq!(passing(&engine, &alice(), 9), 7);
}

#[test]
fn what_stands_for_a_missing_part_is_told_from_the_part_itself() {
    let (engine, _) = engine(
        "rules:
  - { name: a, key: [user], key_missing: { together: anonymous }, limit: 5/h }
  - { name: b, key: [user], key_missing: ip, limit: 5/h }",
    );
    let nobody = get("/").peer("192.0.2.7".parse().unwrap());
    let keys: Vec<_> = engine.inspect(&nobody).into_iter().map(|state| state.key).collect();
    let part = |value: &str| vec![("user".to_owned(), value.to_owned())];
    assert_eq!(keys, [part("(anonymous)"), part("(192.0.2.7)")]);
    assert_eq!(engine.inspect(&alice())[0].key, part("alice"));
}

#[test]
fn nothing_is_reset_for_a_rule_that_there_is_not() {
    let (engine, _) = engine("rules: [{ name: per-user, key: [], limit: 1/h }]");
    assert_eq!(passing(&engine, &get("/"), 2), 1);
    let error = engine.reset(&get("/"), Some("per-usre")).unwrap_err();
    assert_eq!(error.to_string(), "there is no rule `per-usre`: did you mean `per-user`?");
    let error = engine.reset(&get("/"), Some("x")).unwrap_err().to_string();
    assert!(error.ends_with("take the name of one of the 1 rules in force"), "{error}");
    assert_eq!(
        engine.inspect(&get("/"))[0].decision.retry_after(),
        Some(Duration::from_secs(3600))
    );
}
