//! Envoy as the document sets it up, over HTTP and over gRPC.

use crate::support::Gateway;

fn start(file: &str) -> Gateway {
    Gateway::start("envoy.md", &["envoy", "-c", file, "--use-dynamic-base-id"])
}

#[test]
fn limits_clients() {
    start("envoy.yaml").limits_clients(true);
}

#[test]
fn knows_what_is_asked_for() {
    start("envoy.yaml").knows_what_is_asked_for();
}

#[test]
fn limits_clients_over_grpc() {
    start("envoy-grpc.yaml").limits_clients(true);
}

#[test]
fn knows_what_is_asked_for_over_grpc() {
    start("envoy-grpc.yaml").knows_what_is_asked_for();
}
