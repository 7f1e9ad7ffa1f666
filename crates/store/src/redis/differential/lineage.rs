//! The mark of the memory against the truth: what was spent is counted by somebody who sees everything.
//!
//! Servers are saved, started again with what was saved, replaced, emptied, and come back as they were; their
//! clocks differ. Those who ask have been answered by any of them, or by none. What each state of a server
//! contains is known here, so it is known whether something is missing that somebody has seen. Then everything
//! has to count as lost, and if nothing is missing nothing may.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::Limit;
use tollgate_core::lease::Exchange;

use super::server::{hash, said, said_at};
use crate::ask::Ask;
use crate::budget::Budget;
use crate::redis::answer::{self, Answer, Answers, Reply};
use crate::redis::form::{Form, Past, Seen};

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// One of them asks for a token.
    Ask(usize),
    /// Somebody else takes the place of one who asks, and has never asked.
    Newcomer(usize),
    /// What there is now is kept.
    Save,
    /// Another process goes on with what there is.
    Restart,
    /// Another process begins with what was kept.
    Restore,
    /// The last process that another took the place of is there again, as it was then.
    Back,
    /// All is gone, and the process may be another.
    Flush { is_same: bool },
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let pause = prop_oneof![3 => 0..500_000u64, 2 => 0..10_000_000u64];
    let event = prop_oneof![
        12 => (0..ASKERS).prop_map(Event::Ask),
        1 => (0..ASKERS).prop_map(Event::Newcomer),
        2 => Just(Event::Save),
        1 => Just(Event::Restart),
        2 => Just(Event::Restore),
        1 => Just(Event::Back),
        1 => any::<bool>().prop_map(|is_same| Event::Flush { is_same }),
    ];
    prop::collection::vec((pause, event), 1..60)
}

/// What a server knows: the numbers of all answers that it has given, what was spent by them, and whether all of
/// it counts as lost.
#[derive(Clone, Default)]
struct Lineage {
    /// When it began with nothing.
    began: u64,
    answers: BTreeSet<usize>,
    spent: u64,
    is_lost: bool,
}

#[derive(Clone)]
struct Saved {
    process: usize,
    lineage: Lineage,
    dumps: [Option<Vec<u8>>; 2],
}

/// What a server does not know that somebody has seen.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// The time from the first answer to the last of those, and the time that it may have been.
    of: u64,
    since: u64,
    is_everything: bool,
}

impl Missing {
    const NOTHING: Self = Self { of: 0, since: 0, is_everything: false };
}

/// Somebody who asks: what it has seen, and which answer that was from.
#[derive(Clone, Copy, Default)]
struct Asker {
    seen: Option<Seen>,
    last: Option<usize>,
}

struct World {
    budget: Arc<Budget>,
    form: Arc<Form>,
    /// The mark and the key.
    names: [String; 2],
    now: u64,
    process: usize,
    processes: usize,
    /// By so many microseconds the clocks of processes are wrong.
    clocks: Vec<i64>,
    lineage: Lineage,
    saved: Option<Saved>,
    former: Option<Saved>,
    /// Whether the process has come back.
    is_back: bool,
    askers: [Asker; ASKERS],
    /// When each answer was given, and what the server knew then.
    answers: Vec<(u64, Lineage)>,
}

impl World {
    fn new(clocks: Vec<i64>) -> Self {
        let budget = Arc::new(super::budget(&Limit::fixed_window("20/month").unwrap()));
        let form = budget.form().unwrap().unwrap();
        let key = form.names.key(KEY.as_bytes()).text;
        let names = ["lineage:mark".to_owned(), key];
        let world = Self {
            budget,
            form,
            names,
            now: super::NOW,
            process: 0,
            processes: 1,
            clocks,
            lineage: Lineage { began: super::NOW, ..Lineage::default() },
            saved: None,
            former: None,
            is_back: false,
            askers: [Asker::default(); ASKERS],
            answers: Vec::new(),
        };
        world.put(&[None, None]);
        world
    }

    fn play(&mut self, events: &[(u64, Event)]) {
        for (pause, event) in events {
            // No two memories begin at the same time.
            self.now += 1 + pause;
            match *event {
                Event::Ask(asker) => self.ask(asker),
                Event::Newcomer(asker) => self.askers[asker] = Asker::default(),
                Event::Save => self.saved = Some(self.save()),
                Event::Restart => {
                    self.former = Some(self.save());
                    self.begin_another();
                }
                Event::Restore => {
                    if let Some(saved) = self.saved.clone() {
                        self.former = Some(self.save());
                        self.restore(saved);
                        self.begin_another();
                    }
                }
                Event::Back => {
                    if let Some(former) = self.former.take() {
                        (self.process, self.is_back) = (former.process, true);
                        self.restore(former);
                    }
                }
                Event::Flush { is_same } => {
                    self.put(&[None, None]);
                    self.lineage = Lineage { began: self.now, ..Lineage::default() };
                    self.former = None;
                    if !is_same {
                        self.begin_another();
                    }
                }
            }
        }
    }

    fn begin_another(&mut self) {
        (self.process, self.processes) = (self.processes, self.processes + 1);
        self.is_back = false;
    }

    fn save(&self) -> Saved {
        let dumps = self.names.each_ref().map(|name| said(redis::cmd("DUMP").arg(name)));
        Saved { process: self.process, lineage: self.lineage.clone(), dumps }
    }

    fn restore(&mut self, saved: Saved) {
        self.put(&saved.dumps);
        self.lineage = saved.lineage;
    }

    fn put(&self, dumps: &[Option<Vec<u8>>; 2]) {
        for (name, dump) in self.names.iter().zip(dumps) {
            said::<()>(redis::cmd("DEL").arg(name));
            if let Some(dump) = dump {
                said::<()>(redis::cmd("RESTORE").arg(name).arg(0).arg(dump));
            }
        }
    }

    fn ask(&mut self, asker: usize) {
        let Asker { seen, last } = self.askers[asker];
        let missing = last.map_or(Missing::NOTHING, |last| self.missing(last));
        let (left, answered) = self.left(seen.map_or(Past::Unknown, Past::Seen));
        self.askers[asker].seen = Some(answered).max(seen);
        let should_be = LIMIT - self.lineage.spent;
        let what = format!("{left} of {should_be} left, {missing:?}, {answered:?}");
        if !self.lineage.is_lost {
            assert!(left == should_be || left == 0, "{what}");
            let (least, most) =
                (LEAST_MISSING.saturating_sub(self.skew()), MOST_MISSING + self.skew());
            assert!(left == 0 || missing.of <= most, "a second budget: {what}");
            // Of who has come back it is known that another had its place.
            let is_known = missing.since > 0 && self.is_back;
            let may_be_lost = missing.since > least || missing.is_everything || is_known;
            assert!(left == should_be || may_be_lost, "nothing was lost: {what}");
            self.lineage.is_lost = left != should_be;
        } else {
            assert_eq!(left, 0, "what was lost stays lost: {what}");
        }
        self.lineage.spent += u64::from(left > 0);
        let number = self.answers.len();
        self.lineage.answers.insert(number);
        self.answers.push((self.now, self.lineage.clone()));
        self.askers[asker].last = Some(number);
    }

    /// By how much two clocks differ at most.
    fn skew(&self) -> u64 {
        let (least, most) = (self.clocks.iter().min(), self.clocks.iter().max());
        most.zip(least).map_or(0, |(most, least)| most.abs_diff(*least))
    }

    /// What is missing here of what whoever gave an answer knew.
    fn missing(&self, last: usize) -> Missing {
        let (at, known) = &self.answers[last];
        let first = known.answers.difference(&self.lineage.answers).next();
        let Some(first) = first else { return Missing::NOTHING };
        let common = known.answers.intersection(&self.lineage.answers).max();
        let reaches = common.map_or(known.began, |common| self.answers[*common].0);
        // What counted as lost there does so here.
        let is_everything = common.is_none() || known.is_lost;
        Missing { of: at - self.answers[*first].0, since: at - reaches, is_everything }
    }

    /// Asks for a token: what was left, and what was answered from.
    fn left(&self, past: Past) -> (u64, Seen) {
        let clock = self.clocks[self.process % self.clocks.len()];
        let now = self.now.saturating_add_signed(clock);
        let ask = Ask::new(Arc::clone(&self.budget), KEY, Exchange::once(1));
        let mut command = redis::cmd("EVALSHA");
        command.arg(hash(self.form.algorithm)).arg(2).arg(&self.names[0]).arg(&self.names[1]);
        self.form.write_head(&mut command, &format!("p{}", self.process), past, "all");
        self.form.write_ask(&mut command, &ask, answer::wall(now));
        let reply = said_at(now, &command);
        let answers = Answers::read(&reply, 1).unwrap_or_else(|| panic!("{reply:?}"));
        let seen = Seen { epoch: answers.epoch, at: now, since: answers.since };
        let line = answers.each().next().expect("there is one");
        match answer::read(line, &answers, &ask, "name") {
            Answer::Said(Ok(Reply::Grant(grant))) => {
                let spent = u64::from(grant.decision.is_allowed());
                (grant.decision.remaining() + spent, seen)
            }
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_somebody_has_seen_and_is_missing_is_lost_and_nothing_else_agrees(
        events in events(),
        clocks in prop::collection::vec(-20_000_000..20_000_000i64, 1..4),
        are_saved in any::<bool>(),
    ) {
        // What was missing for a moment and is there again is missing for longer when it is gone once more. So
        // either processes come back or snapshots do.
        let is_of_these = |event: &(u64, Event)| match event.1 {
            Event::Back => !are_saved,
            Event::Restore => are_saved,
            _ => true,
        };
        let events: Vec<_> = events.into_iter().filter(is_of_these).collect();
        World::new(clocks).play(&events);
    }
}

const ASKERS: usize = 3;
const LIMIT: u64 = 20;
const KEY: &str = "lineage";

/// If no more is missing, nothing may count as lost; and if more is, everything has to. In between lies the time
/// between two beats, and by how much clocks differ of which one takes over from the other. Where nothing is
/// missing at all they do not matter.
const LEAST_MISSING: u64 = 2_000_000;
const MOST_MISSING: u64 = 4_000_000;
