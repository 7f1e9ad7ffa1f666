//! Spending in two steps: first see what a decision would be, then make it, if nothing has changed
//! in between. Whoever asks several limits decides once for each, and spends from all or none.

use tollgate_core::{Decision, Tick, Word};

use crate::counter::Counter;
use crate::key::{KeyHash, Salted};
use crate::loan;
use crate::table::Own;

/// A decision that is ready to be made: see [`Counters::prepare`](crate::Counters::prepare).
///
/// ```
/// # use std::sync::Arc;
/// # use tollgate_core::{Anchor, Limit, Tick};
/// # use tollgate_local::{Counters, Key, Seed, Table};
/// # let (seed, now) = (Seed::random(), Tick::ZERO);
/// # let table = Arc::new(Table::with_keys(1000)?);
/// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
/// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
/// let bob = "bob".hash(&seed);
/// assert!(counters.check_at(bob, 1, now).is_allowed());
/// let prepared = counters.prepare(bob, 1, now).expect("he has a state now");
/// assert!(counters.check_at(bob, 1, now).is_allowed());
/// assert!(!prepared.commit(), "somebody was faster");
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
#[derive(Clone, Copy)]
#[must_use = "nothing is spent until it is committed"]
pub struct Prepared<'a> {
    own: Own<'a>,
    after: Word,
    decision: Decision,
}

impl Prepared<'_> {
    /// The decision.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let (seed, now) = (Seed::random(), Tick::ZERO);
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// # let bob = "bob".hash(&seed);
    /// # assert!(counters.check_at(bob, 1, now).is_allowed());
    /// let prepared = counters.prepare(bob, 1, now).expect("he has a state");
    /// assert_eq!(prepared.decision().remaining(), 3);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline(always)]
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// Makes the decision. `false`, and nothing is spent, if the key's state is another one by now.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let (seed, now) = (Seed::random(), Tick::ZERO);
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// # let bob = "bob".hash(&seed);
    /// # assert!(counters.check_at(bob, 1, now).is_allowed());
    /// let prepared = counters.prepare(bob, 1, now).expect("he has a state");
    /// assert!(prepared.commit());
    /// assert_eq!(counters.peek(bob, 0, now).remaining(), 3);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline(always)]
    pub fn commit(&self) -> bool {
        self.after == self.own.word || self.own.replace(self.after).is_ok()
    }
}

impl Counter {
    /// What would be decided about a key that has a state here. `None` if it has none, or if this
    /// thread may hold something of it: then the decision is made in another way.
    #[inline]
    pub(crate) fn prepare(&self, key: KeyHash, cost: u64, now: Tick) -> Option<Prepared<'_>> {
        let key = Salted::new(key, self.salt);
        if loan::may_hold(key.hash) {
            return None;
        }
        let place = self.table.place(key.hash);
        let own = place.first().look(place.tag).or_else(|| place.second().look(place.tag))?;
        if let Some(ask) = self.usual.at(now, cost) {
            let after = ask.spend(own.word);
            let decision = after.map_or_else(|| ask.denied(own.word), |after| ask.allowed(after));
            return Some(Prepared { own, after: after.unwrap_or(own.word), decision });
        }
        let step = self.spend(key, cost, now).step(own.word);
        Some(Prepared { own, after: step.word, decision: step.decision })
    }
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prepared").field(&self.decision).finish()
    }
}
