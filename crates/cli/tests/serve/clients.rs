//! Client libraries that read what is said about limits.

use crate::support::{Server, python};

#[test]
fn urllib3_waits_as_told_and_is_let_in() {
    let server = Server::start("rules: [{ name: all, key: [], limit: 1/2s }]");
    let url = format!("http://{}/nginx", server.address("forward_auth"));
    python("urllib3_waits.py", &[&url]);
}

#[test]
fn http_sfv_reads_what_is_said_about_limits() {
    let server = Server::start(
        "rules:
  - { name: burst, key: [], limit: 1/h }
  - { name: daily, key: [], limit: 1000/day }
  - { name: slots, key: [], concurrent: 5 }",
    );
    let url = format!("http://{}/nginx", server.address("forward_auth"));
    python("http_sfv_reads.py", &[&url]);
}
