//! Rules whose limits are shared with other nodes.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use arc_swap::ArcSwap;
use smallvec::SmallVec;
use tollgate_core::{Decision, Tick};
use tollgate_local::{Clock, Held, KeyHash, Place};
use tollgate_rules::{Facts, Request, Rule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::batch::AllMet;
use crate::engine::counted::{Counted, Slots};
use crate::engine::decide::{Intent, Met, State, Way};
use crate::engine::keys::write_part;
use crate::engine::ruling::{Reserved, Ruling, Spent};
use crate::engine::said::Said;
use crate::sharing::{
    Asking, Lack, LaterBack, Lent, LentPermit, Purpose, Reserve, Reserving, Shared, SharedLimit,
    Sharing, Wait,
};
use crate::spending::Each;

impl<C: Clock> Engine<C> {
    /// What [`decide`](Self::decide) says, or what is to be waited for before it can be said: the
    /// store has to be asked. Nothing is spent then. After waiting, [`decide`](Self::decide) says it.
    /// Without a store there is nothing to wait for.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// let ruling = engine.try_decide(&Request::new("GET", "/")).expect("there is no store");
    /// assert!(ruling.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What to wait for.
    pub fn try_decide(&self, request: &Request<'_>) -> Result<Ruling, Wait> {
        self.try_rule(request, Intent::Spend, Asking::Wait)
    }

    /// The same after what it lacked was fetched, which was first waited for [then](Wait::since): others
    /// may have been faster. Then it is to be waited for once more, until the timeout of the engine is
    /// over.
    ///
    /// # Errors
    ///
    /// What to wait for.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Ruling, Wait};
    /// async fn second(engine: &Engine, request: &Request<'_>, wait: Wait) -> Result<Ruling, Wait> {
    ///     let since = wait.since();
    ///     wait.fetch().await;
    ///     engine.try_decide_again(request, since)
    /// }
    /// ```
    pub fn try_decide_again(&self, request: &Request<'_>, since: Tick) -> Result<Ruling, Wait> {
        self.try_rule(request, Intent::Spend, Asking::Again { since })
    }

    /// [Decides](Self::decide), and waits for the store if it has to be asked: for as long as its
    /// timeout, and no longer.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.decide_waiting(&Request::new("GET", "/")).await.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn decide_waiting(&self, request: &Request<'_>) -> Ruling {
        let mut ruling = self.try_decide(request);
        loop {
            let wait = match ruling {
                Ok(ruling) => return ruling,
                Err(wait) => wait,
            };
            let since = wait.since();
            wait.fetch().await;
            ruling = self.try_decide_again(request, since);
        }
    }

    /// The same for [`peek`](Self::peek).
    ///
    /// # Errors
    ///
    /// What to wait for.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.try_peek(&Request::new("GET", "/")).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_peek(&self, request: &Request<'_>) -> Result<Ruling, Wait> {
        self.try_rule(request, Intent::Look, Asking::Wait)
    }

    /// Keeps what `checks` need, which are about to be decided one after the other or
    /// [together](Self::decide_together_with), so that nobody else takes it before that; or says what
    /// has to be waited for first, also to look at `peeks`.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Ruling};
    /// async fn decide(engine: &Engine, all: &[Request<'_>], each: impl FnMut(usize, &mut Ruling)) {
    ///     let mut reserve = engine.reserve(all, &[]);
    ///     while let Err(wait) = reserve {
    ///         let since = wait.since();
    ///         wait.fetch().await;
    ///         reserve = engine.reserve_again(all, since);
    ///     }
    ///     engine.decide_each_with(all, &mut reserve.unwrap_or_default(), each);
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// What to wait for.
    pub fn reserve(&self, checks: &[Request<'_>], peeks: &[Request<'_>]) -> Result<Reserve, Wait> {
        self.reserve_since(checks, peeks, None)
    }

    /// The same after that was fetched, which was first waited for [then](Wait::since): the store may
    /// have less than all of them need, or others may have been faster.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Reserve, Wait};
    /// async fn second(engine: &Engine, all: &[Request<'_>], wait: Wait) -> Result<Reserve, Wait> {
    ///     let since = wait.since();
    ///     wait.fetch().await;
    ///     engine.reserve_again(all, since)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// What to wait for, unless the timeout of the engine is over.
    pub fn reserve_again(&self, checks: &[Request<'_>], since: Tick) -> Result<Reserve, Wait> {
        self.reserve_since(checks, &[], Some(since))
    }

    fn reserve_since(
        &self,
        checks: &[Request<'_>],
        peeks: &[Request<'_>],
        since: Option<Tick>,
    ) -> Result<Reserve, Wait> {
        let Some(sharing) = &self.sharing else { return Ok(Reserve::default()) };
        let active = self.active.load();
        if !active.is_shared() {
            return Ok(Reserve::default());
        }
        let geo = active.geo().map(ArcSwap::load);
        let mut reserving = Reserving::new(sharing, self.clock.now(), since);
        let checks = checks.iter().map(|request| (request, Intent::Spend));
        let peeks = peeks.iter().map(|request| (request, Intent::Look));
        for (request, intent) in checks.chain(peeks) {
            let mut room = String::new();
            let request = request.normal(&mut room);
            let facts = Facts::new(active.rules(), &request, geo.as_ref().map(|geo| &***geo));
            let mut all = AllMet::new();
            self.meet(&active, &facts, &mut all);
            for met in &all {
                let name = || name(met.rule, &facts);
                match (met.shared(&facts), intent) {
                    (Some(shared), Intent::Spend) => reserving.spend(&shared, name),
                    (Some(shared), Intent::Look) => reserving.look(&shared, name),
                    (None, Intent::Look) => {}
                    (None, Intent::Spend) => {
                        if let Some((_, shared)) = met.shared_slots(&facts) {
                            reserving.permit(&shared, name);
                        }
                    }
                }
            }
        }
        reserving.done()
    }

    /// The usual case where limits are shared: there are only rates, and enough of all of them is lent
    /// to this node. Whether that was it; otherwise nothing is spent.
    #[inline(never)]
    pub(super) fn is_lent(
        &self,
        active: &Active,
        all: &[Met<'_>],
        facts: &Facts<'_>,
        (intent, asking): (Intent, Asking),
        said: &mut Said,
    ) -> bool {
        let Some(sharing) = &self.sharing else { return false };
        if !active.shares_only_rates() || intent != Intent::Spend {
            return false;
        }
        let mut now = None;
        let mut taken: Each<(Place, u32)> = Each::new();
        for met in all {
            let decision = said.room();
            let shared = met.shared(facts).filter(|shared| !shared.limit.is_always_asked());
            let lent = match shared {
                Some(shared) => {
                    let now = *now.get_or_insert_with(|| self.clock.now());
                    sharing.take(&shared, now, asking, decision)
                }
                None => Lent::Not,
            };
            match lent {
                Lent::Spent(place, filling) => {
                    // Nobody can deny what one alone has let pass.
                    if all.len() > 1 {
                        taken.push((place, filling));
                    }
                }
                // It decides for itself alone.
                Lent::Short if all.len() == 1 => said.denied = true,
                Lent::Short | Lent::Not => {
                    if let (Lent::Short, Some(shared)) = (lent, met.shared(facts)) {
                        sharing.uncount_short(&shared);
                    }
                    for ((place, filling), met) in taken.into_iter().zip(all) {
                        sharing.put_back(place, filling, met.spending.cost);
                    }
                    said.each.clear();
                    return false;
                }
            }
        }
        true
    }

    fn try_rule(
        &self,
        request: &Request<'_>,
        intent: Intent,
        asking: Asking,
    ) -> Result<Ruling, Wait> {
        // It is made where it is handed over.
        let mut told = Ok(Ruling::new(self.active.load()));
        if let Ok(ruling) = &mut told {
            let (active, said) = ruling.parts();
            match self.ask(active, request, (intent, asking), None, said) {
                None if intent == Intent::Spend => self.watch(active, request, said),
                None => {}
                Some(wait) => told = Err(*wait),
            }
        }
        told
    }
}

impl<'a> Met<'a> {
    /// The limit, if it is shared. Those of rules about what is under way at once are
    /// [elsewhere](Self::shared_slots).
    #[inline(always)]
    pub(super) fn shared(&self, facts: &Facts<'_>) -> Option<Shared<'a>> {
        let limit = self.counted.shared(self.rule, facts, self.spending.key)?;
        Some(Shared {
            limit,
            owner: limit.owner(self.spending.key),
            key: self.spending.key,
            cost: self.spending.cost,
        })
    }

    pub(super) fn shared_slots(&self, facts: &Facts<'_>) -> Option<(&'a Slots, Shared<'a>)> {
        let slots = self.counted.slots(|| facts.tier())?;
        let limit = slots.shared.as_ref()?;
        let key = self.spending.key;
        Some((slots, Shared { limit, owner: limit.owner(key), key, cost: 1 }))
    }
}

impl Counted {
    /// The shared limit of a request with this key, if the rule shares its limits.
    #[inline]
    pub(super) fn shared(
        &self,
        rule: &Rule,
        facts: &Facts<'_>,
        key: KeyHash,
    ) -> Option<&Arc<SharedLimit>> {
        if self.shared.is_empty() {
            return None;
        }
        let number = match self.override_of(key) {
            Some(number) => self.own + rule.limit_of(facts, Some(number)),
            None if self.own == 1 => 0,
            None => rule.limit_of(facts, None),
        };
        // Where there is no limit, there is nothing to share.
        self.shared.get(number).filter(|shared| !shared.is_unlimited())
    }
}

impl<C: Clock> Way<'_, '_, C> {
    /// Takes a slot that is held here from those of all nodes as well. What is said if there is none.
    pub(super) fn slot_of_all(
        &mut self,
        (of, at): (usize, usize),
        here: Held,
        out: u64,
    ) -> Option<Decision> {
        let (met, facts) = (&self.all[at], &self.together.facts[of]);
        let (sharing, (_, shared)) = (self.engine.sharing.as_ref()?, met.shared_slots(facts)?);
        let kept = self.reserve.as_deref_mut().and_then(|it| it.take_permit(shared.owner));
        if let Some(lent) = kept {
            sharing.permit_kept();
            let held = HeldSlot { _here: here, _lent: Some(lent) };
            self.together.said[of].held.push(held);
            return None;
        }
        let called = || name(met.rule, facts);
        match shared_slot((sharing, &shared), here, out, self.asking, called) {
            SlotSaid::Held(held) => self.together.said[of].held.push(held),
            SlotSaid::Denied(denied) => return Some(denied),
            SlotSaid::Lacks => {
                self.lacks.push(Lack::new(&shared, called(), Purpose::Permit));
            }
        }
        None
    }

    /// Asks the limits that are shared, whether their rules are enforced or not: what was spent in
    /// vain is given back.
    pub(super) fn shared_rates(&mut self, intent: Intent) {
        let Some(sharing) = &self.engine.sharing else { return };
        self.now = self.engine.clock.now();
        for at in 0..self.all.len() {
            let (met, facts) = (self.all[at], &self.together.facts[self.together.of(at)]);
            let Some(shared) = met.shared(facts).filter(|_| self.is_open(at)) else { continue };
            let (now, clock) = (self.now, &self.engine.clock);
            let name = || name(met.rule, facts);
            let decision = match self.intent {
                Intent::Spend => {
                    let reserve = self.reserve.as_deref_mut();
                    let spent = match reserve.and_then(|it| it.take(shared.owner, shared.cost)) {
                        Some(kept) => Some(sharing.spend_kept(&shared, kept, now, clock, name)),
                        None => sharing.spend(&shared, now, self.asking, clock, name),
                    };
                    spent.map(|(decision, back)| {
                        self.spent.push((at, back));
                        decision
                    })
                }
                // Nobody waits to see what others would say to a request that is denied.
                Intent::Look if intent == Intent::Spend => {
                    sharing.give_up(&shared, now, self.asking);
                    sharing.look(&shared, now, Asking::Now)
                }
                Intent::Look => sharing.look(&shared, now, self.asking),
            };
            match decision {
                Some(decision) => self.decide(at, decision),
                None => {
                    let purpose = match self.asking {
                        _ if self.intent == Intent::Look || shared.cost == 0 => Purpose::Look,
                        Asking::Again { .. } => Purpose::Decide,
                        Asking::Wait | Asking::Now => Purpose::Spend,
                    };
                    self.lacks.push(Lack::new(&shared, name(), purpose));
                }
            }
        }
    }

    /// If the request passes, what was spent of shared limits is; otherwise it is given back. If
    /// something has to be waited for, the request is as if it had not been.
    pub(super) fn settle(&mut self) -> Option<Wait> {
        let sharing = self.engine.sharing.as_ref()?;
        let is_denied = self.together.said.iter().any(|said| said.denied);
        let lacks = std::mem::take(&mut self.lacks);
        // Whoever only looks wants to know it all.
        let waits = lacks.iter().any(|lack| !is_denied || lack.is_look());
        for (at, back) in std::mem::take(&mut self.spent) {
            let of = self.together.of(at);
            let (met, facts) = (self.all[at], &self.together.facts[of]);
            let Some(shared) = met.shared(facts) else { continue };
            if waits {
                sharing.give_back_for_now(&shared, back, &self.engine.clock);
            } else if is_denied {
                sharing.give_back(&shared, back, &self.engine.clock);
            } else if met.rule.counts_outcomes() {
                let later = LaterBack::new(&shared, name(met.rule, facts), back);
                let reserved = Reserved { rule: met.number, spent: Spent::Shared(later) };
                self.together.said[of].reserved.push(reserved);
            }
        }
        if waits {
            for said in self.together.said.iter_mut() {
                said.held.clear();
                said.reserved.clear();
            }
            let first = match self.asking {
                Asking::Again { since } => Some(since),
                Asking::Wait | Asking::Now => None,
            };
            return Some(Wait::new(sharing, lacks, first, self.now));
        }
        // Whoever is denied is told what is known here.
        for at in 0..self.all.len() {
            let (met, facts) = (self.all[at], &self.together.facts[self.together.of(at)]);
            let Some(shared) = met.shared(facts).filter(|_| self.is_open(at)) else { continue };
            if let Some(decision) = sharing.look(&shared, self.now, Asking::Now) {
                self.states[at] = State::Decided(decision);
            }
        }
        None
    }

    pub(super) fn is_open(&self, at: usize) -> bool {
        matches!(self.states[at], State::Open)
    }
}

/// What a key is called in the store: its parts and their values. So rules that count by the same have
/// the same, and others not.
pub(super) fn name(rule: &Rule, facts: &Facts<'_>) -> Arc<[u8]> {
    let mut name = KeyName(SmallVec::new());
    for part in rule.key() {
        if !name.0.is_empty() {
            name.0.push(b',');
        }
        // It takes whatever is written to it.
        let _ = write!(name, "{part}=");
        let begin = name.0.len();
        let _ = write_part(rule, facts, part, &mut name);
        // Nobody's value can look like that of another part, or like what those without one are called.
        let value = &name.0[begin..];
        let is_given = value.starts_with(b"(") || value.starts_with(b"%");
        let is_given = is_given && rule.key_value(part, facts).is_some();
        let is_mixed = || value.contains(&b',') || value.contains(&b'%');
        if is_given || rule.key().len() > 1 && is_mixed() {
            let value = String::from_utf8_lossy(value).replace('%', "%25").replace(',', "%2C");
            name.0.truncate(begin);
            let _ = match value.strip_prefix('(').filter(|_| is_given) {
                Some(rest) => write!(name, "%28{rest}"),
                None => name.write_str(&value),
            };
        }
    }
    match name.0.is_empty() {
        true => Arc::from(*b"all"),
        false => Arc::from(&*name.0),
    }
}

/// A name that is being written. Only long ones take an allocation.
struct KeyName(SmallVec<[u8; 64]>);

impl fmt::Write for KeyName {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A slot that is held: here, and if it is shared of those that were lent to this node.
#[derive(Debug)]
pub(super) struct HeldSlot {
    _here: Held,
    _lent: Option<LentPermit>,
}

impl From<Held> for HeldSlot {
    fn from(held: Held) -> Self {
        Self { _here: held, _lent: None }
    }
}

/// What came of asking for a slot that is shared.
pub(super) enum SlotSaid {
    Held(HeldSlot),
    Denied(Decision),
    Lacks,
}

/// Takes a slot that is held here already from those that are lent as well. `name` is what the key is
/// called in the store.
fn shared_slot(
    (sharing, shared): (&Arc<Sharing>, &Shared<'_>),
    here: Held,
    out: u64,
    asking: Asking,
    name: impl FnOnce() -> Arc<[u8]>,
) -> SlotSaid {
    match sharing.permit(shared, out.saturating_sub(1), asking, name) {
        Some(Ok(lent)) => SlotSaid::Held(HeldSlot { _here: here, _lent: lent }),
        Some(Err(denial)) => SlotSaid::Denied(denial),
        None => SlotSaid::Lacks,
    }
}
