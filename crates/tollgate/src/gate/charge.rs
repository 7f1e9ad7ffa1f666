//! What a request spends.

use tollgate_local::Key;

/// Names a limit of the gate that made it.
///
/// ```
/// use tollgate::{Gate, Limit};
/// let mut builder = Gate::builder();
/// let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
/// assert_eq!(builder.build()?.name(per_user), "per-user");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitId(pub(super) usize);

/// What a request spends from one limit.
///
/// ```
/// use tollgate::{Gate, Limit};
/// let mut builder = Gate::builder();
/// let points = builder.limit("points", Limit::token_bucket("1000/min")?);
/// let gate = builder.build()?;
/// let answer = gate.check(&[points.charge(&"alice").cost(250)]);
/// assert_eq!(answer.decision().remaining(), 750);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Charge<'a> {
    pub(super) limit: LimitId,
    pub(super) key: &'a dyn Key,
    pub(super) cost: u64,
}

impl std::fmt::Debug for Charge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { limit, key, cost } = self;
        let key = key.label();
        f.debug_struct("Charge")
            .field("limit", limit)
            .field("key", &key)
            .field("cost", cost)
            .finish()
    }
}

impl LimitId {
    /// A request of cost 1 for this key.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
    /// let charge = per_user.charge(&"alice");
    /// assert!(format!("{charge:?}").contains("alice"));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn charge<K: Key>(self, key: &K) -> Charge<'_> {
        Charge { limit: self, key, cost: 1 }
    }
}

impl Charge<'_> {
    /// The same at another cost.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
    /// let charge = per_user.charge(&"alice").cost(5);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }
}
