//! HAProxy as the document sets it up.

use crate::support::Gateway;

fn start() -> Gateway {
    Gateway::start("haproxy.md", &["haproxy", "-db", "-f", "haproxy.cfg"])
}

#[test]
fn limits_clients() {
    start().limits_clients(true);
}

#[test]
fn knows_what_is_asked_for() {
    start().knows_what_is_asked_for();
}
