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
/// let (decision, prepared) = counters.prepare(bob, 1, now).expect("he has a state now");
/// assert_eq!(decision.remaining(), 3);
/// assert!(counters.check_at(bob, 1, now).is_allowed());
/// assert!(!prepared.commit(), "somebody was faster");
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
#[derive(Clone, Copy)]
#[must_use = "nothing is spent until it is committed"]
pub struct Prepared<'a> {
    own: Own<'a>,
    after: Word,
}

impl Prepared<'_> {
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
    /// let (_, prepared) = counters.prepare(bob, 1, now).expect("he has a state");
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
    #[inline(always)]
    pub(crate) fn prepare(
        &self,
        key: KeyHash,
        cost: u64,
        now: Tick,
    ) -> Option<(Decision, Prepared<'_>)> {
        let key = Salted::new(key, self.salt);
        if loan::may_hold(key.hash) {
            return None;
        }
        let place = self.table.place(key.hash);
        let own = place.first().look(place.tag).or_else(|| place.second().look(place.tag))?;
        if let Some(ask) = self.usual.at(now, cost) {
            return Some(match ask.spend(own.word) {
                Some(after) => (ask.allowed(after), Prepared { own, after }),
                None => (ask.denied(own.word), Prepared { own, after: own.word }),
            });
        }
        let step = self.spend(key, cost, now).step(own.word);
        Some((step.decision, Prepared { own, after: step.word }))
    }
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prepared").field(&self.after).finish()
    }
}
