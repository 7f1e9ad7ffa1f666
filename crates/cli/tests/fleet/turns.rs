//! When the system had no processor for a node that had something to do. On a busy machine that is hardly anybody
//! else's wait: those that sleep most of the time are served first.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::now;
use crate::stalls::Stalls;
use crate::support::Server;

/// Somebody who looks at how long nodes wait for their turns.
pub(crate) struct Turns {
    end: Sender<()>,
    witness: JoinHandle<Vec<Waits>>,
}

/// When each thread of a node waited for its turn.
pub(crate) type Waits = Vec<Stalls>;

impl Turns {
    /// Looks at all threads that nodes have now.
    pub(crate) fn of(nodes: &[Server]) -> Self {
        let mut nodes: Vec<_> = nodes.iter().map(Thread::all_of).collect();
        let (end, ended) = mpsc::channel();
        let witness = thread::spawn(move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                nodes.iter_mut().flatten().for_each(Thread::look);
            }
            let waits = |node: Vec<Thread>| node.into_iter().map(|thread| thread.waits).collect();
            nodes.into_iter().map(waits).collect()
        });
        Self { end, witness }
    }

    /// When the nodes waited, one after the other.
    pub(crate) fn end(self) -> Vec<Waits> {
        drop(self.end);
        self.witness.join().unwrap()
    }
}

/// A thread of a node.
struct Thread {
    /// Where the system says for how long it has waited.
    path: PathBuf,
    waited: Duration,
    waits: Stalls,
}

impl Thread {
    fn all_of(node: &Server) -> Vec<Self> {
        let threads = fs::read_dir(format!("/proc/{}/task", node.process.id())).unwrap();
        let path = |thread: std::io::Result<fs::DirEntry>| thread.unwrap().path().join("schedstat");
        let new = |path| Self { path, waited: Duration::ZERO, waits: Stalls::default() };
        let mut all: Vec<_> = threads.map(path).map(new).collect();
        all.iter_mut().for_each(|thread| thread.waited = thread.waited_so_far());
        all
    }

    /// The file says for how many nanoseconds it ran, and for how many it was ready to. A thread that has ended waits
    /// no more.
    fn waited_so_far(&self) -> Duration {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let waited = text.split(' ').nth(1).and_then(|waited| waited.parse().ok());
        waited.map_or(self.waited, Duration::from_nanos)
    }

    /// Takes note of a wait that is over: until then nothing is known of it.
    fn look(&mut self) {
        let (waited, now) = (self.waited_so_far(), now());
        self.waits.note(now - waited.saturating_sub(self.waited), now);
        self.waited = waited;
    }
}

/// How often somebody looks.
const PAUSE: Duration = Duration::from_millis(10);
