//! Several limits for one request: all of them must allow it, or none is spent.

mod answer;
mod builder;
mod charge;

pub use answer::Answer;
pub use builder::GateBuilder;
pub use charge::{Charge, KeyRef, LimitId};

use std::sync::Arc;

use tollgate_core::Limit;
use tollgate_local::{Clock, Counters, HeavyKey, HeavyKeys, Key, Seed, SystemClock, Table};

use crate::spending::{Each, Spending, look_each, spend_all};
use crate::stats::Stats;

/// Keeps several limits, of which a request meets any number.
///
/// A request passes if all the limits it meets allow it. If one denies it, it spends nothing from
/// the others, also when threads race.
///
/// Only a place in the queue of a limit that [shapes](Limit::shapes) cannot be given back, so such
/// limits are asked last, in the order of the charges. If a request meets two of them, and another
/// thread takes the last place of the second at the very moment, the first loses one place: its
/// queue is the longer for it, and nobody passes too early. Charge the shorter queue first.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{Gate, Limit};
///
/// let mut builder = Gate::builder();
/// let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
/// let per_ip = builder.limit("per-ip", Limit::sliding_window("600/min")?);
/// let global = builder.limit("global", Limit::token_bucket("10k/s")?);
/// let gate = builder.build()?;
///
/// let (user, ip) = ("alice", "192.0.2.7".parse::<IpAddr>().expect("an address"));
/// let answer = gate.check(&[per_user.charge(&user), per_ip.charge(&ip), global.charge(&())]);
/// assert!(answer.is_allowed());
/// assert_eq!(gate.name(answer.limit()), "per-user", "the strictest: 99 remain");
/// assert_eq!(answer.decision().remaining(), 99);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
pub struct Gate<C = SystemClock> {
    /// No other gate of this process has the same.
    number: u64,
    limits: Box<[Entry]>,
    table: Arc<Table>,
    seed: Seed,
    clock: C,
}

#[derive(Debug)]
struct Entry {
    name: String,
    limit: Limit,
    counters: Counters,
    heavy: HeavyKeys,
}

impl<C: Clock> Gate<C> {
    /// Lets a request pass if all the limits it meets allow it; otherwise it spends nothing.
    /// Up to eight charges allocate nothing. A request that meets no limit passes.
    ///
    /// # Panics
    ///
    /// If a charge is of a limit of another gate. Nothing is spent then.
    ///
    /// ```
    /// use tollgate::{Gate, Limit};
    /// let mut builder = Gate::builder();
    /// let user = builder.limit("user", Limit::token_bucket("5/min")?);
    /// let login = builder.limit("login", Limit::sliding_log("1/min")?);
    /// let gate = builder.build()?;
    /// let request = [user.charge("alice"), login.charge("alice")];
    /// assert!(gate.check(&request).is_allowed());
    /// let denied = gate.check(&request);
    /// assert_eq!(gate.name(denied.limit()), "login");
    /// assert_eq!(denied.each()[0].remaining(), 4, "the denied request took nothing from `user`");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "only the answer says whether the request may pass"]
    pub fn check(&self, charges: &[Charge<'_>]) -> Answer {
        let spending = self.spending(charges);
        for one in &spending {
            one.counters.prefetch(one.key);
        }
        let mut each = Each::new();
        spend_all(&spending, &self.clock, &mut each);
        let answer = Answer::new(self.number, charges, each);
        for ((charge, one), decision) in charges.iter().zip(&spending).zip(answer.each()) {
            let heavy = &self.entry(charge.limit).heavy;
            heavy.count(!decision.is_allowed(), || (one.key, charge.key.label()));
        }
        answer
    }

    /// What [`check`](Self::check) would answer, without spending.
    ///
    /// # Panics
    ///
    /// If a charge is of a limit of another gate.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// assert_eq!(gate.peek(&[a.charge("alice")]).decision().remaining(), 5);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "it changes nothing; use what it tells"]
    pub fn peek(&self, charges: &[Charge<'_>]) -> Answer {
        let each = look_each(&self.spending(charges), self.clock.now());
        Answer::new(self.number, charges, each)
    }

    /// Gives back what a request has spent: see [`Limiter::refund`](crate::Limiter::refund).
    ///
    /// # Panics
    ///
    /// If a charge is of a limit of another gate. Nothing is given back then.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// let request = [a.charge("alice").cost(3)];
    /// assert!(gate.check(&request).is_allowed());
    /// gate.refund(&request);
    /// assert_eq!(gate.peek(&request).decision().remaining(), 5);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn refund(&self, charges: &[Charge<'_>]) {
        let now = self.clock.now();
        for one in self.spending(charges) {
            one.counters.refund(one.key, one.cost, now);
        }
    }

    /// Gives a key its whole budget of one limit back: see
    /// [`Limiter::reset`](crate::Limiter::reset).
    ///
    /// # Panics
    ///
    /// If the limit is of another gate.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// assert!(gate.reset(a, "alice"));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn reset<K: Key + ?Sized>(&self, limit: LimitId, key: &K) -> bool {
        self.entry(limit).counters.reset(key.hash(&self.seed), self.clock.now())
    }

    /// The keys of a limit that come most often, by estimate.
    ///
    /// # Panics
    ///
    /// If the limit is of another gate.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// let _ = gate.check(&[a.charge("alice")]);
    /// assert_eq!(gate.top(a, 1)[0].key, "alice");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn top(&self, limit: LimitId, n: usize) -> Vec<HeavyKey> {
        self.entry(limit).heavy.top(n)
    }

    /// The keys of a limit that it denied most often, by estimate.
    ///
    /// # Panics
    ///
    /// If the limit is of another gate.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert!(builder.build()?.top_denied(a, 1).is_empty());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn top_denied(&self, limit: LimitId, n: usize) -> Vec<HeavyKey> {
        self.entry(limit).heavy.top_denied(n)
    }

    /// The name of a limit.
    ///
    /// # Panics
    ///
    /// If the limit is of another gate.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert_eq!(builder.build()?.name(a), "a");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn name(&self, limit: LimitId) -> &str {
        &self.entry(limit).name
    }

    /// A limit of the gate.
    ///
    /// # Panics
    ///
    /// If the limit is of another gate.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert_eq!(builder.build()?.limit(a).quota().to_string(), "5/min");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn limit(&self, limit: LimitId) -> &Limit {
        &self.entry(limit).limit
    }

    /// How the gate is doing.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// assert_eq!(builder.build()?.stats().overflowed, 0);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let counters = self.limits.iter().map(|entry| &entry.counters);
        Stats::new(&self.table, counters, 0, self.clock.now())
    }

    /// The clock.
    ///
    /// ```
    /// # use tollgate::{Clock, Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let now = builder.build()?.clock().now();
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// What the charges spend. All of them are of this gate, or nothing comes of any.
    fn spending(&self, charges: &[Charge<'_>]) -> Each<Spending<'_>> {
        let spending = |charge: &Charge<'_>| {
            let counters = &self.entry(charge.limit).counters;
            Spending { counters, key: charge.key.hash(&self.seed), cost: charge.cost }
        };
        charges.iter().map(spending).collect()
    }

    fn entry(&self, limit: LimitId) -> &Entry {
        assert!(limit.gate == self.number, "the limit is of another gate");
        &self.limits[limit.index]
    }
}
