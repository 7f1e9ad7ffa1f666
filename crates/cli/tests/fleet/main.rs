//! Several `tollgate serve` that share their limits through real Redis servers.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod access;
#[path = "../../../store/tests/support/authority.rs"]
mod authority;
mod batches;
mod change;
#[path = "../serve/resp/client.rs"]
#[allow(dead_code, reason = "this test program uses a part of it")]
mod client;
mod doctor;
mod faults;
mod load;
mod log;
mod lookalikes;
mod losses;
mod operators;
mod overload;
mod recovery;
#[path = "../../../store/tests/support/process.rs"]
mod redis;
mod refusals;
#[path = "../../../store/tests/support/relay.rs"]
mod relay;
mod slots;
mod slow;
mod stalls;
mod steady;
mod strict;
#[path = "../serve/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "this test program uses a part of it")]
mod support;
mod turns;
mod windows;

use std::fs;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::support::{Server, until};

/// Nodes with the same rules and the same store.
struct Fleet {
    nodes: Vec<Server>,
    /// Others would take the processors from it, and figures with them.
    _alone: MutexGuard<'static, ()>,
}

impl Fleet {
    fn start(count: usize, store: &str, rules: &str) -> Self {
        Self::with(count, rules, &["--store", store, "--threads", "1"])
    }

    /// The same with nodes that wait for the store for as long as it takes: on a busy machine it would
    /// be taken for one that is gone, and each node would let its own share pass.
    fn patient(threads: &str, count: usize, store: &str, rules: &str) -> Self {
        Self::waiting("10s", threads, count, store, rules)
    }

    /// The same with nodes that wait for the store for so long.
    fn waiting(timeout: &str, threads: &str, count: usize, store: &str, rules: &str) -> Self {
        let config = NamedTempFile::new().unwrap();
        fs::write(&config, format!("[store]\nurl = '{store}'\ntimeout = '{timeout}'\n")).unwrap();
        let config = config.path().to_str().unwrap();
        Self::with(count, rules, &["--config", config, "--threads", threads])
    }

    fn with(count: usize, rules: &str, flags: &[&str]) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let log = ["--log-level", "info,tollgate_doors::denials=error"];
        let flags = [flags, &log].concat();
        let nodes = (0..count).map(|_| Server::with(rules, &flags)).collect();
        Self { nodes, _alone: alone }
    }

    fn addresses(&self, door: &str) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address(door)).collect()
    }

    /// What a node counts under a name of its metrics.
    fn metric(&self, node: usize, name: &str) -> f64 {
        self.nodes[node].metric(name).unwrap_or(f64::NAN)
    }
}

#[expect(clippy::disallowed_methods, reason = "tests of real processes run in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Lets a load go on for a while.
fn pass(time: Duration) {
    let begin = now();
    until("time passes", || (now() - begin >= time).then_some(()));
}

/// The status of the answer to a question in JSON.
fn check(address: SocketAddr, body: &str) -> u16 {
    support::exchange(address, "POST", "/v1/check", &[], body).0
}
