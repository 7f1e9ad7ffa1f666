//! A Redis of our own.

use std::process::Command;

use crate::error::BenchError;
use crate::suite::doors::peers::debian;
use crate::suite::doors::process::{Server, free_port};

/// Starts a Redis on a free port, with nothing on disk. It ends when it is dropped.
pub(super) fn start() -> Result<Server, BenchError> {
    let port = free_port()?;
    let mut command = Command::new(debian("redis-server", "redis-server")?);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
    Server::start(command.arg(port.to_string()), port, 0)
}

pub(super) fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}
