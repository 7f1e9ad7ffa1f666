//! What is counted about quotas, for whoever watches.

use crate::grpc::rlqs::desk::{Action, Told};

/// What is counted about quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Streams that are open.
    pub(crate) streams: usize,
    /// Buckets that they report.
    pub(crate) buckets: usize,
    /// What Envoys were told, in the order of [`KINDS`].
    pub(crate) told: [u64; KINDS.len()],
    /// Shares that ended because nobody reported in time.
    pub(crate) expired: u64,
    /// Streams and reports that were refused.
    pub(crate) refused: u64,
}

impl Counts {
    /// Envoy is told this.
    pub(super) const fn tell(&mut self, action: Action) {
        let kind = match action {
            Action::Assign(Told::Share(_)) | Action::Replace(_) => 0,
            Action::Assign(Told::AllowAll) => 1,
            Action::Assign(Told::DenyAll) => 2,
            Action::Abandon => 3,
            // Nobody is told nothing.
            Action::Assign(Told::Nothing) => return,
        };
        self.told[kind] += 1;
    }
}

/// What Envoy can be told about a bucket.
pub(crate) const KINDS: [&str; 4] = ["share", "allow_all", "deny_all", "abandon"];
