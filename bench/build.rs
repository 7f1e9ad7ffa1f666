//! Notes the compiler that builds the runner, so that every figure can name it.

use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "Cargo tells build scripts the compiler this way")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    println!("cargo::rustc-env=BENCH_RUSTC={}", version.trim());
}
