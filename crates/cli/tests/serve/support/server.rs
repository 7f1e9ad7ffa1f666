//! The server under test.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Process, until};

/// `tollgate serve`, on ports that were free.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) folder: TempDir,
}

impl Server {
    /// Serves these rules.
    pub(crate) fn start(rules: &str) -> Self {
        Self::with(rules, &[])
    }

    /// Serves these rules, with more flags.
    pub(crate) fn with(rules: &str, flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let file = folder.path().join("rules.yaml");
        fs::write(&file, rules).expect("it can be written to");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.arg("serve").arg("--rules").arg(&file).env("NO_COLOR", "1");
        for door in DOORS {
            // A flag of the test wins.
            if !flags.contains(&door) {
                command.args([door, "127.0.0.1:0"]);
            }
        }
        let mut process = Process::start(command.args(flags));
        process.wait_for_line("serving");
        Self { process, folder }
    }

    /// The rule file that is served, and watched.
    pub(crate) fn rules(&self) -> PathBuf {
        self.folder.path().join("rules.yaml")
    }

    /// Where a door listens: `http`, `forward_auth`, `resp`, `grpc`, `status`, `admin`.
    pub(crate) fn address(&self, door: &str) -> SocketAddr {
        until(&format!("it says where `{door}` is"), || {
            let lines = self.process.output();
            lines.iter().find_map(|line| match *line.split_whitespace().collect::<Vec<_>>() {
                [name, address] | [name, address, "(TLS)"] if name == door => address.parse().ok(),
                _ => None,
            })
        })
    }
}

const DOORS: [&str; 6] = ["--http", "--forward-auth", "--resp", "--grpc", "--status", "--admin"];
