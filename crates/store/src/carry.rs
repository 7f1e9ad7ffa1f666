//! Keys whose limit has changed bring along what they had spent.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tollgate_core::Tick;
use tollgate_core::lease::{Carried, Exchange, Grant};
use tollgate_local::{ByHash, Clock, KeyHash, Lately};

use crate::ask::Ask;
use crate::budget::Budget;
use crate::error::StoreError;
use crate::loss::Losses;
use crate::store::{Pulse, Store};

/// What a key was counted by before its limit changed: another budget, so the store knows it under
/// another name.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::Tick;
/// use tollgate_local::KeyHash;
/// use tollgate_store::{Ask, Before, Budget};
/// fn after_change(ask: Ask, old: Arc<Budget>, since: Tick, owner: KeyHash) -> Ask {
///     ask.following(Before { budgets: vec![old], since, of_known: false, owner })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Before {
    /// All that it may have been counted by. What it has spent most of counts.
    pub budgets: Vec<Arc<Budget>>,
    /// When the limit changed, by the clock of whoever asks.
    pub since: Tick,
    /// Whether the limit was changed back, so that what the store knows of the key may be from before:
    /// see [`Carried::of_known`].
    pub of_known: bool,
    /// The key, under this limit.
    pub owner: KeyHash,
}

/// A store that finds out first what keys of changed limits had spent.
///
/// It looks at what such a key [was counted by](Before), and then asks about it with what it found
/// ([`Ask::carrying`]): two questions, one after the other, for the first that is asked of a key after
/// its limit has changed. A key that was asked about is remembered, and the next question is one. If the
/// store does not say what was spent, the question is not asked, and answered with that failure: nobody
/// gets a second budget because of it.
///
/// ```
/// use tollgate_local::ManualClock;
/// use tollgate_store::{Carrying, MemoryStore};
/// let clock = ManualClock::new();
/// let store = Carrying::new(MemoryStore::new(clock.clone(), 1_000), clock, 1_000);
/// # drop(store);
/// ```
#[derive(Debug)]
pub struct Carrying<S, C> {
    store: S,
    clock: C,
    /// Keys that have brought along what they had to. Those that are forgotten are looked at again,
    /// and bring nothing that they have not brought before.
    done: OnceLock<Lately>,
    keys: usize,
}

impl<S: Store, C: Clock> Carrying<S, C> {
    /// Asks that store, and remembers about so many keys. The clock is that of [`Before::since`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_local::Clock;
    /// use tollgate_store::{AnyStore, Carrying};
    /// fn carrying(store: AnyStore, clock: Arc<dyn Clock>) -> Carrying<AnyStore, Arc<dyn Clock>> {
    ///     Carrying::new(store, clock, 65_536)
    /// }
    /// ```
    pub const fn new(store: S, clock: C, keys: usize) -> Self {
        Self { store, clock, done: OnceLock::new(), keys }
    }

    /// How many questions, one after the other, an [exchange](Store::exchange) of these is now: two if
    /// something has to be found out first.
    ///
    /// ```
    /// use tollgate_local::Clock;
    /// use tollgate_store::{Ask, Carrying, Store};
    /// fn takes_longer(store: &Carrying<impl Store, impl Clock>, asks: &[Ask]) -> bool {
    ///     store.round_trips(asks) > 1
    /// }
    /// ```
    pub fn round_trips(&self, asks: &[Ask]) -> u32 {
        match self.finds_out(asks, self.clock.now()) {
            true => 2,
            false => 1,
        }
    }

    /// How many looks go before these now, to find out what their keys had spent.
    ///
    /// ```
    /// use tollgate_local::Clock;
    /// use tollgate_store::{Ask, Carrying, Store};
    /// fn questions(store: &Carrying<impl Store, impl Clock>, asks: &[Ask]) -> usize {
    ///     asks.len() + store.looks(asks)
    /// }
    /// ```
    pub fn looks(&self, asks: &[Ask]) -> usize {
        if asks.iter().all(|ask| ask.before().is_none()) {
            return 0;
        }
        let (now, mut looks) = (self.clock.now(), Looks::default());
        for ask in asks {
            if let Some(before) = self.open(ask, now) {
                looks.add(before, ask);
            }
        }
        looks.asks.len()
    }

    /// Whether an [exchange](Store::exchange) of these takes no longer than that because the store sees to it, so
    /// that nobody else has to look at the clock. If any of them has something before it, it may be two exchanges
    /// after all: what is known of a key may be forgotten until then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_local::Clock;
    /// use tollgate_store::{Ask, Carrying, Store};
    /// fn needs_timeout(store: &Carrying<impl Store, impl Clock>, asks: &[Ask]) -> bool {
    ///     !store.keeps_time(asks, Duration::from_millis(50))
    /// }
    /// ```
    pub fn keeps_time(&self, asks: &[Ask], most: Duration) -> bool {
        self.store.patience().is_some_and(|patience| patience <= most)
            && asks.iter().all(|ask| ask.before().is_none())
    }

    fn finds_out(&self, asks: &[Ask], now: Tick) -> bool {
        asks.iter().any(|ask| self.open(ask, now).is_some())
    }

    /// What is to be found out before this is asked.
    fn open<'a>(&self, ask: &'a Ask, now: Tick) -> Option<&'a Arc<Before>> {
        let before = ask.before()?;
        // Not before the change. It is remembered by the millisecond, and in the one of the change itself
        // nothing is known for sure.
        let span = now.since(before.since).checked_sub(Duration::from_millis(1));
        let is_done = |done: &Lately| span.is_some_and(|span| done.has(before.owner, now, span));
        (!self.done.get().is_some_and(is_done)).then_some(before)
    }

    /// Asks about keys of which some have to be looked at first.
    async fn exchange_carrying(&self, asks: &[Ask], now: Tick) -> Vec<Result<Grant, StoreError>> {
        let (mut first, mut of_first) = (Vec::new(), Vec::new());
        let (mut looks, mut of_second) = (Looks::default(), Vec::new());
        for (at, ask) in asks.iter().enumerate() {
            match self.open(ask, now) {
                Some(before) => {
                    looks.add(before, ask);
                    of_second.push((at, before));
                }
                None => {
                    first.push(ask.clone());
                    of_first.push(at);
                }
            }
        }
        // Those of which nothing has to be found out are asked at the same time.
        let asked = first.len();
        first.append(&mut looks.asks);
        let mut said = self.store.exchange(&first).await;
        let seen = said.split_off(asked.min(said.len()));
        let mut answers: Vec<_> = asks.iter().map(|_| Err(no_answer())).collect();
        for (at, answer) in of_first.into_iter().zip(said) {
            answers[at] = answer;
        }
        let mut second = Vec::with_capacity(of_second.len());
        of_second.retain(|(at, before)| match looks.most_spent(before, &seen) {
            Ok(spent) => {
                second.push(self.carrying(&asks[*at], before, spent));
                true
            }
            Err(error) => {
                answers[*at] = Err(error);
                false
            }
        });
        if second.is_empty() {
            return answers;
        }
        let said = self.store.exchange(&second).await;
        for ((at, before), answer) in of_second.into_iter().zip(said) {
            if answer.is_ok() && !asks[at].exchange().is_look() {
                let done = self.done.get_or_init(|| Lately::new(self.keys));
                done.came(before.owner, now);
            }
            answers[at] = answer;
        }
        answers
    }

    /// The question with what the key brings along, if it brings anything.
    fn carrying(&self, ask: &Ask, before: &Before, spent: u64) -> Ask {
        let (ago, of_known) = (self.clock.now().since(before.since), before.of_known);
        match spent {
            0 => ask.clone(),
            spent => ask.clone().carrying(Carried { spent, ago, of_known }),
        }
    }
}

impl<S: Store, C: Clock> Store for Carrying<S, C> {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        if asks.iter().all(|ask| ask.before().is_none()) {
            return self.store.exchange(asks).await;
        }
        let now = self.clock.now();
        match self.finds_out(asks, now) {
            true => self.exchange_carrying(asks, now).await,
            false => self.store.exchange(asks).await,
        }
    }

    /// Of two exchanges, one after the other: see [`keeps_time`](Self::keeps_time).
    fn patience(&self) -> Option<Duration> {
        self.store.patience().map(|patience| patience * 2)
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.store.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        self.store.ping().await
    }

    fn losses(&self) -> Option<watch::Receiver<Losses>> {
        self.store.losses()
    }
}

/// What is to be found out, once for each key.
#[derive(Default)]
struct Looks {
    asks: Vec<Ask>,
    of_keys: ByHash<Range<usize>>,
}

impl Looks {
    fn add(&mut self, before: &Before, ask: &Ask) {
        let Self { asks, of_keys } = self;
        of_keys.entry(before.owner).or_insert_with(|| {
            let from = asks.len();
            let look = |budget: &Arc<Budget>| ask.about(budget, Exchange::once(0));
            asks.extend(before.budgets.iter().map(look));
            from..asks.len()
        });
    }

    /// What the key had spent most of, from what the store said to all of it.
    fn most_spent(
        &self,
        before: &Before,
        seen: &[Result<Grant, StoreError>],
    ) -> Result<u64, StoreError> {
        let of_key = self.of_keys.get(&before.owner).and_then(|range| seen.get(range.clone()));
        let mut most = 0;
        for seen in of_key.ok_or_else(no_answer)? {
            let spent = match seen {
                Ok(grant) => grant.decision.limit().saturating_sub(grant.decision.remaining()),
                // So nothing was ever counted.
                Err(StoreError::Unsupported { .. }) => 0,
                Err(error) => return Err(error.clone()),
            };
            most = most.max(spent);
        }
        Ok(most)
    }
}

fn no_answer() -> StoreError {
    StoreError::Refused { reason: "nothing, to one of several questions".into() }
}
