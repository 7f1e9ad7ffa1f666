//! Requests at a steady rate, from many clients, and what came of them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::client::encode;
use crate::now;
use crate::stalls::Stalls;

/// One client for each address, all of which ask about one key.
pub(crate) struct Load {
    clients: Vec<Client>,
    each: usize,
    end: Arc<End>,
    /// Finds out when the machine gave nobody a turn.
    witness: JoinHandle<Stalls>,
}

struct Client {
    counts: Arc<Counts>,
    thread: JoinHandle<Vec<Batch>>,
}

#[derive(Default)]
struct Counts {
    allowed: AtomicU64,
    answered: AtomicU64,
    /// Its node is about to be killed.
    is_doomed: AtomicBool,
}

/// Questions that were sent together. Each was decided after it was sent and before the last answer
/// was heard, and nobody but the node knows when.
#[derive(Clone, Copy)]
struct Batch {
    sent: Instant,
    heard: Instant,
    asked: u32,
    allowed: u32,
}

/// How often a client sends.
const PAUSE: Duration = Duration::from_millis(10);

const WINK: Duration = Duration::from_millis(1);

/// A node that says nothing for so long has lost what it was asked.
const DEADLINE: Duration = Duration::from_secs(30);

impl Load {
    /// So many requests for a path from each client every ten milliseconds, as long as `is_on` says
    /// that it is its turn.
    pub(crate) fn begin(
        nodes: &[SocketAddr],
        path: &str,
        each: usize,
        is_on: impl Fn(usize, Duration) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::every(PAUSE, nodes, path, each, is_on)
    }

    /// The same with another time from one to the next.
    pub(crate) fn every(
        pause: Duration,
        nodes: &[SocketAddr],
        path: &str,
        each: usize,
        is_on: impl Fn(usize, Duration) -> bool + Send + Sync + 'static,
    ) -> Self {
        let question = |user| encode(&["TG.CHECK", "path", path, "user", user]);
        let met: Vec<_> = nodes.iter().map(|node| Asking::meet(*node, &question("bob"))).collect();
        let questions = question("alice").repeat(each).into_bytes();
        let (end, is_on, began) = (Arc::<End>::default(), Arc::new(is_on), now());
        let client = |(number, mut asking): (usize, Asking)| {
            let counts = Arc::clone(&asking.counts);
            let (end, is_on, questions) = (Arc::clone(&end), Arc::clone(&is_on), questions.clone());
            let thread = thread::spawn(move || {
                let is_on = || is_on(number, now() - began);
                asking.run(&questions, (each, pause), &end, is_on)
            });
            Client { counts, thread }
        };
        let clients = met.into_iter().enumerate().map(client).collect();
        let witness = {
            let end = Arc::clone(&end);
            thread::spawn(move || stalls_until(&end))
        };
        Self { clients, each, end, witness }
    }

    /// How many answers each client has heard so far.
    pub(crate) fn answered(&self) -> Vec<u64> {
        self.clients.iter().map(|client| client.counts.answered.load(Ordering::Relaxed)).collect()
    }

    pub(crate) fn allowed(&self) -> u64 {
        self.clients.iter().map(|client| client.counts.allowed.load(Ordering::Relaxed)).sum()
    }

    /// Whether every client has heard the answers to so many batches since it had heard `before`, but
    /// for those whose nodes were killed.
    pub(crate) fn has_gone_on(&self, before: &[u64], batches: usize) -> bool {
        let more = (batches * self.each) as u64;
        let goes_on = |(client, before): (&Client, &u64)| {
            let answered = client.counts.answered.load(Ordering::Relaxed);
            answered >= before + more || client.counts.is_doomed.load(Ordering::Relaxed)
        };
        self.clients.iter().zip(before).all(goes_on)
    }

    /// From now on it is no failure if this node is gone.
    pub(crate) fn doom(&self, node: usize) {
        self.clients[node].counts.is_doomed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_doomed(&self, node: usize) -> bool {
        self.clients[node].counts.is_doomed.load(Ordering::Relaxed)
    }

    pub(crate) fn end(self) -> Outcome {
        self.end.come();
        let mut batches = Vec::new();
        let mut counts = Vec::new();
        for client in self.clients {
            batches.push(client.thread.join().unwrap());
            counts.push(client.counts);
        }
        let sum = |of: fn(&Counts) -> &AtomicU64| {
            counts.iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum()
        };
        Outcome {
            allowed: sum(|counts| &counts.allowed),
            answered: sum(|counts| &counts.answered),
            batches,
            stalls: self.witness.join().unwrap(),
        }
    }
}

/// What came of a load.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) allowed: u64,
    pub(crate) answered: u64,
    /// Those of each client.
    batches: Vec<Vec<Batch>>,
    /// When the machine kept one of this test's threads waiting that had next to nothing to do.
    pub(crate) stalls: Stalls,
}

impl Outcome {
    /// From when until when a client has waited for answers, each time.
    pub(crate) fn waits(&self, client: usize) -> impl Iterator<Item = (Instant, Instant)> {
        self.batches[client].iter().map(|batch| (batch.sent, batch.heard))
    }

    /// When the node of a client gave it no turn, to which it said nothing that takes time.
    pub(crate) fn stalls_of(&self, client: usize) -> Stalls {
        let mut stalls = Stalls::default();
        for (sent, heard) in self.waits(client).filter(|(sent, heard)| *heard - *sent >= PAUSE) {
            // It may have begun when nothing was asked yet.
            stalls.note(sent - PAUSE, heard);
        }
        stalls
    }

    /// How many passed that may have been decided between two moments.
    pub(crate) fn allowed_between(&self, begin: Instant, end: Instant) -> u64 {
        let all = self.batches.iter().flatten();
        let between = all.filter(|batch| batch.heard >= begin && batch.sent <= end);
        between.map(|batch| u64::from(batch.allowed)).sum()
    }

    /// By how much more passed than a bucket lets pass, in the worst of all intervals: less than
    /// nothing if the limit held in each.
    ///
    /// What was sent and heard within an interval was decided in it. What was sent before it, or heard
    /// after it, may have been decided elsewhere, and does not count. So no interval can seem to have
    /// had more than it had, and if the bucket was ever passed by more than what clients cannot know,
    /// there is one in which it shows.
    pub(crate) fn excess(&self, burst: f64, rate: f64) -> f64 {
        let all = self.batches.iter().flatten().filter(|batch| batch.allowed > 0);
        let mut by_end: Vec<_> = all.collect();
        by_end.sort_unstable_by_key(|batch| batch.heard);
        let mut worst = f64::NEG_INFINITY;
        for first in &by_end {
            let mut passed = 0;
            for batch in by_end.iter().filter(|batch| batch.sent >= first.sent) {
                passed += batch.allowed;
                let may = burst + rate * (batch.heard - first.sent).as_secs_f64();
                worst = worst.max(f64::from(passed) - may);
            }
        }
        worst
    }

    /// By how much more passed than may, at the worst of all moments until `end`: of what each client sent
    /// since a moment of its own.
    pub(crate) fn excess_since(
        &self,
        since: &[Instant],
        end: Instant,
        may: impl Fn(Instant) -> f64,
    ) -> f64 {
        let of_client = |(batches, since): (&Vec<Batch>, &Instant)| {
            let later = batches.iter().filter(|it| it.sent >= *since && it.heard <= end);
            later.copied().collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.batches.iter().zip(since).flat_map(of_client).collect();
        all.sort_unstable_by_key(|batch| batch.heard);
        let (mut passed, mut worst) = (0.0, f64::NEG_INFINITY);
        for batch in all {
            passed += f64::from(batch.allowed);
            worst = worst.max(passed - may(batch.heard));
        }
        worst
    }

    /// Which part of what one limiter would have let pass did not, of all until some moment in the last second:
    /// the best one, since at any other somebody may just not have had the time to ask.
    ///
    /// That limiter is a bucket which sees every request at the moment at which its answer was heard. So it has
    /// no more to do than the fleet has: what nobody asked for in time, it has not let pass either. What was
    /// lost is missing at each moment.
    pub(crate) fn lack(&self, burst: f64, rate: f64) -> f64 {
        let mut by_end: Vec<_> = self.batches.iter().flatten().collect();
        by_end.sort_unstable_by_key(|batch| batch.heard);
        let (begin, end) = (by_end[0].heard, by_end[by_end.len() - 1].heard);
        let (mut level, mut last) = (burst, begin);
        let (mut passed, mut may, mut least) = (0.0, 0.0, f64::INFINITY);
        for batch in by_end {
            level = burst.min(level + rate * (batch.heard - last).as_secs_f64());
            last = batch.heard;
            let passes = level.min(f64::from(batch.asked));
            level -= passes;
            may += passes;
            passed += f64::from(batch.allowed);
            if end - batch.heard <= Duration::from_secs(1) {
                least = least.min(1.0 - passed / may);
            }
        }
        least
    }
}

/// When somebody was late who wanted to be woken up once in a millisecond.
fn stalls_until(end: &End) -> Stalls {
    let (mut stalls, mut last) = (Stalls::default(), now());
    while !end.comes_within(WINK) {
        let woken = now();
        stalls.note(last + WINK, woken);
        last = woken;
    }
    stalls
}

/// The end of a load, for which clients wait between two batches.
#[derive(Default)]
struct End {
    has_come: Mutex<bool>,
    told: Condvar,
}

impl End {
    fn come(&self) {
        *self.has_come.lock().unwrap() = true;
        self.told.notify_all();
    }

    fn comes_within(&self, time: Duration) -> bool {
        let has_come = self.has_come.lock().unwrap();
        *self.told.wait_timeout_while(has_come, time, |has_come| !*has_come).unwrap().0
    }
}

/// A client at work.
struct Asking {
    stream: TcpStream,
    /// What of an answer is there.
    heard: Vec<u8>,
    counts: Arc<Counts>,
}

impl Asking {
    /// Connects to a node, and has it meet its store, with another key than the one that counts.
    fn meet(node: SocketAddr, question: &str) -> Self {
        let stream = TcpStream::connect(node).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut asking = Self { stream, heard: Vec::new(), counts: Arc::default() };
        asking.stream.write_all(question.as_bytes()).unwrap();
        assert!(asking.hear().is_some(), "nobody is there");
        asking
    }

    /// Asks until it is told to end, or its node was killed.
    fn run(
        &mut self,
        questions: &[u8],
        (each, pause): (usize, Duration),
        end: &End,
        is_on: impl Fn() -> bool,
    ) -> Vec<Batch> {
        let (mut batches, mut sent) = (Vec::new(), now());
        while !end.comes_within(pause.saturating_sub(now() - sent)) {
            sent = now();
            if is_on() {
                let (allowed, is_gone) = self.ask(questions, each);
                batches.push(Batch { sent, heard: now(), asked: each as u32, allowed });
                if is_gone {
                    break;
                }
            }
        }
        batches
    }

    /// How many of the questions pass, and whether nobody is there any more.
    fn ask(&mut self, questions: &[u8], each: usize) -> (u32, bool) {
        let mut allowed = 0;
        if let Err(error) = self.stream.write_all(questions) {
            self.assert_doomed(&error.to_string());
            return (allowed, true);
        }
        for _ in 0..each {
            let Some(is_allowed) = self.hear() else { return (allowed, true) };
            allowed += u32::from(is_allowed);
            self.counts.allowed.fetch_add(u64::from(is_allowed), Ordering::Relaxed);
            self.counts.answered.fetch_add(1, Ordering::Relaxed);
        }
        (allowed, false)
    }

    /// Whether the next answer of eight parts is a yes; `None` if nobody is there any more.
    fn hear(&mut self) -> Option<bool> {
        loop {
            if let Some((length, is_allowed)) = answer(&self.heard) {
                self.heard.drain(..length);
                return Some(is_allowed);
            }
            let mut more = [0; 16 << 10];
            match self.stream.read(&mut more) {
                Ok(0) => self.assert_doomed("it closed the connection"),
                Err(error) => {
                    let is_late = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    assert!(!is_late.contains(&error.kind()), "no answer within {DEADLINE:?}");
                    self.assert_doomed(&error.to_string());
                }
                Ok(read) => {
                    self.heard.extend_from_slice(&more[..read]);
                    continue;
                }
            }
            return None;
        }
    }

    fn assert_doomed(&self, why: &str) {
        assert!(self.counts.is_doomed.load(Ordering::Relaxed), "nobody killed this node: {why}");
    }
}

/// An answer that is all here: its length, and whether it is a yes.
fn answer(bytes: &[u8]) -> Option<(usize, bool)> {
    let line = |from: usize| {
        let length = bytes.get(from..)?.windows(2).position(|pair| pair == b"\r\n")?;
        Some((&bytes[from..from + length], from + length + 2))
    };
    let (head, mut at) = line(0)?;
    assert_eq!(head, b"*8", "{}", String::from_utf8_lossy(bytes));
    let mut is_allowed = None;
    for _ in 0..8 {
        let (part, next) = line(at)?;
        at = next;
        is_allowed = is_allowed.or_else(|| Some(part == b":0"));
        if let Some(length) = part.strip_prefix(b"$")
            && let Ok(length) = String::from_utf8_lossy(length).parse::<usize>()
        {
            at += length + 2;
        }
    }
    (at <= bytes.len()).then_some((at, is_allowed?))
}

#[test]
fn what_was_lost_is_missing_and_what_is_late_is_not() {
    let begin = now();
    let batch = |millis: u64, asked, allowed| {
        let at = begin + Duration::from_millis(millis);
        Batch { sent: at, heard: at, asked, allowed }
    };
    let lack = |batches: &[Batch]| {
        let outcome = Outcome { batches: vec![batches.to_vec()], ..Outcome::default() };
        (outcome.lack(100.0, 100.0) * 1000.0).round()
    };
    let full = batch(0, 200, 100);
    assert_eq!(lack(&[full, batch(500, 80, 50), batch(1_400, 90, 90), batch(1_500, 90, 0)]), 0.0);
    assert_eq!(lack(&[full, batch(500, 80, 44), batch(1_400, 96, 96), batch(1_500, 90, 0)]), 0.0);
    assert_eq!(lack(&[full, batch(500, 80, 38), batch(1_400, 90, 90), batch(1_500, 90, 0)]), 50.0);
    // Who is asked too late loses what would have come in, whoever he is.
    assert_eq!(lack(&[full, batch(3_000, 80, 80), batch(3_500, 90, 70)]), 0.0);
}

#[test]
fn too_many_in_any_interval_are_found_and_no_others() {
    let begin = now();
    let at = |millis: u64| begin + Duration::from_millis(millis);
    let batch =
        |sent, heard, allowed| Batch { sent: at(sent), heard: at(heard), asked: allowed, allowed };
    let excess = |batches: &[Batch]| {
        let batches = vec![batches.to_vec()];
        Outcome { batches, ..Outcome::default() }.excess(10.0, 100.0)
    };
    // Ten at once, and one more every ten milliseconds.
    assert_eq!(excess(&[batch(0, 0, 10)]), 0.0);
    assert_eq!(excess(&[batch(0, 0, 10), batch(990, 1_000, 10), batch(1_000, 1_000, 1)]), 0.0);
    // All of them together are far below what may pass in two seconds.
    assert_eq!(excess(&[batch(0, 0, 1), batch(1_000, 1_000, 8), batch(2_000, 2_010, 12)]), 1.0);
    // What was under way for long may have been decided before the others.
    assert_eq!(excess(&[batch(0, 1_010, 10), batch(1_000, 1_000, 10)]), 0.0);
    assert_eq!(
        excess(&[batch(0, 1_000, 100), batch(1_000, 1_000, 10), batch(900, 1_000, 12)]),
        12.0
    );
}
