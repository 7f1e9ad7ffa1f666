//! What several requests need that are decided one after the other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Decision, Tick};
use tollgate_local::{ByHash, KeyHash, Place, Taken};

use crate::sharing::health::add;
use crate::sharing::permit::LentPermit;
use crate::sharing::spend::{Asking, Lack, Lacks, Purpose, Shared};
use crate::sharing::told::{Costs, Said, Told};
use crate::sharing::wait::Wait;
use crate::sharing::{About, Call, Sharing};

/// What is kept for requests until they are decided: nobody else takes it meanwhile. What they leave
/// goes back.
///
/// ```
/// # use tollgate::{Engine, Request, RuleSet};
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/h }]")?)?;
/// let requests = [Request::new("GET", "/"); 2];
/// let mut reserve = engine.reserve(&requests, &[]).expect("there is no store to wait for");
/// let mut allowed = Vec::new();
/// engine.decide_each_with(&requests, &mut reserve, |_, ruling| allowed.push(ruling.is_allowed()));
/// assert_eq!(allowed, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Reserve {
    /// `None` as long as nothing is kept.
    sharing: Option<Arc<Sharing>>,
    kept: ByHash<VecDeque<Kept>>,
    permits: ByHash<Vec<LentPermit>>,
    /// Whether those that it is kept for are being decided: what they leave is for nobody.
    is_used: bool,
}

/// What is kept for one request.
struct Kept {
    cost: u64,
    what: KeptWhat,
}

pub(crate) enum KeptWhat {
    /// It was taken out of a purse.
    Taken(Decision, Place, u32),
    /// There is nothing for it.
    Short(Decision),
    /// What the store has said.
    Told(Box<Told<About>>),
    /// The store is gone, or has not answered in time: the rule decides.
    Alone,
}

impl Reserve {
    /// Gives everything back, because something else denies the requests before they are decided. If it
    /// is dropped instead, what the store has said waits for a moment, in case they come again.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Reserve};
    /// fn decide(engine: &Engine, requests: &[Request<'_>], kept: Reserve, may_pass: bool) {
    ///     match (may_pass, kept) {
    ///         (true, mut kept) => engine.decide_each_with(requests, &mut kept, |_, _| {}),
    ///         (false, kept) => kept.give_up(),
    ///     }
    /// }
    /// ```
    pub fn give_up(mut self) {
        self.begin();
    }

    /// One of those that it is kept for is decided.
    pub(crate) const fn begin(&mut self) {
        self.is_used = true;
    }

    /// What is kept for a request of that cost.
    pub(crate) fn take(&mut self, owner: KeyHash, cost: u64) -> Option<KeptWhat> {
        let kept = self.kept.get_mut(&owner)?;
        let at = kept.iter().position(|kept| kept.cost == cost)?;
        kept.remove(at).map(|kept| kept.what)
    }

    pub(crate) fn take_permit(&mut self, owner: KeyHash) -> Option<LentPermit> {
        self.permits.get_mut(&owner)?.pop()
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let Some(sharing) = &self.sharing else { return };
        for (owner, kept) in self.kept.drain() {
            for Kept { cost, what } in kept {
                match what {
                    KeptWhat::Taken(_, place, filling) => sharing.put_back(place, filling, cost),
                    KeptWhat::Told(told) if self.is_used => sharing.give_up_told(owner, told),
                    // The same requests may come again.
                    KeptWhat::Told(told) => sharing.leave(owner, told),
                    KeptWhat::Short(_) | KeptWhat::Alone => {}
                }
            }
        }
    }
}

impl fmt::Debug for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").field("keys", &self.kept.len()).finish_non_exhaustive()
    }
}

/// Keeps what requests need that are decided one after the other, or finds out what of it is not here.
///
/// What several need of one key is asked for as one sum, and is lent. If the store has not so much, or
/// others were faster, the store decides each of them, as often as it takes in the time there is.
///
/// Nothing is taken before all of it was seen: what is put back may find its purse filled anew, and is
/// lost then.
pub(crate) struct Reserving<'a> {
    sharing: &'a Arc<Sharing>,
    now: Tick,
    /// When they were first fetched for, if they were.
    since: Option<Tick>,
    keys: ByHash<Planned>,
    permits: Vec<KeyHash>,
    lacks: Lacks,
}

/// What those before need of a key.
#[derive(Default)]
struct Planned {
    /// What each of them spends, and what of that is not told yet, in all.
    spends: Vec<u64>,
    sum: u64,
    is_strict: bool,
    keeps_denials: bool,
    /// The answers that wait for them.
    told: Costs,
    /// Where the lack is that stands for all of them.
    lack: Option<usize>,
    /// Lacks of those for which there is enough here, if nobody comes behind them. By the time that the
    /// store has decided the others it may be gone.
    waiting: Lacks,
    /// Whether there is nothing left in the store either.
    is_used_up: bool,
}

impl<'a> Reserving<'a> {
    pub(crate) fn new(sharing: &'a Arc<Sharing>, now: Tick, since: Option<Tick>) -> Self {
        let (permits, lacks) = (Vec::new(), Lacks::new());
        Self { sharing, now, since, keys: ByHash::default(), permits, lacks }
    }

    /// One spends. `name` is what the key is called in the store.
    pub(crate) fn spend(&mut self, shared: &Shared<'_>, name: impl FnOnce() -> Arc<[u8]>) {
        if shared.cost == 0 {
            return self.look(shared, name);
        }
        let Self { sharing, now, since, keys, lacks, .. } = self;
        let again = since.is_some();
        let planned = keys.entry(shared.owner).or_insert_with(|| Planned {
            told: if again { sharing.told.costs(shared.owner, *now) } else { Costs::new() },
            is_used_up: again && sharing.is_used_up(shared.owner, *now),
            is_strict: shared.limit.is_strict,
            keeps_denials: shared.limit.keeps_denials,
            ..Planned::default()
        });
        planned.spends.push(shared.cost);
        let fits = |told: &Option<u64>| told.is_none_or(|cost| cost == shared.cost);
        if let Some(at) = planned.told.iter().position(fits) {
            planned.told.swap_remove(at);
            return;
        }
        // Each such request is denied, however many there are.
        if planned.keeps_denials && sharing.denials.find(shared.owner, shared.cost, *now).is_some()
        {
            return;
        }
        planned.sum = planned.sum.saturating_add(shared.cost);
        let all = Shared { cost: planned.sum, ..*shared };
        let has = sharing.is_decided_here(&all, *now, asking(*since), planned.is_used_up);
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
        self.permits.push(shared.owner);
        let planned = self.keys.entry(shared.owner).or_default();
        planned.sum = planned.sum.saturating_add(shared.cost).min(shared.limit.capacity);
        let all = Shared { cost: planned.sum, ..*shared };
        if self.sharing.knows_of_permits(all.owner, all.cost, self.now, asking(self.since)) {
            return;
        }
        match planned.lack {
            Some(at) => self.lacks[at].cost = planned.sum,
            None => {
                planned.lack = Some(self.lacks.len());
                self.lacks.push(Lack::new(&all, name(), Purpose::Permit));
            }
        }
    }

    /// One looks, after all that others spend.
    pub(crate) fn look(&mut self, shared: &Shared<'_>, name: impl FnOnce() -> Arc<[u8]>) {
        let sum = self.keys.get(&shared.owner).map_or(0, |planned| planned.sum);
        let all = Shared { cost: sum.saturating_add(shared.cost), ..*shared };
        // An answer to a look is not taken by others.
        if self.since.is_none()
            && !self.sharing.is_decided_here(&all, self.now, Asking::Wait, false)
        {
            self.lacks.push(Lack::new(shared, name(), Purpose::Look));
        }
    }

    /// What is kept for all of them, or what is to be waited for: then nothing is kept.
    pub(crate) fn done(self) -> Result<Reserve, Wait> {
        let (sharing, now) = (self.sharing, self.now);
        let wait = |lacks| Err(Wait::new(sharing, lacks, self.since, now));
        if !self.lacks.is_empty() {
            return wait(self.lacks);
        }
        let mut reserve = Reserve::default();
        reserve.sharing = Some(Arc::clone(sharing));
        let mut low = SmallVec::new();
        let mut spending = self.keys.iter().filter(|(_, planned)| !planned.spends.is_empty());
        let all_spend = spending.all(|(owner, planned)| {
            let (asking, owner) = (asking(self.since), *owner);
            let keeping = Keeping { sharing, now, asking, owner, low: &mut low };
            keeping.all(planned, reserve.kept.entry(owner).or_default())
        });
        let mut permits = self.permits.iter();
        let is_kept = all_spend && permits.all(|owner| self.keep_permit(*owner, &mut reserve));
        if !is_kept {
            // Others were faster, just now. What is lacking is found out when they come again.
            drop(reserve);
            reserve = Reserve::default();
        }
        // Before this it would be put back into a purse that was filled anew.
        low.into_iter().for_each(|place| sharing.call(Call::Look(place)));
        match is_kept {
            true => Ok(reserve),
            false => wait(Lacks::new()),
        }
    }

    /// Takes a permit for one of them. Whether there was one, or is none: that is said when it is decided.
    fn keep_permit(&self, owner: KeyHash, reserve: &mut Reserve) -> bool {
        let Self { sharing, now, since, .. } = *self;
        let kept = reserve.permits.entry(owner).or_default();
        // More than there are at all were not planned for.
        let most = self.keys.get(&owner).map_or(0, |planned| planned.sum);
        if kept.len() as u64 >= most {
            return true;
        }
        match sharing.take_permit(owner, now) {
            Some(permit) => kept.push(permit),
            None => return sharing.knows_of_permits(owner, 1, now, asking(since)),
        }
        true
    }
}

/// Takes what requests of one key need.
struct Keeping<'a> {
    sharing: &'a Sharing,
    now: Tick,
    asking: Asking,
    owner: KeyHash,
    /// Places of purses that are nearly empty.
    low: &'a mut SmallVec<[Place; 4]>,
}

impl Keeping<'_> {
    /// Whether there was something for all of them.
    fn all(mut self, planned: &Planned, kept: &mut VecDeque<Kept>) -> bool {
        let mut rest = SmallVec::<[u64; 32]>::new();
        for cost in planned.spends.iter().copied() {
            match self.sharing.told_to((self.owner, cost), false, self.now, self.asking) {
                Some(told) => kept.push_back(Kept { cost, what: self.or_here(told, cost) }),
                None => rest.push(cost),
            }
        }
        let sum = rest.iter().fold(0, |sum: u64, cost| sum.saturating_add(*cost));
        if !planned.is_strict && (self.sum(sum, &rest, kept) || self.waits_and(sum, &rest, kept)) {
            return true;
        }
        let is_short = self.asking == Asking::Wait || planned.is_used_up;
        rest.into_iter().all(|cost| {
            let what = match planned.is_strict {
                true => self.strictly(cost),
                false => self.one(cost, is_short),
            };
            what.map(|what| kept.push_back(Kept { cost, what })).is_some()
        })
    }

    /// What the store has said; but what it denies may be here, because it was lent.
    fn or_here(&mut self, told: Box<Told<About>>, cost: u64) -> KeptWhat {
        let is_denied = matches!(&told.said, Said::Decided(said, _) if !said.is_allowed());
        let Self { sharing, now, owner, .. } = *self;
        // Who takes in vain is counted as denied, and this one is counted already.
        let is_here =
            is_denied && matches!(sharing.purses.look(owner, now, cost), Taken::Spent { .. });
        let taken = match is_here {
            true => sharing.purses.take(owner, now, cost),
            false => Taken::Unknown,
        };
        let Taken::Spent { decision, is_low, place, filling } = taken else {
            return KeptWhat::Told(told);
        };
        self.low.extend(is_low.then_some(place));
        KeptWhat::Taken(decision, place, filling)
    }

    /// Takes what these need in one go, so that all of it is there or nothing is taken.
    fn sum(&mut self, sum: u64, costs: &[u64], kept: &mut VecDeque<Kept>) -> bool {
        if costs.is_empty() {
            return true;
        }
        let Self { sharing, now, owner, .. } = *self;
        if !matches!(sharing.purses.look(owner, now, sum), Taken::Spent { .. }) {
            return false;
        }
        let taken = sharing.purses.take_sum(owner, now, sum, costs.len() as u64);
        let Taken::Spent { decision, is_low, place, filling } = taken else { return false };
        self.low.extend(is_low.then_some(place));
        let mut left = decision.remaining().saturating_add(sum);
        kept.extend(costs.iter().map(|cost| {
            left -= cost;
            let said = Decision::allow(decision.limit(), left, decision.reset_after());
            Kept { cost: *cost, what: KeptWhat::Taken(said, place, filling) }
        }));
        true
    }

    /// The same when whoever has the purse in his hands is done with it.
    fn waits_and(&mut self, sum: u64, costs: &[u64], kept: &mut VecDeque<Kept>) -> bool {
        let is_known = self.sharing.purses.known(self.owner, self.now).is_some();
        is_known && self.sum(sum, costs, kept)
    }

    /// What there is for one of those for which there is not enough.
    fn one(&mut self, cost: u64, is_short: bool) -> Option<KeptWhat> {
        let Self { sharing, now, owner, .. } = *self;
        let is_alone = sharing.is_alone(self.asking);
        let taken = match is_short || is_alone {
            true => sharing.purses.take(owner, now, cost),
            false => Taken::Unknown,
        };
        match taken {
            Taken::Spent { decision, is_low, place, filling } => {
                self.low.extend(is_low.then_some(place));
                Some(KeptWhat::Taken(decision, place, filling))
            }
            Taken::Short(denial) if is_short => Some(KeptWhat::Short(denial)),
            _ => is_alone.then_some(KeptWhat::Alone),
        }
    }

    /// The same of a limit that is not lent.
    fn strictly(&self, cost: u64) -> Option<KeptWhat> {
        let Self { sharing, now, owner, asking, .. } = *self;
        match sharing.denials.find(owner, cost, now) {
            Some(denial) => {
                add(&sharing.counts.short, 1);
                Some(KeptWhat::Short(denial))
            }
            None => sharing.is_alone(asking).then_some(KeptWhat::Alone),
        }
    }
}

/// How requests ask that were first fetched for then, if they were.
fn asking(since: Option<Tick>) -> Asking {
    since.map_or(Asking::Wait, |since| Asking::Again { since })
}
