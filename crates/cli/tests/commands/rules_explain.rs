use crate::{Folder, SMALL, WRONG, shop, tollgate, tollgate_reading};

/// Of everything that can be said of a rule, one.
const ODD: &str = r#"
tiers: { from: claims.plan, known: [free, pro], else: free }
rules:
  - { name: by-user, match: { path: /x }, key: [user], key_missing: ip, limit: 5/s }
  - name: together
    match: { path: /x }
    key: [user]
    key_missing: { together: anonymous }
    limit: 6/s
    cost: { attribute: header.x-cost }
  - { name: untold, match: { path: /x, when: "claims.level == 'high'" }, key: [], limit: 7/s }
  - { name: deep, match: { path: /graphql }, key: [], limit: 8/s, cost: { graphql: { depth: 2 } } }
  - { name: nets, match: { ip: 10.0.0.0/8 }, key: [ip], concurrent: { free: 1, pro: 2 } }
  - group: pages
    first_match: true
    rules:
      - { name: exact, match: { path: /x }, key: [], limit: 9/s }
      - { name: wide, match: { path: /** }, key: [], limit: 99/s }
"#;

#[test]
fn every_rule_says_why_it_applies_or_not() {
    let request = "POST /v1/items user=u1 account=acme tier=pro";
    tollgate(&["rules", "explain", &shop(), "--request", request]).ends(0).prints(&[
        "POST /v1/items user=u1 account=acme claims.plan=pro\nwould be allowed",
        "the strictest is `writes`",
        "client  unknown: the request has no peer\ntier    pro\n",
        "  per-user\n    key     user = `u1`\n    limit   token bucket of 10k/min burst 500, for \
         the tier `pro`\n    cost    1\n    answer  allow, 500 of 500 remaining\n",
        "  writes\n    key     account = `acme`\n    limit   token bucket of 20/s\n",
        "  exports           the path `/v1/items` does not fit `/v1/exports/**`\n",
        "  per-address       the path `/v1/items` does not fit `/search`\n",
    ]);
}

#[test]
fn the_limit_of_a_single_key_is_shown() {
    tollgate(&["rules", "explain", &shop(), "--request", "GET /v1/a user=mallory"])
        .ends(0)
        .prints(&["limit   token bucket of 3/min, by the override for `mallory`"]);
}

#[test]
fn the_request_is_seen_in_its_normal_form() {
    let request = "GET /v1/../%73earch?q=1 ip=10.0.0.1 header.x-forwarded-for=192.0.2.7";
    tollgate(&["rules", "explain", &shop(), "--request", request]).ends(0).prints(&[
        "path    /search\n",
        "client  192.0.2.7: the peer 10.0.0.1 is a trusted proxy, and its `x-forwarded-for` says",
        "key     ip = `192.0.2.7`",
        "answer  allow (shadow), 300 of 300 remaining",
    ]);
    let plain = tollgate(&["rules", "explain", &shop(), "--request", "GET /search?q=1"]);
    assert!(!plain.out.contains("path    "), "the request says it itself: {}", plain.out);
}

#[test]
fn what_is_missing_is_said() {
    let request = "GET /x ip=192.0.2.7 header.x-cost=lots";
    tollgate_reading(ODD, &["rules", "explain", "-", "--request", request]).ends(0).prints(&[
        "key     user is missing, and ip = `192.0.2.7` stands for it",
        "key     user is missing, and it counts with all others as `anonymous`",
        "cost    1, as the attribute that names the cost is no whole number",
        "when    cannot be told, so the rule applies",
        "nets  the address 192.0.2.7 is in none of its networks",
        "wide  another rule of its group is more specific: `exact`",
    ]);
    let query = "POST /graphql body.query=\"{ a { b { c } } }\"";
    tollgate_reading(ODD, &["rules", "explain", "-", "--request", query]).ends(0).prints(&[
        "would be denied by `deep`",
        "cost    refused: the query is nested more than 2 deep",
        "answer  deny, 8 of 8 remaining, retry after: never",
    ]);
}

#[test]
fn programs_read_the_same() {
    let request = "GET /search ip=192.0.2.7";
    let arguments = ["rules", "explain", &shop(), "--request", request, "--output", "json"];
    let json = tollgate(&arguments).ends(0).json();
    assert_eq!(json["answer"]["allowed"], true);
    assert_eq!(json["client"]["address"], "192.0.2.7");
    assert_eq!(json["client"]["because"], "not_trusted");
    assert_eq!((&json["path"], &json["tier"]), (&"/search".into(), &"free".into()));
    let rules = json["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 8);
    let network = rules.iter().find(|rule| rule["rule"] == "per-network").unwrap();
    assert_eq!((&network["applies"], &network["mode"]), (&true.into(), &"shadow".into()));
    assert_eq!(network["key"][0]["part"], "ip/24");
    assert_eq!(network["key"][0]["value"], "192.0.2.0");
    assert_eq!(network["limit"]["quota"], "300/min");
    assert_eq!(network["answer"]["remaining"], 300);
    assert_eq!(network["why"], serde_json::Value::Null);
    assert_eq!(rules[0]["applies"], false);
    assert_eq!(rules[0]["why"]["because"], "path");
    assert_eq!(rules[0]["why"]["wanted"][0], "/v1/**");
}

#[test]
fn programs_read_what_stands_for_what() {
    let request = "GET /x ip=10.0.0.7 header.x-cost=lots";
    let arguments = ["rules", "explain", "-", "--request", request, "--output", "json"];
    let json = tollgate_reading(ODD, &arguments).ends(0).json();
    let rules = &json["rules"];
    assert_eq!(rules[0]["key"][0]["instead"], "ip");
    assert_eq!(rules[1]["key"][0]["together"], true);
    assert_eq!((&rules[1]["cost"], &rules[2]["when_failed"]), (&1.into(), &true.into()));
    assert!(rules[1]["cost_error"].is_string());
    assert_eq!(rules[4]["limit"]["concurrent"], 1);
    assert_eq!(rules[4]["limit"]["tier"], "free");
    assert_eq!(rules[6]["why"]["because"], "alternative");
    assert_eq!(rules[6]["why"]["first"], "exact");
}

#[test]
fn nothing_is_explained_of_what_is_wrong() {
    tollgate_reading(SMALL, &["rules", "explain", "-", "--request", "/"]).ends(2).notes(&["GET"]);
    tollgate_reading(WRONG, &["rules", "explain", "-", "--request", "GET /"]).ends(1);
    tollgate_reading(SMALL, &["rules", "explain", "-", "--request", "GET /"]).ends(0).prints(&[
        "would be allowed: no rule applies",
        "per-user  the request has no `user`, and the rule then skips it",
    ]);
    let missing = Folder::new().path("missing.yaml");
    tollgate(&["rules", "explain", missing.to_str().unwrap(), "--request", "GET /"]).ends(2);
}

#[test]
fn databases_say_where_a_client_is() {
    let folder = Folder::new();
    std::fs::write(folder.path("country.mmdb"), everybody_is_german()).unwrap();
    let rules = "geo: { country: country.mmdb }\n\
                 rules: [{ name: a, match: { country: DE }, key: [country], limit: 5/s }]\n";
    let file = folder.write("rules.yaml", rules);
    tollgate(&["rules", "explain", &file, "--request", "GET / ip=192.0.2.7"])
        .ends(0)
        .prints(&["key     country = `DE`"]);
    tollgate(&["rules", "explain", &file, "--request", "GET /"])
        .ends(0)
        .prints(&["the request has no `country`, and the rule is about `DE`"]);
}

/// A database of one node, both ways from which lead to one record.
fn everybody_is_german() -> Vec<u8> {
    let text = |text: &str| {
        let size = u8::try_from(text.len()).unwrap();
        [&[2 << 5 | size][..], text.as_bytes()].concat()
    };
    let map = |size: u8| vec![7 << 5 | size];
    let short = |number: u8| vec![5 << 5 | 1, number];
    // The number of nodes and sixteen bytes before the data.
    let node = [[0, 0, 17], [0, 0, 17]].concat();
    let record = [map(1), text("country"), map(1), text("iso_code"), text("DE")].concat();
    let description = [
        map(9),
        text("binary_format_major_version"),
        short(2),
        text("binary_format_minor_version"),
        short(0),
        text("build_epoch"),
        vec![1, 2, 1],
        text("database_type"),
        text("Tollgate-Test"),
        text("description"),
        map(0),
        text("ip_version"),
        short(6),
        text("languages"),
        vec![0, 4],
        text("node_count"),
        vec![6 << 5 | 1, 1],
        text("record_size"),
        short(24),
    ];
    let marker = b"\xab\xcd\xefMaxMind.com".to_vec();
    [node, vec![0; 16], record, marker, description.concat()].concat()
}
