//! One node that shares a counter the usual way.

/// A node that decides by itself, by what it has spent and what it last heard that others have.
///
/// It has a token bucket of its own, of the whole limit. Now and then it tells a counter that all have in
/// common what it has spent since it last did, hears the sum of all, and takes out of its bucket what
/// others have spent. What all spend at the same time is found out afterwards, and paid back: the bucket
/// goes below nothing, and nobody passes until it is above again. So over a long time no more passes
/// than may, and in a short time up to as many bursts as there are nodes.
///
/// Times are in nanoseconds, of whichever clock.
///
/// ```
/// use tollgate_sim::figures::Counting;
/// let (mut one, mut other) = (Counting::new(10.0, 1.0, 0), Counting::new(10.0, 1.0, 0));
/// assert_eq!((0..20).filter(|_| one.admits(0)).count(), 10);
/// assert_eq!((0..20).filter(|_| other.admits(0)).count(), 10, "it has not heard of the other's");
/// let sum = one.tells() + other.tells();
/// one.hears(sum, 0);
/// assert!(!one.admits(10 * 1_000_000_000), "ten are paid back first");
/// assert!(one.admits(11 * 1_000_000_000));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counting {
    burst: f64,
    per_nano: f64,
    /// In tokens, at that time.
    level: f64,
    at: u64,
    /// Spent and not told yet; told and not heard of yet; and the sum of all when it was last heard.
    spent: u64,
    told: u64,
    sum: u64,
}

impl Counting {
    /// A node with a full bucket, which has heard of nothing yet.
    ///
    /// ```
    /// assert!(tollgate_sim::figures::Counting::new(10.0, 1.0, 0).admits(0));
    /// ```
    pub fn new(burst: f64, per_second: f64, now: u64) -> Self {
        let per_nano = per_second / 1e9;
        Self { burst, per_nano, level: burst, at: now, spent: 0, told: 0, sum: 0 }
    }

    /// Whether a request may pass, which is spent then.
    ///
    /// ```
    /// let mut node = tollgate_sim::figures::Counting::new(1.0, 1.0, 0);
    /// assert!(node.admits(0) && !node.admits(0) && node.admits(1_000_000_000));
    /// ```
    pub fn admits(&mut self, now: u64) -> bool {
        self.fill(now);
        let is_enough = self.level >= 1.0;
        if is_enough {
            self.level -= 1.0;
            self.spent += 1;
        }
        is_enough
    }

    /// What was spent since this was last asked: it is to be added to the sum of all, and the node is to
    /// [hear](Self::hears) of that before it is asked again.
    ///
    /// ```
    /// let mut node = tollgate_sim::figures::Counting::new(10.0, 1.0, 0);
    /// node.admits(0);
    /// assert_eq!((node.tells(), node.tells()), (1, 0));
    /// ```
    pub const fn tells(&mut self) -> u64 {
        let spent = std::mem::replace(&mut self.spent, 0);
        self.told += spent;
        spent
    }

    /// The sum of all, with what this node has told.
    ///
    /// ```
    /// let mut node = tollgate_sim::figures::Counting::new(10.0, 1.0, 0);
    /// node.hears(10, 0);
    /// assert!(!node.admits(0), "others have spent everything");
    /// ```
    pub fn hears(&mut self, sum: u64, now: u64) {
        self.fill(now);
        let told = std::mem::replace(&mut self.told, 0);
        self.level -= sum.saturating_sub(self.sum).saturating_sub(told) as f64;
        self.sum = sum;
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at) as f64;
        self.level = (self.level + passed * self.per_nano).min(self.burst);
        self.at = self.at.max(now);
    }
}
