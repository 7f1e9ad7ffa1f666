//! What the store has said, for requests that asked and are about to be decided.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::{Decision, Tick, Wall};
use tollgate_local::{ByHash, KeyHash};
use tollgate_store::StoreError;

/// Answers that nobody has taken yet. Whoever waited for one takes it within microseconds; which of
/// several requests of one key takes which answer does not matter.
#[derive(Debug)]
pub(crate) struct ToldAnswers<T> {
    shards: Box<[Shard<T>]>,
}

#[derive(Debug)]
struct Shard<T> {
    /// How many keys have answers, for a look from outside.
    keys: AtomicUsize,
    answers: Mutex<Answers<T>>,
}

/// Answers are handed on several times, and so as pointers.
type Answers<T> = ByHash<SmallVec<[Box<Told<T>>; 1]>>;

/// What answers are for.
pub(crate) type Costs = SmallVec<[Option<u64>; 4]>;

/// One answer to one request.
#[derive(Clone, Debug)]
pub(crate) struct Told<T> {
    pub(crate) cost: u64,
    pub(crate) said: Said,
    /// What is needed to give it back.
    pub(crate) about: T,
    /// When it is worth nothing any more.
    pub(crate) until: Tick,
}

#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// The store has decided, at its time if it has spent something.
    Decided(Decision, Option<Wall>),
    /// What is left; nothing was spent.
    Seen(Decision),
    /// It has not answered, because of this.
    Failed(Arc<StoreError>),
}

impl Said {
    /// When the store spent something, by its clock.
    pub(crate) const fn spent_at(&self) -> Option<Wall> {
        match self {
            Self::Decided(decision, at) if decision.is_allowed() => *at,
            _ => None,
        }
    }
}

/// For so long an answer waits for its request, which is under way on some thread.
pub(super) const KEPT: Duration = Duration::from_millis(250);

const SHARDS: usize = 64;
/// Keys in a shard. There are no more than there are requests under way.
const MOST: usize = 4_096;
/// Answers for one key.
const MOST_OF_KEY: usize = 16_384;

impl<T> Default for ToldAnswers<T> {
    fn default() -> Self {
        let shard = |_| Shard { keys: AtomicUsize::new(0), answers: Mutex::default() };
        Self { shards: (0..SHARDS).map(shard).collect() }
    }
}

impl<T> ToldAnswers<T> {
    /// Whether there may be an answer for the key: for whoever has just put it there, there is.
    #[inline]
    pub(crate) fn may_have(&self, key: KeyHash) -> bool {
        self.shards[key.part_of(SHARDS)].keys.load(Ordering::Relaxed) > 0
    }

    /// Keeps an answer. One for which there is no room is handed back.
    pub(crate) fn put(&self, key: KeyHash, told: Box<Told<T>>) -> Result<(), Box<Told<T>>> {
        let shard = &self.shards[key.part_of(SHARDS)];
        let mut answers = shard.lock();
        let is_full = answers.len() >= MOST && !answers.contains_key(&key);
        if is_full || answers.get(&key).is_some_and(|all| all.len() >= MOST_OF_KEY) {
            return Err(told);
        }
        answers.entry(key).or_default().push(told);
        shard.keys.store(answers.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes an answer to a request of this cost, if there is one. A failure stands for any, but it may be that of
    /// somebody who had less time: whoever has an answer takes that.
    pub(crate) fn take(
        &self,
        key: KeyHash,
        cost: u64,
        looks: bool,
        now: Tick,
    ) -> Option<Box<Told<T>>> {
        let shard = &self.shards[key.part_of(SHARDS)];
        let mut answers = shard.lock();
        let all = answers.get_mut(&key)?;
        let live = |told: &Told<T>| now < told.until;
        let answers_it = |told: &Told<T>| match told.said {
            Said::Seen(_) => looks,
            Said::Decided(..) => !looks && told.cost == cost,
            Said::Failed(_) => false,
        };
        let failed = |told: &Told<T>| matches!(told.said, Said::Failed(_));
        let answer = all.iter().position(|told| live(told) && answers_it(told));
        let at = answer.or_else(|| all.iter().position(|told| live(told) && failed(told)))?;
        let told = all.swap_remove(at);
        if all.is_empty() {
            answers.remove(&key);
            shard.keys.store(answers.len(), Ordering::Relaxed);
        }
        Some(told)
    }

    /// Puts what the store has said after all in place of a failure that a request of this cost has not taken yet.
    /// Whether there was one.
    pub(crate) fn answer_after_all(&self, key: KeyHash, cost: u64, said: &Said, now: Tick) -> bool {
        let mut answers = self.shards[key.part_of(SHARDS)].lock();
        let mut all = answers.get_mut(&key).into_iter().flatten();
        let failed = all.find(|told| {
            matches!(told.said, Said::Failed(_)) && told.cost == cost && now < told.until
        });
        failed.map(|told| told.said = said.clone()).is_some()
    }

    /// What the answers are for that wait for requests of a key that spend: their costs, and `None` for
    /// one that stands for any.
    pub(crate) fn costs(&self, key: KeyHash, now: Tick) -> Costs {
        let answers = self.shards[key.part_of(SHARDS)].lock();
        let all = answers.get(&key).into_iter().flatten().filter(|told| now < told.until);
        let cost = |told: &Told<T>| match told.said {
            Said::Decided(..) => Some(Some(told.cost)),
            Said::Failed(_) => Some(None),
            Said::Seen(_) => None,
        };
        all.filter_map(|told| cost(told)).collect()
    }

    /// Removes those that nobody came for.
    pub(crate) fn sweep(&self, now: Tick, mut each: impl FnMut(KeyHash, Told<T>)) {
        for shard in &self.shards {
            if shard.keys.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut answers = shard.lock();
            answers.retain(|key, all| {
                let mut at = 0;
                while at < all.len() {
                    match now < all[at].until {
                        true => at += 1,
                        false => each(*key, *all.swap_remove(at)),
                    }
                }
                !all.is_empty()
            });
            shard.keys.store(answers.len(), Ordering::Relaxed);
        }
    }
}

impl<T> Shard<T> {
    fn lock(&self) -> MutexGuard<'_, Answers<T>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::Tick;
    use tollgate_local::{Key, Seed};

    use super::*;

    #[test]
    fn whoever_has_an_answer_does_not_take_the_failure_of_another() {
        let (answers, key) = (ToldAnswers::default(), "alice".hash(&Seed::new(7)));
        let allowed = Said::Decided(Decision::unlimited(), None);
        let failed =
            Said::Failed(Arc::new(StoreError::Timeout { after: Duration::from_millis(15) }));
        for said in [failed.clone(), Said::Seen(Decision::unlimited()), failed, allowed] {
            let told = Told { cost: 1, said, about: (), until: Tick::MAX };
            answers.put(key, told.into()).expect("there is room");
        }
        let take = |looks| answers.take(key, 1, looks, Tick::ZERO).map(|told| told.said);
        assert!(matches!(take(false), Some(Said::Decided(..))));
        assert!(matches!(take(true), Some(Said::Seen(_))));
        assert!(matches!(take(true), Some(Said::Failed(_))));
        assert!(matches!(take(false), Some(Said::Failed(_))));
        assert!(take(false).is_none());
    }
}
