//! Some keys of one budget in both worlds: in Redis, and in the core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tollgate_core::lease::{Carried, Exchange, Grant, LeaseId};
use tollgate_core::{Phase, Plan, Tick};

use super::memory::{Mark, Replica};
use super::model::{Memory, Model};
use super::server::{hash, said, said_at};
use crate::ask::Ask;
use crate::budget::{Budget, Kind};
use crate::error::StoreError;
use crate::redis::answer::{self, Answer, Answers, Line, Reply};
use crate::redis::form::{Form, Past, Seen};

pub(super) struct World {
    pub(super) budget: Arc<Budget>,
    form: Arc<Form>,
    /// Microseconds since 1970.
    pub(super) now: u64,
    pub(super) keys: Vec<Key>,
    pub(super) memory: Memory,
    /// The name of the server's process.
    pub(super) process: String,
    /// What whoever asks next has heard of the memory.
    pub(super) heard: Option<Past>,
    /// Whoever asks was last answered so many answers ago, if ever.
    pub(super) answered: Option<usize>,
    /// What each answer was from.
    pub(super) seen: Vec<Seen>,
    pub(super) mark: String,
    /// What the mark says, if there is one.
    pub(super) written: Option<Mark>,
    /// Whether it was another process that has lost what was before.
    pub(super) is_lost_elsewhere: bool,
    /// What Redis calls memories. The model counts them.
    pub(super) epochs: Vec<u64>,
    pub(super) replica: Option<Replica>,
}

/// One key, in both worlds.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) key: String,
    /// What it is called in Redis.
    pub(super) name: String,
    /// `None` if somebody else has put something there.
    pub(super) model: Option<Model>,
    /// When it ends by itself, in microseconds, if it is there.
    pub(super) until: Option<u64>,
}

/// A question about one of the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) key: usize,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Exchange(Exchange, Option<Carried>),
    Forget,
}

impl World {
    /// Both worlds know nothing of the keys, or have lost their memory so many microseconds ago.
    pub(super) fn new(budget: Budget, keys: usize, now: u64, lost: Option<u64>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let budget = Arc::new(budget);
        let form = budget.form().unwrap().unwrap();
        let lost_at = lost.map_or(0, |ago| now - ago);
        let lost = lost.and_then(|ago| budget.tick_at(answer::wall(now - ago)));
        let memory = Memory { number: 0, lost, everything: lost };
        let epoch = now - 7;
        let (process, mark) = ("p0".to_owned(), format!("mark:{number}"));
        let text = format!(
            "process {process} epoch {epoch} lost {lost_at} kept 0 moved 0 beat {epoch} until - \
             since {epoch} noted 1"
        );
        said::<()>(redis::cmd("SET").arg(&mark).arg(text).arg("PX").arg(MARK_LIFE));
        let written = Some(Mark {
            process: process.clone(),
            epoch,
            memory,
            beat: epoch,
            reaches: Vec::new(),
            root: epoch,
            noted: true,
            is_lost_elsewhere: false,
        });
        let epochs = vec![epoch];
        let mut world = Self {
            budget,
            form,
            now,
            keys: Vec::new(),
            memory,
            process,
            heard: None,
            answered: None,
            seen: Vec::new(),
            is_lost_elsewhere: false,
            mark,
            written,
            epochs,
            replica: None,
        };
        for index in 0..keys {
            let key = format!("key{number}.{index}");
            let name = world.form.names.key(key.as_bytes()).text;
            let model = Some(world.unknown(&key));
            world.keys.push(Key { key, name, model, until: None });
        }
        world
    }

    pub(super) fn tick(&self) -> Tick {
        self.tick_of(self.now).unwrap()
    }

    pub(super) fn tick_of(&self, micros: u64) -> Option<Tick> {
        self.budget.tick_at(answer::wall(micros))
    }

    /// What a question costs that can be answered quickly; `None` of others.
    pub(super) fn plain_cost(&self, question: &Question) -> Option<u64> {
        let What::Exchange(exchange, _) = question.what else { return None };
        let ask = self.ask_of(question, |lease| lease);
        self.form.is_plain(&ask).then_some(exchange.cost)
    }

    /// Whether two such questions that cost the same are the same, whatever their keys.
    pub(super) fn is_same_for_all(&self) -> bool {
        self.form.is_same_for_all_keys()
    }

    fn phase(&self, key: &str) -> Phase {
        Ask::new(Arc::clone(&self.budget), key, Exchange::once(0)).phase()
    }

    /// The model of a key that is not there.
    pub(super) fn unknown(&self, key: &str) -> Model {
        Model::unknown(&self.budget, self.phase(key), self.memory, self.tick())
    }

    /// What is known to whoever asks now.
    fn past(&mut self) -> Past {
        let seen = |back: usize| self.seen.iter().nth_back(back).copied();
        let answered = self.answered.and_then(seen).map_or(Past::Unknown, Past::Seen);
        self.heard.take().unwrap_or(answered)
    }

    /// Asks both, and compares what they say. `None` where it is an error, in both worlds.
    pub(super) fn ask(
        &mut self,
        questions: &[Question],
        word: &str,
        skew: i64,
    ) -> Vec<Option<Grant>> {
        let past = self.past();
        self.remember(past);
        self.end_lives();
        let began = server_time();
        let count = |key| questions.iter().filter(|one| one.key == key).count();
        let known: Vec<_> = questions.iter().map(|one| self.is_known(one.key)).collect();
        let asks: Vec<_> = questions.iter().map(|one| self.ask_of(one, |lease| lease)).collect();
        let foreign: Vec<_> = self.keys.iter().map(|key| self.foreign(key)).collect();
        let replies = self.in_redis(questions, word, skew, past);
        let epoch = self.epochs[self.memory.number as usize];
        let since = self.written.as_ref().unwrap().root;
        self.seen.push(Seen { epoch, at: self.now, since });
        let mut grants = Vec::new();
        let shift = self.shift();
        for (index, (redis, escrow)) in replies.into_iter().enumerate() {
            let (question, ask) = (questions[index], &asks[index]);
            let what = format!("{} at {}, {word}: {question:?}", self.budget, self.now);
            let tick = self.tick();
            let key = &mut self.keys[question.key];
            let Some(model) = &mut key.model else {
                let is_refused = matches!(
                    &redis,
                    Err(StoreError::WrongType { .. } | StoreError::Garbled { .. })
                );
                assert!(is_refused, "{redis:?} of somebody else's: {what}");
                grants.push(None);
                continue;
            };
            let redis = redis.map(|reply| self.epochs.here(reply, shift));
            let (exchange, carried) = match question.what {
                What::Exchange(exchange, carried) => (exchange, carried),
                What::Forget => {
                    *model = Model::whole(&self.budget, ask.phase(), self.memory, tick);
                    let is_known = known[index] && count(question.key) == 1;
                    let is_said = redis == Ok(Reply::Forgotten(is_known));
                    // One that counts as used up because of a loss may get something back.
                    let is_back = self.memory.lost.is_some() && redis == Ok(Reply::Forgotten(true));
                    assert!(is_said || is_back || count(question.key) > 1, "{redis:?}: {what}");
                    grants.push(None);
                    continue;
                }
            };
            let (core, lent) = model.answer(ask, tick, known[index]);
            assert_eq!(redis, core.clone().map(Reply::Grant), "{what}");
            if model.is_account() && exchange.sequence == 0 {
                assert_eq!(escrow, lent, "{what}");
            }
            let is_first = count(question.key) == 1 && !known[index];
            if is_first && carried.is_some() && exchange.is_look() {
                assert!(!self.is_known(question.key), "it left something: {what}");
            }
            grants.push(core.ok());
        }
        for (key, before) in self.keys.iter().zip(foreign) {
            assert!(before.is_none() || before == self.foreign(key), "{} is touched", key.name);
        }
        self.check_lives(began);
        for (question, grant) in questions.iter().zip(&grants) {
            let Some(grant) = grant else { continue };
            self.check_rest(question, grant.decision.reset_after());
        }
        grants
    }

    /// Keys end as time passes in this world, which the server knows nothing of.
    fn end_lives(&mut self) {
        let now = self.now;
        for key in self.keys.iter_mut().filter(|key| key.until.is_some_and(|until| until <= now)) {
            said::<()>(redis::cmd("DEL").arg(&key.name));
            key.until = None;
        }
    }

    /// Every key of ours ends by itself: after twice what it takes to have its whole budget back, and what
    /// its leases need, neither sooner nor later. That is seen by the server's clock, which said so when the
    /// call began. From then on the key ends by the time of this world: if that is too soon for what is kept
    /// under it, the next answer is another than that of the core.
    fn check_lives(&mut self, began: u64) {
        let life = self.longest_life().as_millis() as u64;
        let lives = began + life..=server_time() + life;
        for key in self.keys.iter_mut().filter(|key| key.model.is_some()) {
            let end: i64 = said(redis::cmd("PEXPIRETIME").arg(&key.name));
            match end {
                GONE => key.until = None,
                // Nobody has said anything else.
                _ if end >= FAR / 2 => {}
                _ => {
                    let is_fine = u64::try_from(end).is_ok_and(|end| lives.contains(&end));
                    assert!(
                        is_fine,
                        "{} of {} ends at {end}, not {lives:?}",
                        key.name, self.budget
                    );
                    said::<()>(redis::cmd("PEXPIREAT").arg(&key.name).arg(FAR));
                    key.until = Some(self.now + life * 1_000);
                }
            }
        }
    }

    /// A key is there until it has its whole budget back. After a loss it need not be: one that is not there counts
    /// as used up.
    fn check_rest(&self, question: &Question, reset_after: Duration) {
        // Who only looks is told of what a key brings along, and nothing of that is kept.
        if matches!(question.what, What::Exchange(look, Some(_)) if look.is_look()) {
            return;
        }
        let key = &self.keys[question.key];
        let rested = self.now + reset_after.as_nanos().div_ceil(1_000) as u64;
        let is_fine = self.memory.lost.is_some() || key.until.is_none_or(|until| rested <= until);
        assert!(is_fine, "{} of {} ends before it has come to rest", key.name, self.budget);
    }

    pub(super) fn longest_life(&self) -> Duration {
        let plan = match self.budget.kind() {
            Kind::Lent(lender) => lender.machine().map(|machine| machine.plan()),
            Kind::Log(_) | Kind::Unlimited => None,
        };
        let whole = match plan {
            Some(
                Plan::Bucket { per_nano, interval, tokens }
                | Plan::Shape { per_nano, interval, tokens },
            ) => Duration::from_nanos((interval * tokens).div_ceil(per_nano)),
            _ => self.budget.period(),
        };
        let hold = self.budget.terms().map_or(Duration::ZERO, |terms| terms.hold());
        (whole + hold + Duration::from_secs(1)) * 2
    }

    fn ask_of(&self, question: &Question, there: impl Fn(LeaseId) -> LeaseId) -> Ask {
        let key = &self.keys[question.key].key;
        let (exchange, carried) = match question.what {
            What::Exchange(exchange, carried) => (exchange, carried),
            What::Forget => (Exchange::once(0), None),
        };
        let exchange = Exchange { lease: exchange.lease.map(there), ..exchange };
        let ask = Ask::new(Arc::clone(&self.budget), key, exchange);
        carried.into_iter().fold(ask, Ask::carrying)
    }

    /// By how many microseconds leases begin later in Redis: permits know no wall in the model.
    fn shift(&self) -> u64 {
        let is_permits =
            matches!(self.budget.kind(), Kind::Lent(lender) if lender.permits().is_some());
        if is_permits { self.budget.origin().as_unix_nanos() / 1_000 } else { 0 }
    }

    /// What Redis says to each question, and what is lent afterwards.
    pub(super) fn in_redis(
        &self,
        questions: &[Question],
        word: &str,
        skew: i64,
        past: Past,
    ) -> Vec<(Result<Reply, StoreError>, u64)> {
        let there = |lease: LeaseId| LeaseId {
            epoch: self.epochs[lease.epoch as usize],
            began: lease.began + self.shift(),
        };
        let mut around = vec![answer::wall(self.now.saturating_add_signed(skew)); questions.len()];
        let mut replies: Vec<_> = questions.iter().map(|_| None).collect();
        while replies.contains(&None) {
            // Those that named another window are asked again.
            let left: Vec<_> =
                (0..questions.len()).filter(|index| replies[*index].is_none()).collect();
            let asks: Vec<_> =
                left.iter().map(|index| self.ask_of(&questions[*index], there)).collect();
            // One question for all keys is about one time.
            let is_one_time = left.iter().all(|index| around[*index] == around[left[0]]);
            let word =
                if is_one_time { word } else { ["each", "every"][usize::from(word != "each")] };
            let mut command = redis::cmd("EVALSHA");
            command.arg(hash(self.form.algorithm)).arg(left.len() + 1).arg(&self.mark);
            for index in &left {
                command.arg(&self.keys[questions[*index].key].name);
            }
            self.form.write_head(&mut command, &self.process, past, word);
            let is_one = word == "all" || word == "same";
            let written = if is_one { 1 } else { left.len() };
            for (index, ask) in left.iter().zip(&asks).take(written) {
                match questions[*index].what {
                    What::Exchange(..) => self.form.write_ask(&mut command, ask, around[*index]),
                    What::Forget => self.form.write_forget(&mut command, ask, around[*index]),
                }
            }
            let reply = said_at(self.now, &command);
            let answers = Answers::read(&reply, left.len())
                .unwrap_or_else(|| panic!("{word} of {left:?}: {reply:?}"));
            self.check_head(&answers);
            for ((index, ask), line) in left.iter().zip(&asks).zip(answers.each()) {
                match answer::read(line, &answers, ask, "name") {
                    Answer::Said(said) => replies[*index] = Some((said, escrow_in(line))),
                    Answer::OtherWindow(at) => {
                        assert_ne!(around[*index], at, "it is the right one");
                        around[*index] = at;
                    }
                }
            }
        }
        replies.into_iter().flatten().collect()
    }

    /// The first line of all answers.
    fn check_head(&self, answers: &Answers<'_>) {
        let unix = |tick: Tick| self.budget.unix_nanos(tick) / 1_000;
        // What others have lost is not said again by whoever took over, or has the slot now.
        let is_all = self.memory.lost == self.memory.everything && !self.is_lost_elsewhere;
        let lost = self.memory.everything.filter(|_| is_all).map_or(0, unix);
        let epoch = self.epochs[self.memory.number as usize];
        let since = self.written.as_ref().unwrap().root;
        let head = (answers.now, answers.epoch, answers.lost, answers.since);
        assert_eq!(head, (answer::wall(self.now), epoch, lost, since));
        let (mark, said) =
            (self.written.as_ref().unwrap(), said(redis::cmd("GET").arg(&self.mark)));
        let said: String = said;
        let Mark { beat, reaches, root, noted, .. } = mark;
        let reaches: Vec<_> = reaches.iter().map(|(by, until)| format!("{by}:{until}")).collect();
        let reaches = if reaches.is_empty() { "-".into() } else { reaches.join(",") };
        let times = format!(" beat {beat} until {reaches} since {root} noted {}", u8::from(*noted));
        assert!(said.ends_with(&times), "{said} is not{times}");
        // However it was last written, it ends long after all that it tells something of.
        let life: i64 = self::said(redis::cmd("PTTL").arg(&self.mark));
        assert!((MARK_LIFE - DAY..=MARK_LIFE).contains(&life), "the mark ends in {life} ms");
    }

    /// Whether there is anything under a key.
    fn is_known(&self, key: usize) -> bool {
        said(redis::cmd("EXISTS").arg(&self.keys[key].name))
    }

    /// What stands under a key that is somebody else's.
    fn foreign(&self, key: &Key) -> Option<Option<Vec<u8>>> {
        key.model.is_none().then(|| said(redis::cmd("DUMP").arg(&key.name)))
    }
}

/// How long a mark is kept after it was last written, and a day, which no world lasts; in milliseconds.
const MARK_LIFE: i64 = 1_000 * DAY;
const DAY: i64 = 86_400_000;

/// The time by the server's own clock, in milliseconds.
fn server_time() -> u64 {
    let (seconds, micros): (u64, u64) = said(&redis::cmd("TIME"));
    seconds * 1_000 + micros / 1_000
}

/// So far away that no key of ours ends there: in the year 2900, in milliseconds.
const FAR: i64 = 29_348_006_400_000;

/// What is said of a key that is not there.
const GONE: i64 = -2;

/// Memories of Redis have names, those of the model are counted.
trait Epochs {
    fn here(&self, reply: Reply, shift: u64) -> Reply;
}

impl Epochs for Vec<u64> {
    fn here(&self, reply: Reply, shift: u64) -> Reply {
        let Reply::Grant(grant) = reply else { return reply };
        let number = self.iter().rposition(|epoch| *epoch == grant.lease.epoch);
        let epoch = number.expect("it is one of them") as u64;
        // Where there is none, the model itself has named it.
        let began = grant.lease.began.checked_sub(shift).unwrap_or(grant.lease.began);
        Reply::Grant(Grant { lease: LeaseId { epoch, began }, ..grant })
    }
}

/// Where nothing is lent, the answer is what was found.
fn escrow_in(line: Line<'_>) -> u64 {
    let Line::Text(text) = line else { return 0 };
    let words: Vec<_> = text.split(' ').collect();
    if words[0] == "0" { words[6].parse().unwrap() } else { 0 }
}
