use proptest::prelude::*;

use super::*;
use crate::rule_set::RuleSet;

fn line(text: &str) -> RequestLine {
    text.parse().unwrap()
}

fn refused(text: &str) -> RequestLineError {
    text.parse::<RequestLine>().unwrap_err()
}

#[test]
fn everything_that_can_be_said_arrives() {
    let line = line(
        "  GET /v1/items?x=1&y=a=b\tuser=u1 claims.plan=free ip=1.2.3.4 header.X-Plan=a \
         header.x-plan=b host=api.example.com body.username=\"a \\\"b\\\" \\\\\" tier=pro ",
    );
    line.with(|request| {
        assert_eq!((request.method(), request.path()), ("GET", "/v1/items"));
        assert_eq!(request.query(), "x=1&y=a=b");
        assert_eq!(request.host_name(), "api.example.com");
        assert_eq!(request.peer_address(), "1.2.3.4".parse().ok());
        assert_eq!(request.all_headers("x-plan").collect::<Vec<_>>(), ["a", "b"]);
        let given = [("user", "u1"), ("claims.plan", "free"), ("body.username", "a \"b\" \\")];
        assert_eq!(request.every_attribute(), given);
    });
    assert_eq!(line.tier.as_deref(), Some("pro"));
}

#[test]
fn quotes_matter_only_where_a_value_begins() {
    line("GET /a?q=\"b\" user=o\"neil").with(|request| {
        assert_eq!(request.query(), "q=\"b\"");
        assert_eq!(request.attribute("user"), Some("o\"neil"));
    });
    line("GET \"/a b\" user=\"\"").with(|request| {
        assert_eq!((request.path(), request.attribute("user")), ("/a b", Some("")));
    });
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    for (text, at, message, remedy) in [
        ("", 0, "there is no request", "begin with the method"),
        ("  /v1 user=a", 2, "`/v1` is no method", "begin with the method"),
        ("\"GET\" /", 0, "`\"GET\"` is no method", "begin with the method"),
        ("GET", 3, "there is no path", "write the path"),
        ("GET user=a", 4, "`user=a` is no path", "begins with `/`"),
        ("GET / body.a=\"b", 13, "never closed", "close it"),
        ("GET / body.a=\"b\"c", 16, "no blank behind", "whole value"),
        ("GET / alice", 6, "`alice` says no name", "name=value"),
        ("GET / usr=a", 6, "no attribute `usr`", "did you mean `user`?"),
        ("GET / header.=a", 6, "needs a name", "header.x-plan"),
        ("GET / query.page=2", 6, "cannot be given", "behind the path"),
        ("GET / path.id=2", 6, "cannot be given", "second word"),
        ("GET / method=PUT", 6, "cannot be given", "first word"),
        ("GET / country=de", 6, "cannot be given", "ip="),
        ("GET / ip/24=1.2.3.4", 6, "cannot be given", "ip="),
        ("GET / ip=1.2.3", 6, "`1.2.3` is no address", "192.0.2.7"),
        ("GET / user=a user=b", 13, "`user` is given twice", "keep one"),
        ("GET / ip=::1 ip=::1", 13, "`ip` is given twice", "keep one"),
        ("GET / host=a host=a", 13, "`host` is given twice", "keep one"),
        ("GET / tier=a tier=a", 13, "`tier` is given twice", "keep one"),
    ] {
        let error = refused(text);
        assert_eq!(error.at(), at, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert!(error.remedy().contains(remedy), "{text}: {}", error.remedy());
    }
    let long = format!("GET /{}", "a".repeat(RequestLine::MAX_BYTES));
    assert!(refused(&long).to_string().contains("65541 bytes"));
}

#[test]
fn a_tier_becomes_what_the_rules_find_it_by() {
    let rules = |from: &str| {
        let text = format!("tiers: {{ from: {from}, known: [free, pro], else: free }}\nrules: []");
        RuleSet::parse(&text).unwrap()
    };
    let with = |from: &str, text: &str| line(text).for_tiers(rules(from).tiers());
    assert_eq!(with("claims.plan", "GET / tier=pro"), Ok(line("GET / claims.plan=pro")));
    assert_eq!(with("header.X-Plan", "GET / tier=pro"), Ok(line("GET / header.x-plan=pro")));
    assert_eq!(with("claims.plan", "GET / user=a"), Ok(line("GET / user=a")));
    for (from, text, message) in [
        ("claims.plan", "GET / tier=gold", "there is no tier `gold`"),
        ("claims.plan", "GET / claims.plan=free tier=pro", "names its tier twice"),
        ("header.x-plan", "GET / header.x-plan=free tier=pro", "names its tier twice"),
        ("host", "GET / tier=pro", "is found by `host`"),
    ] {
        let error = with(from, text).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(!error.remedy().is_empty());
    }
    assert_eq!(line("GET / tier=pro").for_tiers(None), Err(RequestLineError::NoTiers));
}

fn pair() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("user".to_owned()),
        Just("host".to_owned()),
        Just("tier".to_owned()),
        "(claims|body|header|descriptor)\\.[a-z\"\\\\]{1,3}",
    ];
    let plain = "[^\\s\"][^\\s]{0,8}";
    let quoted = "\"([^\"\\\\]|\\\\[\"\\\\])*\"";
    (name, prop_oneof![plain, quoted]).prop_map(|(name, value)| format!("{name}={value}"))
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        target in "/[^\\s]{0,12}", pairs in prop::collection::vec(pair(), 0..6),
        peer in any::<Option<IpAddr>>(),
    ) {
        let peer = peer.map(|peer| format!("ip={peer}"));
        let text = format!("GET {target} {} {}", pairs.join(" "), peer.unwrap_or_default());
        match text.parse::<RequestLine>() {
            Ok(line) => {
                let written = line.to_string();
                prop_assert_eq!(written.parse(), Ok(line), "{}", written);
            }
            Err(error) => {
                prop_assert!(matches!(error, RequestLineError::Twice { .. }), "{text}: {error}");
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(GET /)?[ -~\u{e9}\u{3000}\\n]{0,40}") {
        match text.parse::<RequestLine>() {
            Ok(line) => prop_assert_eq!(line.to_string().parse(), Ok(line)),
            Err(error) => prop_assert!(error.at() <= text.len() && !error.remedy().is_empty()),
        }
    }
}
