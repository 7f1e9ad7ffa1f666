//! Who wants to know about single decisions.

use std::fmt;
use std::time::Duration;

use tollgate::Wall;
use tollgate_rules::Version;

/// Is told about some decisions: those that are timed, one in 64, and none of a pipeline.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A decision was made. This is called by the thread that made it, before anybody is answered,
    /// and so must not wait for anything.
    fn decided(&self, decided: &Decided<'_>);
}

/// What can be told about a decision. Keys are not: they may be secrets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decided<'a> {
    /// The name of the door that was asked at.
    pub door: &'static str,
    /// The strictest rule, if any applies.
    pub rule: Option<&'a str>,
    /// Whether the request may pass.
    pub is_allowed: bool,
    /// What the content of the rules is called.
    pub version: Version,
    /// When it was made.
    pub at: Wall,
    /// How long it took, without reading and answering.
    pub took: Duration,
}
