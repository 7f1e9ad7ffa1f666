//! The task that owns all links: it takes questions from everybody, and sends what has gathered.
//!
//! It never waits for the network itself. Connecting, asking where slots lie and asking questions are
//! tasks, whose ends are events. Questions for a server with enough under way gather until one of
//! those ends: the slower the server, the more go at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tollgate_core::{Tick, Wall};

use crate::error::StoreError;
use crate::redis::batch::{self, Finished};
use crate::redis::job::Job;
use crate::redis::link::Link;
use crate::redis::route::{PRIMARY, Route};
use crate::redis::server::{MOST_AT_ONCE, Server};
use crate::redis::shared::Shared;
use crate::redis::slots::Slots;
use crate::redis::task::{Event, begin_link, ping, rest, spawn};

#[expect(clippy::large_enum_variant, reason = "nearly all of them are questions")]
pub(super) enum Message {
    Ask(Job),
    /// What time is it?
    Ping(oneshot::Sender<Result<Wall, StoreError>>),
}

pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) route: Arc<Route>,
    pub(super) servers: BTreeMap<String, Server>,
    /// How many links there were to any of them.
    links: u64,
    /// How many questions went together when some were last sent.
    lately: usize,
    pub(super) slots: Slots,
    pub(super) is_asking_for_slots: bool,
    /// Whether slots may lie elsewhere than is thought, and when they were last asked for.
    pub(super) has_doubts: bool,
    pub(super) asked_for_slots: Option<Tick>,
    /// How many pings found nobody who was well: they go round.
    pub(super) turn: usize,
    /// Jobs that wait for the slots.
    pub(super) lost: Vec<Job>,
    pub(super) lost_pings: Vec<oneshot::Sender<Result<Wall, StoreError>>>,
    /// Processes that are being looked for, and jobs that wait for what is found, those of each slot for
    /// themselves: no more than may be under way.
    pub(super) inquiries: BTreeMap<String, Vec<Vec<Job>>>,
    pub(super) tasks: JoinSet<Event>,
}

impl Driver {
    pub(super) fn new(route: Route, shared: Arc<Shared>) -> Self {
        Self {
            shared,
            route: Arc::new(route),
            servers: BTreeMap::new(),
            links: 0,
            lately: 0,
            slots: Slots::default(),
            is_asking_for_slots: false,
            has_doubts: false,
            asked_for_slots: None,
            turn: 0,
            lost: Vec::new(),
            lost_pings: Vec::new(),
            inquiries: BTreeMap::new(),
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
                    // A task always says how it ends, unless the runtime ends before it.
                    if let Ok(event) = event {
                        self.on_event(event);
                    }
                }
            }
            // Whoever is about to ask, perhaps because of an answer just now, goes along: a batch takes
            // hardly longer than one, and who misses it waits for the next. Who comes alone, as the one before
            // did, is not kept waiting for others.
            if self.lately > 1 || buffer.len() > 1 {
                tokio::task::yield_now().await;
                while buffer.len() < MOST_AT_ONCE
                    && let Ok(message) = messages.try_recv()
                {
                    buffer.push(message);
                }
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
    pub(super) fn place(&mut self, job: Job) {
        let node = match &job.detour {
            Some(node) => Some(node.as_str()),
            None if self.shared.is_cluster => self.slots.node_of(job.name.slot),
            None => Some(PRIMARY),
        };
        let Some(node) = node else { return self.lost.push(job) };
        match self.servers.get_mut(node) {
            Some(server) => server.jobs.push(job),
            None => self.servers.entry(node.to_owned()).or_default().jobs.push(job),
        }
    }

    pub(super) fn place_ping(&mut self, reply: oneshot::Sender<Result<Wall, StoreError>>) {
        let node = match self.shared.is_cluster {
            true => self.somebody(),
            false => Some(PRIMARY.to_owned()),
        };
        match node {
            Some(node) => self.servers.entry(node).or_default().pings.push(reply),
            None => self.lost_pings.push(reply),
        }
    }

    fn send_all(&mut self) {
        self.lost.retain(|job| !job.is_forsaken());
        let is_lost = !(self.lost.is_empty() && self.lost_pings.is_empty());
        if is_lost || self.has_doubts && self.may_ask_for_slots() {
            self.ask_for_slots();
        }
        let servers = self.servers.iter_mut();
        for (node, server) in servers.filter(|(_, server)| server.has_work()) {
            // A server that closes connections on which nobody asks is well.
            if server.under_way == 0 && server.link.as_ref().is_some_and(Link::is_closed) {
                (server.link, server.late) = (None, 0);
                self.has_doubts |= self.shared.is_cluster;
            }
            let Some(link) = server.link.clone() else {
                // A connection may take longer than anybody waits.
                server.jobs.retain(|job| !job.is_forsaken());
                if server.is_linking {
                    continue;
                }
                if let Some(error) = server.refused(self.shared.clock.now()) {
                    server.answer_all(&error);
                    continue;
                }
                server.is_linking = true;
                let slots = self.slots.of(node);
                begin_link(&mut self.tasks, &self.route, &self.shared, node, slots);
                continue;
            };
            let number = server.number;
            for reply in server.pings.drain(..) {
                let (link, shared, of) = (link.clone(), Arc::clone(&self.shared), node.clone());
                let finished = Finished { is_broken: true, ..Finished::default() };
                let otherwise = Event::Pinged { node: node.clone(), link: number, finished };
                spawn(&mut self.tasks, otherwise, async move {
                    let finished = ping(link, reply, shared).await;
                    Event::Pinged { node: of, link: number, finished }
                });
            }
            while let Some(jobs) = server.next_batch() {
                let (link, shared, of) = (link.clone(), Arc::clone(&self.shared), node.clone());
                let (node, asked) = (node.clone(), jobs.len());
                self.lately = asked;
                let finished = Finished { is_broken: true, ..Finished::default() };
                let otherwise = Event::Done { node, link: number, asked, finished };
                spawn(&mut self.tasks, otherwise, async move {
                    let finished = batch::run(link, jobs, shared).await;
                    Event::Done { node: of, link: number, asked, finished }
                });
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Done { node, link, asked, finished } => {
                let server = self.servers.entry(node.clone()).or_default();
                server.under_way = server.under_way.saturating_sub(1);
                server.asked = server.asked.saturating_sub(asked);
                self.on_finished(&node, link, finished);
            }
            Event::Pinged { node, link, finished } => self.on_finished(&node, link, finished),
            Event::Linked { node, link } => self.on_linked(node, link),
            Event::Slots(slots) => self.on_slots(slots),
            Event::Inquired { process, finding, jobs } => {
                self.on_inquired(process, finding, jobs);
            }
            Event::Rested(jobs) => jobs.into_iter().for_each(|job| self.place(job)),
        }
    }

    /// Something was sent on a link, and has ended one way or the other.
    fn on_finished(&mut self, node: &str, link: u64, finished: Finished) {
        let server = self.servers.entry(node.to_owned()).or_default();
        // What is said of a link that was left already is no news.
        if link == server.number {
            server.late = if finished.is_late { server.late + 1 } else { 0 };
            server.has_doubts = finished.has_doubts;
            self.has_doubts |= finished.has_doubts;
            // A machine that is gone breaks no connection.
            if finished.is_broken || server.late >= MOST_LATE {
                (server.link, server.late) = (None, 0);
                self.has_doubts = self.shared.is_cluster;
            }
        }
        // One slot that has moved is followed, and others may have moved as well.
        if !finished.moved.is_empty() {
            self.has_doubts = true;
            finished.moved.iter().for_each(|(slot, to)| self.slots.give(*slot, to));
            self.shared.learn_slots(&self.slots);
        }
        for (strange, jobs) in finished.strange {
            self.inquire(strange, jobs);
        }
        self.rest(finished.later);
        for job in finished.back {
            self.place(job);
        }
    }

    pub(super) fn rest(&mut self, jobs: Vec<Job>) {
        let timeout = self.route.config.timeout;
        let Some(pause) = jobs.iter().map(|job| job.pause(timeout)).min() else { return };
        spawn(&mut self.tasks, Event::Rested(Vec::new()), rest(jobs, pause));
    }

    fn on_linked(&mut self, node: String, link: Result<Link, StoreError>) {
        let server = self.servers.entry(node).or_default();
        server.is_linking = false;
        match link {
            Ok(link) => {
                self.links += 1;
                (server.link, server.number, server.late) = (Some(link), self.links, 0);
                server.refusal = None;
            }
            Err(error) => {
                // Whoever is not there may have been replaced.
                self.has_doubts |= self.shared.is_cluster && server.has_work();
                server.refuse(self.shared.clock.now(), error);
            }
        }
    }
}

/// After so many batches or pings in a row that were not answered in time, another connection is tried.
const MOST_LATE: usize = 3;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_core::Limit;
    use tollgate_core::lease::Exchange;
    use tollgate_local::{Clock as _, ManualClock};

    use super::*;
    use crate::ask::Ask;
    use crate::budget::Budget;
    use crate::redis::address::Address;
    use crate::redis::answer::{Age, Reply, Strange};
    use crate::redis::config::RedisConfig;
    use crate::redis::job::Seat;
    use crate::redis::link::Finding;
    use crate::redis::task::failed;

    /// Of a Cluster that nobody is in, or a server that nobody is at.
    fn driver(url: &str, clock: &ManualClock) -> Driver {
        let route = Route { address: Address::parse(url).unwrap(), config: RedisConfig::default() };
        let shared = Shared::new(Arc::new(clock.clone()), url == CLUSTER);
        Driver::new(route, Arc::new(shared))
    }

    const CLUSTER: &str = "redis+cluster://localhost";

    /// A question about a key, and who waits for the answer.
    fn job(key: &str) -> (Job, oneshot::Receiver<Result<Reply, StoreError>>) {
        let (limit, wall) = (Limit::token_bucket("5/day").unwrap(), ManualClock::new().wall());
        let budget = Arc::new(Budget::new("api", &limit, Duration::from_millis(5), wall));
        let form = budget.form().unwrap().unwrap();
        let seat = Seat::take(&Arc::default(), 1).unwrap();
        Job::new(Ask::new(budget, key, Exchange::once(1)), false, form, seat)
    }

    fn strange() -> Strange {
        Strange { process: "p".into(), age: Age { epoch: 1, moves: 0 } }
    }

    #[tokio::test]
    async fn a_process_that_is_gone_is_looked_for_once() {
        let mut driver = driver(CLUSTER, &ManualClock::new());
        let mut waiting = Vec::new();
        for key in ["a", "b", "c"] {
            let (job, answer) = job(key);
            driver.inquire(strange(), vec![job]);
            waiting.push(answer);
        }
        assert_eq!(driver.tasks.len(), 1, "others wait for what is found");
        driver.on_inquired("p".into(), Finding::Gone, Vec::new());
        assert!(driver.inquiries.is_empty());
        // Nobody has their slots, so they wait for whoever has.
        assert_eq!(driver.lost.len(), 2);
        assert!(driver.lost.iter().all(|job| job.former.as_ref().is_some_and(|it| !it.has_given)));
        let (job, _answer) = job("d");
        driver.inquire(strange(), vec![job]);
        assert_eq!((driver.tasks.len(), driver.lost.len()), (1, 3), "it is known to be gone");
    }

    #[tokio::test]
    async fn what_goes_for_one_slot_alone_is_asked_of_the_others() {
        let mut driver = driver(CLUSTER, &ManualClock::new());
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let (jobs, _waiting): (Vec<_>, Vec<_>) = keys.into_iter().map(job).unzip();
        jobs.into_iter().for_each(|job| driver.inquire(strange(), vec![job]));
        assert_eq!(driver.tasks.len(), 1);
        driver.on_inquired("p".into(), Finding::Given, Vec::new());
        assert_eq!((driver.tasks.len(), driver.lost.len()), (9, 0), "each is asked about at once");
    }

    #[tokio::test]
    async fn a_server_that_refuses_again_and_again_is_left_alone_for_a_while() {
        let clock = ManualClock::new();
        let mut driver = driver("redis://localhost", &clock);
        let error = || StoreError::Unreachable { address: "n:1".into(), reason: "refused".into() };
        let asks = |driver: &mut Driver| {
            let (job, mut answer) = job("k");
            driver.place(job);
            driver.send_all();
            answer.try_recv().ok()
        };
        for dialled in 1..=8 {
            assert_eq!(asks(&mut driver), None, "it is dialled");
            assert_eq!(driver.tasks.len(), dialled);
            driver.on_linked(PRIMARY.into(), Err(error()));
        }
        for _ in 0..5 {
            assert_eq!(asks(&mut driver), Some(Err(error())), "nobody waits for it");
        }
        assert_eq!(driver.tasks.len(), 8);
        clock.advance(Duration::from_millis(50));
        assert_eq!(asks(&mut driver), None);
        assert_eq!(driver.tasks.len(), 9, "it is dialled once more");
    }

    /// Whatever is begun is over when its task is, however that ends.
    #[tokio::test]
    async fn a_task_that_panics_is_over_as_well() {
        let mut driver = driver(CLUSTER, &ManualClock::new());
        driver.is_asking_for_slots = true;
        let panics = async { panic!("it is meant to be seen") };
        spawn(&mut driver.tasks, Event::Slots(Err(failed())), panics);
        let event = driver.tasks.join_next().await.unwrap();
        driver.on_event(event.expect("it says how it ended"));
        assert!(!driver.is_asking_for_slots);
    }
}
