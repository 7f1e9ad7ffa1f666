//! Stores that want to know who asks: by a certificate, or by a password of Sentinels.

use std::fs;

use tempfile::NamedTempFile;

use crate::authority::Authority;
use crate::redis::{Redis, Sentinel, free_port, until};
use crate::{Fleet, check};

const RULES: &str = "rules:
  - { name: strict, key: [user], limit: 10/day, consistency: strict, on_store_failure: deny }";

const ALICE: &str = r#"{"path":"/","user":"alice"}"#;

/// A server that lets in nobody whom this authority does not know, and the settings of nodes that it
/// does: in the same folder as the files that they name.
fn start(authority: &Authority) -> (Redis, String) {
    let port = free_port();
    let options = authority.options(port);
    let redis = Redis::start_on(port, &options.iter().map(String::as_str).collect::<Vec<_>>());
    let settings = format!(
        "[store]\nurl = 'rediss://localhost:{port}'\ntimeout = '10s'\n\
         ca = 'ca.pem'\ncert = 'node.pem'\nkey = 'node.key'\n"
    );
    authority.write("tollgate.toml", &settings);
    (redis, authority.path("tollgate.toml"))
}

/// How many of so many requests pass, at one node after the other.
fn passed(fleet: &Fleet, count: usize) -> usize {
    let addresses = fleet.addresses("http");
    (0..count).filter(|at| check(addresses[at % addresses.len()], ALICE) == 200).count()
}

#[test]
fn nodes_share_limits_through_a_store_that_asks_for_their_certificate() {
    let authority = Authority::new();
    authority.sign("node");
    let (_redis, settings) = start(&authority);
    let fleet = Fleet::with(2, RULES, &["--config", &settings, "--threads", "1"]);
    assert_eq!(passed(&fleet, 20), 10);
}

#[test]
fn flags_override_the_certificate_of_the_settings() {
    let authority = Authority::new();
    authority.sign_until("node", 2020);
    authority.sign("flag");
    let (_redis, settings) = start(&authority);
    let (cert, key) = (authority.path("flag.pem"), authority.path("flag.key"));
    let flags = ["--config", &settings, "--store-cert", &cert, "--store-key", &key];
    let fleet = Fleet::with(1, RULES, &flags);
    assert_eq!(passed(&fleet, 20), 10);
}

#[test]
fn a_certificate_that_has_ended_is_said_and_its_successor_is_shown() {
    let authority = Authority::new();
    authority.sign_until("node", 2020);
    let (_redis, settings) = start(&authority);
    let mut fleet = Fleet::with(1, RULES, &["--config", &settings, "--threads", "1"]);
    let said = fleet.nodes[0].process.wait_for_line("does not take this node's certificate");
    assert!(said.contains("its time is over"), "{said}");
    assert_eq!(passed(&fleet, 1), 0);
    authority.write("node.key", "no key");
    let kept = "the store is shown the certificate from before";
    let kept = fleet.nodes[0].process.wait_for_line(kept);
    assert!(kept.contains("node.key cannot be used"), "{kept}");
    authority.sign("node");
    fleet.nodes[0].process.wait_for_line("the certificate for the store was read again");
    until("the store decides", || (passed(&fleet, 1) == 1).then_some(()));
}

#[test]
fn sentinels_are_asked_by_their_own_user_and_no_password_is_shown() {
    let primary = Redis::start(&["--requirepass", "pr1mary"]);
    let port = free_port();
    let users = format!(
        "port {port}\nsentinel auth-pass main pr1mary\nrequirepass s3ntinel\n\
         user asker on >w0rd@x +sentinel|get-master-addr-by-name\n"
    );
    let _sentinel = Sentinel::with(&primary, port, &users);
    let settings = NamedTempFile::new().unwrap();
    let url = format!("redis+sentinel://:pr1mary@127.0.0.1:{port}/main?sentinel=asker:w0rd%40x");
    fs::write(&settings, format!("[store]\nurl = '{url}'\ntimeout = '10s'\n")).unwrap();
    let settings = settings.path().to_str().unwrap();
    let fleet = Fleet::with(2, RULES, &["--config", settings, "--threads", "1"]);
    assert_eq!(passed(&fleet, 20), 10);
    let said = fleet.nodes[0].process.output().join("\n");
    let shown = format!("redis+sentinel://***@127.0.0.1:{port}/main?***");
    assert!(said.contains(&shown), "{said}");
    for word in ["pr1mary", "s3ntinel", "w0rd"] {
        assert!(!said.contains(word), "{said}");
    }
}

#[test]
fn a_store_that_refuses_is_named_and_not_said_to_be_silent() {
    let redis = Redis::start(&["--requirepass", "5ecr3t"]);
    let users =
        ["ACL SETUSER asker on >w0rd ~tg:* +info +select", "ACL SETUSER mute on >w0rd +ping"];
    for user in users {
        let words: Vec<_> = ["-a", "5ecr3t"].into_iter().chain(user.split(' ')).collect();
        assert_eq!(redis.cli(&words), "OK");
    }
    let at = format!("127.0.0.1:{}", redis.port);
    for (user, database, reason) in [
        ("", "", "NOAUTH"),
        (":0ther@", "", "wants other credentials"),
        ("asker:0ther@", "", "wants other credentials"),
        ("asker:w0rd@", "", "NOPERM"),
        ("mute:w0rd@", "", "NOPERM"),
        (":5ecr3t@", "/99", "DB index is out of range"),
    ] {
        let url = format!("redis://{user}{at}{database}");
        let mut fleet = Fleet::start(1, &url, RULES);
        let said = fleet.nodes[0].process.wait_for_line("`tollgate doctor` looks at why");
        let output = fleet.nodes[0].process.output().join("\n");
        assert!(said.contains("the store refuses; "), "{said}");
        assert!(said.contains(reason) && said.contains(&at), "{said}");
        for word in ["5ecr3t", "w0rd", "0ther"] {
            assert!(!output.contains(word), "{output}");
        }
    }
    drop(redis);
    let nobody = format!("redis://:5ecr3t@{at}");
    let mut fleet = Fleet::start(1, &nobody, RULES);
    let said = fleet.nodes[0].process.wait_for_line("`tollgate doctor` looks at why");
    assert!(said.contains("the store does not answer; ") && said.contains(&at), "{said}");
}
