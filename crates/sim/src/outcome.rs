//! What came of a run.

use std::ops::AddAssign;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many requests there were.
    pub requests: u64,
    /// Those of them that waited for the store.
    pub waited: u64,
    /// Tokens that passed.
    pub passed: u64,
    /// Those of them that a node let pass by itself.
    pub local: u64,
    /// Tokens that would have passed if one limiter had seen every request at once; 0 unless the
    /// limit is a bucket.
    pub ideal: u64,
    /// Messages that came to the store, repeated ones included.
    pub exchanges: u64,
    /// Nodes that died.
    pub deaths: u64,
    /// Nodes that stood still for a while.
    pub freezes: u64,
    /// Nodes that were cut off for a while.
    pub cuts: u64,
    /// How often the store started again.
    pub restarts: u64,
    /// How often it had forgotten everything then.
    pub losses: u64,
    /// How often a replica took its place, with what it had heard of.
    pub takeovers: u64,
    /// The most permits that were in use at once beyond those that there are: see
    /// [`Plan::work`](crate::Plan::work).
    pub beyond: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.waited += other.waited;
        self.passed += other.passed;
        self.local += other.local;
        self.ideal += other.ideal;
        self.exchanges += other.exchanges;
        self.deaths += other.deaths;
        self.freezes += other.freezes;
        self.cuts += other.cuts;
        self.restarts += other.restarts;
        self.losses += other.losses;
        self.takeovers += other.takeovers;
        self.beyond = self.beyond.max(other.beyond);
    }
}
