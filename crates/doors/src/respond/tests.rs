//! What clients make of what they are told.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use sfv::{BareItem, List, ListEntry, Parser};
use tollgate::{Clock as _, Engine, ManualClock, Request, RuleSet, Ruling, Wall};

use crate::config::ResetStyle;
use crate::respond::terms::AllTerms;
use crate::respond::words::Words;
use crate::web::Answer;

/// Rules under a clock that a test moves.
struct Gate {
    engine: Engine<ManualClock>,
    clock: ManualClock,
    terms: Arc<AllTerms>,
    reset: ResetStyle,
}

impl Gate {
    fn new(rules: &str) -> Self {
        // Not at the begin of a second.
        Self::at(Wall::from_unix_nanos(1_794_712_698_600_000_000), rules)
    }

    fn at(begin: Wall, rules: &str) -> Self {
        let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
        let clock = ManualClock::starting_at(begin);
        let engine = Engine::builder(rules).keys(1000).clock(clock.clone()).build().unwrap();
        let terms = Arc::new(AllTerms::new(&engine.rules()));
        Self { engine, clock, terms, reset: ResetStyle::Epoch }
    }

    fn decide(&self) -> Ruling {
        self.engine.decide(&Request::new("GET", "/"))
    }

    fn words<'a>(&self, ruling: &'a Ruling) -> Words<'a> {
        let terms = Guard::from_inner(Arc::clone(&self.terms));
        Words::new(ruling, terms, self.reset, self.clock.wall())
    }

    fn answer_to(&self, request: &Request<'_>) -> Answer {
        let ruling = self.engine.decide(request);
        match ruling.is_allowed() {
            true => self.words(&ruling).allowed(),
            false => self.words(&ruling).denied(),
        }
    }

    fn answer(&self) -> Answer {
        self.answer_to(&Request::new("GET", "/"))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name).map(|text| text.parse().unwrap())
}

/// All headers, in order.
fn all(answer: &Answer) -> Vec<String> {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}", value.to_str().unwrap())
    };
    let mut all: Vec<_> = answer.headers().iter().map(line).collect();
    all.sort_unstable();
    all
}

fn body(answer: Answer) -> String {
    let mut body = answer.into_body();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut frame = std::pin::pin!(body.frame());
    match frame.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Some(Ok(frame))) => {
            String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
        }
        _ => String::new(),
    }
}

fn json(answer: Answer) -> serde_json::Value {
    serde_json::from_str(&body(answer)).unwrap()
}

const TWO: &str = "rules:
  - { name: burst, key: [], limit: 2/min }
  - { name: daily, key: [], limit: 1000/day }
  - { name: trial, key: [], limit: 1/day, mode: shadow }
  - { name: none, key: [], limit: unlimited }";

#[test]
fn who_passes_is_told_what_is_left() {
    let gate = Gate::new(TWO);
    let answer = gate.answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        all(&answer),
        [
            "ratelimit-policy: \"burst\";q=2;w=60,\"daily\";q=1000;w=86400",
            "ratelimit: \"burst\";r=1;t=30,\"daily\";r=999;t=87",
            "x-ratelimit-limit: 2",
            "x-ratelimit-remaining: 1",
            // 698.6 + 30 is 728.6.
            "x-ratelimit-reset: 1794712729",
        ]
    );
}

#[test]
fn who_is_denied_is_told_when_to_come_again() {
    let gate = Gate::new(TWO);
    let _ = (gate.decide(), gate.decide());
    gate.clock.advance(Duration::from_millis(500));
    let answer = gate.answer();
    assert_eq!(answer.status(), 429);
    assert_eq!(
        all(&answer),
        [
            "cache-control: no-store",
            "content-type: application/problem+json",
            "ratelimit-policy: \"burst\";q=2;w=60",
            "ratelimit: \"burst\";r=0;t=30",
            "retry-after: 30",
            "x-ratelimit-limit: 2",
            "x-ratelimit-remaining: 0",
            // 699.1 + 29.5 is 728.6.
            "x-ratelimit-reset: 1794712729",
        ]
    );
    assert_eq!(
        body(answer),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Quota Exceeded\",\"status\":429,\"violated-policies\":[\"burst\"]}"
    );
}

#[test]
fn reset_can_be_counted_from_now() {
    let gate = Gate { reset: ResetStyle::Seconds, ..Gate::new(TWO) };
    assert_eq!(number(gate.answer().headers(), "x-ratelimit-reset"), Some(30));
}

#[test]
fn all_rules_that_deny_are_named_and_the_last_to_allow_says_when() {
    let gate = Gate::new(
        "rules:
  - { name: a, key: [], limit: 1/min }
  - { name: b, key: [], limit: 1/h, deny: { status: 403 } }
  - { name: c, key: [], limit: 9/min }",
    );
    let _ = gate.decide();
    let answer = gate.answer();
    assert_eq!(number(answer.headers(), "retry-after"), Some(3_600));
    assert_eq!(answer.status(), 403, "the strictest has the word");
    let told = text(answer.headers(), "ratelimit");
    assert_eq!(told, Some("\"a\";r=0;t=60,\"b\";r=0;t=3600"));
    assert_eq!(json(answer)["violated-policies"], serde_json::json!(["a", "b"]));
}

#[test]
fn each_rule_is_told_of_in_the_headers_that_it_chose() {
    let names = ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-used"];
    let told = |a: &str, b: &str| {
        let rules = format!(
            "rules:
  - {{ name: a, key: [], limit: 5/min, headers: {a} }}
  - {{ name: b, key: [], limit: 9/min, headers: {b} }}"
        );
        let answer = Gate::new(&rules).answer();
        names.map(|name| text(answer.headers(), name).map(str::to_owned).unwrap_or_default())
    };
    let (a, b) = ("\"a\";r=4;t=12", "\"b\";q=9;w=60");
    assert_eq!(told("standard", "none"), [a, "\"a\";q=5;w=60", "", ""]);
    assert_eq!(told("none", "github"), ["", "", "9", "1"]);
    assert_eq!(told("legacy", "standard"), ["\"b\";r=8;t=7", b, "5", ""]);
    assert_eq!(told("github", "legacy"), ["", "", "5", "1"]);
    assert_eq!(told("legacy", "github"), ["", "", "5", ""]);
    assert_eq!(told("none", "none"), ["", "", "", ""]);
}

#[test]
fn a_denial_by_a_rule_without_headers_moves_the_reset_of_others() {
    let gate = Gate::new(
        "rules:
  - { name: quiet, key: [], limit: 1/h, headers: none }
  - { name: told, key: [], limit: 9/min }",
    );
    let _ = gate.decide();
    let answer = gate.answer();
    assert_eq!(number(answer.headers(), "x-ratelimit-remaining"), Some(8));
    assert_eq!(number(answer.headers(), "x-ratelimit-reset"), Some(1_794_716_299));
}

#[test]
fn what_never_passes_is_told_so() {
    let gate = Gate::new("rules: [{ name: a, key: [], limit: 5/min, block_for: 1h }]");
    let answer = gate.answer_to(&Request::new("GET", "/").cost(6));
    assert_eq!(answer.status(), 429);
    assert_eq!(text(answer.headers(), "retry-after"), None);
    let problem = json(answer);
    assert!(problem["type"].as_str().unwrap().ends_with("#quota-exceeded"));
    assert!(problem["detail"].as_str().unwrap().contains("waiting does not help"));
}

#[test]
fn slots_are_told_as_what_is_under_way() {
    let gate = Gate::new("rules: [{ name: slots, key: [], concurrent: 1 }]");
    let held = gate.decide();
    let answer = gate.answer();
    let policy = text(answer.headers(), "ratelimit-policy");
    assert_eq!(policy, Some("\"slots\";q=1;qu=\"concurrent-requests\""));
    assert_eq!(text(answer.headers(), "ratelimit"), Some("\"slots\";r=0"));
    assert_eq!(number(answer.headers(), "retry-after"), Some(1));
    assert!(json(answer)["detail"].as_str().unwrap().contains("under way"));
    drop(held);
    assert_eq!(text(gate.answer().headers(), "ratelimit"), Some("\"slots\";r=0"));
}

#[test]
fn who_waits_for_a_slot_waits_for_rates_as_well() {
    let gate = Gate::new(
        "rules: [{ name: a, key: [], concurrent: 1 }, { name: b, key: [], limit: 1/min }]",
    );
    let _held = gate.decide();
    assert_eq!(number(gate.answer().headers(), "retry-after"), Some(60));
}

#[test]
fn blocks_are_told_as_such() {
    let gate = Gate::new("rules: [{ name: a, key: [], limit: 1/min, block_for: 1h }]");
    let _ = gate.decide();
    let answer = gate.answer();
    assert_eq!(number(answer.headers(), "retry-after"), Some(3_600));
    assert!(json(answer)["type"].as_str().unwrap().ends_with("#abnormal-usage-detected"));
}

#[test]
fn a_rule_has_its_own_words() {
    let message = "'{rule} \"{limit}\": {retry_after}'";
    let rules = format!(
        "rules: [{{ name: a, key: [], limit: 2/h, deny: {{ status: 503, message: {message} }} }}]"
    );
    let gate = Gate::new(&rules);
    let _ = (gate.decide(), gate.decide());
    let answer = gate.answer();
    assert_eq!(answer.status(), 503);
    assert_eq!(json(answer)["detail"], "a \"2\": 30 min");
    let never = json(gate.answer_to(&Request::new("GET", "/").cost(9)));
    assert!(never["detail"].as_str().unwrap().contains("waiting does not help"));
}

#[test]
fn a_rule_has_its_own_body() {
    let kinds = [
        ("'{\"in\":{retry_after},\"of\":{limit}}'", "application/json", "{\"in\":1800,\"of\":2}"),
        ("'<p>{rule}</p>'", "text/html; charset=utf-8", "<p>a</p>"),
        ("'Wait.'", "text/plain; charset=utf-8", "Wait."),
    ];
    for (written, content_type, expected) in kinds {
        let rules =
            format!("rules: [{{ name: a, key: [], limit: 2/h, deny: {{ body: {written} }} }}]");
        let gate = Gate::new(&rules);
        let _ = (gate.decide(), gate.decide());
        let answer = gate.answer();
        assert_eq!(text(answer.headers(), "content-type"), Some(content_type));
        assert_eq!(body(answer), expected);
    }
}

#[test]
fn for_plain_nginx_there_is_403_without_a_body() {
    let gate = Gate::new("rules: [{ name: a, key: [], limit: 1/h }]");
    let _ = gate.decide();
    let ruling = gate.decide();
    let answer = gate.words(&ruling).forbidden();
    assert_eq!(answer.status(), 403);
    assert_eq!(number(answer.headers(), "retry-after"), Some(3_600));
    assert_eq!(body(answer), "");
}

#[test]
fn nothing_is_told_where_no_rule_applies() {
    let gate = Gate::new("rules: [{ name: a, match: { path: /a }, key: [], limit: 1/h }]");
    assert!(gate.answer().headers().is_empty());
}

#[test]
fn terms_of_other_rules_are_made_anew() {
    let old = Gate::new("rules: [{ name: old, key: [], limit: 1/h }]");
    let ruling = old.decide();
    let new = RuleSet::parse("rules: [{ name: new, key: [], limit: 5/s }]").unwrap();
    let service = Arc::new(crate::Service::new(new, 100).unwrap());
    let answers = super::Answers::new(service, crate::Respond::default());
    let mut headers = HeaderMap::new();
    answers.words(&ruling).write(&mut headers);
    assert_eq!(text(&headers, "ratelimit-policy"), Some("\"old\";q=1;w=3600"));
}

#[test]
fn what_is_prepared_is_what_would_be_made() {
    for style in ["standard", "legacy", "both", "github", "none"] {
        let rules = format!(
            "rules:
  - {{ name: a, key: [], limit: 2/h, headers: {style} }}
  - {{ name: b, key: [], limit: 9/min, headers: legacy, match: {{ path: /b }} }}"
        );
        let gate = Gate::new(&rules);
        let _ = (gate.decide(), gate.decide());
        for (path, cost) in [("/", 1), ("/b", 1), ("/", 2), ("/", 3), ("/b", 3), ("/", 1)] {
            gate.clock.advance(Duration::from_millis(1_700));
            let ruling = gate.engine.decide(&Request::new("GET", path).cost(cost));
            let mut made = HeaderMap::new();
            gate.words(&ruling).write(&mut made);
            let prepared = gate.words(&ruling).forbidden();
            assert_eq!(*prepared.headers(), made, "{style} {path} {cost}");
            let mut prepared = gate.words(&ruling).denied();
            assert!(prepared.headers_mut().remove("content-type").is_some());
            assert_eq!(*prepared.headers(), made, "{style} {path} {cost}");
        }
    }
}

/// Rules of all kinds.
fn some_rules() -> impl Strategy<Value = String> {
    let algorithms = prop::sample::select(vec![
        "algorithm: token_bucket",
        "algorithm: fixed_window",
        "algorithm: sliding_window",
        "algorithm: sliding_log",
        "algorithm: leaky_bucket, queue: 0",
        "algorithm: token_bucket, burst: 4",
        "algorithm: token_bucket, block_for: 3s",
    ]);
    let periods = prop::sample::select(vec!["100ms", "s", "1700ms", "7s", "min"]);
    let rule = (4..9_u32, periods, algorithms)
        .prop_map(|(count, period, algorithm)| format!("limit: {count}/{period}, {algorithm}"));
    prop::collection::vec(rule, 1..4).prop_map(|rules| {
        let each = rules.iter().enumerate();
        let each = each.map(|(at, rule)| format!("  - {{ name: r{at}, key: [], {rule} }}\n"));
        format!("rules:\n{}", each.collect::<String>())
    })
}

proptest! {
    #[test]
    fn whoever_waits_as_told_is_let_in(
        rules in some_rules(),
        begin in 0..4_000_000_000_000_000_000_u64,
        steps in prop::collection::vec(0..400_000_000_u64, 1..40),
        until_reset: bool,
        from_now: bool,
    ) {
        let mut gate = Gate::at(Wall::from_unix_nanos(begin), &rules);
        gate.reset = if from_now { ResetStyle::Seconds } else { ResetStyle::Epoch };
        for step in steps {
            gate.clock.advance(Duration::from_nanos(step));
            let answer = gate.answer();
            if answer.status() == 200 {
                continue;
            }
            let told = answer.headers();
            let after = number(told, "retry-after").unwrap();
            let reset = number(told, "x-ratelimit-reset").unwrap();
            let wait = match (until_reset, from_now) {
                (false, _) => Duration::from_secs(after),
                (true, true) => Duration::from_secs(reset),
                (true, false) => Duration::from_nanos(
                    reset * 1_000_000_000 - gate.clock.wall().as_unix_nanos(),
                ),
            };
            prop_assert!(wait <= Duration::from_secs(121), "{wait:?}: longer than two windows");
            gate.clock.advance(wait);
            prop_assert_eq!(gate.answer().status(), 200, "{:?} after {:?}", told, wait);
        }
    }

    #[test]
    fn fields_are_read_as_they_were_written(rules in some_rules(), requests in 1..20) {
        let gate = Gate::new(&rules);
        for _ in 0..requests {
            let answer = gate.answer();
            let after = number(answer.headers(), "retry-after");
            let list = |name| {
                let list: List = Parser::new(answer.headers()[name].as_bytes()).parse().unwrap();
                let item = |entry: &ListEntry| match entry {
                    ListEntry::Item(item) => item.clone(),
                    ListEntry::InnerList(_) => panic!("a list in a list"),
                };
                list.iter().map(item).collect::<Vec<_>>()
            };
            let parameter = |item: &sfv::Item, name: &str| match item.params.get(name) {
                Some(BareItem::Integer(number)) => Some(u64::try_from(i64::from(*number)).unwrap()),
                Some(_) => panic!("not a number"),
                None => None,
            };
            let (left, policies) = (list("ratelimit"), list("ratelimit-policy"));
            prop_assert_eq!(left.len(), policies.len());
            for (left, policy) in left.iter().zip(&policies) {
                prop_assert_eq!(&left.bare_item, &policy.bare_item);
                prop_assert!(parameter(left, "r") <= parameter(policy, "q"));
                prop_assert!(parameter(policy, "w").is_none_or(|w| w > 0));
                // After a denial nobody is told to come before such a time.
                if let (Some(after), Some(t)) = (after, parameter(left, "t")) {
                    prop_assert!(after >= t);
                }
            }
        }
    }

    #[test]
    fn what_a_request_says_is_in_no_header(user in "(?s).+", agent in "(?s).+") {
        let gate = Gate::new(
            "rules: [{ name: a, key: [user, header.user-agent], limit: 1/h,
              deny: { message: 'Wait {retry_after}.' } }]",
        );
        let (attributes, headers) = ([("user", &*user)], [("user-agent", &*agent)]);
        let request = Request::new("GET", "/").attributes(&attributes).headers(&headers);
        let answers = [(); 2].map(|()| gate.answer_to(&request));
        let plain = Request::new("GET", "/")
            .attributes(&[("user", "alice")])
            .headers(&[("user-agent", "browser")]);
        let gate = Gate::new(
            "rules: [{ name: a, key: [user, header.user-agent], limit: 1/h,
              deny: { message: 'Wait {retry_after}.' } }]",
        );
        for answer in answers {
            let expected = gate.answer_to(&plain);
            prop_assert_eq!(all(&answer), all(&expected));
            prop_assert_eq!(body(answer), body(expected));
        }
    }
}

/// How many allocations `work` makes.
fn allocations<T>(work: impl FnOnce() -> T) -> u64 {
    allocation_counter::measure(|| drop(work())).count_total
}

#[test]
fn a_denial_does_not_take_more_than_an_allowance() {
    let gate = Gate::new("rules: [{ name: a, key: [], limit: 2/h }]");
    let words = |ruling| gate.words(ruling);
    let (first, allowed, denied) = (gate.decide(), gate.decide(), gate.decide());
    assert!(first.is_allowed() && allowed.is_allowed() && !denied.is_allowed());
    // What is made once is made.
    let _ = (words(&first).allowed(), words(&denied).denied());
    let for_allowance = allocations(|| words(&allowed).allowed());
    let for_denial = allocations(|| words(&denied).denied());
    assert!(for_denial <= for_allowance, "{for_denial} are more than {for_allowance}");
}
