//! One question on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tollgate_core::Wall;

use crate::ask::Ask;
use crate::error::StoreError;
use crate::redis::answer::Reply;
use crate::redis::form::{Form, Verdict};
use crate::redis::name::Name;

/// A question, and who waits for its answer.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) ask: Ask,
    /// Whether the key is to be forgotten, whatever else is asked.
    pub(super) is_forget: bool,
    pub(super) form: Arc<Form>,
    pub(super) name: Name,
    /// The time that counts for the key, when it was found to be another than was thought.
    pub(super) around: Option<Wall>,
    /// Where it goes next although it does not belong there yet: the slot is being moved.
    pub(super) detour: Option<String>,
    /// What has become of the process that had the slot before.
    pub(super) former: Option<Verdict>,
    attempts: u8,
    pauses: u8,
    reply: oneshot::Sender<Result<Reply, StoreError>>,
    _seat: Seat,
}

impl Job {
    pub(super) fn new(
        ask: Ask,
        is_forget: bool,
        form: Arc<Form>,
        seat: Seat,
    ) -> (Self, oneshot::Receiver<Result<Reply, StoreError>>) {
        let name = form.names.key(ask.key());
        let (reply, answer) = oneshot::channel();
        let job = Self {
            ask,
            is_forget,
            form,
            name,
            around: None,
            detour: None,
            former: None,
            attempts: 0,
            pauses: 0,
            reply,
            _seat: seat,
        };
        (job, answer)
    }

    pub(super) fn answer(self, answer: Result<Reply, StoreError>) {
        // Whoever asked may have given up.
        let _ = self.reply.send(answer);
    }

    /// Whether nobody waits any more.
    pub(super) fn is_forsaken(&self) -> bool {
        self.reply.is_closed()
    }

    /// The job, to be tried once more; if it was tried often enough, it is answered.
    pub(super) fn again(mut self, error: StoreError) -> Option<Self> {
        self.attempts += 1;
        if self.attempts < MOST_ATTEMPTS {
            return Some(self);
        }
        self.answer(Err(error));
        None
    }

    pub(super) const fn was_redirected(&self) -> bool {
        self.attempts > 0
    }

    /// The job, to be tried once more after a while; if it has rested often enough, it is answered.
    pub(super) fn later(mut self, error: StoreError) -> Option<Self> {
        self.pauses += 1;
        if self.pauses <= MOST_PAUSES {
            return Some(self);
        }
        self.answer(Err(error));
        None
    }

    /// How long it rests before it is tried again, if it has so much time in all: longer each time, and
    /// not so long that nobody would wait for the answer.
    pub(super) fn pause(&self, timeout: Duration) -> Duration {
        timeout / 50 * (1 << self.pauses.saturating_sub(1))
    }

    /// Whether it is one of those that can be answered quickly.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_forget && self.form.is_plain(&self.ask)
    }

    /// Whether it does no harm to send it twice.
    pub(super) const fn is_repeatable(&self) -> bool {
        self.ask.exchange().sequence > 0
    }
}

/// One of so many that may be under way.
#[derive(Debug)]
pub(super) struct Seat(Arc<AtomicUsize>);

impl Seat {
    /// A seat, if not all are taken.
    pub(super) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Result<Self, StoreError> {
        // Nothing else is read by whoever sees the number: it only has to be right.
        let before = taken.fetch_add(1, Ordering::Relaxed);
        let seat = Self(Arc::clone(taken));
        match before < most {
            true => Ok(seat),
            false => Err(StoreError::Busy { under_way: before }),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Redirections follow each other while slots move or a replica takes over.
const MOST_ATTEMPTS: u8 = 6;

/// All pauses together are six tenths of a job's time.
const MOST_PAUSES: u8 = 5;
