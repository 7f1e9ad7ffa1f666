use crate::{SMALL, WRONG, shop, tollgate, tollgate_reading};

#[test]
fn the_rules_that_apply_are_named_with_what_they_would_say() {
    let request = "POST /v1/items user=u1 account=acme tier=pro";
    tollgate(&["rules", "explain", &shop(), "--request", request]).ends(0).prints(&[
        "POST /v1/items user=u1 account=acme claims.plan=pro\nwould be allowed",
        "the strictest is `writes`",
        "per-user  u1    token bucket of 10k/min burst 500, of pro",
        "writes    acme  token bucket of 20/s",
        "not about it: sign-in-failures, exports, old-backend, per-address, per-network",
    ]);
}

#[test]
fn the_limit_of_a_single_key_is_shown() {
    tollgate(&["rules", "explain", &shop(), "--request", "GET /v1/a user=mallory"])
        .ends(0)
        .prints(&["mallory  token bucket of 3/min, of this key"]);
}

#[test]
fn programs_read_the_same() {
    let request = "GET /search ip=192.0.2.7";
    let arguments = ["rules", "explain", &shop(), "--request", request, "--output", "json"];
    let json = tollgate(&arguments).ends(0).json();
    assert_eq!(json["answer"]["allowed"], true);
    assert_eq!(json["applying"][0]["rule"], "per-address");
    assert_eq!(json["applying"][1]["key"][0], "192.0.2.0");
    assert_eq!(json["applying"][1]["mode"], "shadow");
    assert_eq!(json["others"].as_array().unwrap().len(), 6);
}

#[test]
fn nothing_is_explained_of_what_is_wrong() {
    tollgate_reading(SMALL, &["rules", "explain", "-", "--request", "/"]).ends(2).notes(&["GET"]);
    tollgate_reading(WRONG, &["rules", "explain", "-", "--request", "GET /"]).ends(1);
    tollgate_reading(SMALL, &["rules", "explain", "-", "--request", "GET /"])
        .ends(0)
        .prints(&["would be allowed: no rule applies", "not about it: per-user"]);
}
