//! Asked by a real client.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Server;

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 1/h }]";

/// What curl prints: the body, then the version of HTTP and the status.
fn curl(arguments: &[&str]) -> (Value, String) {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "60", "-w", "\n%{http_version} %{http_code}"]);
    let output = command.args(arguments).output().expect("curl runs");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let (body, line) = text.rsplit_once('\n').expect("curl prints what it was asked for");
    (serde_json::from_str(body).unwrap_or_else(|_| panic!("{text}")), line.to_owned())
}

const ALICE: [&str; 2] = ["-d", r#"{"method":"GET","path":"/","user":"alice"}"#];

#[test]
fn curl_needs_no_flags() {
    let server = Server::start(RULES);
    let url = format!("http://{}/v1/check", server.address("http"));
    let (told, line) = curl(&[&[url.as_str()], &ALICE[..]].concat());
    assert_eq!((&told["allowed"], &*line), (&json!(true), "1.1 200"));
    let (told, line) = curl(&[&[url.as_str()], &ALICE[..]].concat());
    assert_eq!((&told["violated-policies"], &*line), (&json!(["per-user"]), "1.1 429"));
}

#[test]
fn http_2_is_spoken_to_those_who_begin_with_it() {
    let server = Server::start(RULES);
    let url = format!("http://{}/v1/check", server.address("http"));
    for status in ["2 200", "2 429"] {
        let prior = ["--http2-prior-knowledge", url.as_str()];
        let (told, line) = curl(&[&prior[..], &ALICE[..]].concat());
        assert_eq!((told["allowed"].as_bool(), &*line), (Some(status == "2 200"), status));
    }
}

#[test]
fn a_socket_of_this_machine_does_as_well() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("http.sock");
    let address = format!("unix:{}", path.display());
    let _server = Server::with(RULES, &["--http", &address]);
    let socket = ["--unix-socket", path.to_str().unwrap()];
    for (version, status) in [("--http1.1", "1.1 200"), ("--http2-prior-knowledge", "2 429")] {
        let url = [version, "http://tollgate/v1/check"];
        let (_, line) = curl(&[&socket[..], &url[..], &ALICE[..]].concat());
        assert_eq!(line, status);
    }
}

#[test]
fn packed_bodies_are_refused_and_others_are_not() {
    let server = Server::start(RULES);
    let url = format!("http://{}/v1/peek", server.address("http"));
    for (header, status) in [
        ("content-encoding: gzip", "1.1 415"),
        ("content-encoding: identity", "1.1 200"),
        ("content-type: text/plain", "1.1 200"),
        ("transfer-encoding: chunked", "1.1 200"),
        ("expect: 100-continue", "1.1 200"),
    ] {
        let (told, line) = curl(&[&[url.as_str(), "-H", header], &ALICE[..]].concat());
        assert_eq!(line, status, "{header}: {told}");
    }
}
