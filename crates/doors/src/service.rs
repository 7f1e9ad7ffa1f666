//! What all doors ask.

mod loss_log;
mod many;
#[cfg(test)]
pub(crate) mod silent;
mod together;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tollgate::store::Store;
use tollgate::{
    Clock as _, Engine, EngineBuilder, Health, Lapse, Request, Reserve, RuleSet, Ruling,
    SharingConfig, SystemClock, Tick, Wait, Wall,
};
use tollgate_rules::{NoFiles, Report, Source, Version};

use crate::config::{Config, Log};
use crate::connection::Limits;
use crate::denials::Denials;
use crate::door::Name;
use crate::drain::Drain;
use crate::given::{Given, InForce, Origin};
use crate::held::Budget;
use crate::log_level::LogLevel;
use crate::metrics::{Family, Metrics};
use crate::observer::{Decided, Observer};
use crate::service::loss_log::LossLog;
pub(crate) use crate::service::many::THROTTLED;
use crate::service::many::Throttles;
pub(crate) use crate::service::together::Together;
use crate::switches::{Killed, SwitchError, Switches, Which};
use crate::unheard;

/// Whether an answer can be put off until a store was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It can: whoever asks is told what to wait for, and comes again.
    #[default]
    First,
    /// It was, since then. If others were faster, it can once more, as long as there is time.
    Again { since: Tick },
    /// It cannot.
    Now,
}

impl Turn {
    /// The one after waiting for that.
    pub(crate) const fn after(wait: &Wait) -> Self {
        Self::Again { since: wait.since() }
    }
}

/// Does something, and again whenever a store was asked that has to be. There is an end to it: see
/// [`Wait`].
pub(crate) async fn in_turn<T>(mut act: impl FnMut(Turn) -> Result<T, Wait>) -> T {
    let mut turn = Turn::First;
    loop {
        match act(turn) {
            Err(wait) => {
                turn = Turn::after(&wait);
                wait.fetch().await;
            }
            Ok(told) => return told,
        }
    }
}

/// What all doors ask: the engine, and what is known about it.
#[derive(Debug)]
pub struct Service {
    engine: Engine,
    /// For those who bring their limits themselves.
    throttle: Throttles,
    in_force: Mutex<InForce>,
    metrics: Metrics,
    denials: Denials,
    log_level: LogLevel,
    drain: Drain,
    observer: Option<Arc<dyn Observer>>,
    /// For what all doors hold of what is not complete.
    held: Arc<Budget>,
    /// Hears that it is to end.
    end: Notify,
}

/// Rules cannot be put in force. The old ones stay.
#[derive(Debug, thiserror::Error)]
#[error("these rules cannot be kept: {0}")]
pub struct SwapError(#[from] tollgate::Error);

/// Why rules that somebody pushed are not in force.
#[derive(Debug)]
pub(crate) enum PushError {
    /// They are wrong.
    Wrong(Report),
    /// Those in force are not the ones that they were to replace.
    Stale(Version),
    Swap(SwapError),
}

impl Service {
    /// Decides by these rules, with room for so many keys.
    pub fn new(rules: impl Into<Given>, keys: usize) -> Result<Self, SwapError> {
        let given = rules.into();
        let engine = Engine::builder(Arc::clone(&given.rules)).keys(keys);
        Self::of(given, keys, engine)
    }

    /// The same, with limits that are shared through a store. A task of the runtime from which this
    /// is called looks after that.
    pub fn sharing(
        rules: impl Into<Given>,
        keys: usize,
        store: impl Store,
        config: SharingConfig,
    ) -> Result<Self, SwapError> {
        let given = rules.into();
        let engine = Engine::builder(Arc::clone(&given.rules)).keys(keys).store(store, config)?;
        Self::of(given, keys, engine)
    }

    fn of(given: Given, keys: usize, engine: EngineBuilder) -> Result<Self, SwapError> {
        let engine = engine.build()?;
        let throttle = Throttles::new(keys, engine.clock().clone());
        let metrics = Metrics::new(&given.rules, engine.clock().wall());
        let denials = Denials::new(&Config::defaults(1).log, engine.clock());
        Ok(Self {
            engine,
            throttle,
            in_force: Mutex::new(InForce { given, switches: Switches::default() }),
            metrics,
            denials,
            log_level: LogLevel::default(),
            drain: Drain::new(),
            observer: None,
            held: Arc::new(Budget::new(Limits::default().held_bytes)),
            end: Notify::new(),
        })
    }

    /// Writes to the log as this says, and whoever runs it can change the level.
    pub fn logging(self, log: &Log, level: LogLevel) -> Self {
        Self { denials: Denials::new(log, self.clock()), log_level: level, ..self }
    }

    /// Tells somebody about some decisions.
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Writes to the log when the store fails, and when it is well again, each time once; and why rules
    /// decide single requests without it, now and then; and that it has lost its memory. Does not end.
    pub async fn watch_store(&self) {
        let Some(mut health) = self.engine.health() else { return std::future::pending().await };
        let mut losses = LossLog::of(&self.engine);
        loop {
            tokio::select! {
                () = losses.tell() => {}
                changed = health.changed() => match changed {
                    Ok(()) => tell_health(&health.borrow_and_update()),
                    Err(_) => return,
                },
                lapse = self.engine.lapse() => tell_lapse(&lapse),
            }
        }
    }

    /// All metrics, as they are now.
    pub fn families(&self) -> Vec<Family> {
        self.metrics.families(self)
    }

    /// When counting began.
    pub const fn began(&self) -> Wall {
        self.metrics.began()
    }

    /// Puts other rules in force. What was killed stays killed.
    pub fn swap(&self, rules: impl Into<Given>) -> Result<(), SwapError> {
        let mut in_force = self.in_force();
        if in_force.given.origin == Origin::Pushed {
            tracing::warn!("rules that were pushed are replaced by those of the file");
        }
        self.replace(&mut in_force, rules.into())
    }

    /// Puts rules in force that somebody pushed, if nothing is wrong with them, and the version in
    /// force is one of those that they are to replace.
    pub(crate) fn push(
        &self,
        source: &Source,
        replaces: impl FnOnce(Version) -> bool,
    ) -> Result<(Version, Arc<RuleSet>), PushError> {
        let rules = RuleSet::read(source, &NoFiles).map_err(PushError::Wrong)?;
        let mut in_force = self.in_force();
        let old = in_force.given.rules.version();
        if !replaces(old) {
            return Err(PushError::Stale(old));
        }
        let given = Given { origin: Origin::Pushed, ..(source.clone(), rules).into() };
        let new = Arc::clone(&given.rules);
        self.replace(&mut in_force, given).map_err(PushError::Swap)?;
        Ok((old, new))
    }

    /// Kills a rule, or all of them. It does not deny any more when this returns.
    pub(crate) fn kill(&self, which: Which<'_>, killed: Killed) -> Result<InForce, SwitchError> {
        let in_force = self.switch(|rules, switches| switches.kill(rules, which, killed))?;
        tracing::warn!(rule = name(which), mode = killed.as_str(), "killed");
        Ok(in_force)
    }

    /// Takes a switch back.
    pub(crate) fn unkill(&self, which: Which<'_>) -> Result<InForce, SwitchError> {
        let in_force = self.switch(|rules, switches| switches.unkill(rules, which))?;
        tracing::warn!(rule = name(which), "not killed any more");
        Ok(in_force)
    }

    fn switch(
        &self,
        switch: impl FnOnce(&RuleSet, &mut Switches) -> Result<(), SwitchError>,
    ) -> Result<InForce, SwitchError> {
        let mut in_force = self.in_force();
        let mut switches = in_force.switches.clone();
        switch(&in_force.given.rules, &mut switches)?;
        self.put_in_force(&in_force.given, &switches)?;
        in_force.switches = switches;
        Ok(in_force.clone())
    }

    fn replace(&self, in_force: &mut InForce, given: Given) -> Result<(), SwapError> {
        let mut switches = in_force.switches.clone();
        let gone = switches.keep(&given.rules);
        self.put_in_force(&given, &switches)?;
        self.metrics.rules_swapped(self.clock().wall());
        for rule in gone {
            tracing::warn!(rule, "it was killed, and is not in the rules any more");
        }
        *in_force = InForce { given, switches };
        self.tell_unheard();
        Ok(())
    }

    /// Says in the log which rules in force wait for outcomes that nobody tells at an open door.
    pub(crate) fn tell_unheard(&self) {
        for door in Name::ALL.into_iter().filter(|door| self.metrics.is_open(*door)) {
            unheard::tell(&self.rules(), door);
        }
    }

    fn put_in_force(&self, given: &Given, switches: &Switches) -> Result<(), SwapError> {
        let rules = switches.apply(&given.rules);
        self.metrics.exchange(&rules, || self.engine.exchange(Arc::clone(&rules)))?;
        Ok(())
    }

    fn in_force(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rules as they were given, and what was switched since.
    pub(crate) fn now_in_force(&self) -> InForce {
        self.in_force().clone()
    }

    /// Says that rules were refused, and why. Those in force stay.
    pub fn refuse_rules(&self, file: &str, problem: &str) {
        self.metrics.rules_refused();
        tracing::error!(file, "rules are refused, and the old ones stay: {problem}");
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.engine.rules()
    }

    /// The clock that everything is decided by.
    pub const fn clock(&self) -> &SystemClock {
        self.engine.clock()
    }

    /// Lets a request pass, or not, with what is kept for it.
    pub(crate) fn check_with(
        &self,
        door: Name,
        request: &Request<'_>,
        kept: &mut Reserve,
    ) -> Ruling {
        let timed = self.metrics.times_of_next(1);
        let began = (timed > 0).then(|| self.clock().now());
        self.checked(door, request, self.engine.decide_with(request, kept), began, timed)
    }

    #[cfg(test)]
    pub(crate) fn check(&self, door: Name, request: &Request<'_>) -> Ruling {
        self.check_with(door, request, &mut Reserve::default())
    }

    /// The same for one by itself, or what to wait for first.
    #[inline]
    pub(crate) fn try_check(
        &self,
        door: Name,
        request: &Request<'_>,
        turn: Turn,
    ) -> Result<Ruling, Wait> {
        let timed = self.metrics.times_of_next(1);
        let began = (timed > 0).then(|| self.clock().now());
        let ruling = match turn {
            Turn::First => self.engine.try_decide(request)?,
            Turn::Again { since } => self.engine.try_decide_again(request, since)?,
            Turn::Now => self.engine.decide(request),
        };
        Ok(self.checked(door, request, ruling, began, timed))
    }

    #[inline]
    fn checked(
        &self,
        door: Name,
        request: &Request<'_>,
        ruling: Ruling,
        began: Option<Tick>,
        timed: u64,
    ) -> Ruling {
        if let Some(began) = began {
            let took = self.clock().now().since(began);
            self.metrics.decided_in(took, timed);
            self.tell(door, &ruling, took);
        }
        self.decided(door, request, &ruling);
        ruling
    }

    fn tell(&self, door: Name, ruling: &Ruling, took: Duration) {
        let Some(observer) = &self.observer else { return };
        observer.decided(&Decided {
            door: door.as_str(),
            rule: ruling.rule(),
            is_allowed: ruling.is_allowed(),
            version: ruling.version(),
            at: self.clock().wall(),
            took,
        });
    }

    /// Counts a decision, and writes about a denial now and then.
    #[inline]
    pub(crate) fn decided(&self, door: Name, request: &Request<'_>, ruling: &Ruling) {
        self.metrics.decided(door, ruling);
        if !ruling.is_allowed() {
            self.denials.note(door, request, ruling);
        }
    }

    /// What [`check`](Self::check) would answer.
    pub(crate) fn peek(&self, request: &Request<'_>) -> Ruling {
        self.engine.peek(request)
    }

    /// The same, or what to wait for first.
    pub(crate) fn try_peek(&self, request: &Request<'_>, turn: Turn) -> Result<Ruling, Wait> {
        match turn {
            Turn::First => self.engine.try_peek(request),
            Turn::Again { .. } | Turn::Now => Ok(self.engine.peek(request)),
        }
    }

    /// What is kept for all of these until they are decided, or what to wait for first, also to look
    /// at those.
    pub(crate) fn keep(
        &self,
        checks: &[Request<'_>],
        peeks: &[Request<'_>],
        turn: Turn,
    ) -> Result<Reserve, Wait> {
        match turn {
            Turn::First => self.engine.reserve(checks, peeks),
            Turn::Again { since } => self.engine.reserve_again(checks, since),
            Turn::Now => Ok(Reserve::default()),
        }
    }

    /// Whether requests should be sent here.
    pub(crate) fn is_ready(&self) -> bool {
        self.drain.is_ready()
    }

    pub(crate) const fn drain(&self) -> &Drain {
        &self.drain
    }

    /// How much of what is not complete may be held, and is.
    pub(crate) const fn held(&self) -> &Arc<Budget> {
        &self.held
    }

    pub(crate) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) const fn denials(&self) -> &Denials {
        &self.denials
    }

    pub(crate) const fn log_level(&self) -> &LogLevel {
        &self.log_level
    }

    /// Asks whoever runs the server to end it.
    pub(crate) fn end(&self) {
        self.end.notify_one();
    }

    /// Ends when somebody has asked for the end, at the admin door.
    pub async fn ending(&self) {
        self.end.notified().await;
    }

    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// What is said of the store in the log when it fails, and when it is well again.
fn tell_health(health: &Health) {
    match health {
        Health::Degraded { reason } => tracing::warn!(
            reason,
            "the store fails: rules do as `on_store_failure` says until it is well again"
        ),
        Health::Well => tracing::info!("the store is well again, and limits are shared"),
        _ => {}
    }
}

/// What is said there of requests that were decided without it, though it is asked.
fn tell_lapse(lapse: &Lapse) {
    let Lapse { rule, policy, reason, decisions, .. } = lapse;
    tracing::warn!(
        rule,
        on_store_failure = %policy,
        decisions,
        reason,
        "the store did not decide: the rule did as `on_store_failure` says"
    );
}

/// What is said of a switch in the log.
const fn name(which: Which<'_>) -> &str {
    match which {
        Which::All => "(all)",
        Which::Rule(name) => name,
    }
}
