//! Traefik as the document sets it up.

use crate::support::Gateway;

fn start() -> Gateway {
    Gateway::start("traefik.md", &["traefik", "--configFile=traefik.yaml"])
}

#[test]
fn limits_clients() {
    start().limits_clients(false);
}

#[test]
fn knows_what_is_asked_for() {
    start().knows_what_is_asked_for();
}
