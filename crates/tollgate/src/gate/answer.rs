//! What all the limits of a request say.

use smallvec::SmallVec;
use tollgate_core::Decision;

use crate::gate::charge::{Charge, LimitId};

/// What all the limits of a request say together.
///
/// ```
/// # use tollgate::{Gate, Limit};
/// # let mut builder = Gate::builder();
/// let a = builder.limit("a", Limit::token_bucket("5/min")?);
/// let b = builder.limit("b", Limit::token_bucket("2/min")?);
/// let answer = builder.build()?.check(&[a.charge("alice"), b.charge("alice")]);
/// assert_eq!(answer.limit(), b, "the strictest decides what is reported");
/// let remaining: Vec<u64> = answer.each().iter().map(|each| each.remaining()).collect();
/// assert_eq!(remaining, [4, 1], "and every one can be seen");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "an answer may be a denial"]
pub struct Answer {
    decision: Decision,
    limit: LimitId,
    each: SmallVec<[Decision; 8]>,
}

impl Answer {
    /// Whether the request may pass.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert!(builder.build()?.check(&[a.charge("alice")]).is_allowed());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// The strictest decision.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert_eq!(builder.build()?.check(&[a.charge("alice")]).decision().remaining(), 4);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// The limit that made the strictest decision; the gate's first if the request met none.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert_eq!(builder.build()?.check(&[a.charge("alice")]).limit(), a);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn limit(&self) -> LimitId {
        self.limit
    }

    /// Every decision, in the order of the charges. If the request was denied, those that would
    /// have allowed it say what is left to them, the request having spent nothing.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert_eq!(builder.build()?.check(&[a.charge("alice")]).each().len(), 1);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn each(&self) -> &[Decision] {
        &self.each
    }

    pub(super) fn new(gate: u64, charges: &[Charge<'_>], each: SmallVec<[Decision; 8]>) -> Self {
        let mut strictest = (Decision::unlimited(), LimitId { gate, index: 0 });
        for (index, (charge, decision)) in charges.iter().zip(&each).enumerate() {
            if index == 0 || strictest.0.stricter(*decision) != strictest.0 {
                strictest = (*decision, charge.limit);
            }
        }
        let (decision, limit) = strictest;
        Self { decision, limit, each }
    }
}
