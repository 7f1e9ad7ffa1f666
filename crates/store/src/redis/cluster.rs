//! What a driver does in a Cluster: which server has which slots, and what has become of those who had them.

use std::sync::Arc;
use std::time::Duration;

use crate::error::StoreError;
use crate::redis::answer::Strange;
use crate::redis::driver::Driver;
use crate::redis::form::Verdict;
use crate::redis::job::Job;
use crate::redis::link::Finding;
use crate::redis::server::Server;
use crate::redis::slots::Slots;
use crate::redis::task::{Candidate, Event, begin_link, failed, inquire, spawn};

impl Driver {
    /// A server of a Cluster that answers, as far as is known.
    pub(super) fn somebody(&mut self) -> Option<String> {
        let primaries = self.slots.primaries();
        let is_well = |node: &&String| self.servers.get(*node).is_some_and(Server::is_well);
        if let Some(node) = primaries.iter().find(is_well) {
            return Some(node.clone());
        }
        self.turn = self.turn.wrapping_add(1);
        primaries.iter().nth(self.turn % primaries.len().max(1)).cloned()
    }

    /// Whether it was not done a moment ago: as long as a server is gone, every question to it gives rise
    /// to doubts.
    pub(super) fn may_ask_for_slots(&self) -> bool {
        let now = self.shared.clock.now();
        self.asked_for_slots.is_none_or(|then| now.since(then) >= BETWEEN_DOUBTS)
    }

    /// Meanwhile all goes on as it was.
    pub(super) fn ask_for_slots(&mut self) {
        if self.is_asking_for_slots {
            return;
        }
        self.is_asking_for_slots = true;
        self.has_doubts = false;
        self.asked_for_slots = Some(self.shared.clock.now());
        let known = self.slots.known();
        let well = self.servers.values().filter(|server| server.is_well());
        let linked = well.filter_map(|server| server.link.clone()).collect();
        let route = Arc::clone(&self.route);
        spawn(&mut self.tasks, Event::Slots(Err(failed())), async move {
            Event::Slots(route.slots(linked, known).await)
        });
    }

    pub(super) fn on_slots(&mut self, slots: Result<Slots, StoreError>) {
        self.is_asking_for_slots = false;
        let (jobs, pings) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.lost_pings));
        match slots {
            Ok(slots) => {
                self.slots = slots;
                self.shared.learn_slots(&self.slots);
                self.drop_idle();
                self.meet_all();
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

    /// Finds out what has become of a process that had the slot of these jobs.
    pub(super) fn inquire(&mut self, strange: Strange, jobs: Vec<Job>) {
        let Strange { process, age } = strange;
        let strange = || StoreError::ClusterDown { reason: "its slot changes hands".into() };
        let jobs: Vec<_> = jobs.into_iter().filter_map(|job| job.again(strange())).collect();
        let Some(slot) = jobs.first().map(|job| job.name.slot) else { return };
        if self.shared.is_outdated(slot, age) || self.shared.is_gone(&process) {
            return self.place_all(&Verdict { process, has_given: false }, jobs);
        }
        let mut links = self.servers.values().filter_map(|server| server.link.as_ref());
        // Whoever is to be found first may take a while to answer, or never do: once for all who ask.
        if !links.any(|link| link.process == process) {
            match self.inquiries.get_mut(&process) {
                Some(waiting) => return waiting.push(jobs),
                None => _ = self.inquiries.insert(process.clone(), Vec::new()),
            }
        }
        self.begin_inquiry(process, jobs);
    }

    /// Looks for a process, and asks it about the slot of these jobs.
    fn begin_inquiry(&mut self, process: String, jobs: Vec<Job>) {
        let Some(slot) = jobs.first().map(|job| job.name.slot) else { return };
        let links = self.servers.values().filter_map(|server| server.link.clone()).collect();
        let is_unknown =
            |node: &String| self.servers.get(node).is_none_or(|server| server.link.is_none());
        let nodes = self.slots.primaries().into_iter().filter(is_unknown);
        let candidate = |node: String| {
            let was_another = self.shared.is_another_process(&node, &process);
            Candidate { node, was_another }
        };
        let others = nodes.map(candidate).collect();
        let (route, mark) = (Arc::clone(&self.route), self.shared.mark(slot));
        let finding = Finding::Unknown;
        let otherwise = Event::Inquired { process: process.clone(), finding, jobs: Vec::new() };
        spawn(&mut self.tasks, otherwise, async move {
            let finding = inquire(route, links, others, &process, &mark).await;
            Event::Inquired { process, finding, jobs }
        });
    }

    /// An inquiry is over. What was found out about one slot goes for those who have waited if it goes for the
    /// process; otherwise they ask about their own.
    pub(super) fn on_inquired(&mut self, process: String, finding: Finding, jobs: Vec<Job>) {
        let waiting = self.inquiries.remove(&process).unwrap_or_default();
        self.conclude(process.clone(), finding, jobs);
        for jobs in waiting {
            match finding {
                Finding::Gone | Finding::Unknown => self.conclude(process.clone(), finding, jobs),
                // It is there, and answers.
                Finding::Given | Finding::NotGiven => self.begin_inquiry(process.clone(), jobs),
            }
        }
    }

    /// Who does not know puts it off: to take a slot for lost that was given away takes its budgets.
    fn conclude(&mut self, process: String, finding: Finding, jobs: Vec<Job>) {
        let is_silent = finding == Finding::Unknown;
        let is_gone = finding == Finding::Gone || is_silent && self.shared.learn_silence(&process);
        if is_silent && !is_gone {
            let error = StoreError::Timeout { after: self.route.config.timeout };
            let jobs = jobs.into_iter().filter_map(|mut job| {
                job.former = None;
                job.later(error.clone())
            });
            return self.rest(jobs.collect());
        }
        match is_gone {
            true => self.shared.learn_gone(&process),
            false => self.shared.learn_voice(&process),
        }
        self.place_all(&Verdict { process, has_given: finding == Finding::Given }, jobs);
    }

    fn place_all(&mut self, verdict: &Verdict, jobs: Vec<Job>) {
        for mut job in jobs {
            job.former = Some(verdict.clone());
            self.place(job);
        }
    }

    /// Connects to all primaries, also those that nobody has asked yet: who is known can be known to have
    /// lost its memory.
    fn meet_all(&mut self) {
        let now = self.shared.clock.now();
        for node in self.slots.primaries() {
            let server = self.servers.entry(node.clone()).or_default();
            if server.link.is_none() && !server.is_linking && server.refused(now).is_none() {
                server.is_linking = true;
                let slots = self.slots.of(&node);
                begin_link(&mut self.tasks, &self.route, &self.shared, &node, slots);
            }
        }
    }

    /// Servers that have no slots any more and nothing to do are forgotten, but for some that can be asked
    /// whether they have given away those that they had.
    fn drop_idle(&mut self) {
        let (primaries, mut former) = (self.slots.primaries(), 0);
        self.servers.retain(|node, server| {
            let is_needed = primaries.contains(node) || !server.is_idle();
            former += usize::from(!is_needed && server.link.is_some());
            is_needed || (server.link.is_some() && former <= MOST_FORMER)
        });
    }
}

/// Servers without slots that are remembered.
const MOST_FORMER: usize = 16;

/// The time between two questions about slots that nobody waits for.
const BETWEEN_DOUBTS: Duration = Duration::from_millis(100);
