//! What is counted about decisions and doors.

use tollgate::Ruling;

use crate::door::Name;
use crate::service::Service;

/// What is counted about decisions and doors.
#[derive(Debug, Default)]
pub(crate) struct Metrics {}

impl Metrics {
    pub(crate) fn decided(&self, _: Name, _: &Ruling) {}

    pub(crate) fn rules_refused(&self) {}

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, _: &Service) -> String {
        String::new()
    }
}
