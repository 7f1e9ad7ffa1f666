//! Whatever goes in is imported or refused, and what comes out can be loaded.

use proptest::prelude::*;

use super::{ENVOY, LIMITADOR, NGINX, import, limitador, loads, refused, rules};
use crate::ImportKind;
use crate::fmt::format;
use crate::source::Source;

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let cases = [
        (ImportKind::Envoy, "domain: [", "old.conf:1:"),
        (ImportKind::Envoy, "descriptors: []", "has no `domain`"),
        (ImportKind::Envoy, "domain: a\ndescriptors: [{ key: '' }]", "old.conf:2:22"),
        (ImportKind::Envoy, "domain: a\ndescriptors:\n  - value: b", "has no `key`"),
        (
            ImportKind::Envoy,
            "domain: a\ndescriptors:\n  - key: b\n    rate_limit: { unit: hour }",
            "has no `requests_per_unit`",
        ),
        (
            ImportKind::Envoy,
            "domain: a\ndescriptors:\n  - key: b\n    rate_limit: { unit: eon, requests_per_unit: 1 }",
            "old.conf:4:25",
        ),
        (ImportKind::Envoy, "domain: a", "no limits"),
        (limitador(None), "a: b", "must be a list"),
        (limitador(None), "[]", "no limits"),
        (
            limitador(None),
            "- { namespace: a, max_value: 1, seconds: 0 }",
            "nothing fits into no time",
        ),
        (limitador(None), "- { namespace: a, max_value: -1, seconds: 1 }", "old.conf:1:30"),
        (limitador(None), "- { max_value: 1, seconds: 1 }", "has no `namespace`"),
        (ImportKind::Nginx, "http { server {", "this block is not closed"),
        (ImportKind::Nginx, "a b\n}", "old.conf:1:1"),
        (ImportKind::Nginx, "a \"b;", "old.conf:1:3"),
        (ImportKind::Nginx, "}", "no block to close"),
        (ImportKind::Nginx, "a", "put a `;` behind it"),
        (ImportKind::Nginx, "{ }", "a block has no name"),
        (ImportKind::Nginx, "limit_req zone=a;", "made nowhere"),
        (ImportKind::Nginx, "limit_req burst=3;", "has no zone"),
        (ImportKind::Nginx, "limit_conn a many;", "needs a zone and a number"),
        (ImportKind::Nginx, "limit_req_zone $a zone=b:1m rate=5/s;", "that is none"),
        (ImportKind::Nginx, "worker_processes 4;", "no limits"),
    ];
    for (kind, text, expected) in cases {
        let error = refused(kind, text);
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn depth_and_length_have_bounds() {
    let deep = format!("{}{}", "a {".repeat(100_000), "}".repeat(100_000));
    assert!(refused(ImportKind::Nginx, &deep).contains("nested too deep"));
    let long = "a;".repeat(1_000_000);
    assert!(refused(ImportKind::Nginx, &long).contains("too much"));
    let places = "location /a/ { limit_req zone=a; }".repeat(1001);
    assert!(refused(ImportKind::Nginx, &places).contains("more than 1000"));
    let many: String = (0..2000)
        .map(|at| {
            format!("  - {{ key: k{at}, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}\n")
        })
        .collect();
    assert_eq!(
        rules(ImportKind::Envoy, &format!("domain: a\ndescriptors:\n{many}"))
            .matches("limit: 1/d")
            .count(),
        2000
    );
}

const WORDS: [&str; 40] = [
    "domain: a\n",
    "descriptors:\n",
    "  - key: b\n",
    "    value: c*\n",
    "    rate_limit: { unit: day, requests_per_unit: 7 }\n",
    "    descriptors:\n",
    "      - key: d\n",
    "        rate_limit: { unlimited: true }\n",
    "    shadow_mode: true\n",
    "- namespace: a\n",
    "  max_value: 3\n",
    "  seconds: 60\n",
    "  conditions: [\"a == 'b'\"]\n",
    "  variables: [c]\n",
    "  conditions: [x]\n",
    "  name: \"# \\n: \"\n",
    "http {",
    "server {",
    "location /a/ {",
    "location = /b {",
    "location ~ [ {",
    "}",
    "}",
    "}",
    ";",
    "limit_req_zone $a zone=z:1m rate=1r/s;",
    "limit_req_zone $remote_addr zone=y:1m rate=9r/m;",
    "limit_conn_zone $uri zone=x:1m;",
    "limit_req zone=z;",
    "limit_req zone=y burst=3;",
    "limit_req zone=y burst=3 delay=1;",
    "limit_conn x 3;",
    "server_name a *.b ~c;",
    "limit_req_dry_run on;",
    "map $b $a {",
    "'",
    "\"",
    "# c\n",
    "$",
    "é",
];

proptest! {
    #[test]
    fn any_text_is_imported_or_refused(text in "[ -~\\n\u{e9}{}$;#'\"]{0,120}", kind in 0..3usize) {
        let kind = ImportKind::of(ImportKind::NAMES[kind]).unwrap();
        match import(kind, "a", &text) {
            Ok(imported) => loads(&imported.yaml),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_words_are_imported_or_refused(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..30), kind in 0..3usize) {
        let kind = ImportKind::of(ImportKind::NAMES[kind]).unwrap();
        if let Ok(imported) = import(kind, "a", &words.concat()) {
            loads(&imported.yaml);
            let again = format(&Source::new("a.yaml", imported.yaml.as_str()));
            prop_assert_eq!(again, Ok(imported.yaml));
        }
    }

    #[test]
    fn any_change_to_a_good_file_is_imported_or_refused(
        kind in 0..3usize, at in 0..2000usize, cut in 0..9usize, with in "[ -~\\n]{0,4}",
    ) {
        let good = [ENVOY, LIMITADOR, NGINX][kind];
        let at = at % good.len();
        let end = (at + cut).min(good.len());
        let kind = [ImportKind::Envoy, limitador(Some("shop")), ImportKind::Nginx][kind].clone();
        if let Ok(imported) = import(kind, "a", &format!("{}{with}{}", &good[..at], &good[end..])) {
            loads(&imported.yaml);
            let again = format(&Source::new("a.yaml", imported.yaml.as_str()));
            prop_assert_eq!(again, Ok(imported.yaml));
        }
    }

    #[test]
    fn any_names_make_a_file_that_can_be_read(name in "\\PC{0,20}", value in "\\PC{0,20}", key in "\\PC{1,20}") {
        let quoted = crate::fmt::scalar::double_quoted;
        let text = format!(
            "domain: {}\ndescriptors:\n  - key: {}\n    value: {}\n    rate_limit: {{ unit: day, requests_per_unit: 1, name: {} }}\n",
            quoted(&name), quoted(&key), quoted(&value), quoted(&name),
        );
        let yaml = import(ImportKind::Envoy, &name, &text).unwrap().yaml;
        loads(&yaml);
        let again = format(&Source::new("a.yaml", yaml.as_str()));
        prop_assert_eq!(again, Ok(yaml));
    }
}
