//! Fuzz targets of Tollgate. CONTRIBUTING.md says how to run them.

#![forbid(unsafe_code)]

pub mod doors;
pub mod targets;
