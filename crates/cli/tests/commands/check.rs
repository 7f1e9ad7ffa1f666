use crate::{SMALL, WRONG, shop, tollgate, tollgate_reading};

#[test]
fn a_request_is_allowed_or_denied() {
    tollgate_reading(SMALL, &["check", "-", "--request", "GET / user=a"]).ends(0).prints(&[
        "allowed; the strictest is `per-user`",
        "remaining",
        "4",
        "200 ms",
    ]);
    tollgate_reading(SMALL, &["check", "-", "--request", "GET / user=a", "--times", "6"])
        .ends(1)
        .prints(&[
            "denied by `per-user`",
            "6 requests at once: 5 allowed, 1 denied, the first denial is request 6",
            "per-user  deny  5      0          1 s          200 ms",
        ]);
    tollgate_reading(SMALL, &["check", "-", "--request", "GET /"])
        .ends(0)
        .prints(&["allowed: no rule applies"]);
}

#[test]
fn programs_read_the_same() {
    let arguments = ["check", "-", "--request", "GET / user=a", "--times", "6", "--output", "json"];
    let json = tollgate_reading(SMALL, &arguments).ends(1).json();
    assert_eq!(json["request"], "GET / user=a");
    assert_eq!((&json["allowed"], &json["denied"]), (&5.into(), &1.into()));
    assert_eq!(json["first_denial"], 6);
    assert_eq!(json["answer"]["rule"], "per-user");
    assert_eq!(json["answer"]["allowed"], false);
    assert_eq!(json["answer"]["retry_after_ms"], 200);
    assert_eq!(json["rules"][0]["limit"], 5);
    let json =
        tollgate_reading(SMALL, &["check", "-", "--request", "GET /", "--output", "json"]).json();
    assert_eq!(json["answer"]["limit"], serde_json::Value::Null, "there is no limit");
}

#[test]
fn what_is_under_way_stays_so() {
    let request = "GET /v1/exports/7 account=acme";
    tollgate(&["check", &shop(), "--request", request, "--times", "6"]).ends(1).prints(&[
        "denied by `exports`",
        "5 allowed, 1 denied",
        "when one ends",
    ]);
}

#[test]
fn a_rule_in_shadow_denies_nothing() {
    let request = "GET /search ip=192.0.2.7";
    tollgate(&["check", &shop(), "--request", request, "--times", "400"])
        .ends(0)
        .prints(&["allowed; the strictest is `per-address`", "deny (shadow)"]);
}

#[test]
fn a_request_that_is_none_is_shown_with_its_mistake() {
    tollgate_reading(SMALL, &["check", "-", "--request", "GET / usr=a"]).ends(2).notes(&[
        "there is no attribute `usr`",
        "  GET / usr=a\n        ^\n",
        "help: did you mean `user`?",
    ]);
    tollgate_reading(SMALL, &["check", "-", "--request", "GET / tier=pro"])
        .ends(2)
        .notes(&["the rules have none"]);
    let arguments = ["check", "-", "--request", "GET / usr=a", "--output", "json"];
    let json = tollgate_reading(SMALL, &arguments).ends(2).json();
    let finding = &json["findings"][0];
    assert_eq!((&finding["code"], &finding["column"]), (&"bad-request".into(), &7.into()));
    assert_eq!(finding["remedy"], "did you mean `user`?");
}

#[test]
fn rules_that_are_wrong_decide_nothing() {
    tollgate_reading(WRONG, &["check", "-", "--request", "GET /"])
        .ends(1)
        .notes(&["standard input:2:22", "did you mean `user`?"]);
}
