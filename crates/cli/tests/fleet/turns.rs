//! When the system had no processor for a node, or for its clients, that had something to do. On a busy machine that
//! is hardly anybody else's wait: those that sleep most of the time are served first.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::now;
use crate::stalls::Stalls;
use crate::support::Server;

/// Somebody who looks at how long nodes and this test wait for their turns.
pub(crate) struct Turns {
    end: Sender<()>,
    witness: JoinHandle<Waits>,
}

/// When each thread waited for its turn.
pub(crate) struct Waits {
    nodes: Vec<Vec<Stalls>>,
    test: Vec<Stalls>,
}

impl Turns {
    /// Looks at all threads that there are now.
    pub(crate) fn of(nodes: &[Server]) -> Self {
        let mut nodes: Vec<_> =
            nodes.iter().map(|node| Thread::all_of(node.process.id())).collect();
        let mut test = Thread::all_of(std::process::id());
        let (end, ended) = mpsc::channel();
        let witness = thread::spawn(move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                nodes.iter_mut().flatten().chain(&mut test).for_each(Thread::look);
            }
            let waits = |all: Vec<Thread>| all.into_iter().map(|thread| thread.waits).collect();
            Waits { nodes: nodes.into_iter().map(waits).collect(), test: waits(test) }
        });
        Self { end, witness }
    }

    pub(crate) fn end(self) -> Waits {
        drop(self.end);
        self.witness.join().unwrap()
    }
}

impl Waits {
    /// Those that a question to this node may have met.
    pub(crate) fn on_the_way_to(&self, node: usize) -> impl Iterator<Item = &Stalls> {
        self.nodes[node].iter().chain(&self.test)
    }
}

/// A thread of a node or of this test.
struct Thread {
    /// Where the system says for how long it has waited.
    path: PathBuf,
    waited: Duration,
    waits: Stalls,
}

impl Thread {
    fn all_of(process: u32) -> Vec<Self> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
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
