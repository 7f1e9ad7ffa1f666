//! Bytes that mean harm, at the doors: the targets that are fuzzed, fed with anything, and with good
//! inputs that somebody changed.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

#[path = "../../../tollgate/tests/hostile/change.rs"]
mod change;
#[path = "../../../../fuzz/src/doors.rs"]
#[allow(unreachable_pub, reason = "the crate that is fuzzed has it as a public module")]
mod doors;

use proptest::prelude::*;

use change::changed;
use tollgate_doors::fuzzing::{Assigned, QuotaClient, heads};

const COMMANDS: &[&str] = &[
    "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\n1\r\n$2\r\n10\r\n*1\r\n$4\r\nPING\r\n",
    "*6\r\n$11\r\ncl.throttle\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\n1\r\n$2\r\n10\r\n$1\r\n0\r\n",
    "*5\r\n$14\r\nTOLLGATE.ALLOW\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\n1\r\n$2\r\n10\r\nCL.THROTTLE a 2 1 10\r\ntollgate.allow a 2 1 10 3\r\n",
    "HELLO 3 AUTH default \"open sesame\" SETNAME a\r\nCLIENT INFO\r\nTG.CHECK user a path /export\r\n",
    "AUTH 'open sesame'\nTG.PEEK ip 192.0.2.7 method POST\nTG.RESET user a rule b\nTG.REPORT x status 200\n",
    "*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$1\r\na\r\n*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n",
    "INFO\r\nCONFIG GET *\r\nCOMMAND\r\nSELECT 0\r\nECHO \"\\x00\\r\\n\"\r\nDEL a b\r\nRESET\r\nGET a\r\n",
    "*3\r\n$8\r\nTG.CHECK\r\n$4\r\nuser\r\n$1\r\na\r\n*0\r\n*-1\r\n\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n",
];

const BODIES: &[&str] = &[
    r#"{"method":"POST","path":"/v1/items?page=2","host":"api.example.com","ip":"192.0.2.7","cost":3}"#,
    r#"{"user":"alice","claims":{"plan":"pro","org":{"id":7}},"headers":{"via":["a","b"]},"body.n":1.5}"#,
    r#"{"checks":[{"user":"a"},{"path":"/export","user":"b"},{"descriptor":{"zone":null}},{}]}"#,
    r#"{"ticket":"0000000000000000000000000000000000000000000000ff","status":401,"headers":{"a":"b"}}"#,
    r#"{"reports":[{"ticket":"t","status":200},{"ticket":"00","status":null}]}"#,
];

const HEADS: &[&str] = &[
    "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
    "POST /v1/peek HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"user\":\"alice\"}POST /v1/check HTTP/1.1\r\n",
    "POST /v1/report HTTP/1.1\nhost: a\ncontent-length: 5\n\nabc\r\n",
    "POST /v1/check HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 0\r\n\r\n12345",
    "\r\nPOST /v1/check HTTP/1.1\r\na: ä\r\nCONTENT-LENGTH:\t1 \r\n\r\n1",
];

const QUESTIONS: &[&str] = &[
    "/nginx?a=b\nx-original-method: POST\nx-original-uri: /login?a=1\nx-original-host: a.com\nhost: b",
    "/nginx/403\nX-Original-Method: GET\nX-Original-URI: /a\nX-Original-Host: a.com\nx-forwarded-for: 192.0.2.7",
    "/caddy\nx-forwarded-method: POST\nx-forwarded-uri: /login\nx-forwarded-host: a.com\nx-original-uri: /b",
    "/traefik\nx-forwarded-method: PUT\nx-forwarded-uri: /\nx-forwarded-uri: /a\nx-forwarded-host: a.com",
    "/haproxy\nx-original-method: POST\nx-original-uri: /ä\nx-original-host: a.com",
    "/envoy/login?a=1\nhost: a.com\nx-forwarded-for: 192.0.2.7\nx-envoy: a",
];

const MESSAGES: &[&str] = &[
    // Two descriptors, the second with a limit and hits of its own.
    "\x0a\x04shop\x12\x08\x0a\x06\x0a\x01k\x12\x01v\x12\x10\x0a\x06\x0a\x01k\x12\x01w\x12\x04\x08\x05\x10\x02\x1a\x00\x18\x02",
    // A request of HTTP.
    "\x0a\x31\x0a\x0f\x0a\x0d\x0a\x0b\x12\x09192.0.2.7\x22\x12\x12\x10\x12\x03GET\x1a\x04\x0a\x01a\x12\x01b\x22\x02/a\x52\x08\x0a\x04user\x12\x00",
    // A check, several of them, and an end.
    "\x12\x02/a\x22\x09192.0.2.7\x2a\x09\x0a\x04user\x12\x01a\x32\x06\x0a\x01a\x12\x01b\x38\x03\x40\x01\x48\x01\x50\x07",
    "\x0a\x0b\x2a\x09\x0a\x04user\x12\x01a\x0a\x09\x12\x07/export\x0a\x02\x40\x01\x0a\x00",
    "\x0a\x07\x0a\x01t\x10\x48\x1a\x00\x0a\x00",
];

const FRAMES: &[&str] = &[
    // A call that is answered at once, and a page.
    "\0\0\x50\x01\x04\0\0\0\x01\0\x07:method\x04POST\0\x05:path\x1b/tollgate.v1.Tollgate/Check\0\x0ccontent-type\x10application/grpc\0\0\x09\0\x01\0\0\0\x01\0\0\0\0\x04\x12\x02/a\0\0\x39\x01\x05\0\0\0\x03\0\x07:method\x03GET\0\x07:scheme\x04http\0\x05:path\x08/healthz\0\x0a:authority\x01a",
    // A ping, more room, a setting and an end.
    "\0\0\x08\x06\0\0\0\0\0a2345678\0\0\x04\x08\0\0\0\0\0\0\0\0\x09\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x07\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

const REPORTS: &[&str] = &[
    // Two buckets of one domain: one whose requests passed, one whose requests did not.
    "\x0a\x04shop\x12\x1b\x0a\x11\x0a\x06\x0a\x01k\x12\x01v\x0a\x07\x0a\x02k2\x12\x01x\x12\x02\x08\x05\x18\x03 \x00\x12\x0c\x0a\x08\x0a\x06\x0a\x01k\x12\x01w \x07",
    // The first report of a bucket, without a domain.
    "\x12\x0e\x0a\x08\x0a\x06\x0a\x01k\x12\x01v\x12\x02\x08\x05",
    // One that has let more pass than its limits allow.
    "\x0a\x04shop\x12\x0e\x0a\x08\x0a\x06\x0a\x01k\x12\x01v\x18\x7f \x7f",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn both_ways_read_the_same_request(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(HEADS),
        ],
    ) {
        doors::http_head(&bytes);
    }

    #[test]
    fn proxies_are_believed_what_they_say_themselves(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(QUESTIONS),
        ],
    ) {
        doors::forward_auth(&bytes);
    }

    #[test]
    fn commands_are_answered_or_refused(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(COMMANDS),
        ],
    ) {
        // Repeated lines make them long; what is sent byte by byte takes its time.
        doors::resp(&bytes[..bytes.len().min(3000)]);
    }

    #[test]
    fn bodies_are_answered_or_refused(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(BODIES),
        ],
    ) {
        doors::check_json(&bytes);
    }

    #[test]
    fn messages_are_answered_or_refused(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(MESSAGES),
        ],
    ) {
        doors::grpc(&bytes);
    }

    #[test]
    fn frames_are_answered_or_refused(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(FRAMES),
        ],
    ) {
        doors::http2(&bytes);
    }

    #[test]
    fn reports_are_answered_or_refused(
        bytes in prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            9 => changed(REPORTS),
        ],
    ) {
        doors::quotas(&bytes);
    }
}

#[test]
fn good_commands_are_answered() {
    COMMANDS.iter().for_each(|commands| doors::resp(commands.as_bytes()));
}

#[test]
fn good_heads_are_read_alike() {
    HEADS.iter().for_each(|head| doors::http_head(head.as_bytes()));
    let plain = HEADS.iter().filter(|head| heads::plain(head.as_bytes()).is_some());
    assert_eq!(plain.count(), 4, "the other two have two lengths");
}

#[test]
fn good_questions_are_understood() {
    QUESTIONS.iter().for_each(|question| doors::forward_auth(question.as_bytes()));
}

#[test]
fn good_messages_are_answered() {
    MESSAGES.iter().for_each(|message| doors::grpc(message.as_bytes()));
}

#[test]
fn good_frames_are_answered() {
    FRAMES.iter().for_each(|frames| doors::http2(frames.as_bytes()));
}

#[test]
fn good_reports_are_answered() {
    for reports in REPORTS {
        doors::quotas(reports.as_bytes());
        let mut envoy = QuotaClient::new("rules: []").unwrap();
        let told = envoy.report(reports.as_bytes()).expect("a message").expect("an answer");
        assert!(!told.is_empty() && told.iter().all(|it| *it == Assigned::AllowAll), "{told:?}");
    }
}

#[test]
fn good_bodies_are_answered() {
    BODIES.iter().for_each(|body| doors::check_json(body.as_bytes()));
}
