//! What all doors have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::connection::{Limits, Peer, Stream};
use crate::drain::Draining;
use crate::worker::Work;

/// The doors, by name: labels of metrics, and fields of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Http,
    ForwardAuth,
    Resp,
    Grpc,
    Admin,
    Status,
}

impl Name {
    pub(crate) const ALL: [Self; 6] =
        [Self::Http, Self::ForwardAuth, Self::Resp, Self::Grpc, Self::Admin, Self::Status];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::ForwardAuth => "forward_auth",
            Self::Resp => "resp",
            Self::Grpc => "grpc",
            Self::Admin => "admin",
            Self::Status => "status",
        }
    }
}

/// A protocol: what happens on a connection.
pub(crate) trait Door: Send + Sync + 'static {
    fn name(&self) -> Name;

    /// Serves a connection until it ends. Runs on a worker.
    fn serve(self: Arc<Self>, stream: Stream, peer: Peer, draining: Draining) -> Work;

    /// Says that there are too many connections. Runs on a worker, and must not take long.
    fn refuse(self: Arc<Self>, stream: Stream) -> Work;
}

/// The places for connections of a door.
#[derive(Debug)]
pub(crate) struct Places {
    taken: AtomicUsize,
    refused: AtomicU64,
    most: usize,
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Places>);

impl Places {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self { taken: AtomicUsize::new(0), refused: AtomicU64::new(0), most: limits.connections }
    }

    pub(crate) fn take(self: &Arc<Self>) -> Option<Place> {
        // A number alone: nothing else is published with it.
        let place = |taken| (taken < self.most).then_some(taken + 1);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, place) {
            Ok(_) => Some(Place(Arc::clone(self))),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many there are.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// How often there was none.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let limits = Limits { connections: 2, ..Limits::default() };
        let places = Arc::new(Places::new(&limits));
        let first = places.take();
        let second = places.take();
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        drop(first);
        assert_eq!((places.taken(), places.refused()), (1, 1));
        assert!(places.take().is_some());
    }
}
