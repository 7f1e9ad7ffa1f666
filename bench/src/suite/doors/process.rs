//! Servers that are measured, started on free ports and ended with their row.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::peers::Programs;
use crate::error::BenchError;
use crate::stopwatch::Stopwatch;

/// A server that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Where it is asked.
    pub(crate) port: u16,
    /// Where its metrics are, if it is ours.
    pub(crate) status: u16,
}

impl Server {
    /// Ours, with one of its doors on `port`.
    pub(crate) fn tollgate(programs: &Programs, door: &str) -> Result<Self, BenchError> {
        Self::tollgate_with(programs, door, RULES)
    }

    /// The same with other rules.
    pub(crate) fn tollgate_with(
        programs: &Programs,
        door: &str,
        text: &str,
    ) -> Result<Self, BenchError> {
        Self::node(&programs.tollgate, door, text, &[])
    }

    /// The same with more flags, for whoever needs no other program.
    pub(crate) fn node(
        tollgate: &Path,
        door: &str,
        text: &str,
        flags: &[&str],
    ) -> Result<Self, BenchError> {
        let (port, status) = (free_port()?, free_port()?);
        let rules = std::env::temp_dir().join(format!("tollgate-bench-{port}.yaml"));
        let written = std::fs::write(&rules, text);
        written.map_err(|source| BenchError::File { path: rules.clone(), source })?;
        let mut command = Command::new(tollgate);
        command.arg("serve").arg("--rules").arg(&rules).args(flags);
        for other in ["--http", "--resp", "--grpc", "--forward-auth", "--admin"] {
            match other == door {
                true => command.arg(other).arg(format!("127.0.0.1:{port}")),
                false => command.args([other, "off"]),
            };
        }
        command.arg("--status").arg(format!("127.0.0.1:{status}"));
        let started = Self::start(&mut command, port, status);
        let _ = std::fs::remove_file(&rules);
        started
    }

    pub(crate) fn redis(programs: &Programs) -> Result<Self, BenchError> {
        let port = free_port()?;
        let mut command = Command::new(&programs.redis);
        command.args(["--save", "", "--appendonly", "no", "--port"]).arg(port.to_string());
        Self::start(&mut command, port, 0)
    }

    pub(crate) fn throttlecrab(programs: &Programs) -> Result<Self, BenchError> {
        let port = free_port()?;
        let mut command = Command::new(&programs.throttlecrab);
        command.args(["--http", "--http-host", "127.0.0.1", "--http-port"]).arg(port.to_string());
        command.args(["--log-level", "error"]);
        Self::start(&mut command, port, 0)
    }

    pub(crate) fn throttlecrab_grpc(programs: &Programs) -> Result<Self, BenchError> {
        let port = free_port()?;
        let mut command = Command::new(&programs.throttlecrab);
        command.args(["--grpc", "--grpc-host", "127.0.0.1", "--grpc-port"]).arg(port.to_string());
        command.args(["--log-level", "error"]);
        Self::start(&mut command, port, 0)
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn start(command: &mut Command, port: u16, status: u16) -> Result<Self, BenchError> {
        let name = Path::new(command.get_program()).display().to_string();
        let failed = |why: String| BenchError::Program { name: name.clone(), why };
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = silent.spawn().map_err(|error| failed(error.to_string()))?;
        let mut server = Self { child, port, status };
        let begin = Stopwatch::start();
        let ports = [port, status];
        while !ports.iter().all(|port| *port == 0 || is_answered(*port)) {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(failed(format!("it ended: {status}")));
            }
            if begin.elapsed() > DEADLINE {
                return Err(failed("it does not listen".to_owned()));
            }
            pause();
        }
        Ok(server)
    }

    /// What it has had of the processors since it was started, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64, BenchError> {
        cpu_of(&self.child.id().to_string())
    }

    /// Its resident memory, in bytes.
    pub(crate) fn resident(&self) -> Result<f64, BenchError> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path)
            .map_err(|source| BenchError::File { path: path.clone().into(), source })?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        let missing = || BenchError::Child(format!("{path} does not say VmRSS"));
        Ok(kilobytes.ok_or_else(missing)? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has had of the processors, in seconds: "self", or a number.
pub(crate) fn cpu_of(process: &str) -> Result<f64, BenchError> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path)
        .map_err(|source| BenchError::File { path: path.clone().into(), source })?;
    // After the name, which is in brackets and may contain anything; ticks are hundredths.
    let numbers = text.rsplit(") ").next().unwrap_or_default();
    let ticks = |place: usize| numbers.split(' ').nth(place)?.parse::<f64>().ok();
    let missing = || BenchError::Child(format!("{path} does not say its times"));
    Ok((ticks(11).ok_or_else(missing)? + ticks(12).ok_or_else(missing)?) / 100.0)
}

/// A connection to a server of this machine.
pub(crate) fn connect(port: u16) -> Result<TcpStream, BenchError> {
    TcpStream::connect(address(port)).map_err(BenchError::Network)
}

/// Whether somebody listens there. A connection to a port without a listener may get that very port,
/// and is then answered by itself.
fn is_answered(port: u16) -> bool {
    connect(port).is_ok_and(|stream| stream.local_addr().is_ok_and(|here| here != address(port)))
}

pub(crate) fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> Result<u16, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(BenchError::Network)?;
    Ok(listener.local_addr().map_err(BenchError::Network)?.port())
}

/// A moment, before the next look.
#[expect(clippy::disallowed_methods, reason = "nothing says when another process is ready")]
pub(crate) fn pause() {
    thread::sleep(Duration::from_millis(1));
}

const DEADLINE: Duration = Duration::from_secs(30);

/// As many as the other limiter allows to each key.
const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 1000/min, burst: 100 }]";
