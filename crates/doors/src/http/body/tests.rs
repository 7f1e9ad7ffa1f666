use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::Request;
use tollgate_rules::Attribute;

use super::*;

const MOST: usize = 3;

fn checks(text: &str) -> Result<Body<Asked<'_>>, Unreadable> {
    read(text.as_bytes(), MOST)
}

/// Shows the request that a body asks about.
fn asked<R>(text: &str, look: impl FnOnce(&Request<'_>) -> R) -> R {
    let Ok(Body::One(asked)) = checks(text) else { panic!("{text}: {:?}", checks(text).err()) };
    let (headers, attributes) = asked.pairs();
    look(&asked.request(&headers, &attributes))
}

/// What is said about a body that is refused for what it says.
fn refused(text: &str) -> String {
    let refused = checks(text).expect_err(text);
    assert!(!refused.is_syntax, "{text}: {}", refused.detail);
    refused.detail
}

#[test]
fn a_request_is_read_field_by_field() {
    let text = r#"{
        "method": "POST", "path": "/v1/items?page=2", "host": "api.example.com", "cost": 3,
        "ip": "192.0.2.7", "user": "ali\u0063e", "claims.plan": "pro", "header.x-plan": "a",
        "headers": {"Via": ["a", "b"], "x-cost": 7}
    }"#;
    asked(text, |request| {
        assert_eq!((request.method(), request.path()), ("POST", "/v1/items"));
        assert_eq!((request.query(), request.host_name()), ("page=2", "api.example.com"));
        assert_eq!((request.counts(), request.attribute("user")), (3, Some("alice")));
        assert_eq!(request.peer_address(), "192.0.2.7".parse().ok());
        let attributes = [("user", "alice"), ("claims.plan", "pro")];
        assert_eq!(request.every_attribute(), attributes);
        let headers = [("x-plan", "a"), ("Via", "a"), ("Via", "b"), ("x-cost", "7")];
        assert_eq!(request.every_header(), headers);
    });
}

#[test]
fn nothing_is_needed_and_null_is_nothing() {
    let nulls = r#"{"method":null,"path":null,"host":null,"ip":null,"cost":null,"headers":null,
        "user":null,"claims":null,"claims.plan":null,"header.a":null}"#;
    for text in ["{}", nulls] {
        asked(text, |request| {
            assert_eq!((request.method(), request.path(), request.counts()), ("GET", "/", 1));
            assert_eq!((request.peer_address(), request.host_name()), (None, ""));
            assert!(request.every_header().is_empty() && request.every_attribute().is_empty());
        });
    }
}

#[test]
fn families_can_be_objects() {
    let text = r#"{"claims": {"plan": "pro", "org": {"id": 7, "trial": false}, "none": null},
        "user": {"id": "u1"}, "descriptor": {}, "body.n": 1.5}"#;
    let attributes = [
        ("claims.plan", "pro"),
        ("claims.org.id", "7"),
        ("claims.org.trial", "false"),
        ("user.id", "u1"),
        ("body.n", "1.5"),
    ];
    asked(text, |request| assert_eq!(request.every_attribute(), attributes));
}

#[test]
fn an_address_of_ipv4_is_one_however_it_is_written() {
    let mapped = r#"{"ip": "::ffff:192.0.2.7"}"#;
    asked(mapped, |request| assert_eq!(request.peer_address(), "192.0.2.7".parse().ok()));
}

#[test]
fn whatever_is_there_twice_is_refused() {
    for text in [
        r#"{"path": "/a", "path": "/b"}"#,
        r#"{"path": null, "path": "/b"}"#,
        r#"{"user": "a", "user": "b"}"#,
        r#"{"user": null, "user": "b"}"#,
        r#"{"user": "a", "us\u0065r": "b"}"#,
        r#"{"user": "a", "user": {"id": "b"}}"#,
        r#"{"claims": {"plan": "a"}, "claims.plan": "b"}"#,
        r#"{"claims": {"plan": "a"}, "claims": {"other": "b"}}"#,
        r#"{"claims": {"a": {"b": "c"}, "a": {"d": "e"}}}"#,
        r#"{"claims": {"a": {"b": "c"}, "a.b": "d"}}"#,
        r#"{"headers": {}, "headers": {}}"#,
        r#"{"headers": {"Via": "a", "via": "b"}}"#,
        r#"{"headers": {"via": ["a"]}, "header.VIA": "b"}"#,
    ] {
        assert!(refused(text).contains("is there twice at line 1 column"), "{}", refused(text));
    }
}

#[test]
fn costs_that_cannot_be_are_refused() {
    for cost in ["-1", "0.5", "1e300", "9007199254740992", "18446744073709551616", "-0.5"] {
        let detail = refused(&format!(r#"{{"cost": {cost}}}"#));
        assert!(detail.contains("whole number from 0 to 9007199254740991"), "{detail}");
    }
    let detail = refused(r#"{"cost": "3"}"#);
    assert!(detail.contains("string \"3\", expected a whole number"), "{detail}");
    for (cost, read) in [("0", 0), ("3.0", 3), ("1e2", 100), ("9007199254740991", (1 << 53) - 1)] {
        let text = format!(r#"{{"cost": {cost}}}"#);
        asked(&text, |request| assert_eq!(request.counts(), read));
    }
}

#[test]
fn a_method_or_path_that_is_empty_is_refused_and_a_host_is_not() {
    for (text, said) in [
        (r#"{"method": ""}"#, "`method` is empty: write one like `GET`, or leave it out"),
        (r#"{"path": ""}"#, "`path` is empty: write one like `/v1/items`, or leave it out"),
        (r#"{"checks": [{}, {"user": "a", "method": ""}]}"#, "`method` is empty"),
    ] {
        let detail = refused(text);
        assert!(detail.starts_with(said) && detail.contains(" at line 1 column "), "{detail}");
    }
    asked(r#"{"host": ""}"#, |request| assert_eq!(request.host_name(), ""));
}

#[test]
fn names_that_no_rule_can_know_are_refused() {
    for (text, remedy) in [
        (r#"{"usre": "a"}"#, "there is no field `usre`: did you mean `user`?"),
        (r#"{"acount": "a"}"#, "did you mean `account`?"),
        (r#"{"zone": "a"}"#, "write `descriptor.zone`"),
        (r#"{"query.page": "2"}"#, "write the query behind the path"),
        (r#"{"path.id": "2"}"#, "write `path`"),
        (r#"{"country": "DE"}"#, "write `ip`"),
        (r#"{"ip/24": "192.0.2.0"}"#, "write `ip`"),
        (r#"{"tier": "pro"}"#, "`tiers.from` names that"),
        (r#"{"claims.": "pro"}"#, "needs a name behind the dot"),
        (r#"{"header.": "pro"}"#, "needs a name behind the dot"),
        (r#"{"": "pro"}"#, "there is no field ``"),
        (r#"{"claims": "pro"}"#, "`claims` is an object"),
        (r#"{"claims": {"": "pro"}}"#, "has no name"),
        (r#"{"headers": {"": "pro"}}"#, "has no name"),
        (r#"{"claims": {"roles": ["a"]}}"#, "`claims.roles` is a list"),
        (r#"{"api_key": {"a": "b"}}"#, "`api_key` is an object"),
        (r#"{"path": ["a"]}"#, "`path` is a list"),
        (r#"{"headers": {"a": {}}}"#, "`a` is an object"),
        (r#"{"ip": "localhost"}"#, "`ip` is no address"),
        (r#"{"ip": "192.0.2.7:80"}"#, "without a port"),
        (r#"{"user": 12345678901234567890123}"#, "write it as a text"),
        (r#"{"checks": [], "user": "a"}"#, "`checks` stands alone"),
        (r#"{"user": "a", "checks": []}"#, "`checks` stands alone"),
        (r#"{"checks": [{}, {}, {}, {}]}"#, "`checks` has more than 3"),
        (r#"{"checks": {}}"#, "expected a list of objects"),
        (r#"[]"#, "expected an object such as {"),
    ] {
        let detail = refused(text);
        assert!(detail.contains(remedy), "{text}: {detail}");
        assert!(detail.contains("at line 1 column"), "{text}: {detail}");
    }
}

#[test]
fn what_is_no_json_is_named_with_its_place() {
    for (text, detail) in [
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("{\n\"user\"}", "at line 2 column 7"),
        ("{} x", "trailing characters at line 1 column 4"),
        ("user=alice", "expected value at line 1 column 1"),
        (" \n", "the body is empty: send {\"method\""),
    ] {
        let refused = checks(text).expect_err(text);
        assert!(refused.is_syntax && refused.detail.contains(detail), "{refused:?}");
    }
    let no_text = read::<Asked<'_>>(b"{\"user\": \"\xff\"}", MOST).expect_err("it is no UTF-8");
    assert!(no_text.is_syntax && no_text.detail.contains("unicode"), "{no_text:?}");
}

#[test]
fn everything_has_an_end() {
    let many: Vec<_> = (0..300).map(|n| format!("\"body.f{n}\": 1")).collect();
    assert!(refused(&format!("{{{}}}", many.join(","))).contains("more than 256 fields"));
    let values = vec!["1"; 300].join(",");
    assert!(refused(&format!("{{\"header.a\": [{values}]}}")).contains("more than 256 fields"));
    let long = "a".repeat(300);
    assert!(refused(&format!("{{\"claims.{long}\": 1}}")).contains("more than 256 bytes"));
    let unknown = refused(&format!("{{\"ip/{}\": 1}}", "a".repeat(100_000)));
    assert!(unknown.len() < 500, "{} bytes", unknown.len());
    let deep = format!("{{\"body\": {}1{}}}", "{\"a\": ".repeat(20), "}".repeat(20));
    assert!(refused(&deep).contains("nested too deeply"));
    let deeper = format!("{{\"body\": {}", "[".repeat(100_000));
    assert!(checks(&deeper).is_err());
}

#[test]
fn several_are_in_order() {
    let text = r#"{"checks": [{"user": "a"}, {}, {"user": "b", "cost": 2}]}"#;
    let Ok(Body::Many(all)) = checks(text) else { panic!("it is a list") };
    let costs: Vec<_> = all.iter().map(|asked| asked.request(&[], &[]).counts()).collect();
    assert_eq!(costs, [1, 1, 2]);
    let detail = refused(r#"{"checks": [{"user": "a"}, {"usre": "b"}]}"#);
    assert!(detail.contains("`usre`"), "{detail}");
}

#[test]
fn an_end_is_read() {
    let text = r#"{"ticket": "t", "status": 401, "headers": {"retry-after": 5}}"#;
    let Ok(Body::One(ended)) = read::<Ended<'_>>(text.as_bytes(), MOST) else { panic!("{text}") };
    assert_eq!((ended.ticket.as_deref(), ended.status), (Some("t"), Some(401)));
    assert_eq!(&*ended.headers.pairs(), [("retry-after", "5")]);
    for (text, remedy) in [
        (r#"{"status": 401}"#, "`ticket` is missing"),
        (r#"{"ticket": null}"#, "`ticket` is missing"),
        (r#"{"ticket": "t", "status": 99}"#, "from 100 to 999"),
        (r#"{"ticket": "t", "stauts": 99}"#, "there is no field `stauts`"),
        (r#"{"ticket": "t", "ticket": "u"}"#, "is there twice"),
    ] {
        let refused = read::<Ended<'_>>(text.as_bytes(), MOST).expect_err(text);
        assert!(refused.detail.contains(remedy), "{text}: {}", refused.detail);
    }
}

/// Names as they could be meant, and any others.
fn name() -> impl Strategy<Value = String> {
    let known =
        "(user|account|api_key|claims|body|ip|path|query|header|tier|asn)([.][a-z./]{0,4})?";
    prop_oneof![known, "[a-z./]{0,8}", any::<String>()]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read::<Asked<'_>>(&bytes, MOST);
        let _ = read::<Ended<'_>>(&bytes, MOST);
    }

    #[test]
    fn any_json_is_read_or_refused_for_what_it_says(value in any_json()) {
        let text = value.to_string();
        if let Err(unreadable) = read::<Asked<'_>>(text.as_bytes(), MOST) {
            prop_assert!(!unreadable.is_syntax && unreadable.detail.contains(" at line 1 column "));
        }
        let _ = read::<Ended<'_>>(text.as_bytes(), MOST);
    }

    /// What we take is what rules can ask for, and no more.
    #[test]
    fn a_name_is_taken_if_a_rule_could_ask_for_it(name in name()) {
        let taken = checks(&json!({ name.as_str(): "192.0.2.7" }).to_string()).is_ok();
        let can_be_asked_for = matches!(
            name.parse::<Attribute>(),
            Ok(Attribute::Given(_)
                | Attribute::Header(_)
                | Attribute::Ip
                | Attribute::Method
                | Attribute::Host
                | Attribute::Path)
        );
        prop_assert_eq!(taken, can_be_asked_for && name.len() <= 256, "{}", name);
    }

    #[test]
    fn any_text_comes_through(user in any::<String>(), header in any::<String>()) {
        let text = json!({ "user": user, "headers": { "a": [header, 1] } }).to_string();
        asked(&text, |request| {
            assert_eq!(request.attribute("user"), Some(&*user));
            assert_eq!(request.every_header(), [("a", &*header), ("a", "1")]);
        });
    }
}
