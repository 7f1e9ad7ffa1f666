//! The task that owns all links: it takes questions from everybody, and sends what has gathered.
//!
//! It never waits for the network itself. Connecting, asking where slots lie and asking questions are
//! tasks, whose ends are events. Questions for a server with enough under way gather until one of
//! those ends: the slower the server, the more go at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tollgate_core::Wall;
use tollgate_local::Clock;

use crate::error::StoreError;
use crate::redis::answer;
use crate::redis::batch::{self, Finished};
use crate::redis::form::Loss;
use crate::redis::job::Job;
use crate::redis::link::Link;
use crate::redis::name::SLOTS;
use crate::redis::route::{PRIMARY, Route, Slots};

/// What the driver, its tasks and those who ask all know.
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) is_cluster: bool,
    /// Nanoseconds by which the store's clock is ahead of ours.
    ahead: AtomicI64,
    /// The latest memory.
    epoch: AtomicU64,
    /// A bit for each slot whose mark was seen; the first one for all, without slots.
    seen: Box<[AtomicU64]>,
    /// Processes of a Cluster that have lost their memory, and when. At most [`MOST_LOSSES`].
    losses: Mutex<BTreeMap<String, u64>>,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, is_cluster: bool) -> Self {
        let seen = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        let (ahead, epoch) = (AtomicI64::new(0), AtomicU64::new(0));
        Self { clock, is_cluster, ahead, epoch, seen, losses: Mutex::default() }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(super) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// What it means if there is no mark of that slot in that process.
    pub(super) fn loss(&self, slot: u16, process: &str) -> Loss {
        let (word, bit) = self.bit_of(slot);
        if self.seen[word].load(Ordering::Relaxed) & bit != 0 {
            return Loss::Now;
        }
        let losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        losses.get(process).map_or(Loss::Unknown, |micros| Loss::At(*micros))
    }

    /// A process that has lost one slot, not long ago, has lost all it had.
    pub(super) fn learn_loss(&self, process: &str, micros: u64) {
        if micros == 0 || !self.is_cluster {
            return;
        }
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        if losses.len() >= MOST_LOSSES {
            losses.clear();
        }
        losses.insert(process.to_owned(), micros);
    }

    pub(super) fn learn(&self, slot: u16, now: Wall, epoch: u64) {
        let (word, bit) = self.bit_of(slot);
        self.seen[word].fetch_or(bit, Ordering::Relaxed);
        self.epoch.fetch_max(epoch, Ordering::Relaxed);
        self.learn_time(now);
    }

    pub(super) fn learn_time(&self, now: Wall) {
        let ours = self.clock.wall().as_unix_nanos();
        // Both end in 2262, within what an i64 holds.
        let ahead = now.as_unix_nanos() as i64 - ours as i64;
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    const fn bit_of(&self, slot: u16) -> (usize, u64) {
        let slot = if self.is_cluster { slot % SLOTS } else { 0 };
        (slot as usize / 64, 1 << (slot % 64))
    }
}

#[expect(clippy::large_enum_variant, reason = "nearly all of them are questions")]
pub(super) enum Message {
    Ask(Job),
    /// What time is it?
    Ping(oneshot::Sender<Result<Wall, StoreError>>),
}

enum Event {
    Done { node: String, asked: usize, finished: Finished },
    Linked { node: String, link: Result<Link, StoreError> },
    Slots(Result<Slots, StoreError>),
    Pinged,
}

/// What is going on with one server.
#[derive(Default)]
struct Server {
    link: Option<Link>,
    is_linking: bool,
    /// Batches that are not answered yet, and the questions in them.
    under_way: usize,
    asked: usize,
    /// Batches in a row that were not answered in time.
    late: usize,
    jobs: Vec<Job>,
    pings: Vec<oneshot::Sender<Result<Wall, StoreError>>>,
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    route: Arc<Route>,
    servers: BTreeMap<String, Server>,
    slots: Slots,
    is_asking_for_slots: bool,
    /// Jobs that wait for the slots.
    lost: Vec<Job>,
    lost_pings: Vec<oneshot::Sender<Result<Wall, StoreError>>>,
    tasks: JoinSet<Event>,
}

impl Driver {
    pub(super) fn new(route: Route, shared: Arc<Shared>) -> Self {
        Self {
            shared,
            route: Arc::new(route),
            servers: BTreeMap::new(),
            slots: Slots::default(),
            is_asking_for_slots: false,
            lost: Vec::new(),
            lost_pings: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Ends when nobody can ask any more.
    pub(super) async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let mut buffer = Vec::new();
        loop {
            tokio::select! {
                count = messages.recv_many(&mut buffer, MOST_AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                }
                Some(event) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Ok(event) = event {
                        self.on_event(event);
                    }
                }
            }
            // Whoever is about to ask, perhaps because of an answer just now, goes along: a batch takes
            // hardly longer than one, and who misses it waits for the next.
            tokio::task::yield_now().await;
            while buffer.len() < MOST_AT_ONCE
                && let Ok(message) = messages.try_recv()
            {
                buffer.push(message);
            }
            for message in buffer.drain(..) {
                match message {
                    Message::Ask(job) => self.place(job),
                    Message::Ping(reply) => self.place_ping(reply),
                }
            }
            self.send_all();
        }
    }

    /// Puts a job where it belongs.
    fn place(&mut self, job: Job) {
        let node = match &job.detour {
            Some(node) => Some(node.clone()),
            None if self.shared.is_cluster => self.slots.node_of(job.name.slot),
            None => Some(PRIMARY.to_owned()),
        };
        match node {
            Some(node) => self.servers.entry(node).or_default().jobs.push(job),
            None => self.lost.push(job),
        }
    }

    fn place_ping(&mut self, reply: oneshot::Sender<Result<Wall, StoreError>>) {
        let node = match self.shared.is_cluster {
            true => self.slots.any_node(),
            false => Some(PRIMARY.to_owned()),
        };
        match node {
            Some(node) => self.servers.entry(node).or_default().pings.push(reply),
            None => self.lost_pings.push(reply),
        }
    }

    fn send_all(&mut self) {
        if !(self.lost.is_empty() && self.lost_pings.is_empty()) {
            self.ask_for_slots();
        }
        let servers = self.servers.iter_mut();
        for (node, server) in servers.filter(|(_, server)| server.has_work()) {
            let Some(link) = server.link.clone() else {
                if !server.is_linking {
                    server.is_linking = true;
                    let (route, node) = (Arc::clone(&self.route), node.clone());
                    self.tasks.spawn(async move {
                        let link = route.link(&node).await;
                        Event::Linked { node, link }
                    });
                }
                continue;
            };
            for reply in server.pings.drain(..) {
                self.tasks.spawn(ping(link.clone(), reply, Arc::clone(&self.shared)));
            }
            while let Some(jobs) = server.next_batch() {
                let (link, shared, node) = (link.clone(), Arc::clone(&self.shared), node.clone());
                self.tasks.spawn(async move {
                    let asked = jobs.len();
                    let finished = batch::run(link, jobs, shared).await;
                    Event::Done { node, asked, finished }
                });
            }
        }
    }

    fn ask_for_slots(&mut self) {
        if self.is_asking_for_slots {
            return;
        }
        self.is_asking_for_slots = true;
        let known: BTreeSet<String> = self.slots.nodes();
        let route = Arc::clone(&self.route);
        self.tasks.spawn(async move { Event::Slots(route.slots(known).await) });
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Done { node, asked, finished } => self.on_done(node, asked, finished),
            Event::Linked { node, link } => self.on_linked(node, link),
            Event::Slots(slots) => self.on_slots(slots),
            Event::Pinged => {}
        }
    }

    fn on_done(&mut self, node: String, asked: usize, finished: Finished) {
        let server = self.servers.entry(node).or_default();
        server.under_way = server.under_way.saturating_sub(1);
        server.asked = server.asked.saturating_sub(asked);
        server.late = if finished.is_late { server.late + 1 } else { 0 };
        // A machine that is gone breaks no connection.
        if finished.is_broken || server.late >= MOST_LATE {
            (server.link, server.late) = (None, 0);
        }
        if finished.has_moved || (finished.is_broken && self.shared.is_cluster) {
            self.slots = Slots { ranges: Vec::new(), ..std::mem::take(&mut self.slots) };
        }
        for job in finished.back {
            self.place(job);
        }
    }

    fn on_linked(&mut self, node: String, link: Result<Link, StoreError>) {
        let server = self.servers.entry(node.clone()).or_default();
        server.is_linking = false;
        match link {
            Ok(link) => server.link = Some(link),
            Err(error) => {
                for job in server.jobs.drain(..) {
                    job.answer(Err(error.clone()));
                }
                for reply in server.pings.drain(..) {
                    let _ = reply.send(Err(error.clone()));
                }
                // Whoever is not there may have been replaced.
                if self.shared.is_cluster {
                    self.servers.remove(&node);
                    self.slots = Slots { ranges: Vec::new(), ..std::mem::take(&mut self.slots) };
                }
            }
        }
    }

    fn on_slots(&mut self, slots: Result<Slots, StoreError>) {
        self.is_asking_for_slots = false;
        let (jobs, pings) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.lost_pings));
        match slots {
            Ok(slots) => {
                self.slots = slots;
                for job in jobs {
                    // A slot that nobody has would be asked for again and again.
                    match self.slots.node_of(job.name.slot) {
                        Some(_) => self.place(job),
                        None => {
                            let reason = format!("nobody serves slot {}", job.name.slot);
                            job.answer(Err(StoreError::ClusterDown { reason }));
                        }
                    }
                }
                pings.into_iter().for_each(|reply| self.place_ping(reply));
            }
            Err(error) => {
                jobs.into_iter().for_each(|job| job.answer(Err(error.clone())));
                for reply in pings {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

impl Server {
    /// What is to be sent now. While one batch is worked on, the next one waits at the server, and
    /// those who were answered go with the one after it. A call of a script takes as long as some
    /// questions in it, so all batches are to be about as large: where one is under way, half of all
    /// questions go, and what would be a much smaller batch than that one waits for others, as it would
    /// have to wait at the server anyway.
    fn next_batch(&mut self) -> Option<Vec<Job>> {
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
        let rest = self.jobs.split_off(count.min(MOST_AT_ONCE));
        let jobs = std::mem::replace(&mut self.jobs, rest);
        (self.under_way, self.asked) = (self.under_way + 1, self.asked + jobs.len());
        Some(jobs)
    }

    const fn has_work(&self) -> bool {
        !self.jobs.is_empty() || !self.pings.is_empty()
    }
}

async fn ping(
    link: Link,
    reply: oneshot::Sender<Result<Wall, StoreError>>,
    shared: Arc<Shared>,
) -> Event {
    let mut time = redis::pipe();
    time.cmd("TIME");
    let answer = link.send(&time, 1).await.and_then(|replies| {
        let nonsense = || StoreError::Refused { reason: format!("TIME is {replies:?}") };
        let Some(redis::Value::Array(parts)) = replies.first() else { return Err(nonsense()) };
        let part = |at: usize| parts.get(at).and_then(answer::whole).ok_or_else(nonsense);
        Ok(answer::wall(part(0)?.saturating_mul(1_000_000).saturating_add(part(1)?)))
    });
    if let Ok(now) = answer {
        shared.learn_time(now);
    }
    let _ = reply.send(answer);
    Event::Pinged
}

/// So many questions are worth two batches.
const WORTH_TWO: usize = 16;

/// After so many batches in a row that were not answered in time, another connection is tried.
const MOST_LATE: usize = 3;

/// Questions in one batch.
const MOST_AT_ONCE: usize = 512;

/// More processes than a Cluster has servers that are started again while somebody looks.
const MOST_LOSSES: usize = 1_024;
