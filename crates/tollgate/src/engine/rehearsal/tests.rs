use super::*;

const RULES: &str = "rules:
  - { name: per-user, match: { path: /v1/** }, key: [user], limit: 100/min, warn_at: [80%, 95%] }
  - { name: everybody, match: { path: /v1/** }, key: [], limit: 150/min }
  - name: logins
    match: { path: /login }
    key: [ip]
    limit: 10/15min
    algorithm: sliding_log
    count_if: response.status == 401
  - { name: slots, match: { path: /exports }, key: [account], concurrent: 3 }
  - name: smooth
    match: { path: /legacy }
    key: []
    limit: 10/s
    algorithm: leaky_bucket
    queue: 5
  - { name: daily, match: { path: /daily }, key: [], limit: 5/day, window: { calendar: day } }
";

/// What fails in a test of these rules.
fn failures(test: &str) -> Vec<String> {
    let rules = RuleSet::parse(&format!("{RULES}tests:\n  - name: a\n{test}"));
    let rules = Arc::new(rules.unwrap());
    let rehearsal = Rehearsal::run(&rules, &rules.tests()[0]).unwrap();
    assert_eq!(rehearsal.passed(), rehearsal.failures().is_empty());
    let shown = |failure: &Failure| format!("{}: {failure}", failure.step() + 1);
    rehearsal.failures().iter().map(shown).collect()
}

fn passes(test: &str) {
    assert_eq!(failures(test), [""; 0], "{test}");
}

#[test]
fn requests_share_their_time_evenly() {
    // Ten seconds give back 16 tokens, and 2/3 of the next.
    passes(
        "    given: { request: GET /v1/a user=u, times: 120, over: 10s }
    expect: { allowed: 116, denied: 4, denied_by: per-user, retry_after: < 600ms }",
    );
    passes(
        "    given: { request: GET /v1/a user=u, times: 200, over: 2min }
    expect: { denied: 0, remaining: 99 }",
    );
}

#[test]
fn the_time_of_a_step_is_over_when_the_next_begins() {
    passes(
        "    steps:
      - given: { request: GET /daily, times: 6, over: 1h }
        expect: { allowed: 5, denied: 1 }
      - after: 22h
        given: { request: GET /daily }
        expect: { allowed: 0, retry_after: 1h }
      - after: 1h
        given: { request: GET /daily }
        expect: { allowed: 1, remaining: 4 }",
    );
}

#[test]
fn only_some_responses_count() {
    passes(
        "    steps:
      - given: { request: POST /login ip=192.0.2.7, times: 50, respond: 200 }
        expect: { denied: 0, remaining: 9 }
      - given: { request: POST /login ip=192.0.2.7, times: 12, respond: 401 }
        expect: { allowed: 10, denied_by: logins, retry_after: 15min }
      - after: 15min
        given: { request: POST /login ip=192.0.2.7 }
        expect: { allowed: 1, remaining: 9 }",
    );
}

#[test]
fn what_is_not_answered_stays_under_way() {
    passes(
        "    steps:
      - given: { request: GET /exports account=a, times: 2 }
        expect: { allowed: 2, remaining: 1 }
      - given: { request: GET /exports account=a, times: 9, respond: 200 }
        expect: { allowed: 9 }
      - given: { request: GET /exports account=a, times: 2 }
        expect: { allowed: 1, denied_by: slots }",
    );
    let failed = failures(
        "    given: { request: GET /exports account=a, times: 4 }
    expect: { denied: 0, retry_after: 1s }",
    );
    let text = "expected 0 denied, got 1; first denial at request 4 after 0 s by `slots`, \
                retry when something under way ends";
    assert_eq!(
        failed,
        [
            format!("1: {text}"),
            "1: expected retry after 1 s, got retry when something under way ends".into()
        ]
    );
}

#[test]
fn delays_and_warnings_are_those_of_the_last_request() {
    passes(
        "    given: { request: GET /legacy, times: 3 }
    expect: { allowed: 3, delay: 200ms, warning: 0 }",
    );
    passes(
        "    given: { request: GET /v1/a user=u, times: 81 }
    expect: { warning: 80% }",
    );
}

#[test]
fn failures_say_what_came_instead() {
    let failed = failures(
        "    steps:
      - given: { request: GET /v1/a user=u, times: 102, over: 1020ms }
        expect: { allowed: 100, denied: '> 1', denied_by: everybody, remaining: 7 }
      - given: { request: GET /v1/a user=v, times: 99 }
        expect: { denied_by: [per-user, slots], warning: 95, delay: 1s }
      - given: { request: GET /else }
        expect: { denied: 1, denied_by: slots, retry_after: 1s, remaining: 1, delay: '> 1s' }",
    );
    let denial = "first denial at request 102 after 1.01 s by `per-user`, retry after 190 ms";
    assert_eq!(
        failed,
        [
            &*format!("1: expected 100 allowed, got 101; {denial}"),
            &*format!("1: expected more than 1 denied, got 1; {denial}"),
            "1: expected denials by `everybody`, got denials by `per-user`",
            "1: expected 7 remaining, got 0",
            "2: expected denials by `per-user` or `slots`, got denials by `everybody`",
            "2: expected a delay of 1 s, got a denial",
            "2: expected a warning at 95%, got none",
            "3: expected 1 denied, got 0; nothing was denied",
            "3: expected denials by `slots`, got none",
            "3: expected retry after 1 s, got an allowance",
            "3: expected 1 remaining, got no limit",
            "3: expected a delay of more than 1 s, got 0 s",
        ]
    );
}

#[test]
fn tests_do_not_see_each_other() {
    let test =
        "  - name: a\n    given: { request: GET /daily, times: 5 }\n    expect: { denied: 0 }\n";
    let rules = RuleSet::parse(&format!("{RULES}tests:\n{}", test.repeat(3)));
    let rules = Arc::new(rules.unwrap());
    for case in rules.tests() {
        assert!(Rehearsal::run(&rules, case).unwrap().passed());
    }
}

#[test]
fn what_is_under_way_is_bounded() {
    let run = |times: &str| {
        let rules = RuleSet::parse(&format!(
            "rules: [{{ name: a, key: [], concurrent: 200k }}]
tests: [{{ name: a, given: {{ request: GET /, times: {times} }}, expect: {{ denied: 0 }} }}]"
        ));
        let rules = Arc::new(rules.unwrap());
        let rehearsal = Rehearsal::run(&rules, &rules.tests()[0]).unwrap();
        rehearsal.failures().iter().map(Failure::about).collect::<Vec<_>>()
    };
    assert_eq!(run("100k"), []);
    assert_eq!(run("150k"), [Expectation::UnderWay]);
}
