//! Many decisions at once, for those who ask in pipelines.

use tollgate::{Ask, Decision, LimitError, Request, Ruling};

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

    /// Lets each of these pass, or not, by the limit that it brings, and calls `each` with every
    /// answer in order.
    #[inline]
    pub(crate) fn throttle(
        &self,
        asks: &[Ask<&[u8]>],
        mut each: impl FnMut(Result<Decision, LimitError>),
    ) {
        let (mut allowed, mut denied) = (0, 0);
        self.throttle.check_batch(asks, |_, answer| {
            if let Ok(decision) = &answer {
                *if decision.is_allowed() { &mut allowed } else { &mut denied } += 1;
            }
            each(answer);
        });
        self.metrics.throttled(allowed, denied);
    }

    /// Gives a key of [`throttle`](Self::throttle) everything back.
    pub(crate) fn reset_throttle(&self, key: &[u8]) -> bool {
        self.throttle.reset(key)
    }
}
