//! What this door is, for people and programs.

/// All of it. Tests send its examples to a server, and compare what comes back with its schemas.
pub(super) const TEXT: &str = include_str!("openapi.json");
