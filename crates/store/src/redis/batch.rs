//! Many questions on one link: one call of a script for those that are alike, all calls at once.

use std::sync::Arc;

use rapidhash::v3::rapidhash_v3;
use redis::{ServerError, ServerErrorKind, Value};

use crate::error::StoreError;
use crate::redis::answer::{self, Age, Answer, Answers, Strange};
use crate::redis::failure;
use crate::redis::form::{Former, Memory, Seen, Verdict};
use crate::redis::job::Job;
use crate::redis::link::Link;
use crate::redis::noticed::Word;
use crate::redis::route::host_of;
use crate::redis::shared::Shared;
use crate::redis::slots::pointed_at;

/// What is left to do after a batch.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// To be sent again, elsewhere perhaps.
    pub(super) back: Vec<Job>,
    /// Whether the link is of no use any more.
    pub(super) is_broken: bool,
    /// Whether there was no answer in time.
    pub(super) is_late: bool,
    /// To be sent again after a while.
    pub(super) later: Vec<Job>,
    /// About slots that another process had: whoever knows what has become of it may ask again.
    pub(super) strange: Vec<(Strange, Vec<Job>)>,
    /// Slots that lie elsewhere than was thought, and where.
    pub(super) moved: Vec<(u16, String)>,
    /// Whether the server is not sure of its Cluster.
    pub(super) has_doubts: bool,
}

impl Finished {
    /// What a link is like on which this was all that came back.
    pub(super) fn of_failure(error: &StoreError) -> Self {
        let is_late = matches!(error, StoreError::Timeout { .. });
        Self { is_late, is_broken: !is_late, ..Self::default() }
    }
}

/// Asks all of it, and answers whoever waits.
pub(super) async fn run(link: Link, jobs: Vec<Job>, shared: Arc<Shared>) -> Finished {
    let mut finished = Finished::default();
    let mut jobs = jobs;
    // Some have to be asked again at once: with a script that was flushed, or in another window.
    for _ in 0..3 {
        if jobs.is_empty() {
            break;
        }
        jobs = Round { link: &link, shared: &shared, finished: &mut finished }.run(jobs).await;
    }
    for job in jobs {
        let reason =
            "its scripts are flushed as fast as they are loaded, or its clock jumps".into();
        job.answer(Err(StoreError::Refused { reason }));
    }
    finished
}

struct Round<'a> {
    link: &'a Link,
    shared: &'a Shared,
    finished: &'a mut Finished,
}

impl Round<'_> {
    /// Returns those that are to be asked again at once.
    async fn run(&mut self, jobs: Vec<Job>) -> Vec<Job> {
        let groups = grouped(jobs, self.shared.is_cluster);
        let mut commands = redis::pipe();
        let mut replies_before = 0;
        for group in &groups {
            replies_before += usize::from(group[0].detour.is_some());
            self.write(&mut commands, group);
        }
        let count = groups.len() + replies_before;
        let sent = self.link.send(&commands, count).await;
        let mut again = Vec::new();
        let mut replies = match sent {
            Ok(replies) => replies.into_iter(),
            Err(error) => {
                let Finished { is_late, is_broken, .. } = Finished::of_failure(&error);
                self.finished.is_late = is_late;
                self.finished.is_broken |= is_broken;
                for job in groups.into_iter().flatten() {
                    self.fail(job, &error);
                }
                return again;
            }
        };
        for group in groups {
            if group[0].detour.is_some() {
                replies.next();
            }
            let reply = replies.next().unwrap_or(Value::Nil);
            again.extend(self.answer(group, reply).await);
        }
        again
    }

    fn write(&self, commands: &mut redis::Pipeline, group: &[Job]) {
        let Some(first) = group.first() else { return };
        if first.detour.is_some() {
            commands.cmd("ASKING");
        }
        let mark = self.shared.mark(first.name.slot);
        let past = self.shared.past(first.name.slot, &self.link.process);
        let former = match &first.former {
            Some(verdict) => Former::Known(verdict),
            None if self.shared.is_cluster => Former::Unknown,
            None => Former::Any,
        };
        let mut command = redis::cmd("EVALSHA");
        command.arg(first.form.algorithm.hash()).arg(group.len() + 1).arg(mark);
        for job in group {
            command.arg(&job.name.text);
        }
        let now = self.shared.wall();
        let (word, questions) = match Asked::of(group) {
            Asked::All => ("all", &group[..1]),
            Asked::Same => ("same", &group[..1]),
            Asked::Every => ("every", group),
            Asked::Each => ("each", group),
        };
        let memory = Memory { past, former };
        first.form.write_head(&mut command, &self.link.process, memory, word);
        for job in questions {
            let around = job.around.unwrap_or(now);
            match job.is_forget {
                true => job.form.write_forget(&mut command, &job.ask, around),
                false => job.form.write_ask(&mut command, &job.ask, around),
            }
        }
        commands.add_command(command);
    }

    /// A link that broke may have done its work before or not.
    fn fail(&mut self, job: Job, error: &StoreError) {
        let is_worth_it = self.finished.is_broken && job.is_repeatable();
        match is_worth_it {
            true => self.finished.back.extend(job.again(error.clone())),
            false => job.answer(Err(error.clone())),
        }
    }

    async fn answer(&mut self, group: Vec<Job>, reply: Value) -> Vec<Job> {
        let error = match reply {
            Value::ServerError(error) => error,
            reply => match Strange::read(&reply) {
                Some(strange) => {
                    self.finished.strange.push((strange, group));
                    return Vec::new();
                }
                None => return self.read(group, reply),
            },
        };
        match error.kind() {
            Some(ServerErrorKind::NoScript) => {
                let Some(algorithm) = group.first().map(|job| job.form.algorithm) else {
                    return group;
                };
                match self.link.load(algorithm).await {
                    Ok(()) => return group,
                    Err(error) => group.into_iter().for_each(|job| job.answer(Err(error.clone()))),
                }
            }
            Some(ServerErrorKind::Moved | ServerErrorKind::Ask) => self.redirect(group, &error),
            Some(ServerErrorKind::TryAgain) => self.wait(group, &error),
            Some(ServerErrorKind::ClusterDown) => {
                self.finished.has_doubts = true;
                // As long as nobody has a slot, it is about to be somebody's.
                match error.details().is_some_and(|details| details.contains("slot not served")) {
                    true => self.wait(group, &error),
                    false => self.refuse(group, &error),
                }
            }
            _ => {
                self.finished.is_broken |= failure::is_about_role(&error);
                self.refuse(group, &error);
            }
        }
        Vec::new()
    }

    fn refuse(&self, group: Vec<Job>, error: &ServerError) {
        for job in group {
            let error =
                failure::of_reply(error, &self.link.address, &self.shared.mark(job.name.slot));
            job.answer(Err(error));
        }
    }

    /// Nothing was done here, and nothing can be before all keys have moved.
    fn wait(&mut self, group: Vec<Job>, error: &ServerError) {
        for mut job in group {
            // What was said of whoever had the slot may be true no more when it is asked again.
            (job.detour, job.former) = (None, None);
            self.finished.later.extend(job.later(failure::of_reply(error, &self.link.address, "")));
        }
    }

    /// Nothing was done here: the answer is elsewhere.
    fn redirect(&mut self, group: Vec<Job>, error: &ServerError) {
        let is_detour = error.kind() == Some(ServerErrorKind::Ask);
        let host = host_of(&self.link.address);
        let to = error.details().and_then(|details| pointed_at(details, host));
        if let (false, Some(to), Some(first)) = (is_detour, &to, group.first()) {
            self.finished.moved.push((first.name.slot, to.clone()));
        }
        for mut job in group {
            job.detour = to.clone().filter(|_| is_detour);
            // Only a primary that gives a slot away says so, and it has just said so.
            let process = is_detour.then(|| self.link.process.clone());
            job.former = process.map(|process| Verdict { process, has_given: true });
            let error = failure::of_reply(error, &self.link.address, "");
            // Two servers each of which says that the other has the slot are about to agree.
            match !is_detour && job.was_redirected() {
                true => self.finished.later.extend(job.later(error)),
                false => self.finished.back.extend(job.again(error)),
            }
        }
    }

    /// What answers about keys of a slot say about the memory that they are from.
    fn word(&self, slot: u16, answers: &Answers<'_>) -> Word<'_> {
        let Answers { now, epoch, lost, .. } = *answers;
        let (server, process) = (&self.link.address, &self.link.process);
        Word { server, process, slot, now: now.as_unix_nanos() / 1_000, epoch, lost }
    }

    fn read(&self, group: Vec<Job>, reply: Value) -> Vec<Job> {
        let mut again = Vec::new();
        let Some(answers) = Answers::read(&reply, group.len()) else {
            let reason = "a script's answer makes no sense".to_owned();
            let error = StoreError::Refused { reason };
            group.into_iter().for_each(|job| job.answer(Err(error.clone())));
            return again;
        };
        let (now, epoch) = (answers.now, answers.epoch);
        self.shared.learn_loss(&self.link.address, &self.link.process, answers.lost);
        if let Some(first) = group.first() {
            self.shared.noticed.learn(self.word(first.name.slot, &answers));
            let at = now.as_unix_nanos() / 1_000;
            self.shared.learn(first.name.slot, now, Seen { epoch, at, since: answers.since });
            self.shared.learn_age(first.name.slot, Age { epoch, moves: answers.moves });
        }
        if !group.iter().all(|job| answers.is_in_time_of(job.ask.budget())) {
            group.into_iter().for_each(|job| job.answer(Err(StoreError::Clock)));
            return again;
        }
        for (mut job, line) in group.into_iter().zip(answers.each()) {
            match answer::read(line, &answers, &job.ask, &job.name.text) {
                Answer::Said(answer) => job.answer(answer),
                Answer::OtherWindow(at) => {
                    job.around = Some(at);
                    again.push(job);
                }
            }
        }
        again
    }
}

/// What a call asks of its keys.
enum Asked {
    /// The same of all, and all are different, so that they can be fetched at once.
    All,
    /// The same of all.
    Same,
    /// A plain question of each.
    Every,
    /// Anything of each.
    Each,
}

impl Asked {
    fn of(group: &[Job]) -> Self {
        let Some(first) = group.first() else { return Self::Each };
        if !group.iter().all(Job::is_plain) {
            return Self::Each;
        }
        let is_alike = |job: &Job| {
            let is_one_cost = job.ask.exchange().cost == first.ask.exchange().cost;
            is_one_cost && job.around == first.around && first.form.is_same_for_all_keys()
        };
        if !group.iter().all(is_alike) {
            return Self::Every;
        }
        let hash = |job: &Job| rapidhash_v3(job.name.text.as_bytes());
        let mut hashes: Vec<_> = group.iter().map(hash).collect();
        hashes.sort_unstable();
        // Two that only seem to be the same are answered all the same.
        match hashes.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Self::Same,
            false => Self::All,
        }
    }
}

/// Those that one call can ask about: of one budget, and in a Cluster in one slot. Their order among
/// each other stays.
fn grouped(jobs: Vec<Job>, is_cluster: bool) -> Vec<Vec<Job>> {
    let mut groups: Vec<Vec<Job>> = Vec::new();
    let mut left = jobs.len();
    for job in jobs {
        let belongs = |group: &&mut Vec<Job>| {
            let first = &group[0];
            group.len() < MOST_IN_A_CALL
                && Arc::ptr_eq(&first.form, &job.form)
                && first.is_plain() == job.is_plain()
                && first.detour == job.detour
                && first.former == job.former
                && (!is_cluster || first.name.slot == job.name.slot)
        };
        // From the latest on: where one is full, those after it are newer.
        match groups.iter_mut().rev().find(belongs) {
            Some(group) => group.push(job),
            None => {
                // Mostly they all belong together.
                let most = if is_cluster { 1 } else { left.min(MOST_IN_A_CALL) };
                let mut group = Vec::with_capacity(most);
                group.push(job);
                groups.push(group);
            }
        }
        left -= 1;
    }
    groups
}

/// A script holds up everybody else, so it is not given more at once.
const MOST_IN_A_CALL: usize = 64;
