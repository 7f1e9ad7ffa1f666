use super::*;
use proptest::prelude::*;

fn normal(path: &str) -> String {
    Request::new("GET", path).normal(&mut String::new()).path().to_owned()
}

#[test]
fn secrets_are_not_shown() {
    let request = Request::new("GET", "/a?token=s3cret")
        .headers(&[("authorization", "Bearer s3cret")])
        .attributes(&[("api_key", "s3cret")]);
    let shown = format!("{request:?}");
    assert!(shown.contains("authorization") && shown.contains("api_key"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn one_path_is_one_path_however_it_is_written() {
    for (written, path) in [
        ("/login", "/login"),
        ("/%6c%6Fgin", "/login"),
        ("//login", "/login"),
        ("/login/", "/login"),
        ("/login//", "/login"),
        ("//login/", "/login"),
        ("/login/;a/", "/login"),
        ("//", "/"),
        ("/./login", "/login"),
        ("/a/../login", "/login"),
        ("/../../login", "/login"),
        ("/%2e%2E/login", "/login"),
        ("/a/%2e./login", "/login"),
        ("/", "/"),
        ("/..", "/"),
        ("/a/b/..", "/a"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a%2fb", "/a%2Fb"),
        ("/100%", "/100%25"),
        ("/100%25", "/100%25"),
        ("/100%zz%4", "/100%25zz%254"),
        ("/%%34%31", "/%2541"),
        ("/%c3%a9", "/%C3%A9"),
        ("/é", "/%C3%A9"),
        ("/a b", "/a%20b"),
        ("/login;v=1", "/login"),
        ("/a;v=1/b;w/;x/c", "/a/b/c"),
        ("/a/..;x/login", "/login"),
        ("/login%3bv", "/login%3Bv"),
        ("/login#top", "/login"),
        ("/login?a#top", "/login"),
        ("http://h/login", "/login"),
        ("HTTPS://u:p@h:443/a/../login?q", "/login"),
        ("http://h", "/"),
        ("http://h?q", "/"),
        ("../login", "/login"),
        ("login", "/login"),
        ("", "/"),
        ("*", "*"),
        ("/.well-known/x", "/.well-known/x"),
    ] {
        assert_eq!(normal(written), path, "{written}");
    }
}

#[test]
fn one_host_is_one_host_however_it_is_written() {
    let mut room = String::new();
    let request = Request::new("GET", "/../a%2e").host("API.Example.com");
    let normal = request.normal(&mut room);
    assert_eq!((normal.host_name(), normal.path()), ("api.example.com", "/a."));
}

#[test]
fn hosts_have_no_port_and_no_dot_at_the_end() {
    for (written, host) in [
        ("api.example.com", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("api.example.com:443", "api.example.com"),
        ("API.example.com.:443", "api.example.com"),
        ("api.example.com:", "api.example.com"),
        ("api.example.com:x", "api.example.com:x"),
        ("[::1]:443", "[::1]"),
        ("[::1]", "[::1]"),
        ("::1", "::1"),
        ("2001:DB8::1:443", "2001:db8::1:443"),
        ("192.0.2.7:80", "192.0.2.7"),
        (".", "."),
        ("", ""),
    ] {
        let mut room = String::new();
        let normal = Request::new("GET", "/").host(written).normal(&mut room);
        assert_eq!(normal.host_name(), host, "{written}");
        let target = format!("http://me@{written}/a");
        let mut room = String::new();
        let normal = Request::new("GET", &target).normal(&mut room);
        assert_eq!((normal.host_name(), normal.path()), (host, "/a"), "{written}");
    }
    let both = Request::new("GET", "http://a.com/").host("b.com");
    assert_eq!(both.host_name(), "b.com");
}

#[test]
fn methods_are_in_capitals() {
    let mut room = String::new();
    let normal = Request::new("pOst", "/A").host("B").normal(&mut room);
    assert_eq!((normal.method(), normal.path(), normal.host_name()), ("POST", "/A", "b"));
}

#[test]
fn one_parameter_is_one_parameter_however_it_is_written() {
    for (query, action) in [
        ("action=delete", Some("delete")),
        ("action=%64elete", Some("delete")),
        ("%61ction=delete", Some("delete")),
        ("x=1&%61%63tion=d%65lete", Some("delete")),
        ("action=a+b", Some("a b")),
        ("action=a%20b", Some("a b")),
        ("action=a%2Bb", Some("a+b")),
        ("action=a%26b", Some("a%26b")),
        ("action=a%3Db", Some("a=b")),
        ("action=a=b", Some("a=b")),
        ("action%3Ddelete", None),
        ("action=caf%c3%a9", Some("café")),
        ("action=café+", Some("café ")),
        ("action=%c3%28%e2%82", Some("%C3(%E2%82")),
        ("action=%ff%0a%F0%9F%90%88", Some("%FF%0A\u{1f408}")),
        ("action=100%25", Some("100%")),
        ("action=100%", Some("100%")),
        ("action=%2541", Some("%41")),
        ("action=+&action=b", Some(" ")),
        ("action", Some("")),
        ("other=%64", None),
    ] {
        let target = format!("/a?{query}");
        let (mut room, mut again) = (String::new(), String::new());
        let normal = Request::new("GET", &target).normal(&mut room);
        assert_eq!(normal.query_parameter("action"), action, "{query}");
        let twice = normal.normal(&mut again);
        assert_eq!(twice.query_parameter("action"), action, "{query} is decoded once");
    }
}

#[test]
fn what_is_cut_off_takes_no_room() {
    let mut room = String::new();
    let request = Request::new("GET", "http://api.example.com.:443/a/?b=c&d=e#f");
    let _ = request.normal(&mut room);
    assert_eq!(room.capacity(), 0);
}

proptest! {
    #[test]
    fn anything_can_be_a_request(method in ".*", target in "(/|:|%|[?]|&|=|#|[+]|.){0,30}", host in ".*") {
        let (mut room, mut again) = (String::new(), String::new());
        let once = Request::new(&method, &target).host(&host).normal(&mut room);
        let twice = once.normal(&mut again);
        prop_assert_eq!((once.method(), once.path()), (twice.method(), twice.path()));
        prop_assert_eq!(once.query(), twice.query());
        let request = Request::new(&method, &target).host(&host);
        let all = |request: &Request<'_>| {
            let Request { method, host, path, query, .. } = *request;
            [method, host, path, query].map(str::to_owned)
        };
        // Of a query that is no longer encoded nobody sees that it is decoded.
        prop_assert_eq!(request.is_normal(), all(&request) == all(&once) && !request.query_is_encoded());
        // What is cut off from a host that is none can leave another that is none.
        let without_host = Request { host: "", ..once };
        prop_assert!(without_host.is_normal());
    }

    #[test]
    fn a_query_means_what_was_escaped(name in "[a-zé+ %]{1,5}", value in "[a-zé+ %=]{0,9}", some in any::<u64>()) {
        let escape = |text: &str| -> String {
            let each = text.char_indices().map(|(at, c)| {
                let plain = c.is_alphanumeric() && some >> (at % 64) & 1 == 0;
                let bytes = c.to_string().into_bytes();
                match plain {
                    true => c.to_string(),
                    false => bytes.iter().map(|byte| format!("%{byte:02x}")).collect(),
                }
            });
            each.collect()
        };
        let target = format!("/?0=%61&{}={}", escape(&name), escape(&value));
        let mut room = String::new();
        let normal = Request::new("GET", &target).normal(&mut room);
        prop_assert_eq!(normal.query_parameter(&name), Some(&*value));
    }

    #[test]
    fn what_is_normal_stays_as_it_is(path in "(/|%2e|%2E|[.]|a|%61|%2f|%25|%|;|é|%20){0,30}") {
        let path = format!("/{path}");
        let once = normal(&path);
        let dots = |segment: &str| segment == "." || segment == "..";
        prop_assert!(once.starts_with('/') && !once.split('/').any(dots), "{}", once);
        prop_assert!(!once.contains("//"), "{}", once);
        prop_assert!(once == "/" || !once.ends_with('/'), "{}", once);
        prop_assert_eq!(normal(&once), once);
    }
}
