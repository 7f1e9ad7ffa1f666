use std::io;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::files::{Files, NoFiles};
use crate::rule_set::RuleSet;
use crate::source::Source;

const RULES: &str = "tiers: { from: claims.plan, known: [free, pro], else: free }
rules:
  - { name: per-user, key: [user], limit: { free: 5/s, pro: 9/s } }
  - { name: logins, key: [ip], limit: 10/15min, count_if: response.status == 401 }
";

fn read(tests: &str, files: &dyn Files) -> Result<RuleSet, String> {
    let source = Source::new("rules.yaml", format!("{RULES}tests:\n{tests}"));
    RuleSet::read(&source, files).map_err(|report| report.to_text(&source))
}

fn refused(tests: &str) -> String {
    read(tests, &NoFiles).unwrap_err()
}

fn compared<T>(relation: Relation, value: T) -> Option<Comparison<T>> {
    Some(Comparison { relation, value })
}

#[test]
fn all_that_can_be_said_is_read() {
    let set = read(
        "  - name: one
    given: { request: GET / user=a tier=pro, times: 1k, over: 1min, respond: 401 }
    expect:
      allowed: 9
      denied: '>= 5'
      denied_by: [per-user, logins]
      retry_after: <= 1s
      remaining: 0
      delay: '< 200ms'
      warning: '> 80%'
",
        &NoFiles,
    );
    let set = set.unwrap();
    let [Step { after, given, expect }] = set.tests()[0].steps() else { panic!("one step") };
    assert_eq!(*after, Duration::ZERO);
    assert_eq!(given.request.to_string(), "GET / user=a claims.plan=pro");
    assert_eq!(
        (given.times, given.over, given.respond),
        (1_000, Duration::from_secs(60), Some(401))
    );
    let expected = Expect {
        allowed: compared(Relation::Equal, 9),
        denied: compared(Relation::AtLeast, 5),
        denied_by: ["per-user".into(), "logins".into()].into(),
        retry_after: compared(Relation::AtMost, Duration::from_secs(1)),
        remaining: compared(Relation::Equal, 0),
        delay: compared(Relation::Less, Duration::from_millis(200)),
        warning: compared(Relation::More, 80),
    };
    assert_eq!(*expect, expected);
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let request = "given: { request: GET / }";
    for (test, place, message, remedy) in [
        (
            format!("{{ name: a, {request}, expect: {{ alowed: 5 }} }}"),
            "alowed",
            "no field",
            "`allowed`",
        ),
        (format!("{{ name: a, {request} }}"), "{ name", "expects nothing", "say what must"),
        (
            format!("{{ name: a, {request}, expect: {{}} }}"),
            "{ name",
            "expects nothing",
            "say what must",
        ),
        ("{ name: a, expect: { allowed: 5 } }".into(), "{ name", "no `given`", "say what is asked"),
        (
            format!("{{ {request}, expect: {{ allowed: 5 }} }}"),
            "{ given",
            "no `name`",
            "say what it",
        ),
        (
            format!("{{ name: \"a\\nb\", {request}, expect: {{ allowed: 5 }} }}"),
            "\"a",
            "all in one line",
            "five",
        ),
        (given("GET / usr=a"), "usr=a", "no attribute `usr`", "`user`"),
        (given("'GET / usr=a'"), "usr=a", "no attribute `usr`", "`user`"),
        (given("\"GET / usr=\\\"a\""), "\"GET", "never closed", "close it"),
        (given("GET / tier=por"), "GET", "no tier `por`", "`pro`"),
        (given("GET /, times: 0"), "0 }", "`0` is no good", "100"),
        (given("GET /, times: 2M"), "2M", "at most 1000000", "100"),
        (given("GET /, respond: 99"), "99", "100 to 599", "401"),
        (given("GET /, over: 1"), "1 }", "`1` is no good", "15min"),
        (
            format!("{{ name: a, {request}, expect: {{ denied_by: per-usr }} }}"),
            "per-usr",
            "no rule `per-usr`",
            "`per-user`",
        ),
        (
            format!("{{ name: a, {request}, expect: {{ retry_after: soon }} }}"),
            "soon",
            "`soon` is no good",
            "<= 1s",
        ),
        ("{ name: a, steps: [] }".into(), "[]", "1 to 100 steps", "several tests"),
        (
            format!("{{ name: a, {request}, steps: [{{ {request}, expect: {{ allowed: 1 }} }}] }}"),
            "given",
            "no `given` beside",
            "make it a step",
        ),
    ] {
        let text = refused(&format!("  - {test}\n"));
        let place = format!("rules.yaml:6:{}", 5 + test.find(place).unwrap());
        assert!(text.contains(&place), "{test} {place}\n{text}");
        assert!(text.contains(message) && text.contains(remedy), "{test}\n{text}");
    }
}

fn given(request: &str) -> String {
    format!("{{ name: a, given: {{ request: {request} }}, expect: {{ allowed: 5 }} }}")
}

#[test]
fn tests_are_bounded() {
    let test = "  - { name: a, given: { request: GET /, times: 1M }, expect: { allowed: 5 } }\n";
    let text = refused(&test.repeat(101));
    assert!(text.contains("more than 100000000 requests"), "{text}");
    let test = "  - { name: a, given: { request: GET / }, expect: { allowed: 5 } }\n";
    assert_eq!(read(&test.repeat(Case::MAX), &NoFiles).unwrap().tests().len(), Case::MAX);
    assert!(refused(&test.repeat(Case::MAX + 1)).contains("more than 10000 tests"));
}

struct Beside(&'static str);

impl Files for Beside {
    fn read(&self, name: &str) -> io::Result<String> {
        assert_eq!(name, "other.yaml");
        Ok(self.0.to_owned())
    }
}

#[test]
fn tests_may_stand_in_a_file_of_their_own() {
    let good = Beside("tests:\n- { name: b, given: { request: GET / }, expect: { allowed: 1 } }\n");
    let inline = "{ name: a, given: { request: GET / }, expect: { allowed: 1 } }";
    let set = read(&format!("  [other.yaml, {inline}]"), &good).unwrap();
    assert_eq!(set.tests().iter().map(Case::name).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(read("  other.yaml", &good).unwrap().tests().len(), 1);

    for (text, message) in [
        ("tests:\n- { nam: b }", "other.yaml:2:5: a test has no field `nam`"),
        ("test: []", "other.yaml:1:1: a file of tests has no field `test`"),
        ("tests: [", "other.yaml:1:"),
        ("tests: [other.yaml]", "other.yaml:1:9: a test must be a map"),
    ] {
        let shown = read("  other.yaml", &Beside(text)).unwrap_err();
        assert!(shown.contains(message), "{shown}");
        assert!(shown.contains("rules.yaml:6:3"), "{shown}");
    }
    assert!(refused("  other.yaml").contains("cannot be read"));
}

#[test]
fn a_place_within_escaped_text_is_a_place_in_the_file() {
    // As long in the file as it is read, and yet not the same: the place would be within a letter.
    for request in ["\"GET /\\L\\Lé é=a\"", "\"GET /\\x41\\L\\L\\L\\Lé é\"", "'GET /''é é'"] {
        let text = refused(&format!("  - name: a\n    given:\n      request: {request}\n"));
        assert!(text.contains("this is no request"), "{text}");
    }
}

proptest! {
    #[test]
    fn any_change_to_good_tests_is_read_or_refused(
        at in 0..GOOD.len(), with in "[ -~\\n\u{e9}]{0,3}", cut in 0..6usize,
    ) {
        let end = (at + cut).min(GOOD.len());
        prop_assume!(GOOD.is_char_boundary(at) && GOOD.is_char_boundary(end));
        match read(&format!("{}{with}{}", &GOOD[..at], &GOOD[end..]), &NoFiles) {
            Ok(set) => prop_assert!(set.tests().len() <= 2),
            Err(text) => prop_assert!(!text.is_empty()),
        }
    }
}

const GOOD: &str = "  - name: é gets five
    given: { request: GET /é user=é tier=pro, times: 6, over: 1s, respond: 200 }
    expect: { allowed: 5, denied_by: [per-user], retry_after: <= 1s }
  - name: b
    steps:
      - given: { request: 'POST / body.a=\"é b\"' }
      - after: 1min
        given: { request: POST / }
        expect: { remaining: '>= 0', delay: 0s, warning: 0% }
";
