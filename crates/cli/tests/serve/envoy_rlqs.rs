//! Envoy's rate limit quotas, as the document sets them up.

use std::fs;

use crate::support::{Client, Gateway, Proxy, exchange, files, until};

const ENVOY: [&str; 4] = ["envoy", "-c", "envoy.yaml", "--use-dynamic-base-id"];

fn rules() -> String {
    let files = files("envoy-rlqs.md");
    let (_, rules) = files.iter().find(|(name, _)| name == "rules.yaml").unwrap();
    assert!(rules.contains(LIMIT), "{rules}");
    // Nothing comes back while a test runs.
    rules.replace(LIMIT, "3/h")
}

const LIMIT: &str = "100/s burst 200";

fn start(edit: impl Fn(String) -> String) -> Gateway {
    Gateway::serving(&rules(), "envoy-rlqs.md", &ENVOY, edit)
}

/// Nobody passes before Envoy knows how many may.
fn strict(text: String) -> String {
    text.replace("blanket_rule: ALLOW_ALL", "blanket_rule: DENY_ALL")
}

fn passes(client: &Client, tenant: &str) -> bool {
    let answer = client.get("/page", &[("x-tenant", tenant)]);
    assert!([200, 429].contains(&answer.status), "{answer:?}");
    answer.status == 200
}

/// Waits until so many have passed, and makes sure that no more do.
fn assert_pass(client: &Client, tenant: &str, many: usize) {
    let mut passed = 0;
    until(&format!("{many} of {tenant} pass"), || {
        passed += usize::from(passes(client, tenant));
        (passed == many).then_some(())
    });
    assert!((0..5).all(|_| !passes(client, tenant)), "more than {many} of {tenant} pass");
}

#[test]
fn envoy_lets_as_many_pass_as_it_was_assigned() {
    let mut gateway = start(strict);
    let client = gateway.client(2);
    assert!(!passes(&client, "a"), "there is no assignment yet");
    assert_pass(&client, "a", 3);
    assert_pass(&client, "b", 3);
    assert_eq!(client.get("/page", &[]).status, 200, "that is in no bucket");
    gateway.server.process.signal("KILL");
    gateway.server.process.wait();
    assert!((0..5).all(|_| !passes(&client, "a")), "Envoy needs nobody to deny");
}

#[test]
fn what_passes_before_the_first_assignment_is_taken_off_it() {
    let gateway = start(|text| text);
    let client = gateway.client(2);
    assert!(passes(&client, "a"), "it is the first");
    until("Envoy is told of the limit", || (!passes(&client, "a")).then_some(()));
    assert!((0..5).all(|_| !passes(&client, "a")));
}

#[test]
fn other_rules_reach_envoy() {
    let gateway = start(strict);
    let client = gateway.client(2);
    assert_pass(&client, "a", 3);
    fs::write(gateway.server.rules(), rules().replace("3/h", "8/h")).unwrap();
    assert_pass(&client, "a", 5);
    fs::write(gateway.server.rules(), rules().replace("3/h", "unlimited")).unwrap();
    until("the limit is gone", || (0..5).all(|_| passes(&client, "a")).then_some(()));
}

#[test]
fn what_envoy_lets_pass_is_spent_at_all_doors() {
    let gateway = start(strict);
    assert_pass(&gateway.client(2), "a", 3);
    let request = r#"{"domain":"shop","descriptor_keys":"service/tenant","descriptor.tenant":"a"}"#;
    let http = gateway.server.address("http");
    let look = || exchange(http, "POST", "/v1/peek", &[], request).0;
    until("it is reported", || (look() == 429).then_some(()));
}

/// Both are real, and neither knows of the other: each has a part of what both may let pass.
#[test]
fn two_envoys_share_one_quota() {
    let rules = rules().replace("3/h", &format!("{SHARED}/h"));
    let one = Gateway::serving(&rules, "envoy-rlqs.md", &ENVOY, strict);
    let server = &one.server;
    let other = Proxy::start(server, "envoy-rlqs.md", &ENVOY, strict);
    let clients = [one.client(2), other.client(2)];
    let mut passed = [0, 0];
    let mut ask = |which: usize| {
        let passes = passes(&clients[which], "a");
        passed[which] += usize::from(passes);
        passes.then_some(())
    };
    until("the first lets somebody pass", || ask(0));
    // It has everything, and gives a part of it back when there is another.
    until("the second lets somebody pass", || ask(1));
    for which in [0, 1] {
        until("its part is used up", || ask(which).is_none().then_some(()));
    }
    // They report, and are told what they may do, while others keep coming. Envoy takes a second to
    // end a connection of somebody whom it has denied.
    (0..6).for_each(|_| [0, 1].into_iter().for_each(|which| _ = ask(which)));
    // What may be lent for a change is one, and nothing comes back while a test runs.
    assert!(passed[0] + passed[1] <= SHARED + 1, "{passed:?} are more than {SHARED}");
    assert!(passed.iter().all(|part| *part >= SHARED / 8), "{passed:?} is not shared");

    let sample = |name: &str| server.metric(&format!("tollgate_quota_{name}")).unwrap();
    assert_eq!((sample("streams"), sample("buckets")), (2.0, 2.0));
    let shares = sample("assignments_total{kind=\"share\"}");
    assert!(shares >= 3.0, "{shares}: one had everything, then each a part");
    assert_eq!(sample("refused_total"), 0.0);
    drop(other);
    until("one of them is gone", || (sample("streams") == 1.0).then_some(()));
    assert_eq!(sample("buckets"), 1.0);
}

/// So many may pass at once, of both together.
const SHARED: usize = 40;
