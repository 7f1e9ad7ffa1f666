//! Resident memory of a limiter, measured in a process of its own: in a process that has done
//! other things before, the allocator's leftovers would be counted or reused.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use tollgate::rules::{Files, Source};
use tollgate::{Engine, RuleSet};

use crate::error::BenchError;
use crate::keys;
use crate::subject::{Algorithm, Allowance, Governor, Ours, Subject, Throttlecrab};

/// Whose memory is measured.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Limiter {
    Tollgate,
    Governor,
    Throttlecrab,
    /// Not keys, but limits of single keys.
    Overrides,
}

/// What a limiter full of live keys takes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Footprint {
    /// Growth of resident memory from before the limiter was made.
    bytes: u64,
    /// Keys that found no room of their own; only ours has such keys.
    pub(crate) overflowed: u64,
}

impl Footprint {
    pub(crate) fn per_key(&self, keys: usize) -> f64 {
        self.bytes as f64 / keys as f64
    }
}

/// Starts this program again to measure, and reads its answer.
pub(crate) fn in_child(limiter: Limiter, keys: usize) -> Result<Footprint, BenchError> {
    let program = std::env::current_exe().map_err(|error| BenchError::Child(error.to_string()))?;
    let name = limiter.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
    let output = Command::new(program)
        .args(["footprint", &name, &keys.to_string()])
        .output()
        .map_err(|error| BenchError::Child(error.to_string()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(BenchError::Child(words));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures in this process, which should have done nothing before.
pub(crate) fn here(limiter: Limiter, keys: usize) -> Result<Footprint, BenchError> {
    let allowance = Allowance::ample(keys);
    let before = resident_bytes()?;
    let (after, overflowed) = match limiter {
        Limiter::Tollgate => {
            let mut ours = Ours::new(Algorithm::TokenBucket, allowance, keys)?;
            (filled(&mut ours, keys)?, ours.overflowed())
        }
        Limiter::Governor => (filled(&mut Governor::<u64>::new(allowance)?, keys)?, 0),
        Limiter::Throttlecrab => (filled(&mut Throttlecrab::new(allowance, keys), keys)?, 0),
        Limiter::Overrides => {
            let engine = overridden(keys)?;
            let after = resident_bytes()?;
            drop(engine);
            (after, 0)
        }
    };
    Ok(Footprint { bytes: after.saturating_sub(before), overflowed })
}

/// An engine with so many keys that have limits of their own.
fn overridden(keys: usize) -> Result<Engine, BenchError> {
    struct Lines(usize);
    impl Files for Lines {
        fn read(&self, _: &str) -> std::io::Result<String> {
            let line = |index| format!("{},{}M/day\n", keys::text(index), 1 + index % 99);
            Ok((0..self.0).map(line).collect())
        }
    }
    let text = "rules: [{ name: a, key: [user], limit: 1G/day, overrides: overrides.csv }]";
    let source = Source::new("rules.yaml", text);
    let rules = RuleSet::read(&source, &Lines(keys))
        .map_err(|report| BenchError::Rules(report.to_text(&source)))?;
    Ok(Engine::builder(rules).keys(1_000).build()?)
}

/// Resident memory after every key was seen once, while the limiter is still alive.
fn filled<S: Subject<u64>>(subject: &mut S, keys: usize) -> Result<u64, BenchError> {
    for index in 0..keys {
        subject.check(&keys::number(index));
    }
    resident_bytes()
}

/// The rollup is exact. The figures in `statm` and `status` are kept per thread and added up in
/// batches, which at a thousand keys would be most of the result.
fn resident_bytes() -> Result<u64, BenchError> {
    let path = PathBuf::from("/proc/self/smaps_rollup");
    let text = fs::read_to_string(&path)
        .map_err(|source| BenchError::File { path: path.clone(), source })?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    let kib: u64 = kib.ok_or_else(|| BenchError::File {
        path,
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, "no line `Rss: ... kB`"),
    })?;
    Ok(kib * 1024)
}
