//! What is said about requests that rules decided by themselves, though the store is asked.

use std::mem::{Discriminant, discriminant};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tollgate_core::Tick;
use tollgate_rules::OnStoreFailure;
use tollgate_store::StoreError;

use crate::sharing::Sharing;
use crate::sharing::health::add;
use crate::sharing::limit::SharedLimit;

/// Requests that a rule decided as its `on_store_failure` says, because the store did not answer about
/// them. Others it did answer, so it is not left alone: see [`Engine::lapse`](crate::Engine::lapse).
///
/// ```
/// use tollgate::Lapse;
/// fn line(Lapse { rule, policy, reason, decisions, .. }: &Lapse) -> String {
///     format!("{decisions} of {rule} by {policy}: {reason}")
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lapse {
    /// The rule that decided.
    pub rule: String,
    /// What it says about such requests, with the share that it has.
    pub policy: OnStoreFailure,
    /// Why the store did not decide the first of them, in a sentence without the key of anybody.
    pub reason: String,
    /// How many there were since this was last said of the rule.
    pub decisions: u64,
}

/// What is to be said, once in a while for each rule and kind of reason.
#[derive(Debug, Default)]
pub(super) struct Lapses {
    book: Mutex<Vec<Entry>>,
    /// There is something to be said.
    news: Notify,
}

#[derive(Debug)]
struct Entry {
    kind: Discriminant<StoreError>,
    lapse: Lapse,
    /// When something was last said about it.
    told: Option<Tick>,
}

impl Entry {
    fn is_due(&self, now: Tick) -> bool {
        self.lapse.decisions > 0 && self.is_quiet(now)
    }

    /// Whether nothing was said for a while.
    fn is_quiet(&self, now: Tick) -> bool {
        self.told.is_none_or(|told| now.since(told) >= AGAIN)
    }
}

/// How often the same is said.
const AGAIN: Duration = Duration::from_secs(60);

/// So many rules and kinds of reasons are named in that time. Others are counted, and not named.
const MOST: usize = 64;

impl Sharing {
    /// Counts a request that its rule decides, and takes note of why, if that is known. While the store
    /// is left alone, [`Health`](crate::Health) has said so, and that is enough.
    pub(super) fn count_alone(&self, limit: &SharedLimit, why: Option<&StoreError>) {
        add(&self.counts.degraded, 1);
        if self.breaker.is_open() {
            return;
        }
        let late = StoreError::Timeout { after: self.config.timeout };
        let why = why.unwrap_or(&late);
        self.lapses.note(limit.rule(), limit.policy_with(self.config.share), why, self.now());
    }

    /// The next thing to be said about such requests.
    pub(crate) async fn lapse(&self) -> Lapse {
        loop {
            let news = self.lapses.news.notified();
            if let Some(lapse) = self.lapses.due(self.now()) {
                return lapse;
            }
            news.await;
        }
    }
}

impl Lapses {
    /// A rule has decided one request, because of this.
    #[cold]
    fn note(&self, rule: &str, policy: OnStoreFailure, error: &StoreError, now: Tick) {
        let kind = discriminant(error);
        let mut book = self.lock();
        let is_same = |entry: &Entry| entry.kind == kind && entry.lapse.rule == rule;
        let at = book.iter().position(is_same).unwrap_or(book.len());
        if at == book.len() {
            if at == MOST {
                return;
            }
            let (rule, reason) = (rule.to_owned(), String::new());
            let lapse = Lapse { rule, policy, reason, decisions: 0 };
            book.push(Entry { kind, lapse, told: None });
        }
        let entry = &mut book[at];
        entry.lapse.decisions += 1;
        // Of the others only their number is told, so nothing is written for them.
        if entry.lapse.decisions == 1 {
            entry.lapse.policy = policy;
            entry.lapse.reason = error.without_keys().to_string();
        }
        if entry.is_due(now) {
            self.news.notify_one();
        }
    }

    /// Something that is to be said now, if there is.
    fn due(&self, now: Tick) -> Option<Lapse> {
        let mut book = self.lock();
        let entry = book.iter_mut().find(|entry| entry.is_due(now))?;
        entry.told = Some(now);
        let told = entry.lapse.clone();
        entry.lapse.decisions = 0;
        Some(told)
    }

    /// Forgets those of whom there was no more, and has the others told.
    pub(super) fn sweep(&self, now: Tick) {
        let mut book = self.lock();
        book.retain(|entry| entry.lapse.decisions > 0 || !entry.is_quiet(now));
        if book.iter().any(|entry| entry.is_due(now)) {
            self.news.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
