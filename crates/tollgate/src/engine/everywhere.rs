//! Single keys of limits that are shared: the store is asked how they stand, and forgets them.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_local::{Clock, KeyHash};
use tollgate_rules::{Request, UnknownRule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::inspect::{Found, KeyState, Thorough, ToldBy};
use crate::engine::shared::name;
use crate::sharing::{Alone, Glance, Sharing};

/// What came of giving keys everything back.
///
/// ```
/// # use tollgate::{Engine, NewStart, Request, RuleSet};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/h }]")?)?;
/// let request = Request::new("GET", "/");
/// assert!(engine.decide(&request).is_allowed());
/// let NewStart { counters, leases_end_in, .. } = engine.reset_waiting(&request, None)?.await;
/// assert_eq!((counters, leases_end_in), (1, None), "nothing is shared");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewStart {
    /// How many counters and blocks had anything to give back.
    pub counters: usize,
    /// How long other nodes may still pass what was lent to them before, beside what the keys have
    /// now. Nothing if no limit is lent.
    pub leases_end_in: Option<Duration>,
    /// Why the store did not forget, if it did not. Rules from there on are as they were.
    pub failure: Option<String>,
}

/// The key of one rule that is given a new start.
struct Begin {
    rule: usize,
    key: KeyHash,
    shared: Vec<Glance>,
}

impl<C: Clock> Engine<C> {
    /// What [`inspect`](Self::inspect) says, and of limits that are shared what the store says.
    /// [`KeyState::told_by`] tells which. If the store does not answer within its timeout, it is said what
    /// this node would say to a request without it.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 5/h }]")?)?;
    /// let request = Request::new("GET", "/");
    /// assert_eq!(engine.inspect_waiting(&request).await, engine.inspect(&request));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inspect_waiting(
        &self,
        request: &Request<'_>,
    ) -> impl Future<Output = Vec<KeyState>> + Send + use<C> {
        let active = self.active.load_full();
        let mut states = Vec::new();
        self.each_key(&active, request, None, |look| {
            look.states(Thorough::WhereShared, &mut |Found { state, shared, is_meant }| {
                let key = shared.map(|shared| Glance::new(&shared, name(look.rule, look.facts)));
                states.push((state, key, is_meant));
            });
        });
        let sharing = self.sharing.clone();
        async move {
            match sharing {
                Some(sharing) => told(&sharing, states).await,
                None => states.into_iter().map(|(state, ..)| state).collect(),
            }
        }
    }

    /// Gives the keys of a request everything back, as [`reset`](Self::reset) does, on all nodes: the
    /// store forgets what they have spent of limits that are shared, and this node what was lent to
    /// it. Other nodes keep what was lent to them until it ends, and blocks of their own.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// async fn pardon(engine: &Engine, request: &Request<'_>) -> bool {
    ///     match engine.reset_waiting(request, Some("per-user")) {
    ///         Ok(reset) => reset.await.failure.is_none(),
    ///         Err(unknown) => false,
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no rule of that name. Nothing is reset then.
    pub fn reset_waiting(
        &self,
        request: &Request<'_>,
        rule: Option<&str>,
    ) -> Result<impl Future<Output = NewStart> + Send + use<C>, UnknownRule> {
        let active = self.active.load_full();
        let number = rule.map(|name| active.rules().find(name)).transpose()?;
        let mut begins = Vec::new();
        self.each_key(&active, request, number, |look| {
            let key = |limit| Glance::new(&look.shared(limit, 1), name(look.rule, look.facts));
            let shared = look.counted.shared_of(look.key).map(key).collect();
            begins.push(Begin { rule: look.number, key: look.key, shared });
        });
        let (sharing, now) = (self.sharing.clone(), self.clock.now());
        Ok(async move {
            let mut start = NewStart::default();
            for begin in begins {
                if let Err(failure) = start.begin(sharing.as_deref(), &active, begin, now).await {
                    start.failure = Some(failure);
                    break;
                }
            }
            start
        })
    }
}

impl NewStart {
    async fn begin(
        &mut self,
        sharing: Option<&Sharing>,
        active: &Arc<Active>,
        Begin { rule, key, shared }: Begin,
        now: Tick,
    ) -> Result<(), String> {
        let counted = active.counted(rule);
        let Some(sharing) = sharing.filter(|_| !shared.is_empty()) else {
            self.counters += counted.reset(key, now);
            return Ok(());
        };
        let known = sharing.forget(&shared).await.map_err(|error| error.to_string())?;
        // What this node noted of it is no counter of its own.
        let block = counted.end_block(key, now);
        counted.reset(key, now);
        self.counters += known + block;
        let hold = shared.iter().map(Glance::hold).filter(|hold| !hold.is_zero()).max();
        self.leases_end_in = self.leases_end_in.max(hold);
        Ok(())
    }
}

/// The states of keys, with what the store says of those that are shared.
async fn told(sharing: &Sharing, states: Vec<(KeyState, Option<Glance>, bool)>) -> Vec<KeyState> {
    let (mut known, mut keys) = (Vec::with_capacity(states.len()), Vec::new());
    for (state, key, is_meant) in states {
        known.push((state, key.is_some().then_some(keys.len()), is_meant));
        keys.extend(key);
    }
    let mut seen = sharing.glance(&keys).await.into_iter();
    let mut states = Vec::with_capacity(known.len());
    for (mut state, key, is_meant) in known {
        let is_shown = match key.and_then(|at| Some((&keys[at], seen.next()?))) {
            None => true,
            Some((_, Ok(seen))) => {
                state.decision = seen.decision;
                state.told_by = ToldBy::Store { lent_here: seen.lent_here };
                state.lost_ago = seen.lost_ago;
                is_meant || !seen.is_at_rest
            }
            Some((key, Err(reason))) => {
                let has_passed = state.used() > 0;
                let Alone { decision, lent_here, policy } = sharing.alone(key, state.decision);
                state.decision = decision;
                state.told_by = ToldBy::NodeAlone { policy, lent_here, reason };
                is_meant || has_passed
            }
        };
        if is_shown {
            states.push(state);
        }
    }
    states
}
