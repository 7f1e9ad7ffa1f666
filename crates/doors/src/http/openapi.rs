//! What this door is, for people and programs.

/// Where it is.
pub(super) const PATH: &str = "/openapi.json";

/// All of it. Tests send its examples to a server, and compare what comes back with its schemas.
pub(super) const TEXT: &str = include_str!("openapi.json");
