use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::{Facts, Request, RuleSet, Verdict};

const FILE: &str = "
client_ip: { trusted_proxies: [10.0.0.0/8] }
tiers: { from: claims.plan, known: [free, pro], else: free }
rules:
";

fn explained(rules: &str, request: &Request<'_>) -> Vec<String> {
    let set = RuleSet::parse(&format!("{FILE}{rules}")).unwrap();
    let explanation = set.explain(&Facts::new(&set, request, None));
    explanation.rules.iter().map(ToString::to_string).collect()
}

#[test]
fn every_reason_is_told() {
    let rules = "
  - { name: off, key: [], limit: 5/s, mode: off }
  - { name: method, match: { method: [PUT, POST] }, key: [], limit: 5/s }
  - { name: host, match: { host: '*.example.com' }, key: [], limit: 5/s }
  - { name: tier, match: { tier: pro }, key: [], limit: 5/s }
  - { name: net, match: { ip: 192.0.2.0/24 }, key: [], limit: 5/s }
  - { name: other, match: { header.x-a: b }, key: [], limit: 5/s }
  - { name: when, match: { when: request.method == 'PUT' }, key: [], limit: 5/s }
  - { name: key, key: [account], key_missing: api_key, limit: 5/s }
  - group: g
    first_match: true
    rules:
      - { name: loose, match: { path: /** }, key: [], limit: 5/s }
      - { name: exact, match: { path: /v1/items }, key: [], limit: 5/s }
      - { name: last, match: { path: /v1/items }, key: [], limit: 5/s }";
    let request = Request::new("GET", "/v1/items").peer("198.51.100.1".parse().unwrap());
    assert_eq!(
        explained(rules, &request),
        [
            "off: does not apply: its mode is off",
            "method: does not apply: the method `GET` is not `PUT` or `POST`",
            "host: does not apply: the host is not known, and the rule is about `*.example.com`",
            "tier: does not apply: the tier is `free`, and the rule is about `pro`",
            "net: does not apply: the address 198.51.100.1 is in none of its networks",
            "other: does not apply: the request has no `header.x-a`, and the rule is about `b`",
            "when: does not apply: `request.method == 'PUT'` is false",
            "key: does not apply: the request has no `account`, and no `api_key` that could \
             stand for it",
            "loose: does not apply: another rule of its group is more specific: `exact`",
            "exact: applies: one counter for everybody; 5/s; cost 1",
            "last: does not apply: another rule of its group stands before it: `exact`",
        ]
    );
}

#[test]
fn what_applies_is_told_in_full() {
    let rules = "
  - { name: tiers, key: [user], limit: { free: 1/s, pro: 9/s }, cost: { attribute: header.x-c } }
  - { name: net, key: [ip], limit: 5/s, overrides: { '2001:db8::7': 70/s } }
  - { name: slots, key: [account], key_missing: { together: nobody }, concurrent: 3 }
  - { name: unsure, match: { when: account == 'a' }, key: [account], key_missing: ip, limit: 5/s }";
    let request = Request::new("GET", "/")
        .peer("10.0.0.1".parse().unwrap())
        .headers(&[("x-c", "much"), ("x-forwarded-for", "2001:db8::9")])
        .attributes(&[("user", "alice"), ("claims.plan", "pro")]);
    assert_eq!(
        explained(rules, &request),
        [
            "tiers: applies: user = `alice`; 9/s for the tier `pro`; cost 1, as the attribute \
             that names the cost is no whole number",
            "net: applies: ip = `2001:db8::`; 70/s by the override for `2001:db8::`; cost 1",
            "slots: applies: account is missing, and it counts with all others as `nobody`; \
             3 at once; cost 1",
            "unsure: applies: account is missing, and ip = `2001:db8::` stands for it; 5/s; \
             cost 1; nobody can tell whether its `when` holds, so it applies",
        ]
    );
}

#[test]
fn the_address_that_counts_is_told() {
    let set = RuleSet::parse(&format!("{FILE}  []")).unwrap();
    let told = |peer: &str, header: &str| {
        let headers = [("x-forwarded-for", header)];
        let headers = if header.is_empty() { &[][..] } else { &headers };
        let peer: IpAddr = peer.parse().unwrap();
        let request = Request::new("GET", "/").peer(peer).headers(headers);
        let text = set.explain(&Facts::new(&set, &request, None)).to_string();
        text.lines().next().unwrap_or_default().to_owned()
    };
    for (peer, header, expected) in [
        (
            "192.0.2.1",
            "1.1.1.1",
            "192.0.2.1: the peer 192.0.2.1 is no trusted proxy, so it is the client itself",
        ),
        (
            "10.0.0.1",
            "",
            "10.0.0.1: the peer 10.0.0.1 is a trusted proxy, but sent no `x-forwarded-for`",
        ),
        (
            "10.0.0.1",
            "unknown",
            "10.0.0.1: the peer 10.0.0.1 is a trusted proxy, but its `x-forwarded-for` names nobody else",
        ),
        (
            "10.0.0.1",
            "192.0.2.1",
            "192.0.2.1: the peer 10.0.0.1 is a trusted proxy, and its `x-forwarded-for` says so",
        ),
        (
            "10.0.0.1",
            "10.0.0.2",
            "10.0.0.2: the peer 10.0.0.1 is a trusted proxy, and its `x-forwarded-for` says so; that is a trusted proxy too, with nobody behind it",
        ),
    ] {
        assert_eq!(told(peer, header), format!("client: {expected}"));
    }
}

/// What stands before the rules.
pub(crate) fn head() -> &'static str {
    FILE.trim_end().trim_end_matches("rules:")
}

/// Fields of `match`, each with what it may say.
const MATCHES: [&str; 16] = [
    "method: GET",
    "method: [POST, PUT]",
    "path: /a",
    "path: /a/**",
    "path: [/b/*, '/a/{id}']",
    "path: /**",
    "host: example.com",
    "host: '*.example.com'",
    "tier: free",
    "tier: [free, pro]",
    "ip: 192.0.2.0/24",
    "header.x-a: [b, 'c*']",
    "user: alice",
    "user: '*'",
    "when: request.method == 'GET'",
    "when: account == 'acme'",
];

const KEYS: [&str; 9] = [
    "key: []",
    "key: [user]",
    "key: [ip]",
    "key: [account, user]",
    "key: [ip/24, method]",
    "key: [user], key_missing: ip",
    "key: [account], key_missing: { together: nobody }",
    "key: [header.x-a], key_missing: user",
    "key: [tier, query.q]",
];

const MODES: [&str; 4] = ["enforce", "enforce", "shadow", "off"];

fn field(of: &str) -> &str {
    of.split(':').next().unwrap_or(of)
}

fn rule() -> impl Strategy<Value = String> {
    let matches = subsequence(&MATCHES[..], 0..4).prop_map(|mut fields| {
        fields.dedup_by_key(|it| field(it));
        fields.join(", ")
    });
    (matches, select(&KEYS[..]), select(&MODES[..])).prop_map(|(matches, key, mode)| {
        format!("match: {{ {matches} }}, {key}, mode: {mode}, limit: 5/s")
    })
}

/// A file of rules, some of them in groups, some of which are of alternatives.
pub(crate) fn file() -> impl Strategy<Value = String> {
    let entry = (vec(rule(), 1..5), any::<Option<bool>>());
    vec(entry, 0..5).prop_map(|entries| {
        let mut text = "rules:\n".to_owned();
        for (entry, (rules, group)) in entries.iter().enumerate() {
            let indent = if group.is_some() { "      " } else { "  " };
            if let Some(first) = group {
                text += &format!("  - group: g{entry}\n    first_match: {first}\n    rules:\n");
            }
            for (number, rule) in rules.iter().enumerate() {
                text += &format!("{indent}- {{ name: r{entry}-{number}, {rule} }}\n");
            }
        }
        match entries.is_empty() {
            true => "rules: []\n".to_owned(),
            false => text,
        }
    })
}

/// The parts of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    pub(crate) method: &'static str,
    pub(crate) target: &'static str,
    pub(crate) host: &'static str,
    pub(crate) peer: Option<&'static str>,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) attributes: Vec<(&'static str, &'static str)>,
}

impl Made {
    pub(crate) fn with<T>(&self, what: impl FnOnce(&Request<'_>) -> T) -> T {
        let request = Request::new(self.method, self.target).host(self.host);
        let request = request.headers(&self.headers).attributes(&self.attributes);
        what(&self.peer.map_or(request, |peer| request.peer(peer.parse().unwrap())))
    }
}

/// A request.
pub(crate) fn made() -> impl Strategy<Value = Made> {
    let headers = [("x-a", "b"), ("X-A", "cc"), ("x-forwarded-for", "192.0.2.9")];
    let attributes =
        [("user", "alice"), ("account", "acme"), ("claims.plan", "pro"), ("api_key", "k")];
    let parts = (
        select(vec!["GET", "POST", "DELETE"]),
        select(vec!["/", "/a", "/a/b?q=1", "/b/c", "/a/b/c"]),
        select(vec!["", "example.com", "api.example.com"]),
        prop::option::of(select(vec!["192.0.2.7", "10.0.0.1", "2001:db8::1"])),
        subsequence(headers.to_vec(), 0..=3),
        subsequence(attributes.to_vec(), 0..=4),
    );
    parts.prop_map(|(method, target, host, peer, headers, attributes)| Made {
        method,
        target,
        host,
        peer,
        headers,
        attributes,
    })
}

proptest! {
    #[test]
    fn explanations_say_what_applies(file in file(), made in made()) {
        let set = RuleSet::parse(&format!("{}{file}", head())).unwrap();
        made.with(|request| {
            let facts = Facts::new(&set, request, None);
            let explained = set.explain(&facts);
            let applies = |(number, rule): (usize, &crate::RuleExplanation)| {
                matches!(rule.verdict, Verdict::Applies(_)).then_some(number)
            };
            let said: Vec<_> = explained.rules.iter().enumerate().filter_map(applies).collect();
            prop_assert_eq!(&said[..], &set.applying(&facts)[..], "{}\n{}", file, explained);
            Ok(())
        })?;
    }
}
