//! What several requests lack in all.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::Tick;
use tollgate_local::ByHash;

use crate::sharing::Sharing;
use crate::sharing::fetch::Wait;
use crate::sharing::spend::{Lack, Purpose, Shared};
use crate::sharing::told::Costs;

/// Adds up what requests need that are decided one after the other, and keeps what of it is not here.
///
/// What several need of one key is asked for as one sum, and is lent. If the store has not so much, or
/// others were faster, they are fetched for once more, and then the store decides each of them.
pub(crate) struct Lacks<'a> {
    sharing: &'a Arc<Sharing>,
    now: Tick,
    /// When they were first fetched for, if they were.
    since: Option<Tick>,
    keys: ByHash<Planned>,
    lacks: Vec<Lack>,
}

/// What those before need of a key.
#[derive(Default)]
struct Planned {
    sum: u64,
    /// The answers that wait for them.
    told: Costs,
    /// Where the lack is that stands for all of them.
    lack: Option<usize>,
    /// Lacks of those for which there is enough here, if nobody comes behind them. By the time that the
    /// store has decided the others it may be gone.
    waiting: Vec<Lack>,
}

impl<'a> Lacks<'a> {
    pub(crate) fn new(sharing: &'a Arc<Sharing>, now: Tick, since: Option<Tick>) -> Self {
        Self { sharing, now, since, keys: ByHash::default(), lacks: Vec::new() }
    }

    /// One spends. `name` is what the key is called in the store.
    pub(crate) fn spend(&mut self, shared: &Shared<'_>, name: impl FnOnce() -> Arc<[u8]>) {
        if shared.cost == 0 {
            return self.look(shared, name);
        }
        let Self { sharing, now, since, keys, lacks } = self;
        let again = since.is_some();
        let planned = keys.entry(shared.owner).or_insert_with(|| Planned {
            told: if again { sharing.told.costs(shared.owner, *now) } else { SmallVec::new() },
            ..Planned::default()
        });
        let fits = |told: &Option<u64>| told.is_none_or(|cost| cost == shared.cost);
        if let Some(at) = planned.told.iter().position(fits) {
            planned.told.swap_remove(at);
            return;
        }
        planned.sum = planned.sum.saturating_add(shared.cost);
        let has = sharing.has(&Shared { cost: planned.sum, ..*shared }, *now, again);
        if has && !again {
            return;
        }
        if again || shared.limit.is_strict {
            planned.waiting.push(Lack::new(shared, name(), Purpose::Decide));
            if !has {
                lacks.append(&mut planned.waiting);
            }
            return;
        }
        let sum = planned.sum.min(shared.limit.capacity);
        match planned.lack {
            Some(at) => (lacks[at].cost, lacks[at].purpose) = (sum, Purpose::Borrow),
            None => {
                planned.lack = Some(lacks.len());
                let is_first = planned.sum == shared.cost;
                let purpose = if is_first { Purpose::Spend } else { Purpose::Borrow };
                let cost = if is_first { shared.cost } else { sum };
                lacks.push(Lack::new(&Shared { cost, ..*shared }, name(), purpose));
            }
        }
    }

    /// One takes a permit.
    pub(crate) fn permit(&mut self, shared: &Shared<'_>, name: impl FnOnce() -> Arc<[u8]>) {
        let planned = self.keys.entry(shared.owner).or_default();
        planned.sum = planned.sum.saturating_add(shared.cost).min(shared.limit.capacity);
        if self.sharing.has_permits(shared.owner, planned.sum, self.now) {
            return;
        }
        match planned.lack {
            Some(at) => self.lacks[at].cost = planned.sum,
            None => {
                planned.lack = Some(self.lacks.len());
                let all = Shared { cost: planned.sum, ..*shared };
                self.lacks.push(Lack::new(&all, name(), Purpose::Permit));
            }
        }
    }

    /// One looks, after all that others spend.
    pub(crate) fn look(&mut self, shared: &Shared<'_>, name: impl FnOnce() -> Arc<[u8]>) {
        let sum = self.keys.get(&shared.owner).map_or(0, |planned| planned.sum);
        let all = Shared { cost: sum.saturating_add(shared.cost), ..*shared };
        // An answer to a look is not taken by others.
        if self.since.is_none() && !self.sharing.has(&all, self.now, false) {
            self.lacks.push(Lack::new(shared, name(), Purpose::Look));
        }
    }

    /// What is to be waited for, if there is anything.
    pub(crate) fn wait(self) -> Option<Wait> {
        let Self { sharing, now, since, lacks, .. } = self;
        (!lacks.is_empty()).then(|| Wait::new(sharing, lacks, since.unwrap_or(now)))
    }
}
