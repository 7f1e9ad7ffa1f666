//! What is going on with one server: its link, and what waits for it.

use std::time::Duration;

use tokio::sync::oneshot;
use tollgate_core::{Tick, Wall};

use crate::error::StoreError;
use crate::redis::job::Job;
use crate::redis::link::Link;

/// What is going on with one server.
#[derive(Default)]
pub(super) struct Server {
    pub(super) link: Option<Link>,
    /// Which of all links it is.
    pub(super) number: u64,
    pub(super) is_linking: bool,
    /// When no link came about, why, and how often in a row.
    pub(super) refusal: Option<(Tick, StoreError, u32)>,
    /// Batches that are not answered yet, and the questions in them.
    pub(super) under_way: usize,
    pub(super) asked: usize,
    /// Whether it is not sure of its Cluster.
    pub(super) has_doubts: bool,
    /// Batches and pings in a row that were not answered in time.
    pub(super) late: usize,
    pub(super) jobs: Vec<Job>,
    pub(super) pings: Vec<oneshot::Sender<Result<Wall, StoreError>>>,
}

impl Server {
    /// What is to be sent now. While one batch is worked on, the next one waits at the server, and
    /// those who were answered go with the one after it. A call of a script takes as long as some
    /// questions in it, so all batches are to be about as large: where one is under way, half of all
    /// questions go, and what would be a much smaller batch than that one waits for others, as it would
    /// have to wait at the server anyway.
    pub(super) fn next_batch(&mut self) -> Option<Vec<Job>> {
        self.jobs.retain(|job| !job.is_forsaken());
        let waiting = self.jobs.len();
        let count = match self.under_way {
            0 if waiting < WORTH_TWO => waiting,
            0 => waiting.div_ceil(2),
            1 if waiting * 3 >= self.asked * 2 => waiting.min((waiting + self.asked).div_ceil(2)),
            _ => 0,
        };
        if count == 0 {
            return None;
        }
        // About as many are to come as there are now.
        let mut rest = Vec::with_capacity(waiting);
        rest.extend(self.jobs.drain(count.min(MOST_AT_ONCE)..));
        let jobs = std::mem::replace(&mut self.jobs, rest);
        (self.under_way, self.asked) = (self.under_way + 1, self.asked + jobs.len());
        Some(jobs)
    }

    /// Why no link came about a moment ago, and some before: it is not tried again for each question.
    pub(super) fn refused(&self, now: Tick) -> Option<StoreError> {
        let (at, error, times) = self.refusal.as_ref()?;
        let is_refused = *times >= MOST_REFUSALS && now.since(*at) < BETWEEN_LINKS;
        is_refused.then(|| error.clone())
    }

    /// No link has come about.
    pub(super) fn refuse(&mut self, now: Tick, error: StoreError) {
        self.answer_all(&error);
        let times = self.refusal.as_ref().map_or(0, |(_, _, times)| *times);
        self.refusal = Some((now, error, times.saturating_add(1)));
    }

    /// Answers all who wait with this error.
    pub(super) fn answer_all(&mut self, error: &StoreError) {
        for job in self.jobs.drain(..) {
            job.answer(Err(error.clone()));
        }
        for reply in self.pings.drain(..) {
            let _ = reply.send(Err(error.clone()));
        }
    }

    /// Whether it has answered what it was asked.
    pub(super) const fn is_well(&self) -> bool {
        self.link.is_some() && self.late == 0 && !self.has_doubts
    }

    pub(super) const fn is_idle(&self) -> bool {
        !self.has_work() && !self.is_linking && self.under_way == 0
    }

    pub(super) const fn has_work(&self) -> bool {
        !self.jobs.is_empty() || !self.pings.is_empty()
    }
}

/// So often a link is tried at once when somebody asks, and after that once in so long: a server that turns
/// everybody away is not tried by every question, and one that is back is found soon.
const MOST_REFUSALS: u32 = 8;
const BETWEEN_LINKS: Duration = Duration::from_millis(50);

/// So many questions are worth two batches.
const WORTH_TWO: usize = 16;

/// Questions in one batch.
pub(super) const MOST_AT_ONCE: usize = 512;
