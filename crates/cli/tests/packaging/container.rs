//! The image and the compose file, as far as they can be judged without building them: every file
//! that is copied exists, commands are understood, ports are those of the doors, and what the image
//! would hold runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tollgate_doors::{Address, Config};

use crate::{packaging, root, tollgate};

/// What stands behind an instruction of the Dockerfile.
fn instructions(name: &str) -> Vec<String> {
    let file = packaging("Dockerfile");
    let lines = file.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    lines.map(str::to_owned).collect()
}

/// The last one: what the image has.
fn instruction(name: &str) -> String {
    instructions(name).pop().unwrap_or_else(|| panic!("there is no {name}"))
}

/// The words of an instruction in the form of a list.
fn list(text: &str) -> Vec<String> {
    serde_json::from_str(&text[text.find('[').unwrap()..]).unwrap()
}

/// A folder with the files of this repository that are copied to the image.
fn image() -> TempDir {
    let image = TempDir::new().unwrap();
    for copy in instructions("COPY").iter().filter(|copy| !copy.starts_with("--from=")) {
        let (from, to) = copy.split_once(' ').unwrap();
        let from = root().join(from);
        assert!(from.exists(), "COPY {copy}: there is no such file");
        if let Some(to) = to.strip_prefix('/') {
            let to = image.path().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
    image
}

#[test]
fn what_the_image_holds_serves_and_is_healthy() {
    let image = image();
    let binary = list(&instruction("ENTRYPOINT"));
    assert_eq!(binary, ["/usr/bin/tollgate"]);
    let arguments = list(&instruction("CMD")).into_iter().map(|argument| {
        let inside = argument.strip_prefix('/').map(|path| image.path().join(path));
        inside.map_or(argument, |path| path.to_str().unwrap().to_owned())
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    for door in ["--http", "--forward-auth", "--resp", "--grpc", "--status", "--admin"] {
        command.args([door, "127.0.0.1:0"]);
    }
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let status = lines.find_map(|line| match *line.split_whitespace().collect::<Vec<_>>() {
        ["status", address] => Some(address.to_owned()),
        _ => None,
    });
    let health = list(&instruction("HEALTHCHECK"));
    assert_eq!(health[0], binary[0]);
    let health: Vec<_> = health[1..].iter().map(String::as_str).collect();
    let healthy = tollgate(&[&health[..], &["--server", &status.unwrap()]].concat());
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(healthy, (0, "ready\n".to_owned()));
}

#[test]
fn doors_to_the_outside_are_those_that_are_exposed() {
    let config = Config::parse(&packaging("container.toml")).unwrap();
    config.check().unwrap();
    let inside = [&config.http, &config.forward_auth, &config.resp, &config.grpc];
    let doors = inside.into_iter().chain([&config.status, &config.admin]);
    let outside = doors.filter_map(|door| match door {
        Some(Address::Tcp(address)) if !address.ip().is_loopback() => Some(address.port()),
        _ => None,
    });
    let outside: BTreeSet<_> = outside.collect();
    let ports = |text: &str| text.split(' ').map(|port| port.parse().unwrap()).collect();
    let exposed: BTreeSet<u16> = ports(&instruction("EXPOSE"));
    assert_eq!(outside, exposed);
    // A health check asks where the command looks by itself.
    assert_eq!(config.status, Config::parse("[listen]\nstatus = '0.0.0.0:4298'").unwrap().status);
}

#[test]
fn the_compose_file_builds_this_image_and_opens_its_ports() {
    let file: Value = serde_saphyr::from_str(&packaging("compose.yaml")).unwrap();
    let service = &file["services"]["tollgate"];
    let context = root().join("packaging").join(service["build"]["context"].as_str().unwrap());
    assert!(context.join(service["build"]["dockerfile"].as_str().unwrap()).exists());
    let exposed = instruction("EXPOSE");
    let ports = service["ports"].as_array().unwrap().iter().map(|port| {
        let port = port.as_str().unwrap();
        let [host, outside, inside] = port.split(':').collect::<Vec<_>>()[..] else {
            panic!("{port} is open to everybody")
        };
        assert_eq!((host, outside), ("127.0.0.1", inside), "{port}");
        inside
    });
    assert!(ports.eq(exposed.split(' ')), "{service}");
}

#[test]
fn it_runs_as_nobody_and_is_built_with_the_compiler_that_we_need() {
    assert_eq!(instruction("USER"), "65534:65534");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.unwrap().trim_matches('"');
    assert_eq!(instructions("FROM"), [&format!("rust:{version}-alpine AS build"), "scratch"]);
}
