//! Many decisions at once, for those who ask in pipelines.

use std::sync::OnceLock;

use tollgate::{Ask, Decision, LimitError, Request, Ruling, SystemClock, Throttle};

use crate::door::Name;
use crate::service::Service;

impl Service {
    /// Lets each of these requests pass, or not, and calls `each` with its place and its ruling.
    pub(crate) fn check_batch(
        &self,
        door: Name,
        requests: &[Request<'_>],
        mut each: impl FnMut(usize, Ruling),
    ) {
        if let [request] = requests {
            return each(0, self.check(door, request));
        }
        self.engine.decide_batch(requests, |at, ruling| {
            self.decided(door, &requests[at], &ruling);
            each(at, ruling);
        });
    }

    /// Lets all of these requests pass, or none, and calls `each` with the place and the ruling of
    /// each.
    pub(crate) fn check_together(
        &self,
        door: Name,
        requests: &[Request<'_>],
        mut each: impl FnMut(usize, Ruling),
    ) {
        self.engine.decide_together(requests, |at, ruling| {
            self.decided(door, &requests[at], &ruling);
            each(at, ruling);
        });
    }

    /// Lets each of these pass, or not, by the limit that it brings, and calls `each` with every
    /// answer in order.
    #[inline]
    pub(crate) fn throttle(
        &self,
        door: Name,
        asks: &[Ask<&[u8]>],
        mut each: impl FnMut(Result<Decision, ThrottleError>),
    ) {
        let Some(throttle) = self.throttle.made() else {
            return asks.iter().for_each(|_| each(Err(ThrottleError::Memory)));
        };
        let (mut allowed, mut denied) = (0, 0);
        throttle.check_batch(asks, |_, answer| {
            if let Ok(decision) = &answer {
                *if decision.is_allowed() { &mut allowed } else { &mut denied } += 1;
            }
            each(answer.map_err(ThrottleError::Limit));
        });
        self.metrics.throttled(door, allowed, denied);
    }

    /// Gives a key of [`throttle`](Self::throttle) everything back. `false` if it has it.
    pub(crate) fn reset_throttle(&self, key: &[u8]) -> bool {
        let made = self.throttle.made.get().and_then(Option::as_ref);
        made.is_some_and(|throttle| throttle.reset(key))
    }
}

/// Why somebody's own limit cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ThrottleError {
    /// There is no such limit.
    #[error("{0}")]
    Limit(#[source] LimitError),
    /// There is no room for its keys.
    #[error("there is no memory for keys: serve with fewer of them")]
    Memory,
}

/// Counters for those who bring their limits themselves. They take as much memory as those of all
/// rules, so they are made when somebody first asks for them.
#[derive(Debug)]
pub(super) struct Throttles {
    keys: usize,
    clock: SystemClock,
    /// `None` if there was no memory.
    made: OnceLock<Option<Throttle>>,
}

impl Throttles {
    pub(super) const fn new(keys: usize, clock: SystemClock) -> Self {
        Self { keys, clock, made: OnceLock::new() }
    }

    #[inline]
    fn made(&self) -> Option<&Throttle> {
        let make = || {
            let builder = Throttle::builder().keys(self.keys).clock(self.clock.clone());
            let made = builder.build().inspect_err(|error| {
                tracing::error!(%error, "CL.THROTTLE cannot be answered");
            });
            made.ok()
        };
        self.made.get_or_init(make).as_ref()
    }
}
