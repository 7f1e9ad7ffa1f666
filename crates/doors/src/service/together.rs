//! Requests that came together, one behind the other on a connection.

use tollgate::{Clock as _, Tick, Wait};

use crate::service::Service;

/// Since when a store is waited for on behalf of requests that came together.
///
/// Whoever sends many at once waits for the last of them. If each had the time of one, a store that
/// does not answer would make it wait that many times over. So all of them have the time of one, and
/// for those that find it over their rules decide.
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
    /// One of them has to wait: no longer than until the time of all is over.
    pub(crate) fn wait(&mut self, wait: Wait, service: &Service) -> Wait {
        let (since, last) = (wait.since(), service.clock().now());
        let waiting = self.waiting.get_or_insert(Waiting { since, last, in_vain: false });
        waiting.last = last;
        wait.with_since(waiting.since)
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
const A_MOMENT: u32 = 10;
