//! What a request spends.

use tollgate_local::{Key, KeyHash, Seed};

/// Names a limit of the gate whose builder made it. Any other gate panics when it is given one.
///
/// ```
/// use tollgate::{Gate, Limit};
/// let mut builder = Gate::builder();
/// let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
/// assert_eq!(builder.build()?.name(per_user), "per-user");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitId {
    pub(super) gate: u64,
    pub(super) index: usize,
}

/// What a request spends from one limit.
///
/// ```
/// use tollgate::{Gate, Limit};
/// let mut builder = Gate::builder();
/// let points = builder.limit("points", Limit::token_bucket("1000/min")?);
/// let gate = builder.build()?;
/// let answer = gate.check(&[points.charge("alice").cost(250)]);
/// assert_eq!(answer.decision().remaining(), 750);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a charge spends nothing until a gate checks it"]
pub struct Charge<'a> {
    pub(super) limit: LimitId,
    pub(super) key: KeyRef<'a>,
    pub(super) cost: u64,
}

impl LimitId {
    /// A request of cost 1 for this key: a reference to any [`Key`], to a `str`, or to bytes.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
    /// let charge = per_user.charge("alice");
    /// assert!(format!("{charge:?}").contains("alice"));
    /// let others = [per_user.charge(&7u64), per_user.charge(&("alice", 7u64))];
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn charge<'a>(self, key: impl Into<KeyRef<'a>>) -> Charge<'a> {
        Charge { limit: self, key: key.into(), cost: 1 }
    }
}

impl Charge<'_> {
    /// The same at another cost.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
    /// let charge = per_user.charge("alice").cost(5);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }
}

/// A key that a [`Charge`] borrows. Keys of all types stand side by side in one request, and a
/// `str` or a slice of bytes is taken as it is.
///
/// ```
/// use tollgate::{Key, KeyRef, Seed};
/// let (seed, name) = (Seed::random(), String::from("alice"));
/// let keys: [KeyRef<'_>; 3] = ["alice".into(), (&name).into(), b"alice".as_slice().into()];
/// assert!(keys.iter().all(|key| key.hash(&seed) == "alice".hash(&seed)));
/// ```
#[derive(Clone, Copy)]
pub struct KeyRef<'a>(Borrowed<'a>);

#[derive(Clone, Copy)]
enum Borrowed<'a> {
    Key(&'a dyn Key),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a, K: Key> From<&'a K> for KeyRef<'a> {
    fn from(key: &'a K) -> Self {
        Self(Borrowed::Key(key))
    }
}

impl<'a> From<&'a dyn Key> for KeyRef<'a> {
    fn from(key: &'a dyn Key) -> Self {
        Self(Borrowed::Key(key))
    }
}

impl<'a> From<&'a str> for KeyRef<'a> {
    fn from(key: &'a str) -> Self {
        Self(Borrowed::Text(key))
    }
}

impl<'a> From<&'a [u8]> for KeyRef<'a> {
    fn from(key: &'a [u8]) -> Self {
        Self(Borrowed::Bytes(key))
    }
}

impl Key for KeyRef<'_> {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        match self.0 {
            Borrowed::Key(key) => key.hash(seed),
            Borrowed::Text(key) => key.hash(seed),
            Borrowed::Bytes(key) => key.hash(seed),
        }
    }

    fn label(&self) -> String {
        match self.0 {
            Borrowed::Key(key) => key.label(),
            Borrowed::Text(key) => key.label(),
            Borrowed::Bytes(key) => key.label(),
        }
    }
}

impl std::fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.label())
    }
}
