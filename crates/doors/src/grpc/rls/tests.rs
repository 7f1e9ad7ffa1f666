use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use prost::Message as _;
use tollgate::Retry;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::Code as Answered;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use tollgate_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tollgate_proto::envoy::r#type::v3::RateLimitUnit;

use super::*;
use crate::connection::Peer;
use crate::grpc::frame::{self, Code, Refusal};
use crate::grpc::rls::described::Own;
use crate::grpc::tests::{asking, with_store};

pub(super) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..Default::default() }
}

pub(super) fn request(descriptors: Vec<RateLimitDescriptor>) -> RateLimitRequest {
    RateLimitRequest { domain: "shop".to_owned(), descriptors, hits_addend: None }
}

pub(super) fn ask(asking: &Asking, request: RateLimitRequest) -> RateLimitResponse {
    told(asking, &request).unwrap()
}

/// The same, if it is not refused.
fn told(asking: &Asking, request: &RateLimitRequest) -> Result<RateLimitResponse, Refusal> {
    let (answer, _) = asking.should_rate_limit(&request.encode_to_vec())?;
    Ok(RateLimitResponse::decode(answer.slice(frame::PREFIX..)).unwrap())
}

/// The code of each descriptor, and what is left of it.
fn codes(answer: &RateLimitResponse) -> Vec<(Answered, u32)> {
    answer.statuses.iter().map(|status| (status.code(), status.limit_remaining)).collect()
}

const OK: Answered = Answered::Ok;
const OVER: Answered = Answered::OverLimit;

const RULES: &str = "rules:
  - { name: per-user, match: { domain: shop }, key: [descriptor.user], limit: 2/h, algorithm: fixed_window }
  - { name: per-path, match: { domain: shop }, key: [descriptor.path], limit: 9/min, algorithm: fixed_window }
  - { name: free, match: { domain: shop, descriptor.plan: gold }, key: [], limit: unlimited }";

/// What is answered after a store was asked.
async fn ask_in_turn(asking: &Asking, request: &RateLimitRequest) -> RateLimitResponse {
    let peer = Peer::default();
    asking.in_turn(&peer, None, |asking| told(asking, request)).await.unwrap()
}

#[test]
fn whoever_spends_nothing_hears_what_the_store_has() {
    with_store(RULES, async |asking| {
        let user = |hits| {
            let path = descriptor(&[("path", "/")]);
            RateLimitRequest { hits_addend: Some(hits), ..request(vec![path]) }
        };
        assert_eq!(codes(&ask_in_turn(&asking, &user(4)).await), [(OK, 5)]);
        let looks = RateLimitDescriptor { hits_addend: Some(0), ..descriptor(&[("path", "/")]) };
        let looks = request(vec![looks]);
        assert_eq!(codes(&ask_in_turn(&asking, &looks).await), [(OK, 5)]);
        assert_eq!(codes(&ask_in_turn(&asking, &looks).await), [(OK, 5)]);
    });
}

#[test]
fn each_descriptor_has_a_status_in_its_place() {
    let asking = asking(RULES);
    let all = [("user", "a"), ("plan", "gold"), ("other", "x"), ("path", "/")];
    let all: Vec<_> = all.iter().map(|entry| descriptor(&[*entry])).collect();
    let answer = ask(&asking, request(all.clone()));
    assert_eq!(answer.overall_code(), OK);
    assert_eq!(codes(&answer), [(OK, 1), (OK, u32::MAX), (OK, 0), (OK, 8)]);
    let limits = answer.statuses.iter().map(|status| {
        status.current_limit.as_ref().map(|it| (it.requests_per_unit, it.unit(), &*it.name))
    });
    let limits: Vec<_> = limits.collect();
    let [user, path] = [(2, Unit::Hour, "per-user"), (9, Unit::Minute, "per-path")];
    assert_eq!(limits, [Some(user), None, None, Some(path)]);
    let resets: Vec<_> =
        answer.statuses.iter().map(|it| it.duration_until_reset.map(|time| time.nanos)).collect();
    assert_eq!(resets, [Some(0), None, None, Some(0)], "whole seconds: Envoy cuts off the rest");
    assert!(answer.statuses[0].duration_until_reset.unwrap().seconds >= 1);
    assert_eq!(ask(&asking, request(all.clone())).overall_code(), OK);
    let answer = ask(&asking, request(all));
    assert_eq!(answer.overall_code(), OVER);
    assert_eq!(codes(&answer), [(OVER, 0), (OK, u32::MAX), (OK, 0), (OK, 7)]);
    let names: Vec<_> = answer.response_headers_to_add.iter().map(|header| &*header.key).collect();
    assert!(names.contains(&"retry-after") && names.contains(&"ratelimit"), "{names:?}");
    let body: serde_json::Value = serde_json::from_slice(&answer.raw_body).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["per-user"]));
}

#[test]
fn a_denied_request_spends_nothing_unless_rules_want_it() {
    for (text, left) in [(RULES.to_owned(), 9), (format!("descriptors: each\n{RULES}"), 7)] {
        let asking = asking(&text);
        let (user, path) = (descriptor(&[("user", "a")]), descriptor(&[("path", "/")]));
        let mut two = request(vec![user.clone()]);
        two.hits_addend = Some(2);
        assert_eq!(ask(&asking, two).overall_code(), OK);
        for _ in 0..2 {
            let answer = ask(&asking, request(vec![path.clone(), user.clone()]));
            assert_eq!(answer.overall_code(), OVER);
            assert_eq!(answer.statuses[1].code(), OVER);
        }
        let mut look = request(vec![path]);
        look.hits_addend = Some(0);
        assert_eq!(codes(&ask(&asking, look)), [(OK, left)], "{text}");
    }
}

#[test]
fn a_denied_request_gives_back_what_the_store_has_spent_unless_rules_want_it() {
    for (text, left) in [(RULES.to_owned(), 9), (format!("descriptors: each\n{RULES}"), 7)] {
        with_store(&text, async |asking| {
            let (user, path) = (descriptor(&[("user", "a")]), descriptor(&[("path", "/")]));
            let two = RateLimitRequest { hits_addend: Some(2), ..request(vec![user.clone()]) };
            assert_eq!(ask_in_turn(&asking, &two).await.overall_code(), OK);
            let both = request(vec![path.clone(), user]);
            for _ in 0..2 {
                let answer = ask_in_turn(&asking, &both).await;
                assert_eq!(answer.overall_code(), OVER);
                assert_eq!(answer.statuses[1].code(), OVER);
            }
            let look = RateLimitRequest { hits_addend: Some(0), ..request(vec![path]) };
            // What was spent for nothing is undone a moment later.
            let undone = async {
                while codes(&ask_in_turn(&asking, &look).await) != [(OK, left)] {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), undone).await.expect("it is undone");
        });
    }
}

#[test]
fn what_is_over_takes_the_rest_where_each_is_on_its_own() {
    for (text, left) in
        [(RULES.to_owned(), (OK, 1)), (format!("descriptors: each\n{RULES}"), (OVER, 0))]
    {
        let asking = asking(&text);
        let mut user = descriptor(&[("user", "a")]);
        let over = RateLimitRequest { hits_addend: Some(3), ..request(vec![user.clone()]) };
        assert_eq!(ask(&asking, over).overall_code(), OVER, "{text}");
        user.hits_addend = Some(1);
        assert_eq!(codes(&ask(&asking, request(vec![user]))), [left], "{text}");
    }
}

#[test]
fn hits_are_those_of_the_descriptor_or_of_the_request() {
    let asking = asking(RULES);
    let (mut one, other) = (descriptor(&[("path", "/a")]), descriptor(&[("path", "/b")]));
    one.hits_addend = Some(5);
    let asked = RateLimitRequest { hits_addend: Some(2), ..request(vec![one.clone(), other]) };
    assert_eq!(codes(&ask(&asking, asked)), [(OK, 4), (OK, 7)]);
    one.hits_addend = Some(0);
    assert_eq!(codes(&ask(&asking, request(vec![one.clone()]))), [(OK, 4)], "it only looks");
    one.hits_addend = Some(4);
    assert_eq!(codes(&ask(&asking, request(vec![one.clone()]))), [(OK, 0)]);
    one.hits_addend = Some(0);
    let answer = ask(&asking, request(vec![one]));
    assert_eq!((answer.overall_code(), codes(&answer)), (OVER, vec![(OVER, 0)]), "nothing is left");
}

#[test]
fn negative_hits_are_given_back() {
    for text in [RULES.to_owned(), format!("descriptors: each\n{RULES}")] {
        let asking = asking(&text);
        let mut path = descriptor(&[("path", "/")]);
        path.hits_addend = Some(8);
        assert_eq!(codes(&ask(&asking, request(vec![path.clone()]))), [(OK, 1)]);
        path.hits_addend = Some(3);
        path.is_negative_hits = true;
        assert_eq!(codes(&ask(&asking, request(vec![path.clone()]))), [(OK, 4)]);
        let both = request(vec![path.clone(), descriptor(&[("user", "a")])]);
        assert_eq!(codes(&ask(&asking, both)), [(OK, 7), (OK, 1)]);
        assert_eq!(codes(&ask(&asking, request(vec![path]))), [(OK, 9)], "not more than all");
    }
}

#[test]
fn a_limit_that_comes_with_a_descriptor_is_used_instead() {
    let asking = asking(RULES);
    let limited = |requests_per_unit, unit: RateLimitUnit| {
        let mut user = descriptor(&[("user", "a")]);
        user.limit = Some(RateLimitOverride { requests_per_unit, unit: unit.into() });
        user
    };
    let minute = || limited(3, RateLimitUnit::Minute);
    let path = descriptor(&[("path", "/")]);
    for left in [2, 1, 0] {
        let answer = ask(&asking, request(vec![minute(), path.clone()]));
        assert_eq!(codes(&answer)[0], (OK, left));
        let limit = answer.statuses[0].current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (3, Unit::Minute));
    }
    let answer = ask(&asking, request(vec![minute(), path.clone()]));
    assert_eq!((answer.overall_code(), codes(&answer)), (OVER, vec![(OVER, 0), (OK, 6)]));
    assert!(!answer.raw_body.is_empty());
    let look = RateLimitRequest { hits_addend: Some(0), ..request(vec![path]) };
    assert_eq!(codes(&ask(&asking, look)), [(OK, 6)], "it has spent nothing");
    let zero = ask(&asking, request(vec![limited(0, RateLimitUnit::Day)]));
    assert_eq!(zero.overall_code(), OVER);
    let refused = told(&asking, &request(vec![limited(1, RateLimitUnit::Unknown)]));
    assert!(matches!(refused, Err(Refusal::Call { code: Code::InvalidArgument, .. })));
}

#[test]
fn descriptors_that_share_a_limit_of_their_own_pass_together_or_not_at_all() {
    let asking = asking(RULES);
    let user = |hits| RateLimitDescriptor {
        limit: Some(RateLimitOverride { requests_per_unit: 3, unit: RateLimitUnit::Minute.into() }),
        hits_addend: Some(hits),
        ..descriptor(&[("user", "a")])
    };
    let answer = ask(&asking, request(vec![user(2), user(2)]));
    assert_eq!((answer.overall_code(), codes(&answer)), (OVER, vec![(OVER, 3), (OVER, 3)]));
    assert_eq!(codes(&ask(&asking, request(vec![user(2), user(1)]))), [(OK, 1), (OK, 0)]);
}

#[test]
fn a_limit_of_its_own_says_when_it_has_what_is_needed() {
    let own = Own { quota: None, requests: 3, seconds: 60 };
    let (all, second) = (Duration::from_secs(60), Duration::from_secs(1));
    assert_eq!(own.retry(3, all), Retry::After(all));
    assert_eq!(own.retry(2, all), Retry::After(all - 20 * second));
    assert_eq!(own.retry(1, 45 * second), Retry::After(5 * second));
    assert_eq!(own.retry(4, all), Retry::Never, "it never holds so much");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let asking = asking(RULES);
    let code = |asked| match told(&asking, &asked) {
        Err(Refusal::Call { code, .. }) => Some(code),
        _ => None,
    };
    let user = descriptor(&[("user", "a")]);
    assert_eq!(code(request(vec![])), Some(Code::InvalidArgument));
    assert_eq!(
        code(RateLimitRequest { domain: String::new(), ..request(vec![user.clone()]) }),
        Some(Code::InvalidArgument)
    );
    assert_eq!(code(request(vec![user.clone(); 21])), Some(Code::ResourceExhausted));
    assert_eq!(code(request(vec![descriptor(&[("a", "b"); 65])])), Some(Code::InvalidArgument));
    let much = RateLimitDescriptor { hits_addend: Some(u64::MAX), ..user.clone() };
    assert_eq!(code(request(vec![much])), Some(Code::InvalidArgument));
    assert_eq!(code(request(vec![user; 20])), None, "as many as that are decided about");
}

#[test]
fn keys_that_look_like_two_are_still_one() {
    let keys = |entries: &[(&str, &str)]| {
        let message = request(vec![descriptor(entries)]).encode_to_vec();
        let asked = Asked::read(&message, 1).unwrap();
        asked.descriptors[0].attributes().last().unwrap().1.to_owned()
    };
    assert_eq!(keys(&[("a", "1"), ("b", "2")]), "a/b");
    assert_eq!(keys(&[("a/b", "1")]), "a%2Fb");
    assert_eq!(keys(&[("a%2Fb", "1")]), "a%252Fb");
}

#[test]
fn json_is_answered_as_messages_are() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let asking = asking(RULES);
    let post = |body: &str| {
        let answer = runtime.block_on(answer_json(&asking, &Peer::default(), body.as_bytes()));
        let status = answer.status().as_u16();
        let body = crate::web::at_once(answer.into_body());
        (status, serde_json::from_slice::<serde_json::Value>(&body).unwrap())
    };
    let user = r#"{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    let (status, answer) = post(user);
    assert_eq!((status, &answer["overallCode"]), (200, &"OK".into()));
    let first = &answer["statuses"][0];
    assert_eq!((&first["code"], &first["limitRemaining"]), (&"OK".into(), &1.into()));
    assert_eq!(first["currentLimit"]["requestsPerUnit"], 2);
    assert_eq!(first["currentLimit"]["unit"], "HOUR");
    assert!(first["durationUntilReset"].as_str().unwrap().ends_with('s'));
    let more = r#"{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"a"}],
        "hits_addend":"2"}],"hitsAddend":1}"#;
    let (status, answer) = post(more);
    assert_eq!((status, &answer["overallCode"]), (429, &"OVER_LIMIT".into()));
    for wrong in [
        "",
        "[]",
        r#"{"domian":"shop"}"#,
        r#"{"domain":"shop"}"#,
        r#"{"domain":"shop","descriptors":[{"entries":[],"limit":{"unit":"FORTNIGHT"}}]}"#,
    ] {
        assert_eq!(post(wrong).0, 400, "{wrong}");
    }
}

proptest! {
    /// Whatever entries there are, rules see each of them, and no other.
    #[test]
    fn any_descriptor_is_described(
        entries in prop::collection::vec((".{0,12}", ".{0,12}"), 0..20),
        domain in ".{1,8}",
        hits in any::<Option<u64>>(),
    ) {
        let pairs: Vec<_> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
        let descriptor = RateLimitDescriptor { hits_addend: hits, ..descriptor(&pairs) };
        let message = RateLimitRequest { domain: domain.clone(), ..request(vec![descriptor]) };
        let message = message.encode_to_vec();
        match Asked::read(&message, 1) {
            Err(_) => prop_assert!(hits.is_some_and(|hits| hits >= 1 << 53)),
            Ok(asked) => {
                let described = &asked.descriptors[0];
                let attributes = described.attributes();
                prop_assert_eq!(attributes.len(), entries.len() + 2);
                prop_assert_eq!(attributes[0], ("domain", &*domain));
                for ((key, value), (name, told)) in entries.iter().zip(&attributes[1..]) {
                    prop_assert_eq!(name.strip_prefix("descriptor."), Some(&**key));
                    prop_assert_eq!(told, value);
                }
                let keys = attributes[attributes.len() - 1].1;
                prop_assert_eq!(keys.split('/').count(), entries.len().max(1));
                prop_assert_eq!(described.hits, hits.unwrap_or(1));
            }
        }
    }

    /// Whatever the bytes are: nobody reads a message where prost reads none.
    #[test]
    fn what_is_no_message_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if RateLimitRequest::decode(&*bytes).is_err() {
            prop_assert!(Asked::read(&bytes, 100).is_err());
        }
    }

    /// Whoever is asked answers, or says why not, and never that nothing is known.
    #[test]
    fn every_request_gets_an_answer(
        domain in "(shop)?",
        descriptors in prop::collection::vec(
            (prop::collection::vec(("user|path|plan|x", "a|gold|"), 0..4), 0..4_u64, 0..3_u32, 0..9_i32),
            0..6,
        ),
        hits in prop::option::of(0..4_u32),
        each in any::<bool>(),
    ) {
        let asking = asking(&if each { format!("descriptors: each\n{RULES}") } else { RULES.to_owned() });
        let all = descriptors.iter().map(|(entries, hits, requests_per_unit, unit)| {
            let pairs: Vec<_> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            let own = RateLimitOverride { requests_per_unit: *requests_per_unit, unit: *unit };
            RateLimitDescriptor {
                hits_addend: Some(*hits).filter(|hits| *hits < 3),
                limit: Some(own).filter(|_| *unit < 5),
                ..descriptor(&pairs)
            }
        });
        let asked = RateLimitRequest { domain, descriptors: all.collect(), hits_addend: hits };
        if let Ok(answer) = told(&asking, &asked) {
            prop_assert_eq!(answer.statuses.len(), asked.descriptors.len());
            let over = answer.statuses.iter().any(|status| status.code() == OVER);
            prop_assert_eq!(answer.overall_code(), if over { OVER } else { OK });
            prop_assert!(answer.statuses.iter().all(|status| status.code() != Answered::Unknown));
        }
    }
}

/// Those who come at the same time look at a limit before any of them has spent from it. One of them
/// gets what is left, and the others must not have spent anything elsewhere.
#[test]
fn who_loses_a_race_for_an_own_limit_has_spent_nothing() {
    let rules = "rules:
      - { name: per-user, match: { domain: shop }, key: [descriptor.user], limit: 400/day }";
    let asking = asking(rules);
    let own = |key, value: &str, requests_per_unit| RateLimitDescriptor {
        limit: Some(RateLimitOverride { requests_per_unit, unit: RateLimitUnit::Day.into() }),
        ..descriptor(&[(key, value)])
    };
    // The one that they race for comes last, so that the others have been spent from by then.
    let all = |last| vec![own("many", "a", 400), descriptor(&[("user", "a")]), last];
    let (rounds, threads) = (300, 4);
    // Where they stand is settled before anybody races.
    assert_eq!(ask(&asking, request(all(own("one", "first", 1)))).overall_code(), OK);
    let mut passed = 1;
    for round in 0..rounds {
        let barrier = Barrier::new(threads);
        let passes = thread::scope(|scope| {
            let race = || {
                let asked = request(all(own("one", &round.to_string(), 1)));
                barrier.wait();
                ask(&asking, asked)
            };
            let answers: Vec<_> = (0..threads).map(|_| scope.spawn(race)).collect();
            let answers = answers.into_iter().map(|answer| answer.join().unwrap());
            answers.filter(|answer| answer.overall_code() == OK).count()
        });
        assert!(passes <= 1, "{passes} in round {round}");
        passed += passes;
    }
    // While two give a new key its place, both may be denied.
    assert!(passed > rounds / 2, "{passed} of {rounds}");
    let left = 400 - u32::try_from(passed).unwrap();
    let look = RateLimitRequest { hits_addend: Some(0), ..request(all(own("one", "new", 1))) };
    assert_eq!(codes(&ask(&asking, look)), [(OK, left), (OK, left), (OK, 1)]);
}
