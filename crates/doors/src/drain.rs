//! How everything ends: first nobody new is sent here, then nobody new is let in, and those who are
//! in get their answers.

use tokio::sync::{mpsc, watch};

/// How far the end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    Serving,
    /// Not ready any more, but everybody is served: balancers have to notice first.
    Leaving,
    /// No new connections, and no new requests on old ones.
    Draining,
}

/// Tells everybody about the end.
#[derive(Debug)]
pub(crate) struct Drain {
    phase: watch::Sender<Phase>,
}

/// Hears about the end.
#[derive(Clone, Debug)]
pub(crate) struct Draining {
    phase: watch::Receiver<Phase>,
}

impl Drain {
    pub(crate) fn new() -> Self {
        Self { phase: watch::Sender::new(Phase::Serving) }
    }

    /// Goes on to this phase, and never back.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let later = phase > *now;
            *now = (*now).max(phase);
            later
        });
    }

    pub(crate) fn listener(&self) -> Draining {
        Draining { phase: self.phase.subscribe() }
    }

    pub(crate) fn is_ready(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }
}

impl Draining {
    /// Whether requests should be sent here.
    pub(crate) fn is_ready(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    /// Ends once requests should not be sent here any more.
    pub(crate) async fn leave(&mut self) {
        let _ = self.phase.wait_for(|phase| *phase != Phase::Serving).await;
    }

    /// Ends once no new requests are to be taken.
    pub(crate) async fn begin(&mut self) {
        // An error means that nobody can tell us any more, which is an end as well.
        let _ = self.phase.wait_for(|phase| *phase == Phase::Draining).await;
    }
}

/// A thing that is under way as long as a clone of it lives.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay {
    _alive: mpsc::Sender<()>,
}

/// Hears when nothing is under way any more.
#[derive(Debug)]
pub(crate) struct Ended(mpsc::Receiver<()>);

impl UnderWay {
    /// The first, and who hears when the last of its clones is gone.
    pub(crate) fn new() -> (Self, Ended) {
        let (alive, all) = mpsc::channel(1);
        (Self { _alive: alive }, Ended(all))
    }
}

impl Ended {
    pub(crate) async fn wait(mut self) {
        // Nothing is ever sent: it ends when nobody could.
        while self.0.recv().await.is_some() {}
    }
}
