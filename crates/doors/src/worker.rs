//! Threads, each with connections of its own. A connection never moves, so nothing about it is
//! shared, and no thread waits for another.

use std::io;
use std::pin::Pin;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::mpsc;
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
