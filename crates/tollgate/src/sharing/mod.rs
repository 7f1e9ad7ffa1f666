//! Limits that nodes share: what a node asks its store, and what it does when the store is gone.
//!
//! ```text
//!   decide ----- purse ............ a key that is lent to: no lock, no network
//!      |  lacks
//!      v
//!   Wait ------- fetch ............ asks the store, for as long as its timeout; the answer is told
//!      |                            to whichever request of that key is decided next
//!      v
//!   decide ----- told / policy .... what the store said, or what the rule wants if it said nothing
//!      |  lacks                     others took what was lent: once more, in the rest of that time,
//!      v                            and now the store decides
//!   Wait, decide, ...
//!
//!   Reserving .. the same for many requests at once: what is here is kept for them until they are
//!                decided, or all that they lack is fetched
//!
//!   Steward .... renews what is lent, gives back what is idle, frees places of keys that went cold
//!
//!   heal ....... tries a store that fails, until it answers again what it did not answer
//! ```
//!
//! **Cold keys ask, hot keys borrow.** A key that comes for the first time in a while is decided by
//! the store. One that comes again within the time of a lease gets a place among the purses, and its
//! borrower asks for as much as it is likely to need: see [`tollgate_core::lease`].
//!
//! **Changed limits.** The books of a limit stand under a name of their own, so a key is new to the store
//! when its limit has changed. It begins with what it had spent of those that its rule had before
//! ([`Formers`]), as long as whoever had spent everything when it changed would not have it back.
//!
//! **Failure.** A [`Breaker`] leaves a store alone that fails or is late, and what is lent is spent
//! until it ends. Then rules do as they say. What they let pass meanwhile is written down ([`Debts`]),
//! and paid before the store is asked again: so nobody gets a burst for it. Where the store fails at
//! single questions, rules do the same, and what they did is to be told ([`Lapses`]).

mod back;
mod before;
mod breaker;
mod debts;
mod errand;
mod exchange;
mod fetch;
mod glance;
mod heal;
mod health;
mod in_force;
mod lapses;
mod limit;
mod loan;
mod permit;
mod reserve;
mod spend;
mod steward;
#[cfg(test)]
mod tests;
mod told;
mod wait;

pub(crate) use back::{Back, LaterBack};
pub(crate) use before::{Former, FormerRule, Formers};
pub(crate) use glance::{Alone, Glance};
pub use health::{Health, SharingStats};
pub use lapses::Lapse;
pub(crate) use limit::SharedLimit;
pub(crate) use loan::Loan;
pub(crate) use permit::LentPermit;
pub use reserve::Reserve;
pub(crate) use reserve::Reserving;
pub(crate) use spend::{Asking, Lack, Lacks, Lent, Purpose, Shared};
pub use wait::Wait;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, watch};
use tollgate_core::lease::Node;
use tollgate_core::{Tick, Wall};
use tollgate_local::{Denials, KeyHash, Lately, Place, Purses, Seed, Timer};
use tollgate_store::{AnyStore, Ask, Budget, Carrying, Losses, Store};

use breaker::Breaker;
use debts::Debts;
use errand::MOST_ALONE;
use health::{Counts, add};
use in_force::InForce;
use lapses::Lapses;
use steward::Steward;
use told::ToldAnswers;

/// How an engine shares its limits with others.
///
/// ```
/// use std::time::Duration;
/// use tollgate::SharingConfig;
/// let config = SharingConfig { share: 20, ..SharingConfig::default() };
/// assert_eq!(config.timeout, Duration::from_millis(50));
/// ```
#[derive(Clone, Debug)]
pub struct SharingConfig {
    /// How long a request waits for the store, before its rule decides what happens: 50 ms.
    pub timeout: Duration,
    /// How far away the store is taken to be: 5 ms. All nodes that share a limit say the same.
    pub round_trip: Duration,
    /// What part of a limit a node lets pass by itself while the store is gone, in per cent, for
    /// rules whose policy is `local`: 50.
    pub share: u8,
    /// How many keys can be lent to at once: 65,536.
    pub keys: usize,
}

impl Default for SharingConfig {
    fn default() -> Self {
        let (timeout, round_trip) = (Duration::from_millis(50), Duration::from_millis(5));
        Self { timeout, round_trip, share: 50, keys: 65_536 }
    }
}

/// What all rules of an engine share their limits through.
pub(crate) struct Sharing {
    store: Carrying<AnyStore, Arc<dyn Timer>>,
    config: SharingConfig,
    clock: Arc<dyn Timer>,
    node: Node,
    purses: Purses<Loan>,
    /// Of limits that are not lent.
    denials: Denials,
    lately: Lately,
    told: ToldAnswers<About>,
    breaker: Breaker,
    in_force: InForce,
    debts: Debts,
    lapses: Lapses,
    counts: Counts,
    health: watch::Sender<Health>,
    calls: mpsc::Sender<Call>,
    runtime: Handle,
    this: Weak<Self>,
    /// For exchanges that go on without whoever asked.
    alone: Arc<Semaphore>,
    /// How many borrowers there were: each is a life of its own to the store.
    lives: AtomicU64,
}

/// A key of a shared limit.
#[derive(Clone, Debug)]
pub(crate) struct About {
    limit: Arc<SharedLimit>,
    /// Under which it is known here, to the counters of this node alone, and in the store.
    owner: KeyHash,
    key: KeyHash,
    name: Arc<[u8]>,
}

/// What the steward is told.
#[derive(Debug)]
enum Call {
    /// Something is due at this place, or will be.
    Look(Place),
    /// The last word of a borrower whose place another key has, and how often it was sent in vain.
    Quit { last: Ask, tries: u32 },
    /// What the store spent then for nothing.
    Undo { about: About, cost: u64, at: Wall },
}

/// For each key that can be lent to, so many are remembered that came lately: one that comes often must not be
/// forgotten before it comes again because others come as well.
const REMEMBERED: usize = 4;

/// Of so many keys that can be lent to, one has room for a denial of a limit that is not lent.
const KEYS_TO_A_DENIAL: usize = 16;

/// Calls that the steward has not heard yet. It hears them within a moment, and whoever calls when
/// there are more is not heard: what is lent is then renewed when its time comes, and what would be
/// undone stays spent.
const MOST_CALLS: usize = 1 << 17;

impl Sharing {
    /// Begins to share. A task of the runtime from which this is called looks after it, and ends with
    /// it.
    pub(crate) fn begin(
        store: impl Store,
        config: SharingConfig,
        clock: impl Timer,
    ) -> Option<Arc<Self>> {
        let runtime = Handle::try_current().ok()?;
        let (calls, called) = mpsc::channel(MOST_CALLS);
        let incarnation = clock.wall().as_unix_nanos();
        let clock: Arc<dyn Timer> = Arc::new(clock);
        let sharing = Arc::new_cyclic(|this| Self {
            store: Carrying::new(AnyStore::new(store), Arc::clone(&clock), config.keys),
            purses: Purses::new(config.keys),
            denials: Denials::new(config.keys / KEYS_TO_A_DENIAL),
            lately: Lately::new(config.keys.saturating_mul(REMEMBERED)),
            config,
            clock,
            node: Node { number: Seed::random().number(0).part_of(1 << 32) as u64, incarnation },
            told: ToldAnswers::default(),
            breaker: Breaker::default(),
            in_force: InForce::default(),
            debts: Debts::default(),
            lapses: Lapses::default(),
            counts: Counts::default(),
            health: watch::Sender::new(Health::default()),
            calls,
            runtime: runtime.clone(),
            alone: Arc::new(Semaphore::new(MOST_ALONE)),
            lives: AtomicU64::new(0),
            this: Weak::clone(this),
        });
        let steward = Steward::new(Arc::downgrade(&sharing), called);
        runtime.spawn(steward.run());
        Some(sharing)
    }

    pub(crate) const fn config(&self) -> &SharingConfig {
        &self.config
    }

    pub(crate) const fn clock(&self) -> &Arc<dyn Timer> {
        &self.clock
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    pub(crate) fn wall(&self) -> Wall {
        self.clock.wall()
    }

    pub(crate) fn stats(&self) -> SharingStats {
        let (spent, denied) = self.purses.counts();
        let stats = self.counts.told(self.purses.places().count(), self.breaker.is_open());
        SharingStats { lent: stats.lent + spent, short: stats.short + denied, ..stats }
    }

    pub(crate) fn losses(&self) -> Option<watch::Receiver<Losses>> {
        self.store.losses()
    }

    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Other rules are in force: from now on these are asked about, and no others.
    pub(crate) fn put_in_force(&self, budgets: Vec<Arc<Budget>>) {
        self.in_force.replace(budgets);
    }

    /// Gives back what was spent some time ago, by a request of which nothing else is known.
    pub(crate) fn refund(&self, shared: &Shared<'_>, name: Arc<[u8]>) {
        self.undo_since(shared.about(name), shared.cost, self.wall());
    }

    /// Takes note of what has passed without being asked for. It is paid as what passes while the store
    /// is gone.
    pub(crate) fn charge(&self, shared: &Shared<'_>, name: Arc<[u8]>, now: Tick) {
        let about = shared.about(name);
        about.limit.note(&about, shared.cost, now);
        self.owe(shared, || about);
    }

    /// Writes down what the store is to be told.
    fn owe(&self, shared: &Shared<'_>, about: impl FnOnce() -> About) {
        if !self.debts.add(shared.owner, shared.cost, about) {
            add(&self.counts.unpaid, shared.cost);
        }
    }

    /// This node, in a life that it never had before: a new borrower counts its exchanges from one.
    fn newborn(&self) -> Node {
        // Only that no two are the same matters.
        let life = self.lives.fetch_add(1, Ordering::Relaxed);
        Node { incarnation: self.node.incarnation.wrapping_add(life), ..self.node }
    }

    fn call(&self, call: Call) {
        let _ = self.calls.try_send(call);
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").field("config", &self.config).finish_non_exhaustive()
    }
}
