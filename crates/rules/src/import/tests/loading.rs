//! What comes out can be loaded, whatever went in.

use proptest::prelude::*;

use super::{import, imported, limitador, loads, rules};
use crate::{Facts, ImportKind, Request, RuleSet};

#[test]
fn regular_expressions_are_lost_conditions() {
    let zone = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; limit_req_status 429;";
    let of = |text: &str| imported(ImportKind::Nginx, &format!("{zone} {text}"));
    let (yaml, notes) = of("server { location ~ ^/v(1|2)/ { limit_req zone=a; } }");
    assert!(yaml.contains("  # Had another condition: location ~ ^/v(1|2)/\n"), "{yaml}");
    assert!(yaml.contains("mode: shadow") && !yaml.contains("when:"), "{yaml}");
    assert_eq!(notes.len(), 1, "{notes:?}");
    let (yaml, notes) = of("server { server_name ~^(www|api)$; limit_req zone=a; }");
    assert!(yaml.contains("# Had another condition: server_name ~^(www|api)$"), "{yaml}");
    assert!(yaml.contains("mode: shadow"), "{yaml}");
    assert_eq!(notes.len(), 1, "{notes:?}");
    let text = "- { namespace: a, max_value: 1, seconds: 1, \
                conditions: [\"descriptors[0].path.matches('^/v1')\"] }";
    let (yaml, notes) = imported(limitador(None), text);
    assert!(yaml.contains("# Had another condition: descriptors[0].path.matches"), "{yaml}");
    assert!(yaml.contains("mode: shadow"), "{yaml}");
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn a_rule_that_is_about_less_than_it_was_stays_in_force() {
    let text = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; limit_req_status 429;
        server { server_name a ~b; limit_req zone=a;
          location / { limit_req zone=a burst=1; }
          location /x/ { limit_req zone=a; }
          location ~ y { limit_req zone=a; } }";
    let (yaml, notes) = imported(ImportKind::Nginx, text);
    assert!(yaml.contains("# Was also for: server_name ~b\n"), "{yaml}");
    assert!(yaml.contains("# Was also for: location ~ y\n"), "{yaml}");
    assert!(yaml.contains("match: { host: a, path: /x/** }"), "{yaml}");
    assert!(notes.iter().any(|note| note.contains("`location ~ y` are not limited")), "{notes:?}");
}

#[test]
fn requests_that_lack_what_is_asked_for_are_not_counted() {
    let applies = |condition: &str, attributes: &[(&str, &str)]| {
        let text = format!(
            "- {{ namespace: a, max_value: 1, seconds: 1, conditions: [\"{condition}\"] }}"
        );
        let (yaml, notes) = imported(limitador(None), &text);
        let set = RuleSet::parse(&yaml).unwrap();
        let request = Request::new("GET", "/").attributes(attributes);
        let explained = set.explain(&Facts::new(&set, &request, None)).to_string();
        (explained.contains("all: applies"), notes.len())
    };
    for condition in ["descriptors[0].p.startsWith('/a')", "descriptors[0]['p'] != 'x'"] {
        assert_eq!(applies(condition, &[("descriptor.p", "/a/b")]), (true, 0), "{condition}");
        assert_eq!(applies(condition, &[("descriptor.p", "x")]), (false, 0), "{condition}");
        assert_eq!(applies(condition, &[]), (false, 0), "{condition}");
    }
    let either = "descriptors[0].p == 'a' || descriptors[0].q == 'b'";
    assert_eq!(applies(either, &[("descriptor.p", "a")]), (true, 1));
    assert_eq!(applies(either, &[]), (true, 1), "that is what the note says");
}

#[test]
fn a_limit_of_zero_is_no_rule() {
    let text = "- { namespace: a, name: closed, max_value: 0, seconds: 1 }";
    let (yaml, notes) = imported(limitador(None), text);
    assert!(yaml.contains("# Left out: `closed`: its limit was 0"), "{yaml}");
    assert!(yaml.contains("rules: []"), "{yaml}");
    assert!(notes[0].contains("denied every request"), "{notes:?}");
}

#[test]
fn what_no_rule_can_say_is_left_out() {
    let text = "\
- { namespace: a, name: long, max_value: 1, seconds: 999999999 }
- { namespace: a, name: much, max_value: 9999999999999999, seconds: 1 }
- { namespace: a, name: good, max_value: 5, seconds: 1 }
";
    let (yaml, notes) = imported(limitador(None), text);
    assert!(yaml.contains("# Left out: `long`: ") && yaml.contains("# Left out: `much`: "));
    assert!(yaml.contains("  - name: good\n"), "{yaml}");
    assert_eq!(notes.len(), 2, "{notes:?}");
    let text = "limit_req_zone $geoip_country_code zone=a:1m rate=1r/s; limit_req zone=a;";
    let (yaml, notes) = imported(ImportKind::Nginx, text);
    assert!(yaml.contains("mode: shadow"), "{yaml}");
    assert!(notes.iter().any(|note| note.contains("`geo`")), "{notes:?}");
}

#[test]
fn stars_are_only_patterns_where_they_were() {
    let envoy = |value: &str| {
        let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
        rules(
            ImportKind::Envoy,
            &format!("domain: a\ndescriptors: [{{ key: k, value: '{value}', {limit} }}]"),
        )
    };
    assert!(envoy("a*").contains("descriptor.k: a* }"));
    let condition = "when: has(descriptor.k) && descriptor.k == \"*a\"";
    assert!(envoy("*a").contains(condition), "{}", envoy("*a"));
    assert!(envoy("a*b*").contains("descriptor.k.startsWith(\"a*b\")"), "{}", envoy("a*b*"));
}

#[test]
fn names_are_changed_to_such_that_can_be() {
    let long = "x".repeat(100);
    let limit = format!("{{ key: {long}, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}");
    let text = format!("domain: My Shop!\ndescriptors: [{limit}, {limit}, {limit}]");
    let (yaml, notes) = imported(ImportKind::Envoy, &text);
    assert!(yaml.contains("namespace: my-shop\n"), "{yaml}");
    assert!(notes[0].contains("`My Shop!` cannot be a namespace"), "{notes:?}");
}

#[test]
fn conditions_that_are_too_much_together_are_lost() {
    let holes: String =
        (0..200).map(|at| format!("location = /p{at} {{ limit_req zone=a burst=9; }}")).collect();
    let text = format!(
        "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; limit_req_status 429;
         server {{ limit_req zone=a; {holes} }}"
    );
    let (yaml, notes) = imported(ImportKind::Nginx, &text);
    assert!(yaml.contains("# Had another condition: request.path != \"/p0\" && "), "{yaml}");
    assert!(notes[0].contains("is not carried over"), "{notes:?}");
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..100u64, Just(1 << 33), any::<u64>()]
}

fn word() -> impl Strategy<Value = String> {
    let known = ["a", "*", "a*", "*b", "a*b", "a.b", "GET", "user", "", "~", "é", "a b", "[x]"];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "[ -~]{0,12}"]
}

fn quoted(text: &str) -> String {
    crate::fmt::scalar::double_quoted(text)
}

prop_compose! {
    fn descriptor()(
        (key, value) in (word(), prop::option::of(word())),
        unit in prop::sample::select(&["second", "minute", "month", "year"][..]),
        (requests, shadow) in (number(), any::<bool>()),
        below in prop::option::of((word(), prop::option::of(word()), number())),
    ) -> String {
        let written = |value: Option<String>| {
            value.map_or_else(String::new, |value| format!(", value: {}", quoted(&value)))
        };
        let limit = |requests| format!("rate_limit: {{ unit: {unit}, requests_per_unit: {requests} }}");
        let below = below.map_or_else(String::new, |(key, inner, requests)| {
            let (key, inner) = (quoted(&key), written(inner));
            format!(", descriptors: [{{ key: {key}{inner}, {} }}]", limit(requests))
        });
        let (key, value) = (quoted(&key), written(value));
        format!("{{ key: {key}{value}, {}, shadow_mode: {shadow}{below} }}", limit(requests))
    }
}

fn condition() -> impl Strategy<Value = String> {
    let known = [
        "descriptors[0].path.startsWith('/a')",
        "descriptors[0]['x'].matches('a.*')",
        "descriptors[0].n > 3",
        "descriptors[0].all(x, x == 'a')",
        "size(descriptors[0].a) > 1 && descriptors[0].b == 'c'",
        "limit.name == 'a'",
    ];
    let comparison = (word(), prop::sample::select(&["==", "!="][..]), word())
        .prop_map(|(name, operator, value)| format!("{name} {operator} '{value}'"));
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), comparison, word()]
}

prop_compose! {
    fn limit()(
        (name, max, seconds) in (prop::option::of(word()), number(), number()),
        conditions in prop::collection::vec(condition(), 0..4),
        variables in prop::collection::vec(word(), 0..4),
    ) -> String {
        let list = |texts: &[String]| texts.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", ");
        let name = name.map_or_else(String::new, |name| format!("name: {}, ", quoted(&name)));
        let seconds = seconds.max(1);
        format!(
            "- {{ namespace: a, {name}max_value: {max}, seconds: {seconds}, conditions: [{}], variables: [{}] }}\n",
            list(&conditions), list(&variables),
        )
    }
}

fn place() -> impl Strategy<Value = String> {
    let known = ["/", "/a/", "/a/b", "= /a", "~ ^/x", "~* .png$", "^~ /img/", "/a?b", "/a*b/"];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "/[a-z*{}]{0,5}"]
}

fn uses() -> impl Strategy<Value = String> {
    let one = (0..3usize, number(), number(), 0..3usize).prop_map(|(zone, burst, delay, kind)| {
        let (burst, delay) = (burst >> 1, delay >> 1);
        match kind {
            0 => format!("limit_req zone=z{zone} burst={burst} delay={delay};"),
            1 => format!("limit_req zone=z{zone} burst={burst} nodelay;"),
            _ => format!("limit_conn c{zone} {};", burst.max(1)),
        }
    });
    prop::collection::vec(one, 0..3).prop_map(|all| all.concat())
}

prop_compose! {
    fn server()(
        names in prop::collection::vec(prop::sample::select(&["a", ".b", "*.c", "d.*", "~e", "_"][..]), 0..4),
        around in uses(),
        places in prop::collection::vec((place(), uses()), 0..5),
    ) -> String {
        let names = if names.is_empty() { String::new() } else { format!("server_name {};", names.join(" ")) };
        let places = places.iter().map(|(place, uses)| format!("location {} {{ {uses} }}", quoted_place(place)));
        format!("server {{ {names} {around} {} }}\n", places.collect::<String>())
    }
}

/// Marks stand outside of the quotes.
fn quoted_place(place: &str) -> String {
    match place.split_once(' ') {
        Some((mark, path)) => format!("{mark} \"{path}\""),
        None => format!("\"{place}\""),
    }
}

prop_compose! {
    fn nginx()(
        keys in prop::collection::vec(prop::sample::select(
            &["$binary_remote_addr", "$http_x_a$arg_b", "$geoip_country_code", "$x", "all", "$uri$host"][..]
        ), 3),
        rates in prop::collection::vec(number(), 3),
        servers in prop::collection::vec(server(), 0..4),
    ) -> String {
        let zones = keys.iter().zip(&rates).enumerate().map(|(at, (key, rate))| format!(
            "limit_req_zone {key} zone=z{at}:1m rate={}r/s;\nlimit_conn_zone {key} zone=c{at}:1m;\n",
            rate.max(&1),
        ));
        zones.chain(servers).collect()
    }
}

proptest! {
    #[test]
    fn any_descriptors_become_rules(all in prop::collection::vec(descriptor(), 1..6), domain in word()) {
        let text = format!("domain: {}\ndescriptors: [{}]", quoted(&domain), all.join(", "));
        if let Ok(imported) = import(ImportKind::Envoy, "a.yaml", &text) {
            loads(&imported.yaml);
        }
    }

    #[test]
    fn any_limits_become_rules(all in prop::collection::vec(limit(), 1..6)) {
        let imported = import(limitador(None), "a.yaml", &all.concat());
        loads(&imported.unwrap_or_else(|error| panic!("{error}\n{}", all.concat())).yaml);
    }

    #[test]
    fn any_places_become_rules(text in nginx()) {
        match import(ImportKind::Nginx, "nginx.conf", &text) {
            Ok(imported) => loads(&imported.yaml),
            Err(crate::ImportError::Empty) => {}
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}
