//! What is fuzzed of the doors: each function takes bytes as a client could send them, and panics
//! if something is not as it should be. The test command runs them as well.

use std::sync::LazyLock;

use tollgate_doors::fuzzing::{
    Assigned, GrpcClient, HttpClient, ProxyClient, Question, QuotaClient, RespClient, heads,
};

/// Commands are answered, each with one answer, or the connection ends; where the bytes are split
/// does not matter.
pub fn resp(bytes: &[u8]) {
    for password in [None, Some("open sesame")] {
        let whole = kinds(&answers(&[bytes], password));
        let (one, other) = bytes.split_at(bytes.len() / 2);
        assert_eq!(whole, kinds(&answers(&[one, other], password)));
        let singles: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(whole, kinds(&answers(&singles, password)));
    }
}

/// Bodies are answered, or refused with a reason that is fit to be read.
pub fn check_json(bytes: &[u8]) {
    let client = HttpClient::new(RULES).expect("good rules");
    for path in ["/v1/peek", "/v1/check", "/v1/report"] {
        let (status, answer) = client.post(path, bytes).expect("there is such a path");
        let answer = std::str::from_utf8(&answer).expect("an answer is text");
        assert!(answer.starts_with('{') && answer.ends_with('}'), "{answer}");
        assert!(!answer.contains(|c: char| c.is_control()), "{answer:?}");
        match status {
            200 => {}
            // It has seen nothing of the kind before.
            404 => assert_eq!(path, "/v1/report"),
            429 => assert!(answer.contains("\"violated-policies\":[\""), "{answer}"),
            400 | 422 | 503 => {
                assert!(answer.contains("\"detail\":\""), "{answer}");
                assert!(answer.len() < 4000, "{} bytes", answer.len());
            }
            other => panic!("{other} is no answer: {answer}"),
        }
    }
}

/// What the short way takes for a plain request, hyper takes for the same one: nobody can hide a
/// second request behind a length that only one of them sees.
pub fn http_head(bytes: &[u8]) {
    let Some((target, body)) = heads::plain(bytes) else { return };
    // Other targets are left to hyper in any case, which knows better what can be one.
    if !["/v1/check", "/v1/peek", "/v1/report"].contains(&target) {
        return;
    }
    let read = heads::by_hyper(bytes).expect("hyper reads it, too");
    assert_eq!((&*read.method, &*read.target), ("POST", target));
    assert_eq!((&*read.body, read.lengths, read.is_coded), (body, 1, false));
}

/// A proxy is believed what it says itself, if it says it once, and nothing else that is there.
///
/// The first line is where it asks, the others are headers.
pub fn forward_auth(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let Some(Ok(target)) = lines.next().map(std::str::from_utf8) else { return };
    // What stands behind that is never sent, and not looked at if somebody does.
    let target = target.split('#').next().unwrap_or_default();
    let header = |line| {
        let colon = <[u8]>::iter(line).position(|byte| *byte == b':')?;
        let name = std::str::from_utf8(&line[..colon]).ok()?;
        Some((name, line[colon + 1..].trim_ascii()))
    };
    let headers: Vec<(&str, &[u8])> = lines.filter_map(header).collect();
    let Some(question) = Question::new(target, &headers) else { return };
    let Some(about) = question.is_about() else { return };
    let client = ProxyClient::new(BEHIND_PROXIES).expect("good rules");
    let status = client.ask(&question).expect("a proxy asks there");
    assert_eq!(matches!(status, 200 | 403 | 429), about.is_ok(), "{status}");
    assert!(about.is_ok() || status == 400, "{status}");
    let path = target.split('?').next().unwrap_or_default();
    let own = match path {
        "/nginx" | "/nginx/403" | "/haproxy" => "x-original-",
        "/caddy" | "/traefik" => "x-forwarded-",
        _ => return envoy(target, &about),
    };
    let of = |name: &str| -> Vec<&[u8]> {
        let named = |(known, _): &&(&str, &[u8])| known.eq_ignore_ascii_case(name);
        headers.iter().filter(named).map(|(_, value)| *value).collect()
    };
    let [method, uri, host] = ["method", "uri", "host"].map(|what| of(&format!("{own}{what}")));
    if let Ok([believed_method, believed_uri, believed_host]) = &about {
        assert_eq!(method, [believed_method.as_bytes()]);
        assert_eq!(host, [believed_host.as_bytes()]);
        assert!(matches!(*uri, [said] if said == believed_uri.as_bytes() || !said.is_ascii()));
    }
    // What else is there, a client may have sent.
    let ours = |(name, _): &&(&str, &[u8])| {
        name.get(..own.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(own))
    };
    let alone: Vec<_> = headers.iter().filter(ours).copied().collect();
    let question = Question::new(path, &alone).expect("less of the same");
    assert_eq!(question.is_about(), Some(about));
}

fn envoy(target: &str, about: &Result<[String; 3], String>) {
    // A target may also be a whole address; Envoy sends none.
    if !target.starts_with('/') {
        return;
    }
    if let Ok([method, believed, _]) = about {
        assert_eq!((&**method, target.strip_prefix("/envoy")), ("GET", Some(&**believed)));
    }
}

/// Messages are answered, or refused with a code and a reason; what Envoy is answered is never that
/// nothing is known.
pub fn grpc(bytes: &[u8]) {
    for rules in [RULES, RULES_EACH] {
        let client = GrpcClient::new(rules).expect("good rules");
        for path in METHODS {
            match client.call(path, bytes).expect("there is such a method") {
                Ok(answer) => {
                    let (head, message) = answer.split_at(5);
                    let length = u32::try_from(message.len()).expect("a length").to_be_bytes();
                    assert_eq!(head, [&[0], &length[..]].concat());
                    if path == METHODS[0] {
                        assert!(matches!(message, [8, 1 | 2, ..]), "{message:?}");
                    }
                }
                Err((code, why)) => {
                    assert!([3, 8, 13].contains(&code), "{code}");
                    assert!(!why.is_empty() && why.len() < 4000, "{why}");
                }
            }
        }
    }
}

/// Whatever comes on a connection of HTTP/2, whole frames go out, and the first of them say what we
/// want.
pub fn http2(bytes: &[u8]) {
    // To make one takes longer than to talk to it.
    static CLIENT: LazyLock<GrpcClient> =
        LazyLock::new(|| GrpcClient::new(RULES).expect("good rules"));
    let greeting = b"\0\0\0\x04\0\0\0\0\0";
    for frames in [bytes.to_vec(), [greeting, bytes].concat()] {
        let told = CLIENT.talk(&frames).expect("a runtime");
        let (mut rest, mut kinds) = (&*told, Vec::new());
        while let Some(head) = rest.first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            assert!(length <= 16_384 && rest.len() >= 9 + length, "half a frame");
            kinds.push(head[3]);
            rest = &rest[9 + length..];
        }
        assert!(rest.is_empty() && kinds.starts_with(&[4, 8]), "{kinds:?}");
    }
}

/// Reports of Envoys are answered with assignments that a limit allows, or their stream ends with a
/// reason, whatever they say that they have let pass.
pub fn quotas(bytes: &[u8]) {
    let mut one = QuotaClient::new(RULES_OF_QUOTAS).expect("good rules");
    let mut other = one.other();
    // The same about the same buckets: they share.
    for _ in 0..2 {
        for envoy in [&mut one, &mut other] {
            match envoy.report(bytes) {
                None => return,
                Some(Ok(all)) => all.into_iter().for_each(assert_within_the_limit),
                Some(Err((code, why))) => {
                    assert!([3, 8].contains(&code), "{code}");
                    assert!(!why.is_empty() && why.len() < 4000, "{why}");
                }
            }
        }
    }
}

fn assert_within_the_limit(assigned: Assigned) {
    let Assigned::Share { tokens, tokens_per_fill, fill_seconds } = assigned else { return };
    // The largest of the limits: nine at once, three a second.
    assert!((1..=9).contains(&tokens), "{assigned:?}");
    assert!(tokens_per_fill >= 1 && fill_seconds >= 1, "{assigned:?}");
    assert!(i64::from(tokens_per_fill) <= 3 * fill_seconds, "{assigned:?}");
}

const METHODS: [&str; 5] = [
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    "/envoy.service.auth.v3.Authorization/Check",
    "/tollgate.v1.Tollgate/Check",
    "/tollgate.v1.Tollgate/CheckBatch",
    "/tollgate.v1.Tollgate/Report",
];

fn answers(pieces: &[&[u8]], password: Option<&str>) -> Vec<u8> {
    let mut client = RespClient::new(RULES, password).expect("good rules");
    pieces.iter().map_while(|piece| client.send(piece)).flatten().collect()
}

/// What kind each answer is of: a number, an error.
fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some(kind) = bytes.first() {
        kinds.push(char::from(*kind));
        bytes = behind(bytes);
    }
    kinds
}

/// What is behind the first answer.
fn behind(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|two| two == b"\r\n").expect("a line ends");
    let (line, mut rest) = (&bytes[1..end], &bytes[end + 2..]);
    assert!(!line.contains(&b'\r') && !line.contains(&b'\n'), "{}", line.escape_ascii());
    let number = || {
        let text = std::str::from_utf8(line).expect("a number is text");
        text.parse::<i64>().expect("a number")
    };
    match bytes[0] {
        b'+' | b'-' => {}
        b':' => _ = number(),
        b'_' => assert!(line.is_empty()),
        b'$' if number() == -1 => {}
        b'$' | b'=' => {
            let length = usize::try_from(number()).expect("a length");
            assert_eq!(&rest[length..length + 2], b"\r\n");
            rest = &rest[length + 2..];
        }
        kind @ (b'*' | b'~' | b'%') => {
            let times = number() * if kind == b'%' { 2 } else { 1 };
            rest = (0..times).fold(rest, |rest, _| behind(rest));
        }
        other => panic!("no answer begins with {}", other.escape_ascii()),
    }
    rest
}

const RULES_EACH: &str = "
descriptors: each
rules:
  - { name: a, match: { domain: shop }, key: [descriptor.k], limit: 2/h, algorithm: fixed_window }
  - { name: b, key: [descriptor_keys], limit: 9/h }
";

const RULES_OF_QUOTAS: &str = "
rules:
  - { name: a, match: { domain: shop }, key: [descriptor.k], limit: 3/s burst 9 }
  - { name: b, key: [descriptor_keys], limit: 7200/h burst 5 }
  - { name: c, key: [], limit: 1/h, mode: shadow }
";

const RULES: &str = "
rules:
  - { name: a, key: [user], limit: 5/s }
  - { name: b, match: { path: /export }, key: [user], concurrent: 2 }
  - { name: c, match: { method: POST }, key: [ip], limit: 3/h, count_if: 'response.status == 401' }
";

const BEHIND_PROXIES: &str = "
client_ip: { trusted_proxies: [127.0.0.1] }
rules:
  - { name: a, key: [ip, path, header.host], limit: 1/h }
  - { name: b, match: { method: POST, path: /login, host: a.com }, key: [query.a], limit: 1/h }
";
