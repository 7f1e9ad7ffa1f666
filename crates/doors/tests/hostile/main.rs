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

const COMMANDS: &[&str] = &[
    "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\n1\r\n$2\r\n10\r\n*1\r\n$4\r\nPING\r\n",
    "*6\r\n$11\r\ncl.throttle\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\n1\r\n$2\r\n10\r\n$1\r\n0\r\n",
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

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
}

#[test]
fn good_commands_are_answered() {
    COMMANDS.iter().for_each(|commands| doors::resp(commands.as_bytes()));
}

#[test]
fn good_bodies_are_answered() {
    BODIES.iter().for_each(|body| doors::check_json(body.as_bytes()));
}
