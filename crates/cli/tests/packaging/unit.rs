//! The unit of systemd, as systemd itself judges it.

use std::process::Command;

use tempfile::TempDir;

use crate::{packaging, tollgate};

/// Has systemd look at the unit, with the binary of this test in place of the installed one.
fn analyze(arguments: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let unit = packaging("tollgate.service");
    let installed = "/usr/bin/tollgate";
    assert!(unit.contains(installed), "it does not start the installed binary");
    let file = folder.path().join("tollgate.service");
    std::fs::write(&file, unit.replace(installed, env!("CARGO_BIN_EXE_tollgate"))).unwrap();
    let mut command = Command::new("systemd-analyze");
    let ran = command.args(arguments).arg(&file).output().unwrap_or_else(|error| {
        panic!("systemd-analyze cannot be started: {error}; scripts/test.sh installs it")
    });
    let text =
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{text}");
    text
}

#[test]
fn systemd_finds_nothing_wrong() {
    // The manual pages it names are where the package is installed.
    assert_eq!(analyze(&["verify", "--man=no"]), "");
}

#[test]
fn hardly_anything_is_exposed() {
    // In tenths. What is left is what a server needs: sockets, and the network.
    let judged = analyze(&["security", "--no-pager", "--offline=true", "--threshold=15"]);
    assert!(judged.contains("Overall exposure level"), "{judged}");
}

#[test]
fn the_command_is_one_that_we_understand() {
    let unit = packaging("tollgate.service");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/tollgate "));
    let arguments: Vec<_> = command.unwrap().split(' ').collect();
    let [.., "--config", config] = *arguments else { panic!("no configuration: {arguments:?}") };
    let missing = [&arguments[..arguments.len() - 1], &["/nowhere/tollgate.toml"]].concat();
    let (code, said) = tollgate(&missing);
    assert_eq!(code, 2);
    assert!(said.contains("/nowhere/tollgate.toml cannot be read"), "{said}");
    assert_eq!(config, "/etc/tollgate/tollgate.toml", "the package brings that one");
}
