//! Requests that come in bursts, with silences in between.

use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Exchange, Lender, Node, Spend};
use tollgate_core::{Anchor, Limit, Phase, Tick};

/// A node with a store that answers at once, asked once in a millisecond while it is busy: a tenth of
/// what may pass.
struct Busy {
    node: Borrower,
    lender: Lender,
    account: Account,
    now: Tick,
}

impl Busy {
    fn new() -> Self {
        let limit = Limit::token_bucket("10k/s").unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let node = Borrower::new(Node { number: 1, incarnation: 1 }, lender.terms().unwrap());
        let account = lender.open(Tick::ZERO, Phase::default());
        let mut busy = Self { node, lender, account, now: Tick::from_nanos(1 << 40) };
        busy.is_asked(500);
        busy
    }

    fn answers(&mut self, exchange: Option<Exchange>) -> Option<Exchange> {
        let exchange = exchange?;
        let grant = self.lender.exchange(&mut self.account, self.now, &exchange).unwrap();
        self.node.answer(self.now, &grant);
        Some(exchange)
    }

    /// For so many milliseconds, in which all pass. What was told and asked for.
    fn is_asked(&mut self, millis: u64) -> Vec<Exchange> {
        let mut exchanges = self.is_silent(1);
        for _ in 0..millis {
            let asks = match self.node.spend(self.now, 1) {
                Spend::Taken(_) => None,
                Spend::Ask => self.node.ask(self.now, 1),
                Spend::Short(_) => panic!("there is plenty"),
            };
            exchanges.extend(self.answers(asks));
            exchanges.extend(self.is_silent(1));
        }
        exchanges
    }

    fn is_silent(&mut self, millis: u64) -> Vec<Exchange> {
        let mut exchanges = Vec::new();
        for _ in 0..millis {
            self.now = self.now.after(Duration::from_millis(1));
            let due = self.node.exchange(self.now);
            exchanges.extend(self.answers(due));
        }
        exchanges
    }

    /// How long it keeps what it holds while nobody comes.
    fn keeps(&mut self) -> u64 {
        assert!(self.node.held(self.now) > 0);
        (1..10_000)
            .find(|_| {
                self.is_silent(1);
                self.node.held(self.now) == 0
            })
            .expect("what is not needed goes back")
    }
}

#[test]
fn a_silence_that_was_short_is_waited_for_from_then_on() {
    let mut busy = Busy::new();
    let first = busy.keeps();
    assert!((50..=125).contains(&first), "{first} ms");
    busy.is_silent(200 - first);
    busy.is_asked(500);
    let second = busy.keeps();
    assert!((200..300).contains(&second), "{second} ms after a silence of 200");
    // What was long says nothing about the next.
    busy.is_silent(1_000);
    busy.is_asked(500);
    let third = busy.keeps();
    assert!((50..=125).contains(&third), "{third} ms");
}

#[test]
fn who_comes_after_a_short_silence_asks_for_what_is_usual() {
    for (silence, is_usual) in [(200, true), (1_000, false)] {
        let mut busy = Busy::new();
        let held = busy.node.held(busy.now);
        busy.is_silent(silence);
        assert_eq!(busy.node.held(busy.now), 0, "it went back");
        let asks = busy.is_asked(1);
        assert_eq!(asks[0].cost, 1);
        let is_much = asks[0].want * 4 >= held;
        assert_eq!(is_much, is_usual, "{held} before {silence} ms, {asks:?}");
    }
}

#[test]
fn bursts_with_short_silences_ask_no_more_than_twelve_times_a_second() {
    for (burst, silence) in [(30, 30), (60, 60), (60, 120), (100, 100), (170, 170), (50, 300)] {
        let mut busy = Busy::new();
        let begin = busy.now;
        let mut questions = 0;
        while busy.now < begin.after(Duration::from_secs(20)) {
            questions += busy.is_silent(silence).len() + busy.is_asked(burst).len();
        }
        assert!(questions <= 240, "{questions} with {burst} ms of requests every {silence} ms");
    }
}

#[test]
fn of_many_who_come_while_the_first_is_asked_about_a_few_ask_apart() {
    let limit = Limit::token_bucket("10k/s").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let mut node = Borrower::new(Node { number: 1, incarnation: 1 }, lender.terms().unwrap());
    let now = Tick::from_nanos(1 << 40);
    assert!(node.ask(now, 1).is_some_and(|first| first.want == 0));
    let apart = (0..100).filter(|_| node.asks_apart(now)).count();
    assert_eq!(apart, 4, "the others ask together, or find what the first of them has asked for");
}
