//! What requests wait for, and for how long.

use std::fmt;
use std::sync::Arc;

use tollgate_core::Tick;

use crate::sharing::Sharing;
use crate::sharing::spend::Lacks;

/// What a request lacks before it can be decided: budget that only the store has. Wait until it is
/// [fetched](Self::fetch), then ask again. Others may have been faster: then it is fetched once more, in
/// the rest of the time. When that is over nobody has to wait.
///
/// ```
/// # use tollgate::{Engine, Request, Ruling};
/// async fn decide(engine: &Engine, request: &Request<'_>) -> Ruling {
///     let mut ruling = engine.try_decide(request);
///     loop {
///         let wait = match ruling {
///             Ok(ruling) => return ruling,
///             Err(wait) => wait,
///         };
///         let since = wait.since();
///         wait.fetch().await;
///         ruling = engine.try_decide_again(request, since);
///     }
/// }
/// ```
#[must_use = "nothing is asked until it is fetched"]
pub struct Wait {
    sharing: Arc<Sharing>,
    lacks: Lacks,
    patience: Patience,
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("lacks", &self.lacks.len()).finish_non_exhaustive()
    }
}

impl Wait {
    /// Of whoever was first waited for then, or is now.
    pub(crate) fn new(
        sharing: &Arc<Sharing>,
        lacks: Lacks,
        first: Option<Tick>,
        now: Tick,
    ) -> Self {
        let since = first.unwrap_or(now);
        let patience = Patience { since, until: None, is_first: first.is_none() };
        Self { sharing: Arc::clone(sharing), lacks, patience }
    }

    /// When the request was first waited for. The timeout of the engine counts from there.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Tick};
    /// fn since(engine: &Engine, request: &Request<'_>) -> Option<Tick> {
    ///     engine.try_decide(request).err().map(|wait| wait.since())
    /// }
    /// ```
    pub const fn since(&self) -> Tick {
        self.patience.since
    }

    /// The same for a request that came together with others, the first of which was waited for
    /// [then](Self::since): the timeout of the engine counts from there. All of them wait no longer
    /// than one would, and for whoever finds that time over its rule decides.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Ruling};
    /// async fn decide_in_turn(engine: &Engine, requests: &[Request<'_>]) -> Vec<Ruling> {
    ///     let (mut rulings, mut first) = (Vec::new(), None);
    ///     for request in requests {
    ///         let mut ruling = engine.try_decide(request);
    ///         while let Err(mut wait) = ruling {
    ///             let since = *first.get_or_insert(wait.since());
    ///             wait = wait.with_since(since);
    ///             wait.fetch().await;
    ///             ruling = engine.try_decide_again(request, since);
    ///         }
    ///         rulings.extend(ruling);
    ///     }
    ///     rulings
    /// }
    /// ```
    pub fn with_since(mut self, since: Tick) -> Self {
        self.patience.since = self.patience.since.min(since);
        self
    }

    /// The same for a request whose caller has given up after that: it is waited for no longer than until
    /// then, and by then its rule decides. The store has the whole timeout of the engine to answer all the
    /// same. Others may need the answer, and whether it is well does not depend on who asks.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Ruling, Tick};
    /// async fn decide_by(engine: &Engine, request: &Request<'_>, then: Tick) -> Ruling {
    ///     let mut ruling = engine.try_decide(request);
    ///     loop {
    ///         let wait = match ruling {
    ///             Ok(ruling) => return ruling,
    ///             Err(wait) => wait.until(then),
    ///         };
    ///         let since = wait.since();
    ///         wait.fetch().await;
    ///         ruling = engine.try_decide_again(request, since);
    ///     }
    /// }
    /// ```
    pub fn until(mut self, then: Tick) -> Self {
        self.patience.until = Some(self.patience.until.map_or(then, |until| until.min(then)));
        self
    }

    /// Asks the store, and ends when it has answered, or after the timeout of the engine, or when nobody
    /// waits any more. In any case the request can be decided then.
    ///
    /// ```
    /// # use tollgate::Wait;
    /// async fn fetch(wait: Wait) {
    ///     wait.fetch().await;
    /// }
    /// ```
    pub async fn fetch(self) {
        let Self { sharing, lacks, patience } = self;
        sharing.fetch(lacks, patience).await;
    }
}

/// How long somebody waits.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// The timeout of the engine counts from there.
    pub(super) since: Tick,
    /// When his caller has given up, if that is known.
    pub(super) until: Option<Tick>,
    /// Whether nothing was asked for him before.
    pub(super) is_first: bool,
}

impl Patience {
    /// Whether his caller has given up, or is about to.
    pub(super) fn is_over(self, now: Tick) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
