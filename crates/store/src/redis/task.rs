//! What a driver has done by others, and how it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::Value;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tollgate_core::Wall;

use crate::error::StoreError;
use crate::redis::batch::Finished;
use crate::redis::job::Job;
use crate::redis::link::{Finding, Link};
use crate::redis::route::Route;
use crate::redis::shared::Shared;
use crate::redis::slots::Slots;
use crate::redis::{answer, failure, restart};

/// How a task has ended.
pub(super) enum Event {
    Done {
        node: String,
        link: u64,
        asked: usize,
        finished: Finished,
    },
    Pinged {
        node: String,
        link: u64,
        finished: Finished,
    },
    Linked {
        node: String,
        link: Result<Link, StoreError>,
    },
    Slots(Result<Slots, StoreError>),
    /// What has become of a process that had the slot of these jobs, which wait for that.
    Inquired {
        process: String,
        finding: Finding,
        jobs: Vec<Job>,
    },
    /// These have waited for a while.
    Rested(Vec<Job>),
}

/// Connects to a server that has these slots, in a task.
pub(super) fn begin_link(
    tasks: &mut JoinSet<Event>,
    route: &Arc<Route>,
    shared: &Arc<Shared>,
    node: &str,
    slots: Vec<u16>,
) {
    let (route, shared, node) = (Arc::clone(route), Arc::clone(shared), node.to_owned());
    let otherwise = Event::Linked { node: node.clone(), link: Err(failed()) };
    spawn(tasks, otherwise, async move {
        let link = match route.link(&node).await {
            Ok(link) => restart::look(&link, &node, slots, &shared).await.map(|()| link),
            Err(error) => Err(error),
        };
        Event::Linked { node, link }
    });
}

/// Begins a task that always says how it ended: something is waited for until it does. If it panics,
/// it says `otherwise`.
pub(super) fn spawn(
    tasks: &mut JoinSet<Event>,
    otherwise: Event,
    work: impl Future<Output = Event> + Send + 'static,
) {
    tasks.spawn(async move {
        let (mut work, mut otherwise) = (std::pin::pin!(work), Some(otherwise));
        // Of what has panicked nothing is used any more.
        let poll = |context: &mut Context<'_>| {
            let poll = AssertUnwindSafe(|| work.as_mut().poll(context));
            match catch_unwind(poll) {
                Ok(poll) => poll,
                Err(_) => otherwise.take().map_or(Poll::Pending, Poll::Ready),
            }
        };
        std::future::poll_fn(poll).await
    });
}

/// A server that is not linked, and may be the process that is looked for.
pub(super) struct Candidate {
    pub(super) node: String,
    /// Whether it was another process when it was linked to.
    pub(super) was_another: bool,
}

/// What has become of a process that had the slot of a mark. It is one of those that are linked, or of the
/// others; otherwise it is gone. Who does not answer may be held up, by keys that it gives away for one.
pub(super) async fn inquire(
    route: Arc<Route>,
    linked: Vec<Link>,
    mut others: Vec<Candidate>,
    process: &str,
    mark: &str,
) -> Finding {
    if let Some(link) = linked.iter().find(|link| link.process == process) {
        match link.inquire(mark).await {
            Ok(finding) => return finding,
            Err(StoreError::Timeout { .. }) => return Finding::Unknown,
            // Either the process has ended or the connection alone.
            Err(_) => others.push(Candidate { node: link.address.clone(), was_another: false }),
        }
    }
    let mut links = JoinSet::new();
    for Candidate { node, was_another } in others {
        let route = Arc::clone(&route);
        links.spawn(async move { (route.link(&node).await, was_another) });
    }
    let mut finding = Finding::Gone;
    while let Some(link) = links.join_next().await {
        match link {
            Ok((Ok(link), _)) if link.process == process => {
                return link.inquire(mark).await.unwrap_or(Finding::Unknown);
            }
            Ok((Err(StoreError::Timeout { .. }), false)) => finding = Finding::Unknown,
            _ => {}
        }
    }
    finding
}

/// Lets jobs rest.
pub(super) async fn rest(jobs: Vec<Job>, pause: Duration) -> Event {
    let _ = timeout(pause, std::future::pending::<()>()).await;
    Event::Rested(jobs)
}

/// Asks what time it is.
pub(super) async fn ping(
    link: Link,
    reply: oneshot::Sender<Result<Wall, StoreError>>,
    shared: Arc<Shared>,
) -> Finished {
    let mut time = redis::pipe();
    time.cmd("TIME");
    let sent = link.send(&time, 1).await;
    let finished = sent.as_ref().err().map(Finished::of_failure).unwrap_or_default();
    let answer = sent.and_then(|replies| {
        let nonsense = || StoreError::Refused { reason: format!("TIME is {replies:?}") };
        let parts = match replies.first() {
            Some(Value::Array(parts)) => parts,
            Some(Value::ServerError(error)) => {
                return Err(failure::of_reply(error, &link.address, ""));
            }
            _ => return Err(nonsense()),
        };
        let part = |at: usize| parts.get(at).and_then(answer::whole).ok_or_else(nonsense);
        Ok(answer::wall(part(0)?.saturating_mul(1_000_000).saturating_add(part(1)?)))
    });
    if let Ok(now) = answer {
        shared.learn_time(now);
    }
    let _ = reply.send(answer);
    finished
}

pub(super) fn failed() -> StoreError {
    StoreError::Refused { reason: "a task of the store's client has failed".into() }
}
