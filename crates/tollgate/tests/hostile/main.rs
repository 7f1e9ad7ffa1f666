//! Bytes that mean harm, on the whole way from a rule file to a decision: the targets that are
//! fuzzed, fed with anything, and with good inputs that somebody changed.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod change;
mod good;
mod reload;
#[path = "../../../../fuzz/src/targets.rs"]
#[allow(unreachable_pub, reason = "the crate that is fuzzed has it as a public module")]
mod targets;

use proptest::prelude::*;

use change::changed;
use tollgate::RuleSet;
use tollgate::rules::{NoFiles, Source};

fn anything() -> impl Strategy<Value = Vec<u8>> {
    let signs = "[ -~\n\t\u{0}\u{e9}\u{1f600}\u{feff}]{0,200}".prop_map(String::into_bytes);
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), signs]
}

/// Bytes, or a change of one of these.
fn hostile(good: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![1 => anything(), 9 => changed(good)]
}

proptest! {
    #[test]
    fn documents_are_read_or_refused(bytes in hostile(good::RULES)) {
        targets::document(&bytes);
    }

    #[test]
    fn rules_decide_or_are_refused(bytes in hostile(good::RULES)) {
        targets::rules(&bytes);
    }

    #[test]
    fn files_are_formatted_or_refused(bytes in hostile(good::RULES)) {
        targets::formatted(&bytes);
    }

    #[test]
    fn conditions_are_evaluated_or_refused(bytes in hostile(good::CONDITIONS)) {
        targets::condition(&bytes);
    }

    #[test]
    fn queries_cost_something_or_are_refused(bytes in hostile(good::QUERIES)) {
        targets::graphql(&bytes);
    }

    #[test]
    fn headers_name_a_client_or_do_not(bytes in hostile(good::HEADERS)) {
        targets::client_ip(&bytes);
    }

    #[test]
    fn files_of_others_become_rules_or_are_refused(bytes in hostile(good::OTHERS)) {
        targets::imported(&bytes);
    }
}

#[test]
fn good_inputs_are_good() {
    for text in good::RULES {
        let loads = |name: &str| RuleSet::read(&Source::new(name, *text), &NoFiles).is_ok();
        assert!(loads("a.yaml") || loads("a.toml"), "{text}");
        targets::rules(text.as_bytes());
        targets::formatted(text.as_bytes());
    }
}
