//! Software that tests use.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of this name: the one that `scripts/test.sh` has installed, or else that of the machine.
pub(crate) fn tool(name: &str) -> Command {
    let mut command = match installed(&format!("python/bin/{name}")) {
        Some(path) => Command::new(path),
        None => Command::new(name),
    };
    if let Some(modules) = installed("node/node_modules") {
        command.env("NODE_PATH", modules);
    }
    command
}

/// What `scripts/test.sh` has installed there.
fn installed(path: &str) -> Option<PathBuf> {
    let binary = Path::new(env!("CARGO_BIN_EXE_tollgate"));
    let path = binary.ancestors().nth(2)?.join("tools").join(path);
    path.exists().then_some(path)
}

/// Runs a script of this folder with Python, which must end well, and returns what it wrote.
pub(crate) fn python(script: &str, arguments: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/scripts");
    let ran = tool("python3").arg(folder.join(script)).args(arguments).output();
    let ran = ran.unwrap_or_else(|error| panic!("python3 cannot be started: {error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{script} failed:\n{out}\n{err}");
    out.into_owned()
}
