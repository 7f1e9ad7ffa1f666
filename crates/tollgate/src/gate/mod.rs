//! Several limits for one request: all of them must allow it, or none is spent.

mod answer;
mod builder;
mod charge;

pub use answer::Answer;
pub use builder::GateBuilder;
pub use charge::{Charge, LimitId};

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Decision, Limit, Tick};
use tollgate_local::{
    Clock, Counters, HeavyKey, HeavyKeys, Key, KeyHash, Seed, SystemClock, Table,
};

use crate::stats::Stats;

/// Keeps several limits, of which a request meets any number.
///
/// A request passes if all the limits it meets allow it. If one denies it, it spends nothing from
/// the others, also when threads race.
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
    /// If a charge is of a limit of another gate, which this one does not have.
    ///
    /// ```
    /// use tollgate::{Gate, Limit};
    /// let mut builder = Gate::builder();
    /// let user = builder.limit("user", Limit::token_bucket("5/min")?);
    /// let login = builder.limit("login", Limit::sliding_log("1/min")?);
    /// let gate = builder.build()?;
    /// let request = [user.charge(&"alice"), login.charge(&"alice")];
    /// assert!(gate.check(&request).is_allowed());
    /// let denied = gate.check(&request);
    /// assert_eq!(gate.name(denied.limit()), "login");
    /// assert_eq!(denied.each()[0].remaining(), 4, "the denied request took nothing from `user`");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn check(&self, charges: &[Charge<'_>]) -> Answer {
        let hashes: SmallVec<[KeyHash; 8]> =
            charges.iter().map(|charge| charge.key.hash(&self.seed)).collect();
        for (charge, hash) in charges.iter().zip(&hashes) {
            self.entry(charge.limit).counters.prefetch(*hash);
        }
        let now = self.clock.now();
        let answer = match charges {
            [_] | [] => Answer::new(charges, self.spend_each(charges, &hashes, now)),
            _ => self.check_all(charges, &hashes, now),
        };
        for ((charge, hash), decision) in charges.iter().zip(&hashes).zip(answer.each()) {
            let heavy = &self.entry(charge.limit).heavy;
            heavy.count(!decision.is_allowed(), || (*hash, charge.key.label()));
        }
        answer
    }

    /// What [`check`](Self::check) would answer, without spending.
    ///
    /// # Panics
    ///
    /// If a charge is of a limit of another gate, which this one does not have.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// assert_eq!(gate.peek(&[a.charge(&"alice")]).decision().remaining(), 5);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn peek(&self, charges: &[Charge<'_>]) -> Answer {
        let hashes: SmallVec<[KeyHash; 8]> =
            charges.iter().map(|charge| charge.key.hash(&self.seed)).collect();
        Answer::new(charges, self.look_each(charges, &hashes, self.clock.now()))
    }

    /// Gives back what a request has spent: see [`Limiter::refund`](crate::Limiter::refund).
    ///
    /// # Panics
    ///
    /// If a charge is of a limit of another gate, which this one does not have.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// let request = [a.charge(&"alice").cost(3)];
    /// gate.check(&request);
    /// gate.refund(&request);
    /// assert_eq!(gate.peek(&request).decision().remaining(), 5);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn refund(&self, charges: &[Charge<'_>]) {
        let now = self.clock.now();
        for charge in charges {
            let hash = charge.key.hash(&self.seed);
            self.entry(charge.limit).counters.refund(hash, charge.cost, now);
        }
    }

    /// Gives a key its whole budget of one limit back: see
    /// [`Limiter::reset`](crate::Limiter::reset).
    ///
    /// # Panics
    ///
    /// If the limit is of another gate, and this one does not have it.
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
    /// If the limit is of another gate, and this one does not have it.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// # let mut builder = Gate::builder();
    /// # let a = builder.limit("a", Limit::token_bucket("5/min")?);
    /// let gate = builder.build()?;
    /// gate.check(&[a.charge(&"alice")]);
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
    /// If the limit is of another gate, and this one does not have it.
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
    /// If the limit is of another gate, and this one does not have it.
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
    /// If the limit is of another gate, and this one does not have it.
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

    /// Looks first, and spends only if everybody agrees: so a denial, the usual reason to stop,
    /// touches nothing. Where a race makes a limit change its mind in between, what was spent is
    /// taken back.
    fn check_all(&self, charges: &[Charge<'_>], hashes: &[KeyHash], now: Tick) -> Answer {
        let looks = self.look_each(charges, hashes, now);
        if looks.iter().any(|look| !look.is_allowed()) {
            return Answer::new(charges, looks);
        }
        let each = self.spend_each(charges, hashes, now);
        if each.iter().any(|decision| !decision.is_allowed()) {
            self.take_back(charges, hashes, now, &each);
        }
        Answer::new(charges, each)
    }

    /// What every limit would say. One that a request meets twice with the same key must allow
    /// both at once: that the second is denied would be known only after the first was spent.
    fn look_each(
        &self,
        charges: &[Charge<'_>],
        hashes: &[KeyHash],
        now: Tick,
    ) -> SmallVec<[Decision; 8]> {
        let look = |(index, (counters, hash, cost)): (usize, (&Counters, KeyHash, u64))| {
            let before = charges[..index].iter().zip(hashes);
            let same = before.filter(|(charge, earlier)| {
                charge.limit == charges[index].limit && **earlier == hash
            });
            let cost = same.fold(cost, |sum, (charge, _)| sum.saturating_add(charge.cost));
            counters.peek(hash, cost, now)
        };
        self.counters(charges, hashes).enumerate().map(look).collect()
    }

    /// Spends from every limit in turn up to the first denial. Limits that shape come last: a
    /// place in their queues cannot be given back.
    fn spend_each(
        &self,
        charges: &[Charge<'_>],
        hashes: &[KeyHash],
        mut now: Tick,
    ) -> SmallVec<[Decision; 8]> {
        let mut each: SmallVec<[Decision; 8]> =
            SmallVec::from_elem(Decision::unlimited(), charges.len());
        let mut denied = false;
        for shaping in [false, true] {
            for (index, (counters, hash, cost)) in self.counters(charges, hashes).enumerate() {
                if counters.shapes() != shaping {
                    continue;
                }
                each[index] = match denied {
                    true => counters.peek(hash, cost, now),
                    false => counters.check_with(hash, cost, &self.clock, &mut now),
                };
                denied |= !each[index].is_allowed();
            }
        }
        each
    }

    /// Takes back what was spent before the denial.
    fn take_back(
        &self,
        charges: &[Charge<'_>],
        hashes: &[KeyHash],
        then: Tick,
        each: &SmallVec<[Decision; 8]>,
    ) {
        for shaping in [false, true] {
            for (index, (counters, hash, cost)) in self.counters(charges, hashes).enumerate() {
                if counters.shapes() != shaping {
                    continue;
                }
                if !each[index].is_allowed() {
                    return;
                }
                counters.undo(hash, cost, then, &self.clock);
            }
        }
    }

    fn counters<'a>(
        &'a self,
        charges: &'a [Charge<'_>],
        hashes: &'a [KeyHash],
    ) -> impl Iterator<Item = (&'a Counters, KeyHash, u64)> {
        charges.iter().zip(hashes).map(|(charge, hash)| {
            let counters = &self.entry(charge.limit).counters;
            (counters, *hash, charge.cost)
        })
    }

    fn entry(&self, limit: LimitId) -> &Entry {
        &self.limits[limit.0]
    }
}
