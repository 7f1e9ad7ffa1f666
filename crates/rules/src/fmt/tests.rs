use proptest::prelude::*;

use super::*;

fn formatted(text: &str) -> String {
    let source = Source::new("a.yaml", text);
    let once = format(&source).unwrap_or_else(|report| panic!("{}", report.to_text(&source)));
    let twice = format(&Source::new("a.yaml", once.as_str())).expect("what was written is read");
    assert_eq!(once, twice, "twice is once");
    once
}

#[test]
fn fields_are_put_in_order_with_their_comments() {
    let text = "\
# yaml-language-server: $schema=./tollgate.schema.json
rules:
- limit:   100/min    # per minute
  # who
  name: 'per-user'
  key:
  - user
  # mode: shadow


# the second
- {name: b, limit: 5/s}

# which version
version:  1


namespace: \"shop\" # of the shop
";
    let expected = "\
# yaml-language-server: $schema=./tollgate.schema.json

# which version
version: 1

namespace: shop  # of the shop
rules:
  # who
  - name: per-user
    key:
      - user
    limit: 100/min  # per minute
    # mode: shadow

  # the second
  - name: b
    limit: 5/s
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn what_is_canonical_stays_as_it_is() {
    assert_eq!(formatted(CANONICAL), CANONICAL);
}

#[test]
fn what_stood_inline_stays_if_it_is_short() {
    let long = format!("key: [{}]\n", ["abcdefghij"; 7].join(", "));
    let longer = format!("key: [{}]\n", ["abcdefghij"; 8].join(", "));
    assert_eq!(formatted(&long), long);
    assert_eq!(formatted(&longer), format!("key:\n{}", "  - abcdefghij\n".repeat(8)));
    assert_eq!(formatted("a: [{b: 1}, {c: [2]}]"), "a:\n  - { b: 1 }\n  - { c: [2] }\n");
    assert_eq!(formatted("a:\n  - b\n"), "a:\n  - b\n");
    assert_eq!(
        formatted("a: [ b, # of b\n  # c\n c ] # of a"),
        "a:     # of a\n  - b  # of b\n  # c\n  - c\n"
    );
    assert_eq!(formatted("{a: {}, b: [ # why\n]}"), "a: {}\n# why\nb: []\n");
    assert_eq!(formatted("- - a\n  - b\n-\n - c"), "- - a\n  - b\n- - c\n");
}

#[test]
fn quotes_stay_where_they_are_needed() {
    let cases = [
        ("\"plain\"", "plain"),
        ("'100/min'", "100/min"),
        ("\"100\"", "\"100\""),
        ("'true'", "\"true\""),
        ("''", "\"\""),
        ("~", "null"),
        ("", "null"),
        ("True", "true"),
        ("'yes'", "\"yes\""),
        ("yes", "yes"),
        ("'a: b'", "\"a: b\""),
        ("'a #b'", "\"a #b\""),
        ("'\"it\"'", "'\"it\"'"),
        ("\"a\\tb\\u0007\"", "\"a\\tb\\u0007\""),
        ("'*'", "\"*\""),
        ("'[a]'", "\"[a]\""),
        ("a,b", "a,b"),
        ("'- a'", "\"- a\""),
        ("one\n  two", "one two"),
    ];
    for (given, expected) in cases {
        assert_eq!(formatted(&format!("a: {given}\n")), format!("a: {expected}\n"), "{given}");
    }
    assert_eq!(formatted("a: ['a,b', '{x}']"), "a: [\"a,b\", \"{x}\"]\n");
    assert_eq!(formatted("'1': a\n'~': b\n'a b': c"), "1: a\n\"~\": b\na b: c\n");
}

#[test]
fn blocks_of_text_keep_their_lines() {
    let text = "a:\n     b: | # why\n        one\n          two\n\n\n        three\n     c: >-\n        folded\n        text\n\n     d: 1\n";
    let expected = "a:\n  b: |  # why\n    one\n      two\n\n\n    three\n  c: >-\n    folded\n    text\n\n  d: 1\n";
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted("a: |+\n  b\n\n\nc: 1\n"), "a: \"b\\n\\n\\n\"\n\nc: 1\n");
    assert_eq!(formatted("a: |2\n    b\n   c\n"), "a: \"  b\\n c\\n\"\n");
    assert_eq!(formatted("a: >\n \n  b\n  c\n"), "a: \"\\nb c\\n\"\n");
    assert_eq!(formatted("a: |\n  one\n"), "a: \"one\\n\"\n");
}

#[test]
fn files_without_fields_are_files() {
    assert_eq!(formatted(""), "");
    assert_eq!(formatted("# a\n\n\n# b"), "# a\n\n# b\n");
    assert_eq!(formatted("%YAML 1.2\n--- # a\nb: c\n...\n# d\n"), "# a\nb: c\n# d\n");
    assert_eq!(formatted("\r\na: 1 # x\r\n\r\n\r\nb: 2\r\n"), "a: 1  # x\n\nb: 2\n");
}

#[test]
fn json_stays_json_and_toml_is_left_alone() {
    let json = r#"{"rules": [{"limit": "5/s", "name": "a", "key": []}], "version": 1}"#;
    let expected = "{\n  \"version\": 1,\n  \"rules\": [\n    {\n      \"name\": \"a\",\n      \"key\": [],\n      \"limit\": \"5/s\"\n    }\n  ]\n}\n";
    assert_eq!(format(&Source::new("a.json", json)).as_deref(), Ok(expected));
    assert_eq!(format(&Source::new("a.json", expected)).as_deref(), Ok(expected));
    let code = |name: &str, text: &str| {
        format(&Source::new(name, text)).unwrap_err().diagnostics()[0].code()
    };
    assert_eq!(code("a.json", "{\"a\": 1} # b"), "json-comment");
    assert_eq!(code("a.json", "{\"a\": +1}"), "not-json");
    assert_eq!(code("a.toml", "a = 1"), "toml-not-formatted");
    assert_eq!(code("a.yaml", "a: ["), "syntax");
    assert_eq!(code("a.yaml", &format!("? {}\n: b", "a".repeat(2000))), "not-formatted");
}

const CANONICAL: &str = "\
# Rules of the shop.

version: 1
client_ip: { trusted_proxies: [10.0.0.0/8], header: x-forwarded-for, ipv6_host: 64 }
tiers: { from: claims.plan, known: [free, pro], else: free }

defaults:        # any rule may override these
  mode: enforce  # enforce, shadow or off
  consistency: shared
  on_store_failure: local 20%

rules:
  - name: per-user
    match: { path: /v1/**, method: [POST, PUT] }
    key: [user]
    limit: { free: 100/min, pro: 10k/min }

    cost: { graphql: { depth: 10, list: 20 } }
    warn_at: [80%, 95%]
    deny: { message: \"Too many: try again in {retry_after}.\" }

  # Everybody together.
  - name: all
    match: { path: \"*\", when: \"!('x' in request.headers)\" }
    key: []
    limit: 50/s
    # queue: 200

  # More to come.

tests:
  - name: it denies
    given: { request: GET /v1/items user=u1, times: 101, over: 1s }
    expect: { allowed: 100, retry_after: <= 1s }
";

/// A piece of YAML with comments of its own number at every line.
fn tree() -> impl Strategy<Value = Vec<String>> {
    let scalar = prop_oneof![
        "[a-z/*:#,{}\\[\\] '\"!-]{0,12}".prop_map(|text| scalar::double_quoted(&text)),
        "[a-z][a-z0-9/]{0,6}".prop_map(String::from),
        "[0-9]{1,3}".prop_map(String::from),
        Just("[a, 'b', {c: d}]".to_owned()),
        Just("{ x: 1, y: [z] }".to_owned()),
        Just("[ # ~\n   a, # ~\n # ~\n b, {c: # ~\n d} # ~\n ]".to_owned()),
        Just("| # ~\n                  text\n                    more\n".to_owned()),
        Just(">\n                  text\n                  more\n\n".to_owned()),
        Just(String::new()),
    ];
    let leaf = scalar.prop_map(|text| vec![format!(" {text}")]);
    leaf.prop_recursive(4, 40, 5, |inner| {
        let names = prop::sample::subsequence(
            vec!["rules", "name", "limit", "key", "version", "tests", "other", "match"],
            1..5,
        )
        .prop_shuffle();
        let gap = prop::sample::select(vec!["", "", "# ~", "\n", "\n\n# ~", "# ~\n", "    # ~"]);
        let map = (names, prop::collection::vec((inner.clone(), gap.clone()), 5)).prop_map(
            |(names, values)| {
                let entries = names.iter().zip(values);
                let mut lines = vec![String::new()];
                for (name, (value, gap)) in entries {
                    lines.extend(gap.split('\n').filter(|_| !gap.is_empty()).map(str::to_owned));
                    lines.push(format!("  {name}:{}", value[0]));
                    lines.extend(value[1..].iter().map(|line| format!("  {line}")));
                }
                lines
            },
        );
        let list = prop::collection::vec((inner, gap), 1..4).prop_map(|items| {
            let mut lines = vec![" # ~".to_owned()];
            for (value, gap) in items {
                lines.extend(
                    gap.split('\n').filter(|_| !gap.is_empty()).map(|line| format!("  {line}")),
                );
                lines.push(format!("  -{}", value[0]));
                lines.extend(value[1..].iter().map(|line| format!("  {line}")));
            }
            lines
        });
        prop_oneof![map, list]
    })
}

/// The text of a tree, each comment with its number.
fn numbered(lines: &[String]) -> (String, usize) {
    let text = lines.join("\n");
    let mut parts = text.split('~');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    let mut count = 0;
    for part in parts {
        numbered.push_str(&format!("<{count}>"));
        numbered.push_str(part);
        count += 1;
    }
    (numbered, count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_is_lost_and_twice_is_once(lines in tree()) {
        let (text, comments) = numbered(&lines);
        let source = Source::new("a.yaml", text.as_str());
        prop_assume!(Document::parse(&source).is_ok());
        let once = format(&source);
        prop_assert!(once.is_ok(), "{text}");
        let once = once.unwrap();
        let found = (0..comments).all(|number| once.matches(&format!("# <{number}>\n")).count() == 1);
        prop_assert!(found, "{text}\n=====\n{once}");
        let twice = format(&Source::new("a.yaml", once.as_str()));
        prop_assert_eq!(twice.as_ref(), Ok(&once), "{}", text);
    }

    #[test]
    fn any_text_is_formatted_or_refused(text in "[ -~\\n\\r\\t\u{e9}\u{feff}#:|>-]{0,120}", json in any::<bool>()) {
        let source = Source::new(if json { "a.json" } else { "a.yaml" }, text.as_str());
        if let Ok(once) = format(&source) {
            let twice = format(&Source::new(source.name(), once.as_str()));
            prop_assert_eq!(twice.as_ref(), Ok(&once), "{}", text);
        } else if !json {
            prop_assert!(Document::parse(&source).is_err(), "{}", text);
        }
    }

    #[test]
    fn any_words_of_yaml_are_formatted_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "a", "b: ", "- ", "\n", "\n  ", "\n    ", "# c\n", " # d\n", "[", "]", "{", "}", ", ", ": ", "|\n", ">-\n",
            "|+\n", "'x y'", "\"\\n\"", "? ", "rules:", "name: ", "\n\n", "~", "1", "---\n", "\r",
        ]), 0..24),
    ) {
        let text = words.concat();
        let source = Source::new("a.yaml", text.as_str());
        if Document::parse(&source).is_ok() {
            let once = format(&source);
            prop_assert!(once.is_ok(), "{text:?}");
            let once = once.unwrap();
            let twice = format(&Source::new("a.yaml", once.as_str()));
            prop_assert_eq!(twice.as_ref(), Ok(&once), "{:?}", text);
        }
    }

    #[test]
    fn any_change_to_a_good_file_is_formatted_or_refused(
        at in 0..CANONICAL.len(), cut in 0..9usize, with in "[ -~\\n#:]{0,4}",
    ) {
        let end = (at + cut).min(CANONICAL.len());
        let text = format!("{}{with}{}", &CANONICAL[..at], &CANONICAL[end..]);
        let source = Source::new("a.yaml", text.as_str());
        if Document::parse(&source).is_ok() {
            let once = format(&source);
            prop_assert!(once.is_ok(), "{}", text);
            let once = once.unwrap();
            let twice = format(&Source::new("a.yaml", once.as_str()));
            prop_assert_eq!(twice.as_ref(), Ok(&once), "{}", text);
        }
    }
}
