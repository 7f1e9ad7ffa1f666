//! A test bed: keys, and limiters that know all of them.

use std::borrow::Borrow;

use super::{GOVERNOR, OURS};
use crate::error::BenchError;
use crate::keys;
use crate::measure::Contender;
use crate::subject::{
    self, Algorithm, Allowance, Batch, Folded, Governor, OurKey, Ours, SHARE_ALLOWED,
};
use crate::suite::Session;

/// Keys, and Tollgate and governor filled with them: one key in ten is drained.
pub(super) struct Bed<K: OurKey> {
    pub(super) keys: Keys<K>,
    pub(super) ours: Ours,
    pub(super) governor: Governor<K>,
}

impl<K: OurKey> Bed<K> {
    pub(super) fn new(session: &Session, size: usize) -> Result<Self, BenchError> {
        let keys = Keys::new(session, size);
        session.progress.say("filling tollgate");
        let ours = keys.fill(keys.ours()?);
        session.progress.say("filling governor");
        let governor = keys.fill(Governor::new(keys.allowance)?);
        Ok(Self { keys, ours, governor })
    }
}

/// Distinct keys, the order in which they are inserted, and the quota each of them has.
pub(super) struct Keys<K: OurKey> {
    pub(super) allowance: Allowance,
    distinct: Vec<K>,
    insertion: Vec<u32>,
}

impl<K: OurKey> Keys<K> {
    pub(super) fn new(session: &Session, size: usize) -> Self {
        session.progress.say("making keys");
        Self {
            allowance: Allowance::ample(size),
            distinct: K::distinct(size),
            insertion: keys::insertion_order(size),
        }
    }

    /// Tollgate with room for these keys.
    pub(super) fn ours(&self) -> Result<Ours, BenchError> {
        Ours::new(Algorithm::TokenBucket, self.allowance, self.distinct.len())
    }

    /// Makes all keys known to a subject, and drains one in ten.
    pub(super) fn fill<S: subject::Subject<K>>(&self, mut subject: S) -> S {
        subject::fill(&mut subject, &self.distinct, &self.insertion, self.allowance);
        subject
    }

    /// The keys in the order in which they are visited.
    pub(super) fn visits(&self) -> Vec<K::Visit<'_>> {
        let order = keys::visiting_order(self.distinct.len());
        order.into_iter().map(|index| self.distinct[index as usize].visit()).collect()
    }
}

/// Tollgate, one decision at a time.
pub(super) fn ours_single<'a, K: OurKey, V: Borrow<K> + Folded>(
    ours: &'a Ours,
    visits: &'a [V],
) -> Contender<'a> {
    let decide = |chunk: &[V]| count(chunk, |key: &K| ours.check(key));
    Contender::new(OURS, visits, decide).intending(SHARE_ALLOWED)
}

/// Tollgate, a batch at a time.
pub(super) fn ours_batches<'a, 'k: 'a, K: OurKey + 'k>(
    ours: &'a Ours,
    visits: &'a [K::Visit<'k>],
) -> Contender<'a> {
    let mut batch = Batch::new(ours);
    let decide = move |chunk: &[K::Visit<'k>]| batch.check::<K>(chunk);
    Contender::new(OURS, visits, decide).intending(SHARE_ALLOWED)
}

/// governor, one decision at a time.
pub(super) fn governor_single<'a, K: OurKey, V: Borrow<K> + Folded>(
    governor: &'a Governor<K>,
    visits: &'a [V],
) -> Contender<'a> {
    let decide = |chunk: &[V]| count(chunk, |key: &K| governor.check(key));
    Contender::new(GOVERNOR, visits, decide).intending(SHARE_ALLOWED)
}

/// Decides about every key of a chunk, and counts the allowed ones.
#[inline]
pub(super) fn count<K, V: Borrow<K>>(chunk: &[V], mut check: impl FnMut(&K) -> bool) -> u64 {
    chunk.iter().map(|visit| u64::from(check(visit.borrow()))).sum()
}
