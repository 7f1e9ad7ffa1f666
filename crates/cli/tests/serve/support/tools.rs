//! Software that tests use.

use std::path::Path;
use std::process::Command;

/// A command of this name: the one that `scripts/test.sh` has installed, or else that of the machine.
pub(crate) fn tool(name: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_tollgate"));
    let installed = binary.ancestors().nth(2).map(|target| target.join("tools/python/bin"));
    match installed.map(|folder| folder.join(name)).filter(|path| path.exists()) {
        Some(path) => Command::new(path),
        None => Command::new(name),
    }
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
