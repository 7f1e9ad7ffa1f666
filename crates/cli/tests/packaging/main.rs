//! What the packages bring beside the binary: settings, the unit of systemd, and the container.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod container;
mod settings;
mod unit;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file under `packaging`.
fn packaging(name: &str) -> String {
    let path = root().join("packaging").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the binary says to these arguments, and the code with which it ends.
fn tollgate(arguments: &[&str]) -> (i32, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout) + &text(ran.stderr))
}
