//! Threads, each with connections of its own. A connection never moves, so nothing about it is
//! shared, and no thread waits for another.

use std::io;
use std::pin::Pin;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tollgate::SystemClock;

use crate::vigil;

/// What a worker does for one connection.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All workers.
#[derive(Debug)]
pub(crate) struct Workers {
    queues: Vec<mpsc::Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
    next: std::sync::atomic::AtomicUsize,
}

impl Workers {
    /// Starts so many.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let mut workers = Self { queues: Vec::new(), threads: Vec::new(), next: 0.into() };
        for number in 0..count.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let (queue, mut work) = mpsc::channel::<Work>(QUEUE);
            let run = move || {
                // It lives as long as its thread.
                let vigil = vigil::keep(SystemClock::new());
                let local = LocalSet::new();
                local.spawn_local(vigil);
                local.block_on(&runtime, async move {
                    while let Some(work) = work.recv().await {
                        tokio::spawn(work);
                    }
                });
            };
            let name = format!("tollgate-{number}");
            workers.threads.push(thread::Builder::new().name(name).spawn(run)?);
            workers.queues.push(queue);
        }
        Ok(workers)
    }

    /// Gives the work to the next worker in turn. Waits if that has not begun what it was given.
    pub(crate) async fn give(&self, work: Work) {
        // Only that it goes around matters.
        let next = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // A worker ends only when nobody can give it work any more.
        let _ = self.queues[next % self.queues.len()].send(work).await;
    }

    /// Ends once every worker has done something that it was given now. If one hangs, or is gone, it
    /// does not end.
    pub(crate) async fn answer(&self) {
        for queue in &self.queues {
            let (done, heard) = oneshot::channel();
            let work: Work = Box::pin(async move {
                // If nobody waits any more, nobody has to hear it.
                let _ = done.send(());
            });
            if queue.send(work).await.is_err() || heard.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends all of them, with whatever they have under way.
    pub(crate) fn stop(self) {
        drop(self.queues);
        for thread in self.threads {
            // A worker that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Connections that were given to a worker and not yet begun.
const QUEUE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc as blocking;

    #[tokio::test]
    async fn a_worker_that_hangs_does_not_answer() {
        let workers = Workers::start(2).unwrap();
        workers.answer().await;
        let (begun, has_begun) = oneshot::channel();
        let (go_on, may_go_on) = blocking::channel::<()>();
        let hang = async move {
            let _ = begun.send(());
            let _ = may_go_on.recv();
        };
        workers.give(Box::pin(hang)).await;
        has_begun.await.unwrap();
        // Whoever waits for all waits at least as long as the other one takes.
        let other = async {
            let (done, heard) = oneshot::channel::<()>();
            workers.give(Box::pin(async move { drop(done) })).await;
            let _ = heard.await;
        };
        tokio::select! {
            biased;
            () = workers.answer() => panic!("one of them hangs"),
            () = other => {}
        }
        drop(go_on);
        workers.answer().await;
        workers.stop();
    }
}
