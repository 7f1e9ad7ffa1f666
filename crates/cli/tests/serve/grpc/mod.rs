//! The gRPC door, with real clients and with bad ones.

mod client;
mod connection;
mod deadlines;
mod hostile;
mod life;
mod mixed;

use std::path::Path;

use crate::support::{Server, exchange, python, tool};

const RULES: &str = "rules:
  - { name: per-user, match: { path: /v1/** }, key: [user], limit: 2/h }
  - { name: slots, match: { path: /export }, key: [], concurrent: 1 }
  - { name: keys, match: { domain: shop }, key: [descriptor.k], limit: 1/h }
";

/// Where the published files are.
fn protos() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto");
    folder.canonicalize().unwrap().display().to_string()
}

#[test]
fn the_grpc_of_google_understands_the_published_files() {
    let server = Server::start(RULES);
    let told = python("grpc_speaks.py", &[&protos(), &server.address("grpc").to_string()]);
    assert!(told.contains("all is well"), "{told}");
}

#[test]
fn the_example_of_the_document_runs() {
    let text = include_str!("../../../../../docs/doors/grpc.md");
    let (_, script) = text.split_once("```python check.py\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let server = Server::start(RULES);
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("check.py"), script).unwrap();
    let run = |arguments: &[&str]| {
        let ran = tool("python3").args(arguments).current_dir(&folder).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let protos = format!("-I{}", protos());
    let here = ["--python_out=.", "--grpc_python_out=.", "tollgate/v1/tollgate.proto"];
    run(&[&["-m", "grpc_tools.protoc", &*protos], &here[..]].concat());
    let address = server.address("grpc").to_string();
    let said = [(); 3].map(|()| run(&["check.py", &address]));
    assert_eq!([&*said[0], &*said[1]], ["", ""]);
    assert!(said[2].starts_with("per-user: come again in "), "{said:?}");
}

#[test]
fn json_is_answered_on_the_same_port() {
    let server = Server::start(RULES);
    let body = r#"{"domain":"shop","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
    let post = |path, body| exchange(server.address("grpc"), "POST", path, &[], body);
    assert_eq!(post("/json", body).0, 200);
    let (status, answer) = post("/json", body);
    assert!(status == 429 && answer.contains("\"overallCode\":\"OVER_LIMIT\""), "{answer}");
    assert_eq!(post("/json", "{").0, 400);
    assert_eq!(exchange(server.address("grpc"), "GET", "/json", &[], "").0, 405);
    assert_eq!(exchange(server.address("grpc"), "GET", "/readyz", &[], "").0, 200);
    assert_eq!(exchange(server.address("grpc"), "GET", "/", &[], "").0, 404);
    assert_eq!(post("/tollgate.v1.Tollgate/Check", "").0, 415, "that is no gRPC");
}
