//! Where, when and how figures were found. A figure without this is a rumour.

use std::env::consts::{ARCH, OS};
use std::fmt;
use std::fs;
use std::process::Command;
use std::thread;

use crate::built::Built;
use crate::stopwatch;

/// The circumstances of a run.
#[derive(Debug, Clone)]
pub(crate) struct Provenance {
    machine: String,
    date: String,
    commit: Option<String>,
    command: String,
    compiler: &'static str,
    quick: bool,
    /// Whether the runner is as fast as it can be.
    release: bool,
    /// What others did on the machine in the minute before the run, in busy cores.
    load: Option<f64>,
}

impl Provenance {
    /// Asks the system about itself, before anything is measured. `arguments` are those the runner
    /// was started with.
    pub(crate) fn gather(
        arguments: impl IntoIterator<Item = String>,
        quick: bool,
        built: &Built,
    ) -> Self {
        let arguments: Vec<String> = arguments.into_iter().map(quoted).collect();
        Self {
            machine: machine(),
            date: stopwatch::today(),
            commit: commit(),
            command: format!(
                "cargo run {} -p tollgate-bench -- {}",
                built.flag(),
                arguments.join(" ")
            ),
            compiler: env!("BENCH_RUSTC"),
            quick,
            release: built.is_release(),
            load: load(),
        }
    }

    /// What a reader must know before believing the figures.
    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.quick {
            caveats.push(QUICK.to_owned());
        }
        if !self.release {
            caveats.push(NO_RELEASE.to_owned());
        }
        if let Some(load) = self.load.filter(|load| *load > BUSY) {
            caveats.push(format!(
                "The machine was busy at the start, with a load of {load:.1}: threads may not \
                 have run side by side, and figures are worse than they should be."
            ));
        }
        caveats
    }

    /// One line for the foot of a picture.
    pub(crate) fn caption(&self) -> String {
        let quick = if self.quick { "; quick run, indicative only" } else { "" };
        format!("{}; {}; {}{quick}", self.machine, self.date, self.compiler)
    }

    /// The circumstances as a Markdown list.
    pub(crate) fn markdown(&self) -> String {
        let mut list = format!("* Machine: {}\n* Date: {}", self.machine, self.date);
        if let Some(commit) = &self.commit {
            list += &format!("\n* Commit: `{commit}`");
        }
        list += &format!("\n* Command: `{}`\n* Compiler: {}\n", self.command, self.compiler);
        for caveat in self.caveats() {
            list += &format!("* {caveat}\n");
        }
        list
    }

    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            machine: "a <fast> machine & more".to_owned(),
            date: "2026-11-15".to_owned(),
            commit: None,
            command: "cargo run".to_owned(),
            compiler: "rustc 1.95.0",
            quick: false,
            release: true,
            load: None,
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}; {}", self.machine, self.date, self.compiler)?;
        self.caveats().into_iter().try_for_each(|caveat| write!(f, "\n{caveat}"))
    }
}

/// An argument as it is typed.
fn quoted(argument: String) -> String {
    if argument.contains(' ') { format!("'{argument}'") } else { argument }
}

/// A load that a benchmark notices.
const BUSY: f64 = 0.5;

const QUICK: &str = "Quick run: fewer keys, fewer and shorter rounds. Its figures are indicative.";

const NO_RELEASE: &str = "Not built with `--release`: its figures say nothing about speed.";

fn machine() -> String {
    let model = proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = proc_value("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(String::new, |kib| format!(", {} GiB", (kib + (1 << 19)) >> 20));
    format!("{model}, {cores} cores{memory}, {ARCH} {OS}")
}

/// The first number of the load averages, which is over one minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The first value of a `name : value` line.
fn proc_value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_mentioned() {
        let busy = Provenance { load: Some(1.7), ..Provenance::example() };
        assert!(busy.to_string().contains("load of 1.7"));
        assert!(busy.markdown().contains("load of 1.7"));
        let idle = Provenance { load: Some(0.1), ..Provenance::example() };
        assert!(!idle.to_string().contains("load"));
    }

    #[test]
    fn a_runner_that_was_built_quickly_says_so() {
        let brief = Provenance { release: false, ..Provenance::example() };
        assert!(brief.to_string().contains("nothing about speed"));
        assert!(brief.markdown().contains("nothing about speed"));
        assert!(!Provenance::example().to_string().contains("nothing about speed"));
    }
}
