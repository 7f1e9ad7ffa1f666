//! Whose limit a request meets: that of its tier, of its key, or of the first rule that fits.

use std::io;

use tollgate::{Engine, ManualClock, Request, RuleSet};
use tollgate_rules::{Files, Source};

use crate::{engine, get, names, passing};

#[test]
fn a_tier_has_its_own_limit_and_who_names_none_has_the_usual_one() {
    let (engine, _) = engine(
        "tiers: { from: claims.plan, known: [free, pro, unbound], else: free }
rules: [{ name: a, key: [user], limit: { free: 2/h, pro: 5/h, unbound: unlimited },
  burst: { pro: 4 } }]",
    );
    let passes = |user, plan| {
        let attributes = [("user", user), ("claims.plan", plan)];
        passing(&engine, &get("/").attributes(&attributes), 30)
    };
    assert_eq!([passes("a", "free"), passes("b", "pro"), passes("c", "unbound")], [2, 4, 30]);
    assert_eq!([passes("d", ""), passes("e", "gold"), passes("f", "Pro")], [2, 2, 2]);
    assert_eq!(passing(&engine, &get("/").attributes(&[("user", "g")]), 9), 2);
}

#[test]
fn a_tier_has_its_own_number_of_slots_and_shares_what_is_under_way() {
    let (engine, _) = engine(
        "tiers: { from: claims.plan, known: [free, pro], else: free }
rules: [{ name: a, key: [user], concurrent: { free: 1, pro: 3 } }]",
    );
    let free = [("user", "a"), ("claims.plan", "free")];
    let pro = [("user", "a"), ("claims.plan", "pro")];
    let one = engine.decide(&get("/").attributes(&free));
    assert!(one.is_allowed() && !engine.decide(&get("/").attributes(&free)).is_allowed());
    let more: Vec<_> = (0..5).map(|_| engine.decide(&get("/").attributes(&pro))).collect();
    assert_eq!(more.iter().filter(|ruling| ruling.is_allowed()).count(), 2, "it was upgraded");
}

#[test]
fn rules_may_be_about_one_tier() {
    let (engine, _) = engine(
        "tiers: { from: header.x-plan, known: [free, pro], else: free }
rules: [{ name: a, match: { tier: free }, key: [], limit: 2/h }]",
    );
    assert_eq!(passing(&engine, &get("/").headers(&[("x-plan", "pro")]), 9), 9);
    assert_eq!(passing(&engine, &get("/"), 9), 2);
}

/// The overrides of one key in a rule with a limit of 2/h, and who passes how often.
fn check_overrides(key: &str, overrides: &str, requests: &[(Request<'_>, usize)]) {
    let (engine, _) = engine(&format!(
        "rules: [{{ name: a, key: [{key}], limit: 2/h, overrides: {{ {overrides} }} }}]"
    ));
    for (request, passes) in requests {
        assert_eq!(passing(&engine, request, 20), *passes, "{request:?} by {key}");
    }
}

#[test]
fn single_keys_have_limits_of_their_own() {
    let user = |user: &'static [(&str, &str)]| get("/").attributes(user);
    let from = |ip: &str| get("/").peer(ip.parse().unwrap());
    let users = [
        (user(&[("user", "acme")]), 5),
        (user(&[("user", "bolt")]), 5),
        (user(&[("user", "one")]), 1),
        (user(&[("user", "free")]), 20),
        (user(&[("user", "Acme")]), 2),
        (user(&[("user", "else")]), 2),
    ];
    check_overrides("user", "acme: 5/h, bolt: 5/h, one: 1/h, free: unlimited", &users);
    let ips = [
        (from("192.0.2.7"), 5),
        (from("192.0.2.8"), 2),
        (from("2001:db8:0:1:ffff::1"), 7),
        (from("2001:db8:0:2::1"), 2),
    ];
    check_overrides("ip", "192.0.2.7: 5/h, '2001:db8:0:1::': 7/h", &ips);
    let networks = [
        (from("192.0.2.200"), 5),
        (from("198.51.100.1"), 6),
        (from("203.0.113.1"), 2),
        (from("2001:db8:1:ffff::1"), 7),
    ];
    let written = "192.0.2.0/24: 5/h, 198.51.100.77: 6/h, '2001:db8:1::/48': 7/h";
    check_overrides("ip/24", written, &networks);
    let ip = "192.0.2.7".parse().unwrap();
    let both = [
        (user(&[("user", "acme")]).peer(ip), 5),
        (user(&[("user", "acme")]).peer("192.0.2.8".parse().unwrap()), 2),
        (user(&[("user", "bolt")]).peer(ip), 2),
    ];
    check_overrides("user, ip", "'acme, 192.0.2.7': 5/h", &both);
}

struct Csv(&'static str);

impl Files for Csv {
    fn read(&self, name: &str) -> io::Result<String> {
        assert_eq!(name, "overrides.csv");
        Ok(self.0.to_owned())
    }
}

#[test]
fn limits_of_single_keys_come_from_a_file() {
    let text = "rules: [{ name: a, key: [user], limit: 2/h, overrides: overrides.csv }]";
    let files = Csv("# key,limit\nacme, 5/h\n\nsmith, john,3/h\nbolt,unlimited\n");
    let set = RuleSet::read(&Source::new("rules.yaml", text), &files).unwrap();
    let engine: Engine<_> = Engine::builder(set).clock(ManualClock::new()).build().unwrap();
    for (user, passes) in [("acme", 5), ("smith, john", 3), ("bolt", 9), ("smith", 2), ("#", 2)] {
        let attributes = [("user", user)];
        assert_eq!(passing(&engine, &get("/").attributes(&attributes), 9), passes, "{user}");
    }
}

#[test]
fn a_limit_of_a_key_goes_before_that_of_its_tier() {
    let (engine, _) = engine(
        "tiers: { from: claims.plan, known: [free, pro], else: free }
rules: [{ name: a, key: [user], limit: { free: 2/h, pro: 5/h }, overrides: { acme: 3/h } }]",
    );
    let acme = [("user", "acme"), ("claims.plan", "pro")];
    assert_eq!(passing(&engine, &get("/").attributes(&acme), 9), 3);
}

#[test]
fn of_alternatives_the_most_specific_that_applies_counts_and_no_other() {
    let (engine, _) = engine(
        "rules:
  - group: api
    first_match: true
    rules:
      - { name: rest, key: [], limit: 9/h }
      - { name: items, match: { path: /v1/items/** }, key: [], limit: 5/h }
      - { name: mine, match: { path: /v1/items/mine }, key: [user], limit: 3/h }
      - { name: none, match: { path: /v1/items/off }, key: [], limit: 1/h, mode: off }
  - { name: all, key: [], limit: 100/h }",
    );
    let asked = |path| names(&engine.decide(&get(path))).join(" ");
    assert_eq!(asked("/v1/items/7"), "items all");
    assert_eq!(asked("/v2"), "rest all");
    assert_eq!(asked("/v1/items/mine"), "items all", "there is no user to count by");
    assert_eq!(asked("/v1/items/off"), "items all", "what is off is not there");
    let alice = [("user", "alice")];
    let mine = get("/v1/items/mine").attributes(&alice);
    assert_eq!(names(&engine.decide(&mine)), ["mine", "all"]);
    assert_eq!(passing(&engine, &mine, 9), 2, "and who is denied does not try the next");
    assert_eq!(crate::left(&engine, "items", &get("/v1/items/7")), Some(2));
}

#[test]
fn nobody_goes_around_a_rule_by_spelling() {
    let (engine, _) = engine(
        "rules: [{ name: a, key: [method, host, path, query.action], limit: 1/h, match: {
  method: POST, host: api.example.com, path: /café, query.action: delete all,
  when: \"request.path == '/caf%C3%A9' && request.method == 'POST'\" } }]",
    );
    let host = "api.example.com";
    let usual = Request::new("POST", "/café?action=delete all").host(host);
    assert_eq!(passing(&engine, &usual, 9), 1);
    for (method, host, target) in [
        ("post", host, "/café?action=delete+all"),
        ("POST", "API.example.com.:443", "/caf%c3%a9?action=delete%20all"),
        ("POST", "", "http://api.example.com:80/café/?%61ction=%64elete+all#x"),
        ("Post", host, "x/..//café;v=1?a=b&action=delete+all&action=no"),
    ] {
        let request = Request::new(method, target).host(host);
        assert_eq!(passing(&engine, &request, 9), 0, "{request:?}");
    }
    assert_eq!(passing(&engine, &Request::new("PUT", "/café?action=delete all").host(host), 9), 9);
}
