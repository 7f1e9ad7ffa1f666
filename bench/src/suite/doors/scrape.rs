//! What the server says about itself.

use std::io::{Read as _, Write as _};

use super::process::{Server, connect};
use crate::error::BenchError;

/// How long answers took inside the server, so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Inside {
    /// How many took at most so many microseconds.
    buckets: Vec<(f64, f64)>,
}

impl Inside {
    /// Reads the histogram of a door.
    pub(super) fn read(server: &Server, door: &str) -> Result<Self, BenchError> {
        let text = get(server.status, "/metrics")?;
        let start = "tollgate_door_seconds_bucket{";
        let lines = text.lines().filter_map(|line| line.strip_prefix(start));
        let of_door = lines.filter(|line| line.contains(&format!("door=\"{door}\"")));
        let buckets = of_door.filter_map(|line| {
            let (bound, rest) = line.split_once("le=\"")?.1.split_once('"')?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            let count = rest.split_once("} ")?.1.split_whitespace().next()?.parse().ok()?;
            Some((bound * 1e6, count))
        });
        let mut buckets: Vec<(f64, f64)> = buckets.collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        match buckets.is_empty() {
            true => Err(BenchError::Child(format!("no times of the door {door} in:\n{text}"))),
            false => Ok(Self { buckets }),
        }
    }

    /// What came since then.
    pub(super) fn since(&self, then: &Self) -> Self {
        let before = |bound: f64| {
            then.buckets.iter().find(|bucket| bucket.0 == bound).map_or(0.0, |bucket| bucket.1)
        };
        let buckets = self.buckets.iter().map(|(bound, count)| (*bound, count - before(*bound)));
        Self { buckets: buckets.collect() }
    }

    pub(super) fn count(&self) -> f64 {
        self.buckets.last().map_or(0.0, |bucket| bucket.1)
    }

    /// A bound in microseconds within which this share of answers was given: the smallest that is
    /// known.
    pub(super) fn within(&self, share: f64) -> f64 {
        let enough = self.count() * share;
        let bucket = self.buckets.iter().find(|bucket| bucket.1 >= enough);
        bucket.map_or(f64::INFINITY, |bucket| bucket.0)
    }
}

/// A page of the server.
pub(in crate::suite) fn get(port: u16, path: &str) -> Result<String, BenchError> {
    let mut stream = connect(port)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(BenchError::Network)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(BenchError::Network)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(answer),
        false => Err(BenchError::Child(format!("{path}: {answer}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_found_in_the_smallest_bucket_that_has_them() {
        let inside = |counts: [f64; 3]| Inside {
            buckets: [10.0, 50.0, f64::INFINITY].into_iter().zip(counts).collect(),
        };
        let since = inside([150.0, 299.0, 300.0]).since(&inside([100.0, 100.0, 100.0]));
        assert_eq!(since.count(), 200.0);
        assert_eq!(since.within(0.2), 10.0);
        assert_eq!(since.within(0.99), 50.0);
        assert_eq!(since.within(0.999), f64::INFINITY);
    }
}
