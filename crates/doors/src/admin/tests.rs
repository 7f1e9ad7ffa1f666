use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use tollgate_rules::{NoFiles, RuleSet, Source};

use super::{Outcome, controls, keys, rules};
use crate::door::Name;
use crate::service::Service;
use crate::web::Answer;

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 2/h }
  - { name: everybody, key: [], limit: 9/h }";

fn service() -> Arc<Service> {
    let source = Source::new("rules.yaml", RULES);
    let rules = RuleSet::read(&source, &NoFiles).unwrap();
    Arc::new(Service::new((source, rules), 1_000).unwrap())
}

fn ask(service: &Service) -> bool {
    let request = tollgate::Request::new("GET", "/").attributes(&[("user", "alice")]);
    service.check(Name::Http, &request).is_allowed()
}

fn told(answer: Outcome<Answer>) -> (u16, serde_json::Value) {
    let answer = answer.unwrap_or_else(|answer| *answer);
    let status = answer.status().as_u16();
    let body: Bytes = run(answer.into_body().collect()).unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(what)
}

fn pushed(headers: &[(&str, &str)]) -> rules::Pushed {
    let mut request = ::http::Request::builder();
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    rules::Pushed::of(&request.body(()).unwrap()).unwrap()
}

fn push(service: &Service, headers: &[(&str, &str)], text: &str) -> (u16, serde_json::Value) {
    told(rules::push(service, pushed(headers), text.into()))
}

#[test]
fn a_key_is_looked_at_and_reset() {
    let service = service();
    assert!(ask(&service) && ask(&service) && !ask(&service));
    let (status, told_) = told(run(keys::inspect(&service, "user=alice")));
    assert_eq!(status, 200);
    let key = &told_["keys"][0];
    assert_eq!(
        (&key["rule"], &key["used"], &key["total"]),
        (&"per-user".into(), &2.into(), &2.into())
    );
    assert_eq!(key["key"][0]["value"], "alice");
    assert_eq!(key["allowed"], false);
    assert_eq!(told_["keys"][1]["rule"], "everybody");
    let reset = serde_json::from_str(r#"{"attributes":{"user":"alice"},"rule":"per-user"}"#);
    assert_eq!(
        told(run(keys::reset(&service, &reset.unwrap()))),
        (200, serde_json::json!({"reset": 1}))
    );
    assert!(ask(&service));
    let all = serde_json::from_str(r#"{"attributes":{"user":"alice"}}"#).unwrap();
    assert_eq!(told(run(keys::reset(&service, &all))), (200, serde_json::json!({"reset": 1})));
    let everybody = &told(run(keys::inspect(&service, "user=alice"))).1["keys"][1];
    assert_eq!(everybody["used"], 3, "what others have in common is not alice's");
    let unknown = serde_json::from_str(r#"{"attributes":{"user":"alice"},"rule":"per-usr"}"#);
    let (status, problem) = told(run(keys::reset(&service, &unknown.unwrap())));
    assert_eq!(status, 404);
    assert!(problem["detail"].as_str().unwrap().contains("did you mean `per-user`"));
}

#[test]
fn the_most_denied_are_listed() {
    let service = service();
    for _ in 0..50 {
        ask(&service);
    }
    let (_, denied) = told(keys::top(&service, "n=5", true));
    assert_eq!(denied["keys"][0]["key"], "per-user user=alice");
    for bad in ["n=0", "n=257", "n=x", "m=1"] {
        assert_eq!(told(keys::top(&service, bad, false)).0, 400, "{bad}");
    }
}

#[test]
fn a_rule_that_is_killed_denies_nothing_whatever_is_pushed() {
    let service = service();
    while ask(&service) {}
    let kill = serde_json::from_str(r#"{"rule":"per-user"}"#).unwrap();
    let (status, killed) = told(controls::kill(&service, &kill));
    assert_eq!((status, &killed["rules"][0]["mode"]), (200, &"off".into()));
    assert!(ask(&service));
    assert_eq!(push(&service, &[], &RULES.replace("2/h", "1/h")).0, 200);
    assert!(ask(&service), "it stays killed");
    let shown = told(Ok(rules::show(&service))).1;
    assert_eq!(shown["rules"][0]["killed"], "off");
    assert_eq!((&shown["rules"][0]["mode"], &shown["pushed"]), (&"enforce".into(), &true.into()));
    let unkill = serde_json::from_str(r#"{"rule":"per-user"}"#).unwrap();
    assert_eq!(told(controls::unkill(&service, &unkill)).0, 200);
    assert!(!ask(&service));
    assert_eq!(told(controls::unkill(&service, &unkill)).0, 409);
}

#[test]
fn rules_replace_those_that_they_were_made_from_or_none() {
    let service = service();
    let version = service.rules().version().to_string();
    let (status, told) = push(&service, &[("if-match", "\"other\"")], "rules: []");
    assert_eq!(status, 412);
    assert!(told["detail"].as_str().unwrap().contains(&version), "{told}");
    let tag = format!("\"x\", \"{version}\"");
    let (status, told) = push(&service, &[("if-match", &tag)], "rules: []");
    assert_eq!((status, &told["previous"]), (200, &version.into()));
    let toml = "[[rules]]\nname = 'a'\nkey = []\nlimit = '5/s'";
    assert_eq!(push(&service, &[("content-type", "application/toml")], toml).0, 200);
}

#[test]
fn wrong_rules_are_refused_with_all_that_is_wrong() {
    let service = service();
    let version = service.rules().version();
    let text =
        "rules:\n  - { name: a, key: [], limt: 5/s }\n  - { name: a, key: [nobody], limit: 5 }";
    let (status, told) = push(&service, &[], text);
    assert_eq!(status, 422);
    let findings = told["findings"].as_array().unwrap();
    assert!(findings.len() > 1, "{told}");
    assert_eq!(findings[0]["line"], 2);
    assert!(!findings[0]["remedy"].as_str().unwrap().is_empty());
    let files = "rules: [{ name: a, key: [user], limit: 5/s, overrides: a.csv }]";
    let (status, told) = push(&service, &[], files);
    assert_eq!(status, 422);
    assert!(told.to_string().contains("did not come from a file"), "{told}");
    assert_eq!(service.rules().version(), version);
    assert!(service.metrics().text(&service).contains("tollgate_rules_refused_total 2"));
}

proptest! {
    #[test]
    fn whatever_is_sent_gets_an_answer(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        query in "\\PC{0,60}",
    ) {
        let service = service();
        let _ = rules::push(&service, pushed(&[]), bytes.clone());
        let _ = rules::push(&service, pushed(&[("content-type", "toml")]), bytes.clone());
        let _ = run(keys::inspect(&service, &query));
        let _ = keys::top(&service, &query, true);
        if let Ok(reset) = serde_json::from_slice(&bytes) {
            let _ = run(keys::reset(&service, &reset));
        }
        let _ = serde_json::from_slice::<controls::Kill>(&bytes);
    }

    #[test]
    fn any_attributes_are_taken_or_refused(
        attributes in prop::collection::btree_map("\\PC{0,8}|user|ip|path|header.a", "\\PC{0,8}", 0..4),
    ) {
        let body = serde_json::json!({ "attributes": attributes }).to_string();
        let _ = run(keys::reset(&service(), &serde_json::from_str(&body).unwrap()));
    }
}
