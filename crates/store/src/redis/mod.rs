//! A store in Redis or Valkey.
//!
//! Every question is decided in one script, atomically, by the server's clock: see `lua/`. The
//! scripts keep the books as [`tollgate_core::lease`] does, and say what they found and did; what
//! that means for whoever asked is worked out here, by the core.
//!
//! # What stands under a key
//!
//! As long as nothing of a key is lent, it is a text that `GET` shows. Times are since 1970, `epoch` is
//! the memory, and numbers have leading zeros so that they can be written over in their places.
//!
//! | limit | text |
//! |---|---|
//! | buckets | `bucket EPOCH SECONDS GRAINS`: when it is full again; 1 to 64 grains make a nanosecond |
//! | fixed windows, calendars | `window EPOCH SECONDS NANOSECONDS COUNT AT`: when it ends, what was spent in it, and when first, in microseconds |
//! | sliding windows | `sliding EPOCH SECONDS NANOSECONDS LAST THIS AT`: the same, with the count of the window before |
//!
//! While nodes hold leases of a key, or are remembered, it is a hash with the same numbers under their
//! names (`HGETALL`), the limit in words, and a field for each lease. Permits always are. A sliding log
//! is a list: a title, and a line for each moment (`LRANGE`).
//!
//! # Memory
//!
//! A limit holds as long as what was spent is remembered. Redis forgets when it is started again
//! without its data, when it is emptied, and a little when a replica takes over. A key that is not
//! there may have its whole budget, or may be forgotten. So there is a mark of the memory: `tg:epoch`,
//! in a Cluster one for each slot, in that slot. It names the process that wrote it (Redis gives
//! each run of the server a name, and a connection ends with the process it was made to, so whoever
//! asks knows the name) and every script looks at it first. What happens:
//!
//! | the mark | means | then |
//! |---|---|---|
//! | names this process | nothing was lost | |
//! | names another, of a Cluster, that has given the slot away | nothing was lost: the slot was moved | the mark is taken over as it is, and says so (`moved`) |
//! | names another, and what is kept reaches to where this client was answered last, or lacks three seconds of that at most | the process is new, and what it knows may lack the last moments | buckets are empty for as long as leases of the former memory may last, and then fill; windows up to a minute are spent until they end, longer ones and what they count go on; logs are full; all permits are out for the time of a lease |
//! | names any, and this client was answered later than what is kept reaches | the process has begun with an old snapshot, or somebody who did not know of a loss was the first to ask | the same, except that windows of any length are spent until they end |
//! | is missing, and this client has seen one there | everything was lost | the same |
//! | is missing, and this client has seen the process lose others, or begin with nothing where another was before | everything was lost, then | the same from then on |
//! | is missing, and this client has never seen one | Redis is new to us | all keys have their whole budget |
//!
//! What is kept is all that was written up to some moment. The mark is written once a second while anybody asks
//! (`beat`), and whoever takes over finds the last beat that was kept; from then on the mark says so (`until`, of the
//! last takeovers). A client remembers the memory that it was answered from last, and when by the server's clock,
//! which is not much later than a beat. So it can tell that a second or two are missing, which a disk that is
//! written to once a second may lack, from a snapshot of before. If it has seen a later memory than that of the
//! mark, another server had taken over and this one is back; and if it has seen one that goes back to another
//! beginning (`since`), somebody who knew of nothing was the first to ask, unless that loss was `noted`. What is
//! compared are names of memories, and times by one clock: that of whoever had the memory. Only of a memory that
//! nobody took over clocks of two servers are compared.
//!
//! In the last case somebody else may have seen a mark: a node that starts at the very moment at which
//! Redis lost its memory, and asks before any other does, is wrong, and grants keys one budget
//! more, until somebody asks who was answered before. In a Cluster the same goes for each slot of a primary, if the first to ask about the slot was not
//! connected to the primary before it lost its memory; clients connect to all of them. An operator who knows
//! that nothing was spent writes `lost 0` into the mark, in one step, since clients write it as well.
//!
//! Every key has a time to live, of about twice what it takes to have its whole budget back, and the mark
//! one that is longer than all others. A policy that evicts keys before their time forgets what was spent, and
//! nobody can tell: use `noeviction`. The `volatile` ones evict as well. Two primaries of one service that do
//! not know of each other both lend; `min-replicas-to-write` keeps the lonely one from it.
//!
//! # Slots that move
//!
//! A slot of a Cluster that moves to another server is a slot in another process, and so it is if a replica
//! takes over. Only in the second case something may be lost. So a script that finds the mark of another
//! process says which, and does nothing; whoever asked finds out about that one, and asks again. It has
//! given the slot away if it still runs, is a primary, and says that the slot lies elsewhere, or has just
//! said that it is being moved. As long as it does not answer, nobody knows, and neither does who asks: keys
//! that it gives away hold it up. After five seconds it counts as gone. In all other cases it has not given
//! the slot away:
//!
//! * A primary that is dead, or was started again, is found nowhere: no process has that name.
//! * One that has been replaced while it was silent is a replica as soon as it hears of it, and until then
//!   says that the slot is its own.
//! * One that has given away its last slot and has become a replica because of it cannot be told from that,
//!   so slots that nobody has asked about since they left it are treated as if a replica had taken over.
//!
//! A mark says how often its slot was moved, so a client that has seen a later one knows that this one was
//! read from an old disk, or told by a replica that had not heard of it. Somebody else does not: if the new
//! primary of a slot loses what was spent since the move, the first of all that was asked of it included, and
//! whoever asks then had not asked before, what was spent is forgotten.

mod address;
mod answer;
mod batch;
mod cluster;
mod config;
#[cfg(test)]
mod differential;
mod driver;
mod failure;
mod form;
mod identity;
mod job;
mod link;
mod name;
mod noticed;
mod restart;
mod route;
mod script;
mod server;
mod shared;
mod slots;
mod task;
mod visit;

pub use config::RedisConfig;
pub(crate) use form::Form;
pub use identity::{IdentityError, RedisIdentity};
pub use visit::RedisVisit;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tollgate_core::Decision;
use tollgate_core::lease::{Exchange, Grant};
use tollgate_local::Clock;

use crate::ask::Ask;
use crate::budget::Budget;
use crate::error::StoreError;
use crate::loss::Losses;
use crate::memory::unremembered;
use crate::store::{Pulse, Store};
use address::Address;
use answer::Reply;
use driver::{Driver, Message};
use form::EXACT;
use job::{Job, Seat};
use route::Route;
use shared::Shared;

/// Keeps the books in Redis or Valkey, for all nodes that ask the same one.
///
/// Questions of all callers are sent together, as they gather; nobody waits for an answer for longer
/// than [`RedisConfig::timeout`].
///
/// ```no_run
/// use std::sync::Arc;
/// use tollgate_local::SystemClock;
/// use tollgate_store::{RedisConfig, RedisStore, Store};
///
/// # async fn run() -> Result<(), tollgate_store::StoreError> {
/// let clock = Arc::new(SystemClock::new());
/// let store = RedisStore::open("redis://localhost", RedisConfig::default(), clock)?;
/// println!("{:?} away", store.ping().await?.round_trip);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore {
    messages: mpsc::UnboundedSender<Message>,
    shared: Arc<Shared>,
    /// Questions that are not answered yet, at most [`RedisConfig::most_waiting`].
    under_way: Arc<AtomicUsize>,
    config: RedisConfig,
}

impl RedisStore {
    /// A store at an address. It connects when it is first asked, in the Tokio runtime from which
    /// this is called, and again whenever it has to. Those who ask may be in others, which have
    /// their timers on.
    ///
    /// | address | |
    /// |---|---|
    /// | `redis://user:password@host:6379/0` | one server |
    /// | `redis+sentinel://user:password@host:26379,host:26379/service/0` | the one that Sentinels name |
    /// | `redis+cluster://user:password@host:6379,host:6379` | a Cluster, by some of its servers |
    ///
    /// `rediss` is the same through TLS; `valkey` and `valkeys` are other words for both. Sentinels that
    /// want a user or a password of their own have them behind everything:
    /// `?sentinel=user:password`, or `?sentinel=:password`.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use tollgate_local::SystemClock;
    /// # use tollgate_store::{RedisConfig, RedisStore, StoreError};
    /// # async fn run() {
    /// let wrong = RedisStore::open("http://localhost", RedisConfig::default(), Arc::new(SystemClock::new()));
    /// assert!(matches!(wrong, Err(StoreError::Address { .. })));
    /// # }
    /// ```
    pub fn open(url: &str, config: RedisConfig, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let address = Address::fitting(url, &config)?;
        let is_cluster = matches!(address, Address::Cluster { .. });
        let shared = Arc::new(Shared::new(clock, is_cluster));
        let route = Route { address, config: config.clone() };
        let (messages, receiver) = mpsc::unbounded_channel();
        let no_runtime = |_| StoreError::Refused { reason: "there is no Tokio runtime".into() };
        let runtime = Handle::try_current().map_err(no_runtime)?;
        // It ends when the last clone of the sender is gone.
        runtime.spawn(Driver::new(route, Arc::clone(&shared)).run(receiver));
        Ok(Self { messages, shared, under_way: Arc::default(), config })
    }

    /// An address as it may be shown to anybody: without users and passwords.
    ///
    /// ```
    /// use tollgate_store::RedisStore;
    /// let url = "redis+sentinel://:secret@host/main?sentinel=:another";
    /// assert_eq!(RedisStore::redacted(url), "redis+sentinel://***@host/main?***");
    /// ```
    pub fn redacted(url: &str) -> String {
        address::redacted(url)
    }

    /// Hands a question to the driver, unless it can be answered without.
    fn hand_over(&self, ask: &Ask, is_forget: bool) -> Waiting {
        let form = match ask.budget().form() {
            Ok(Some(form)) => form,
            Ok(None) => {
                let (epoch, at) = (self.shared.epoch(), self.shared.wall());
                return Waiting::Done(Ok(match is_forget {
                    true => Reply::Forgotten(false),
                    false => Reply::Grant(unremembered(ask, epoch, Decision::unlimited(), at)),
                }));
            }
            Err(error) => return Waiting::Done(Err(error)),
        };
        if ask.exchange().sequence >= EXACT {
            let reason = "the exchange has a number beyond 2^53";
            let limit = ask.budget().to_string();
            return Waiting::Done(Err(StoreError::Unsupported { limit, reason }));
        }
        let seat = match Seat::take(&self.under_way, self.config.most_waiting) {
            Ok(seat) => seat,
            Err(error) => return Waiting::Done(Err(error)),
        };
        let (job, answer) = Job::new(ask.clone(), is_forget, form, seat);
        match self.messages.send(Message::Ask(job)) {
            Ok(()) => Waiting::For(answer),
            Err(_) => Waiting::Done(Err(ended())),
        }
    }
}

enum Waiting {
    Done(Result<Reply, StoreError>),
    For(oneshot::Receiver<Result<Reply, StoreError>>),
}

impl Store for RedisStore {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        let mut waiting: Vec<_> = asks.iter().map(|ask| self.hand_over(ask, false)).collect();
        let all = async {
            for one in &mut waiting {
                if let Waiting::For(answer) = one {
                    *one = Waiting::Done(answer.await.unwrap_or_else(|_| Err(ended())));
                }
            }
        };
        // Whoever is not answered by then has waited in vain.
        let after = self.config.timeout;
        let _ = timeout(after, all).await;
        let answer = |one: Waiting| match one {
            Waiting::Done(answer) => answer,
            Waiting::For(mut answer) => {
                answer.try_recv().unwrap_or(Err(StoreError::Timeout { after }))
            }
        };
        let grant = |reply: Reply| match reply {
            Reply::Grant(grant) => Ok(grant),
            Reply::Forgotten(_) => Err(another_answer()),
        };
        waiting.into_iter().map(|one| answer(one).and_then(grant)).collect()
    }

    fn patience(&self) -> Option<Duration> {
        Some(self.config.timeout)
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        let ask = Ask::new(Arc::clone(budget), key, Exchange::once(0));
        let answer = match self.hand_over(&ask, true) {
            Waiting::Done(answer) => answer,
            Waiting::For(answer) => {
                let after = self.config.timeout;
                let late = |_| StoreError::Timeout { after };
                timeout(after, answer).await.map_err(late)?.unwrap_or_else(|_| Err(ended()))
            }
        };
        match answer? {
            Reply::Forgotten(was_known) => Ok(was_known),
            Reply::Grant(_) => Err(another_answer()),
        }
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        let begin = self.shared.clock.now();
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Ping(reply)).map_err(|_| ended())?;
        let after = self.config.connect_timeout + self.config.timeout;
        let answer = timeout(after, answer).await.map_err(|_| StoreError::Timeout { after })?;
        let wall = answer.map_err(|_| ended())??;
        let round_trip = self.shared.clock.now().since(begin);
        Ok(Pulse { wall, round_trip, epoch: self.shared.epoch() })
    }

    fn losses(&self) -> Option<watch::Receiver<Losses>> {
        Some(self.shared.noticed.losses())
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("epoch", &self.shared.epoch()).finish_non_exhaustive()
    }
}

fn another_answer() -> StoreError {
    StoreError::Refused { reason: "the answer to another question".into() }
}

/// The runtime has ended, and the driver with it.
fn ended() -> StoreError {
    StoreError::Unreachable { address: "Redis".into(), reason: "its runtime has ended".into() }
}
