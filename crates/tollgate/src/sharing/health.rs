//! How sharing is going.

use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the store is asked, or left alone because it fails.
///
/// ```
/// use tollgate::Health;
/// assert_eq!(Health::default(), Health::Well);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It answers.
    #[default]
    Well,
    /// It does not, or too late: rules do as they say they do then.
    Degraded {
        /// What it was that made it so, in a sentence.
        reason: String,
    },
}

/// Numbers of an engine that shares its limits.
///
/// ```
/// # use tollgate::{Engine, RuleSet};
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
/// assert!(engine.sharing().is_none(), "it has no store");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingStats {
    /// Decisions of shared limits without a question to the store, from what it had lent.
    pub lent: u64,
    /// The same for requests that were denied because the store had nothing a moment ago.
    pub short: u64,
    /// Decisions of the store.
    pub asked: u64,
    /// Decisions by the policy of a rule, because the store failed.
    pub degraded: u64,
    /// Questions to the store, also about what keys had spent of limits that have changed.
    pub exchanges: u64,
    /// Those of them that it did not answer, though it had half of the timeout at least.
    pub failures: u64,
    /// Those that it answered when more than half of the timeout was over. They are heeded, and count
    /// against the store as if it had not answered.
    pub late: u64,
    /// How often the store was left alone because of those.
    pub times_degraded: u64,
    /// Whether it is now.
    pub is_degraded: bool,
    /// How many keys are lent to.
    pub keys: u64,
    /// What was let pass while the store was gone and could not be written down.
    pub unpaid: u64,
}

/// The same, as it is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Apart from what purses have counted.
    pub(super) lent: AtomicU64,
    pub(super) short: AtomicU64,
    pub(super) asked: AtomicU64,
    pub(super) degraded: AtomicU64,
    pub(super) exchanges: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) late: AtomicU64,
    pub(super) times_degraded: AtomicU64,
    pub(super) unpaid: AtomicU64,
}

#[inline]
pub(super) fn add(to: &AtomicU64, count: u64) {
    // A number for people, with which nothing else is published.
    to.fetch_add(count, Ordering::Relaxed);
}

impl Counts {
    pub(super) fn told(&self, keys: usize, is_degraded: bool) -> SharingStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SharingStats {
            lent: of(&self.lent),
            short: of(&self.short),
            asked: of(&self.asked),
            degraded: of(&self.degraded),
            exchanges: of(&self.exchanges),
            failures: of(&self.failures),
            late: of(&self.late),
            times_degraded: of(&self.times_degraded),
            is_degraded,
            keys: keys as u64,
            unpaid: of(&self.unpaid),
        }
    }
}
