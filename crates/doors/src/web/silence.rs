//! How long nothing happens on a connection.
//!
//! A timer that every request sets anew would be more work than the rest of many requests. So there
//! is one that looks now and then whether there was any.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Requests of a connection. Only its own thread writes to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU32,
    ended: AtomicU32,
}

/// A request that has not ended.
#[derive(Debug)]
pub(super) struct OneRequest(Requests);

impl Requests {
    pub(super) fn begin(&self) -> OneRequest {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        OneRequest(self.clone())
    }

    fn counts(&self) -> (u32, u32) {
        (self.0.begun.load(Ordering::Relaxed), self.0.ended.load(Ordering::Relaxed))
    }
}

impl Drop for OneRequest {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Looks now and then whether there were requests.
#[derive(Debug)]
pub(super) struct Watch {
    requests: Requests,
    seen: u32,
    silent: u32,
}

impl Watch {
    pub(super) const fn new(requests: Requests) -> Self {
        Self { requests, seen: 0, silent: 0 }
    }

    /// For how many looks in a row there was nothing: none began, and none is under way.
    pub(super) fn look(&mut self) -> u32 {
        let (begun, ended) = self.requests.counts();
        let is_silent = begun == self.seen && ended == begun;
        self.silent = if is_silent { self.silent + 1 } else { 0 };
        self.seen = begun;
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_break_the_silence() {
        let requests = Requests::default();
        let mut watch = Watch::new(requests.clone());
        assert_eq!((watch.look(), watch.look()), (1, 2));
        drop(requests.begin());
        assert_eq!((watch.look(), watch.look()), (0, 1));
        let long = requests.begin();
        assert_eq!((watch.look(), watch.look()), (0, 0), "one is under way");
        drop(long);
        assert_eq!((watch.look(), watch.look()), (1, 2));
    }
}
