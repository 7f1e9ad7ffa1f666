//! The scripts against the core: the same questions at the same times get the same answers.
//!
//! The scripts are those that are in use, except that they read the time from a key.

#[path = "../../tests/support/process.rs"]
mod process;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proptest::prelude::*;
use redis::{Connection, Script, Value};
use tollgate_core::lease::{
    Account, Borrower, Carried, Exchange, Grant, LeaseId, Lender, Node, Spend, Undo,
};
use tollgate_core::{Limit, Log, Tick, Wall};

use super::answer::{self, Answer, Answers, Line, Reply};
use super::form::Loss;
use super::script::Algorithm;
use crate::ask::Ask;
use crate::budget::{Budget, Kind};
use crate::error::StoreError;
use crate::memory::{answer_of_log, open_log};

/// One server for all tests of this file. It ends with the process, which does not drop it.
fn server() -> &'static Mutex<Connection> {
    static SERVER: OnceLock<Mutex<Connection>> = OnceLock::new();
    SERVER.get_or_init(|| {
        let redis = process::Redis::start_for_process();
        let client = redis::Client::open(redis.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        for algorithm in Algorithm::ALL {
            let script = redis::cmd("SCRIPT").arg("LOAD").arg(timed(algorithm)).to_owned();
            script.exec(&mut connection).unwrap();
        }
        Box::leak(Box::new(redis));
        Mutex::new(connection)
    })
}

fn timed(algorithm: Algorithm) -> String {
    let source = algorithm.source();
    assert_eq!(source.matches("redis.call('TIME')").count(), 1);
    source.replace("redis.call('TIME')", "redis.call('MGET', 'seconds', 'micros')")
}

fn hash(algorithm: Algorithm) -> &'static str {
    static HASHES: OnceLock<[String; 5]> = OnceLock::new();
    let hash = |algorithm| Script::new(&timed(algorithm)).get_hash().to_owned();
    &HASHES.get_or_init(|| Algorithm::ALL.map(hash))[algorithm as usize]
}

#[derive(Clone, Debug)]
struct Deed {
    /// Microseconds since the one before.
    pause: u64,
    node: u64,
    sums: [u64; 2],
    cost: u64,
    want: u64,
    least: u64,
    /// Which lease it is about: its own, none, or somebody else's.
    about: u8,
    /// A new exchange, the last again, an old one, or one that is asked once, of which some are at the
    /// very edge: what is left, one more, or what was denied at the moment at which it is allowed;
    /// some take back what passed before.
    kind: u8,
    /// By how much the asker's clock is wrong, in microseconds.
    skew: i64,
    /// What the key brings along from another limit, and how long ago that changed.
    carried: Option<Carried>,
}

/// Numbers that make sense mostly.
fn numbers(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..usual.max(2), 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn deeds(usual: u64, longest: u64) -> impl Strategy<Value = Vec<Deed>> {
    let sums = (numbers(usual), numbers(usual), numbers(usual), numbers(usual));
    let rest = (prop_oneof![3 => Just(0), 1 => numbers(usual)], 0..8u8, 0..16u8, -5_000..5_000i64);
    let carried = (numbers(usual * 2), 0..longest * 3, 0..20u32, any::<bool>());
    let carried = carried.prop_map(|(spent, ago, shift, of_known)| {
        let ago = Duration::from_micros(ago >> shift);
        Carried { spent, ago, of_known }
    });
    let carried = prop::option::weighted(0.3, carried);
    let one = (0..longest, 0..20u32, 0..5u64, sums, rest, carried);
    let one =
        one.prop_map(|(pause, shift, node, sums, (least, about, kind, skew), carried)| Deed {
            pause: pause >> shift,
            node,
            sums: [sums.0, sums.1],
            cost: sums.2,
            want: sums.3,
            least,
            about,
            kind,
            skew,
            carried,
        });
    prop::collection::vec(one, 1..80)
}

/// One key in both worlds.
struct Pair {
    budget: Arc<Budget>,
    key: String,
    /// Microseconds since 1970.
    now: u64,
    model: Model,
    /// When both have lost their memory.
    lost: Option<Tick>,
    /// The memory in Redis. The model's is 0.
    epoch: u64,
}

#[derive(Clone)]
enum Model {
    Account(Box<Lender>, Box<Account>),
    Log(Log),
}

impl Model {
    const fn escrow(&self) -> u64 {
        match self {
            Self::Account(_, account) => account.escrow(),
            Self::Log(_) => 0,
        }
    }
}

impl Pair {
    /// Both know nothing of the key, or have lost their memory so many microseconds ago.
    fn new(budget: Budget, now: u64, lost: Option<u64>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let key = format!("key{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let budget = Arc::new(budget);
        let lost = lost.map(|ago| now - ago);
        let lost_tick = lost.and_then(|lost| budget.tick_at(answer::wall(lost)));
        let ask = Ask::new(Arc::clone(&budget), &key, Exchange::once(0));
        let tick = budget.tick_at(answer::wall(now)).unwrap();
        let model = match budget.kind() {
            Kind::Lent(lender) => {
                let lender = match lost_tick {
                    Some(lost) => Box::new(Lender::clone(lender).after_loss(0, lost)),
                    None => lender.clone(),
                };
                let account = lender.open(tick, ask.phase());
                Model::Account(lender, Box::new(account))
            }
            Kind::Log(rule) => Model::Log(open_log(*rule, lost_tick, None)),
            Kind::Unlimited => panic!("there is nothing to compare"),
        };
        let epoch = now + 7;
        let mut mark = redis::cmd("SET");
        let text = format!("process p epoch {epoch} lost {} kept 0", lost.unwrap_or(0));
        mark.arg(format!("mark:{key}")).arg(text);
        mark.exec(&mut *server().lock().unwrap()).unwrap();
        Self { budget, key, now, model, lost: lost_tick, epoch }
    }

    /// Whether there is anything under the key.
    fn is_known(&self) -> bool {
        let name = self.budget.form().unwrap().unwrap().names.key(self.key.as_bytes()).text;
        redis::cmd("EXISTS").arg(name).query(&mut *server().lock().unwrap()).unwrap()
    }

    /// The answer, and what is lent afterwards.
    fn in_redis(&self, ask: &Ask, skew: i64) -> (Result<Grant, StoreError>, u64) {
        let form = self.budget.form().unwrap().unwrap();
        let mut connection = server().lock().unwrap();
        let (seconds, micros) = (self.now / 1_000_000, self.now % 1_000_000);
        let mut clock = redis::cmd("MSET");
        clock.arg("seconds").arg(seconds).arg("micros").arg(micros).exec(&mut *connection).unwrap();
        let mut around = answer::wall(self.now.saturating_add_signed(skew));
        loop {
            let mut command = redis::cmd("EVALSHA");
            command.arg(hash(form.algorithm)).arg(2).arg(format!("mark:{}", self.key));
            command.arg(form.names.key(self.key.as_bytes()).text);
            // A question that all have in common is read in another way than one for each.
            let asked = match self.now % 4 {
                0 if form.is_plain(ask) => "all",
                1 if form.is_plain(ask) => "same",
                2 if form.is_plain(ask) => "every",
                _ => "each",
            };
            form.write_head(&mut command, "p", Loss::Unknown, asked);
            form.write_ask(&mut command, ask, around);
            let reply: Value = command.query(&mut *connection).unwrap();
            let answers = Answers::read(&reply, 1).unwrap();
            assert_eq!((answers.now, answers.epoch), (answer::wall(self.now), self.epoch));
            let line = answers.each().next().unwrap();
            match answer::read(line, &answers, ask, "name") {
                Answer::Said(said) => return (said.map(grant_of), escrow_in(line)),
                Answer::OtherWindow => {
                    assert_ne!(around, answer::wall(self.now), "it is the right one");
                    around = answer::wall(self.now);
                }
            }
        }
    }

    fn in_core(&mut self, ask: &Ask, was_known: bool) -> (Result<Grant, StoreError>, u64) {
        let now = self.budget.tick_at(answer::wall(self.now)).unwrap();
        let before = self.model.clone();
        let answer = match (&mut self.model, self.budget.kind()) {
            (Model::Account(lender, account), _) => {
                if let Some(carried) = ask.carried().filter(|it| !was_known || it.of_known) {
                    lender.carry(account, now, carried);
                }
                lender.exchange(account, now, ask.exchange()).ok_or(StoreError::Overtaken)
            }
            (Model::Log(log), Kind::Log(rule)) => {
                if let Some(carried) = ask.carried().filter(|_| !was_known) {
                    *log = open_log(*rule, self.lost, Some((carried.since(now), carried.spent)));
                }
                Ok(answer_of_log(log, *rule, &self.budget, now, ask, 0))
            }
            _ => panic!("a log is a log"),
        };
        let escrow = self.model.escrow();
        // To look leaves nothing behind. A log knows no numbers.
        let exchange = match &self.model {
            Model::Account(..) => *ask.exchange(),
            Model::Log(_) if ask.exchange().sequence > 0 => Exchange::once(ask.exchange().cost),
            Model::Log(_) => *ask.exchange(),
        };
        if ask.carried().is_some() && exchange.is_look() {
            self.model = before;
        }
        (answer, escrow)
    }

    /// Asks both, and compares what they say.
    fn ask(&mut self, exchange: Exchange, skew: i64) -> Option<Grant> {
        self.ask_carrying(exchange, None, skew)
    }

    /// The same about a key that brings something along.
    fn ask_carrying(
        &mut self,
        exchange: Exchange,
        carried: Option<Carried>,
        skew: i64,
    ) -> Option<Grant> {
        let epoch = self.epoch;
        let here = |lease: LeaseId| LeaseId { epoch: 0, ..lease };
        let there = |lease: LeaseId| LeaseId { epoch, ..lease };
        let ask = |exchange| {
            let ask = Ask::new(Arc::clone(&self.budget), &self.key, exchange);
            carried.into_iter().fold(ask, Ask::carrying)
        };
        let (ask, asked) =
            (ask(exchange), ask(Exchange { lease: exchange.lease.map(there), ..exchange }));
        let was_known = self.is_known();
        let (redis, escrow) = self.in_redis(&asked, skew);
        let redis = redis.map(|grant| Grant { lease: here(grant.lease), ..grant });
        let (core, lent) = self.in_core(&ask, was_known);
        assert_eq!(redis, core, "{} at {} to {ask:?}", self.budget, self.now);
        if !was_known && carried.is_some() && exchange.is_look() {
            assert!(!self.is_known(), "{} at {}: {ask:?} left something", self.budget, self.now);
        }
        if let (Model::Account(..), 0) = (&self.model, exchange.sequence) {
            assert_eq!(escrow, lent, "{}", self.budget);
        }
        core.ok()
    }

    fn play(&mut self, deeds: &[Deed]) {
        let (mut leases, mut last) = ([None; 5], [None::<Exchange>; 5]);
        let (mut left, mut denied, mut passed) = (0, None, None);
        for (index, deed) in deeds.iter().enumerate() {
            self.now += deed.pause;
            let who = deed.node as usize;
            let new = Exchange {
                node: Node { number: deed.node, incarnation: u64::MAX },
                sequence: index as u64 + 1,
                lease: match deed.about {
                    0 => None,
                    1 => leases[(who + 1) % 5],
                    _ => leases[who],
                },
                used: deed.sums[0],
                returned: deed.sums[1],
                cost: deed.cost,
                want: deed.want,
                least: deed.least,
                undo: None,
            };
            let exchange = match (deed.kind, last[who]) {
                (0, Some(last)) => last,
                (1, Some(last)) => Exchange { sequence: last.sequence / 2 + 1, ..new },
                (2..5, _) => Exchange::once(deed.cost),
                (5, _) => Exchange::once(left),
                (6, _) => Exchange::once(left.saturating_add(1)),
                (7, _) => {
                    let (cost, wait): (u64, Duration) = denied.take().unwrap_or_default();
                    // Rounded up, as the clock is in microseconds.
                    self.now += wait.as_nanos().div_ceil(1_000) as u64;
                    Exchange::once(cost)
                }
                // The last that passed, or some part of it, or anything.
                (8..10, _) => Exchange { undo: passed, ..Exchange::once(0) },
                (10, _) => {
                    let at = passed.map_or_else(wall, |undo| undo.at);
                    Exchange::undo(deed.cost, at)
                }
                _ => new,
            };
            let grant = self.ask_carrying(exchange, deed.carried, deed.skew);
            let wait = grant.and_then(|grant| grant.decision.retry_after());
            denied = wait.map(|wait| (exchange.cost, wait)).or(denied);
            if let Some(grant) = grant
                && exchange.cost > 0
                && grant.decision.is_allowed()
                && deed.about < 6
            {
                passed = Some(Undo { cost: exchange.cost, at: grant.at });
            }
            if let (Some(grant), true) = (grant, exchange.sequence == new.sequence) {
                (leases[who], last[who]) = (Some(grant.lease), Some(exchange));
            }
            // What is left is compared as well.
            left = self.ask(Exchange::once(0), 0).map_or(0, |grant| grant.decision.remaining());
        }
    }
}

fn grant_of(reply: Reply) -> Grant {
    let Reply::Grant(grant) = reply else { panic!("{reply:?}") };
    grant
}

/// Where nothing is lent, the answer is what was found.
fn escrow_in(line: Line<'_>) -> u64 {
    let Line::Text(text) = line else { return 0 };
    let words: Vec<_> = text.split(' ').collect();
    if words[0] == "0" { words[6].parse().unwrap() } else { 0 }
}

fn budget(limit: &Limit) -> Budget {
    Budget::new("rule", limit, Duration::from_millis(2), wall())
}

fn wall() -> Wall {
    Wall::from_unix_nanos(NOW * 1_000)
}

/// Some day in 2027, not on a round second.
const NOW: u64 = 1_800_000_000_123_457;

fn compare(budget: Budget, deeds: &[Deed], lost: Option<u64>) {
    Pair::new(budget, NOW, lost).play(deeds);
}

/// Also of odd rates, rounded ones, and the largest.
fn buckets() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::token_bucket("100/s").unwrap()),
        Just(Limit::token_bucket("3/s burst 50").unwrap()),
        Just(Limit::token_bucket("97/13s burst 1000").unwrap()),
        Just(Limit::token_bucket("1234567/s").unwrap()),
        Just(Limit::token_bucket("1M/ms burst 900000000000000").unwrap()),
        Just(Limit::token_bucket("7/min burst 50").unwrap()),
        Just(Limit::token_bucket("1/week").unwrap()),
        Just(Limit::leaky_police("10/s burst 20").unwrap()),
        Just(Limit::leaky_shape("100/s", 20).unwrap()),
        Just(Limit::leaky_shape("77/s", 500).unwrap()),
    ]
}

fn windows() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::fixed_window("100/s").unwrap()),
        Just(Limit::fixed_window("50/300ms").unwrap()),
        Just(Limit::fixed_window("50/700ms").unwrap().jittered().unwrap()),
        Just(Limit::fixed_window("1G/7s").unwrap().jittered().unwrap()),
        Just(Limit::calendar("60/day", "America/St_Johns").unwrap()),
        Just(Limit::sliding_window("100/s").unwrap()),
        Just(Limit::sliding_window("77/333ms").unwrap()),
        Just(Limit::sliding_window("123457/min").unwrap()),
        // So many that counts of the last window are rounded.
        Just(Limit::sliding_window("60M/s").unwrap()),
    ]
}

/// A schedule in the measure of a limit.
fn schedule(limits: impl Strategy<Value = Limit>) -> impl Strategy<Value = (Limit, Vec<Deed>)> {
    limits.prop_flat_map(|limit| {
        let period = limit.quota().rate().unwrap().period().as_duration().as_micros() as u64;
        let usual = limit.capacity().unwrap() * 6 / 10;
        let deeds = prop_oneof![deeds(usual, period), deeds(usual / 10, period)];
        (Just(limit), deeds)
    })
}

fn lost() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => (0..2_000_000u64).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn buckets_agree((limit, deeds) in schedule(buckets()), lost in lost()) {
        compare(budget(&limit), &deeds, lost);
    }

    #[test]
    fn windows_agree((limit, deeds) in schedule(windows()), lost in lost()) {
        compare(budget(&limit), &deeds, lost);
    }

    #[test]
    fn permits_agree(deeds in deeds(30, 1_500_000), lost in lost()) {
        let max = NonZeroU32::new(40).unwrap();
        compare(Budget::of_permits("rule", max, Duration::from_millis(2), wall()), &deeds, lost);
    }

    #[test]
    fn logs_agree(deeds in deeds(6, 400_000), lost in lost()) {
        compare(budget(&Limit::sliding_log("20/s").unwrap()), &deeds, lost);
    }
}

/// More entries than are looked at in one go, some of which are over at a time, and then all.
#[test]
fn long_logs_agree() {
    let limit = Limit::sliding_log("500/s").unwrap();
    let mut pair = Pair::new(budget(&limit), NOW, None);
    for number in 0..700u64 {
        pair.now += 1_500 + number % 7;
        pair.ask(Exchange::once(1 + number % 2), 0);
    }
    for pause in [350_000, 1, 900_000, 5_000_000] {
        pair.now += pause;
        pair.ask(Exchange::once(400), 0);
        pair.ask(Exchange::once(400), 0);
    }
}

/// More is used of a lease in the long run than can be told in one sum.
#[test]
fn agrees_on_a_lease_that_goes_on_and_on() {
    const BURST: u64 = 1_000_000_000_000_000;
    let limit = Limit::token_bucket("1M/ms burst 1000000000000000").unwrap();
    let mut pair = Pair::new(budget(&limit), NOW, None);
    let node = Node { number: 1, incarnation: 1 };
    let mut borrower = Borrower::new(node, pair.budget.terms().unwrap());
    let mut passed = 0;
    while passed < (1 << 50) + BURST / 50 {
        pair.now += 14_000_000;
        let nanos = (pair.now - NOW) * 1_000;
        let now = Tick::from_nanos(nanos);
        let cost = borrower.tokens(now).max(1);
        if let Spend::Taken(_) = borrower.spend(now, cost) {
            passed += cost;
        }
        assert!(passed <= BURST + nanos, "{passed} in {nanos} ns");
        borrower.spend(now, BURST / 50);
        if let Some(exchange) = borrower.exchange(now) {
            let grant = pair.ask(exchange, 0).unwrap();
            assert!(borrower.answer(now, &grant));
        }
    }
}

/// More nodes than there are places: those who hold nothing make room, others do not.
#[test]
fn agrees_when_all_places_are_taken() {
    let limit = Limit::token_bucket("100k/s").unwrap();
    let mut pair = Pair::new(budget(&limit), NOW, None);
    for number in 0..600u64 {
        pair.now += 1;
        let want = if number % 3 == 0 { 0 } else { 5 };
        let node = Node { number, incarnation: 1 };
        pair.ask(Exchange { want, ..Exchange::strict(node, 1) }, 0);
    }
    pair.now += 10_000_000;
    pair.ask(Exchange::once(0), 0);
}
