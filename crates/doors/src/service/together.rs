//! Requests that came together, one behind the other on a connection.

use tollgate::{Clock as _, Tick, Wait};

use crate::service::Service;

/// Since when a store is waited for on behalf of requests that came together.
///
/// Whoever sends many at once waits for the last of them. If each had the time of one, a store that
/// does not answer would make it wait that many times over. So those behind one that waited in vain have
/// the rest of its time, and for whoever finds that over its rule decides. As long as the store answers,
/// each has its own time: nobody is decided without a store that is well.
///
/// ```text
///   read      1 2 3                      4           5
///             |-- 1 waits --|            |           |
///                           2 3 do not   has come    has come later: begins anew
///                                        meanwhile: as 2 and 3
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Together {
    waiting: Option<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the first of them began to wait: from there the time of all counts.
    since: Tick,
    /// When the last of them did.
    last: Tick,
    /// Whether the store was late, or did not answer at all.
    in_vain: bool,
}

impl Together {
    /// One of them has to wait: in its own time, or in that of those who waited in vain.
    pub(crate) fn wait(&mut self, wait: Wait, service: &Service) -> Wait {
        let last = service.clock().now();
        let in_vain = self.waiting.filter(|waiting| waiting.in_vain);
        let since = in_vain.map_or_else(|| wait.since(), |waiting| waiting.since);
        self.waiting = Some(Waiting { since, last, in_vain: in_vain.is_some() });
        wait.with_since(since)
    }

    /// It has waited.
    pub(crate) fn waited(&mut self, service: &Service) {
        let Some(waiting) = &mut self.waiting else { return };
        let took = service.clock().now().since(waiting.last);
        // As the engine has it: half of the time is late.
        let late = service.engine().store_timeout().map(|most| most / 2);
        waiting.in_vain |= late.is_some_and(|late| took >= late);
    }

    /// More was there at once. If the store answers, it begins anew. If it does not, what is there may
    /// have come while others waited, and has waited as well.
    #[inline]
    pub(crate) fn more(&mut self, service: &Service) {
        if let Some(waiting) = self.waiting
            && !waiting.was_in_vain(service)
        {
            self.waiting = None;
        }
    }

    /// Nothing was there: what comes has not waited.
    #[inline]
    pub(crate) const fn apart(&mut self) {
        self.waiting = None;
    }
}

impl Waiting {
    /// Whether they waited in vain, a moment ago. There is an end to that, or a client who never stops
    /// sending would never hear of a store that is well again.
    #[cold]
    fn was_in_vain(self, service: &Service) -> bool {
        let since = service.clock().now().since(self.since);
        let most = service.engine().store_timeout();
        self.in_vain && most.is_some_and(|most| since < most * A_MOMENT)
    }
}

/// So many timeouts after somebody began to wait in vain, the store is asked again.
const A_MOMENT: u32 = 2;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::Request;

    use super::*;
    use crate::service::silent::Silent;

    /// When two that wait one after the other begin to, and when the second would by itself.
    #[tokio::test]
    async fn only_those_behind_one_that_waited_in_vain_have_less_time() {
        // The first comes back at once, which is late only to somebody without any patience.
        for (timeout, in_vain) in [(Duration::from_secs(60), false), (Duration::ZERO, true)] {
            let rules = "rules: [{ name: a, key: [path], limit: 5/h }]";
            let service = Silent::default().serves_within(rules, timeout);
            let waits = || service.engine().try_decide(&Request::new("GET", "/")).unwrap_err();
            let mut together = Together::default();
            let first = together.wait(waits(), &service).since();
            together.waited(&service);
            let second = waits();
            let alone = second.since();
            assert!(alone > first);
            let since = together.wait(second, &service).since();
            assert_eq!(since, if in_vain { first } else { alone }, "{timeout:?}");
        }
    }
}
