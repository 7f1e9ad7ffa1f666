//! What a request spends, and what it is told.

use std::time::Duration;

use tollgate::{Gate, GateBuilder, Key, Limit, LimitId, ManualClock, Retry, Verdict};

use crate::{each_algorithm, each_that_gives_back, left};

/// A gate that is under construction, with a clock that stands still.
fn builder() -> (GateBuilder<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Gate::builder().keys(1_000).clock(clock.clone()), clock)
}

#[test]
fn a_denial_by_one_limit_spends_nothing_from_the_others() {
    for plenty in each_algorithm(10) {
        for enough in each_algorithm(7) {
            for scarce in each_algorithm(2) {
                for first in 0..3 {
                    let limits = format!("{plenty}, {enough}, {scarce} from {first}");
                    let (mut builder, _) = builder();
                    let ids = [("a", &plenty), ("b", &enough), ("c", &scarce)]
                        .map(|(name, limit)| builder.limit(name, limit.clone()));
                    let gate = builder.build().unwrap();
                    let mut request = ids.map(|id| id.charge("alice"));
                    request.rotate_left(first);
                    let passed = (0..9).filter(|_| gate.check(&request).is_allowed()).count();
                    assert_eq!(passed, 2, "{limits}");
                    assert_eq!(
                        ids.map(|id| left(&gate, id.charge("alice"))),
                        [8, 5, 0],
                        "{limits}"
                    );
                    let denied = gate.check(&request);
                    assert_eq!(denied.limit(), ids[2], "{limits}");
                    assert!(matches!(denied.decision().retry(), Some(Retry::After(_))), "{limits}");
                    let mut told: Vec<_> = denied.each().iter().map(|it| it.remaining()).collect();
                    told.rotate_right(first);
                    assert_eq!(told, [8, 5, 0], "{limits}");
                }
            }
        }
    }
}

#[test]
fn whoever_was_denied_passes_when_the_answer_said() {
    let (mut builder, clock) = builder();
    let slow = builder.limit("slow", Limit::token_bucket("1/min").unwrap());
    let fast = builder.limit("fast", Limit::fixed_window("1/s").unwrap());
    let gate = builder.build().unwrap();
    let request = [fast.charge("alice"), slow.charge("alice")];
    assert!(gate.check(&request).is_allowed());
    let denied = gate.check(&request);
    assert_eq!(denied.limit(), slow, "the longer wait");
    let wait = denied.decision().retry_after().expect("it says when");
    clock.advance(wait - Duration::from_nanos(1));
    assert!(!gate.check(&request).is_allowed());
    clock.advance(Duration::from_nanos(1));
    assert!(gate.check(&request).is_allowed());
}

#[test]
fn the_strictest_answer_is_reported_and_every_other_can_be_seen() {
    let (mut builder, _) = builder();
    let quotas = [("wide", "100/h"), ("narrow", "3/h"), ("middle", "10/h"), ("free", "unlimited")];
    let ids = quotas.map(|(name, quota)| builder.limit(name, Limit::token_bucket(quota).unwrap()));
    let gate = builder.build().unwrap();
    let request = ids.map(|id| id.charge("alice"));
    let answer = gate.check(&request);
    assert_eq!((gate.name(answer.limit()), answer.decision().remaining()), ("narrow", 2));
    let each: Vec<_> = answer.each().iter().map(|decision| decision.remaining()).collect();
    assert_eq!(each, [99, 2, 9, u64::MAX], "in the order of the charges");
    let large = request.map(|charge| charge.cost(5));
    let denied = gate.check(&large);
    assert_eq!(gate.name(denied.limit()), "narrow");
    assert_eq!(denied.decision().retry(), Some(Retry::Never), "five never fit into three");
    let each: Vec<_> = denied.each().iter().map(|decision| decision.remaining()).collect();
    assert_eq!(each, [99, 2, 9, u64::MAX], "nothing was spent");
}

#[test]
fn of_equal_answers_the_first_is_reported() {
    let (mut builder, _) = builder();
    let a = builder.limit("a", Limit::token_bucket("5/h").unwrap());
    let b = builder.limit("b", Limit::token_bucket("5/h").unwrap());
    let gate = builder.build().unwrap();
    let answer = gate.check(&[b.charge(&1u64), a.charge(&1u64)]);
    assert_eq!(gate.name(answer.limit()), "b");
}

#[test]
fn any_number_of_charges_is_kept_to() {
    let (mut builder, _) = builder();
    let names: Vec<_> = (1..=30u64).collect();
    let ids: Vec<LimitId> = names
        .iter()
        .map(|count| {
            let limit = Limit::token_bucket(format!("{}/h", count + 4)).unwrap();
            builder.limit(count.to_string(), limit)
        })
        .collect();
    let gate = builder.build().unwrap();
    for len in [7, 8, 9, 30] {
        let key = len as u64;
        let request: Vec<_> = ids[..len].iter().map(|id| id.charge(&key)).collect();
        assert_eq!((0..9).filter(|_| gate.check(&request).is_allowed()).count(), 5, "{len}");
        let each: Vec<_> =
            gate.check(&request).each().iter().map(|decision| decision.remaining()).collect();
        assert_eq!(each, (0..len as u64).collect::<Vec<_>>(), "{len} charges");
    }
}

#[test]
fn a_request_without_charges_passes() {
    let (mut builder, _) = builder();
    let a = builder.limit("a", Limit::token_bucket("1/h").unwrap());
    let gate = builder.build().unwrap();
    for answer in [gate.check(&[]), gate.peek(&[])] {
        assert!(answer.is_allowed());
        assert!(answer.each().is_empty());
    }
    assert_eq!(left(&gate, a.charge("alice")), 1);
}

#[test]
fn a_limit_that_is_met_twice_with_one_key_must_allow_both_or_none() {
    for limit in each_algorithm(5) {
        let (mut builder, _) = builder();
        let id = builder.limit("a", limit.clone());
        let gate = builder.build().unwrap();
        let twice = [id.charge("alice").cost(2), id.charge("alice").cost(1)];
        assert!(gate.peek(&twice).is_allowed());
        assert!(gate.check(&twice).is_allowed(), "{limit}");
        assert_eq!(left(&gate, twice[0]), 2, "{limit}");
        let denied = gate.check(&twice);
        assert!(!denied.is_allowed(), "{limit}");
        assert!(!gate.peek(&twice).is_allowed(), "{limit}: a look says what a check would");
        assert_eq!(left(&gate, twice[0]), 2, "{limit}: the first charge was spent alone");
        assert_eq!(denied.each()[0].remaining(), 2, "{limit}");
        let too_much = twice.map(|charge| charge.cost(3));
        let denied = gate.check(&too_much).decision();
        assert_eq!(denied.retry(), Some(Retry::Never), "{limit}: six never fit into five");
        let other = [id.charge("alice").cost(2), id.charge("bob").cost(2)];
        assert!(gate.check(&other).is_allowed(), "{limit}: two keys are not one");
    }
}

#[test]
fn a_limit_that_shapes_is_asked_last_and_its_delay_is_reported() {
    let (mut builder, _) = builder();
    let pace = builder.limit("pace", Limit::leaky_shape("10/s", 5).unwrap());
    let few = builder.limit("few", Limit::sliding_log("3/h").unwrap());
    let gate = builder.build().unwrap();
    let request = [pace.charge("alice"), few.charge("alice")];
    for millis in [0, 100, 200] {
        let answer = gate.check(&request);
        let delay = Duration::from_millis(millis);
        assert_eq!(answer.decision().delay(), delay);
        let expected = if millis == 0 { Verdict::Allow } else { Verdict::AllowAfter(delay) };
        assert_eq!(answer.each()[0].verdict(), expected);
    }
    for _ in 0..10 {
        assert_eq!(gate.name(gate.check(&request).limit()), "few");
    }
    assert_eq!(left(&gate, pace.charge("alice")), 3, "places were lost to denied requests");
}

#[test]
fn limits_without_a_limit_never_decide() {
    let (mut builder, _) = builder();
    let free = builder.limit("free", Limit::token_bucket("unlimited").unwrap());
    let few = builder.limit("few", Limit::token_bucket("2/h").unwrap());
    let gate = builder.build().unwrap();
    let request = [free.charge("alice"), few.charge("alice")];
    assert!(gate.check(&request).is_allowed());
    let answer = gate.check(&request);
    assert_eq!((gate.name(answer.limit()), answer.decision().remaining()), ("few", 0));
    assert!(!gate.check(&request).is_allowed());
    let costly = [free.charge("alice").cost(u64::MAX), free.charge("alice").cost(u64::MAX)];
    assert!(gate.check(&costly).is_allowed());
}

#[test]
fn what_is_refunded_or_reset_is_back() {
    for limit in each_that_gives_back(5) {
        let (mut builder, _) = builder();
        let (a, b) = (builder.limit("a", limit.clone()), builder.limit("b", limit.clone()));
        let gate = builder.build().unwrap();
        let request = [a.charge("alice").cost(4), b.charge("alice").cost(3)];
        assert!(gate.check(&request).is_allowed());
        gate.refund(&[a.charge("alice").cost(2)]);
        assert_eq!((left(&gate, request[0]), left(&gate, request[1])), (3, 2), "{limit}");
        gate.refund(&request);
        assert_eq!((left(&gate, request[0]), left(&gate, request[1])), (5, 5), "{limit}");
        assert!(gate.check(&request).is_allowed());
        assert!(gate.reset(a, "alice"));
        assert_eq!((left(&gate, request[0]), left(&gate, request[1])), (5, 2), "{limit}");
    }
}

#[test]
fn the_same_key_under_two_limits_is_two_keys() {
    let (mut builder, _) = builder();
    let a = builder.limit("a", Limit::token_bucket("5/h").unwrap());
    let b = builder.limit("b", Limit::token_bucket("5/h").unwrap());
    let gate = builder.build().unwrap();
    assert!(gate.check(&[a.charge("alice").cost(5)]).is_allowed());
    assert_eq!(left(&gate, b.charge("alice")), 5);
    assert_eq!(left(&gate, a.charge("bob")), 5);
}

#[test]
fn a_gate_knows_who_comes_and_who_is_denied() {
    let (mut builder, _) = builder();
    let a = builder.limit("a", Limit::token_bucket("5/h").unwrap());
    let b = builder.limit("b", Limit::token_bucket("100/h").unwrap());
    let gate = builder.build().unwrap();
    for _ in 0..20 {
        let _ = gate.check(&[a.charge("alice"), b.charge(&("net", 7u64))]);
    }
    assert_eq!(gate.top(a, 5)[0].key, "alice");
    assert_eq!(gate.top(b, 5)[0].key, "net 7");
    assert_eq!(gate.top_denied(a, 5)[0].count, 15);
    assert!(gate.top_denied(b, 5).is_empty(), "it was not `b` that denied");
}

#[test]
fn a_key_is_the_same_however_it_is_borrowed() {
    let (mut builder, _) = builder();
    let id = builder.limit("a", Limit::token_bucket("9/h").unwrap());
    let gate = builder.build().unwrap();
    let (text, boxed): (String, Box<dyn Key>) = ("alice".into(), Box::new("alice"));
    let ways = [
        id.charge("alice"),
        id.charge(&text),
        id.charge(&*text),
        id.charge(b"alice".as_slice()),
        id.charge(&*boxed),
    ];
    for (spent, charge) in (1..).zip(ways) {
        assert!(gate.check(&[charge]).is_allowed());
        assert_eq!(left(&gate, id.charge("alice")), 9 - spent, "{charge:?}");
    }
    assert_eq!(gate.top(id, 1)[0].key, "alice");
}
