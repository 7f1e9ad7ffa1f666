use std::sync::Arc;

use tollgate::{Ask, Engine, Request, Reserve, RuleSet};

use crate::door::Name;
use crate::service::Service;

/// The value of a sample, named with its labels as it is written.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn service(rules: &str) -> Service {
    Service::new(RuleSet::parse(rules).unwrap(), 1_000).unwrap()
}

fn text(service: &Service) -> String {
    service.metrics().text(service)
}

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 2/h }
  - { name: everybody, key: [], limit: 9/h }
  - { name: trial, key: [], limit: 1/h, mode: shadow }";

fn ask(service: &Service, times: usize) {
    for _ in 0..times {
        let request = Request::new("GET", "/").attributes(&[("user", "alice")]);
        let _ = service.check(Name::Resp, &request);
    }
}

#[test]
fn every_rule_and_door_has_its_numbers() {
    let service = service(RULES);
    ask(&service, 5);
    let text = text(&service);
    for (sample, count) in [
        ("tollgate_decisions_total{door=\"resp\",outcome=\"allowed\"}", 2.0),
        ("tollgate_decisions_total{door=\"resp\",outcome=\"denied\"}", 3.0),
        ("tollgate_decisions_total{door=\"http\",outcome=\"allowed\"}", 0.0),
        ("tollgate_rule_decisions_total{rule=\"per-user\",outcome=\"allowed\"}", 2.0),
        ("tollgate_rule_decisions_total{rule=\"per-user\",outcome=\"denied\"}", 3.0),
        ("tollgate_rule_decisions_total{rule=\"everybody\",outcome=\"allowed\"}", 5.0),
        ("tollgate_rule_decisions_total{rule=\"trial\",outcome=\"denied\"}", 0.0),
        ("tollgate_rules_loaded", 3.0),
    ] {
        assert_eq!(value(&text, sample), Some(count), "{sample}\n{text}");
    }
    let shadow = "tollgate_rule_decisions_total{rule=\"trial\",outcome=\"shadow_denied\"}";
    assert!(value(&text, shadow).is_some_and(|count| count >= 1.0), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn decisions_of_every_door_are_shown() {
    let service = service(RULES);
    for door in Name::ALL {
        let _ = service.check(door, &Request::new("GET", "/"));
    }
    let text = text(&service);
    // Nobody asks for a decision where the server is run from.
    let asked = Name::ALL.into_iter().filter(|door| !matches!(door, Name::Admin | Name::Status));
    for door in asked.map(Name::as_str) {
        let sample = format!("tollgate_decisions_total{{door=\"{door}\",outcome=\"allowed\"}}");
        assert_eq!(value(&text, &sample), Some(1.0), "{text}");
    }
}

#[test]
fn totals_go_on_when_rules_are_exchanged_and_rules_that_are_gone_leave() {
    let service = service(RULES);
    ask(&service, 5);
    let others = "rules:
  - { name: new, key: [], limit: 9/h }
  - { name: per-user, key: [user], limit: 9/h }";
    service.swap(RuleSet::parse(others).unwrap()).unwrap();
    ask(&service, 1);
    let text = text(&service);
    let sample = |rule: &str, outcome: &str| {
        value(
            &text,
            &format!("tollgate_rule_decisions_total{{rule=\"{rule}\",outcome=\"{outcome}\"}}"),
        )
    };
    assert_eq!(sample("per-user", "denied"), Some(3.0));
    assert_eq!(sample("per-user", "allowed"), Some(3.0));
    assert_eq!(sample("new", "allowed"), Some(1.0));
    assert_eq!(sample("everybody", "allowed"), None);
    assert_eq!(value(&text, "tollgate_rules_swaps_total"), Some(1.0));
}

#[test]
fn what_older_rules_decided_is_counted_by_name() {
    let service = service(RULES);
    let rules: Arc<RuleSet> = RuleSet::parse(
        "rules:
  - { name: everybody, key: [], limit: 9/h }
  - { name: gone, key: [], limit: 9/h }",
    )
    .unwrap()
    .into();
    let engine = Engine::new(rules).unwrap();
    service.metrics().decided(Name::Http, &engine.decide(&Request::new("GET", "/")));
    let text = text(&service);
    let sample = "tollgate_rule_decisions_total{rule=\"everybody\",outcome=\"allowed\"}";
    assert_eq!(value(&text, sample), Some(1.0));
    assert!(!text.contains("gone"), "{text}");
}

#[test]
fn there_are_series_for_a_thousand_rules_and_one_for_the_rest() {
    let rules = (0..5_000).map(|number| {
        format!("  - {{ name: r{number}, match: {{ path: /{number} }}, key: [], limit: 9/h }}\n")
    });
    let service = service(&format!("rules:\n{}", rules.collect::<String>()));
    for number in 0..5_000 {
        let path = format!("/{number}");
        let _ = service.check(Name::Http, &Request::new("GET", &path));
    }
    let text = text(&service);
    let series = text.lines().filter(|line| line.starts_with("tollgate_rule_decisions_total"));
    assert_eq!(series.count(), 1_001 * 3);
    let others = "tollgate_rule_decisions_total{rule=\"(other)\",outcome=\"allowed\"}";
    assert_eq!(value(&text, others), Some(4_000.0));
    assert_eq!(value(&text, "tollgate_rules_loaded"), Some(5_000.0));
}

#[test]
fn the_heaviest_key_of_each_rule_is_known_by_its_share_alone() {
    let service = service(RULES);
    ask(&service, 3);
    let bob = Request::new("GET", "/").attributes(&[("user", "bob")]);
    let _ = service.check(Name::Resp, &bob);
    let page = text(&service);
    let heaviest: Vec<_> =
        page.lines().filter(|line| line.starts_with("tollgate_heaviest_key_ratio")).collect();
    let expected = ["tollgate_heaviest_key_ratio{rule=\"per-user\"} 0.75"];
    assert_eq!(heaviest, expected, "the others count everybody together");
    assert!(!page.contains("alice"), "{page}");
    service.swap(RuleSet::parse("rules: [{ name: new, key: [ip], limit: 9/h }]").unwrap()).unwrap();
    assert!(!text(&service).contains("tollgate_heaviest_key_ratio{"), "that rule is gone");
}

#[test]
fn it_is_ready_until_it_is_about_to_end() {
    let service = service(RULES);
    assert_eq!(value(&text(&service), "tollgate_ready"), Some(1.0));
    service.drain().enter(crate::drain::Phase::Leaving);
    assert_eq!(value(&text(&service), "tollgate_ready"), Some(0.0));
}

#[test]
fn some_decisions_are_timed() {
    let service = service(RULES);
    ask(&service, 640);
    let text = text(&service);
    assert_eq!(value(&text, "tollgate_decision_seconds_count"), Some(10.0));
    assert_eq!(value(&text, "tollgate_decision_seconds_bucket{le=\"+Inf\"}"), Some(10.0));
}

#[test]
fn decisions_that_come_together_are_timed_as_often_as_others() {
    let service = service(RULES);
    let attributes = [("user", "alice")];
    let requests = [Request::new("GET", "/").attributes(&attributes); 20];
    let mut answered = Vec::new();
    for _ in 0..16 {
        service.check_batch(Name::Resp, &requests, &mut Reserve::default(), |at, ruling| {
            answered.push((at, ruling.is_allowed()));
        });
    }
    let asks = [Ask { key: &b"a"[..], quota: "1/h".parse().unwrap(), cost: 1 }; 32];
    let mut throttled = 0;
    for _ in 0..10 {
        service.throttle(Name::Resp, &asks, |answer| throttled += usize::from(answer.is_ok()));
    }
    let text = text(&service);
    assert_eq!(value(&text, "tollgate_decision_seconds_count"), Some(10.0), "of 640\n{text}");
    assert_eq!(throttled, 320);
    let places: Vec<_> = answered.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, (0..20).cycle().take(320).collect::<Vec<_>>(), "in order");
    assert_eq!(answered.iter().filter(|(_, allowed)| *allowed).count(), 2);
}

#[test]
fn denials_that_come_together_are_all_counted() {
    let service = service(RULES);
    let attributes = [("user", "alice")];
    let requests = [Request::new("GET", "/").attributes(&attributes); 20];
    let mut allowed = 0;
    service.check_batch(Name::Resp, &requests, &mut Reserve::default(), |_, ruling| {
        allowed += u64::from(ruling.is_allowed());
    });
    // Nobody reads the log here, so none is written about.
    assert_eq!((allowed, service.denials().left_out()), (2, 18));
}

#[test]
fn labels_are_escaped() {
    let labels = vec![("rule", "a\"} 1\nevil 2\\".to_owned())];
    let family = super::family::Family {
        name: "a",
        help: "b",
        samples: super::family::Samples::Counter(vec![(labels, 1)]),
    };
    let text = super::family::write(vec![family]);
    let expected =
        "# HELP a b\n# TYPE a counter\na_total{rule=\"a\\\"} 1\\nevil 2\\\\\"} 1\n# EOF\n";
    assert_eq!(text, expected);
}
