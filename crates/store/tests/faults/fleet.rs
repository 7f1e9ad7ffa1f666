//! Five nodes that borrow from one key, each through a store of its own: what passes is never more
//! than the burst and what time has brought.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::lease::{Borrower, Exchange, Node, Spend};
use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::Budget;

use crate::process::Redis;
use crate::view::{View, pause};

/// Tokens in a second, and in the bucket.
const RATE: u64 = 1_000;

/// Until when so many pass, however busy the machine is.
const DEADLINE: Duration = Duration::from_secs(60);

struct Member {
    view: View,
    budget: Arc<Budget>,
    borrower: Borrower,
    clock: SystemClock,
    passed: u64,
    asked: u64,
}

impl Member {
    fn new(url: &str, number: u64, clock: SystemClock) -> Self {
        let view = View::of(url);
        let budget = view.budget("api", &Limit::token_bucket("1k/s").unwrap());
        let terms = budget.terms().expect("it is lent");
        let borrower = Borrower::new(Node { number, incarnation: 1 }, terms);
        Self { view, budget, borrower, clock, passed: 0, asked: 0 }
    }

    /// Twice the limit, by this node alone: up to the end, and until all nodes together have passed
    /// so much that it is worth a look, which takes longer on a machine with much else to do.
    async fn run(mut self, end: Tick, all: Arc<AtomicU64>) -> (u64, u64) {
        let begin = self.clock.now();
        let mut sent = 0;
        let last = end.after(DEADLINE);
        let is_enough = || all.load(Ordering::Relaxed) > RATE;
        while self.clock.now() < end || !is_enough() && self.clock.now() < last {
            let due = self.clock.now().since(begin).as_micros() as u64 * 2 * RATE / 1_000_000;
            let before = self.passed;
            while sent < due {
                sent += 1;
                self.request().await;
            }
            all.fetch_add(self.passed - before, Ordering::Relaxed);
            if let Some(exchange) = self.borrower.exchange(self.clock.now()) {
                self.exchange(exchange).await;
            }
            let _ =
                tokio::time::timeout(Duration::from_millis(1), std::future::pending::<()>()).await;
        }
        (self.passed, self.asked)
    }

    async fn request(&mut self) {
        let now = self.clock.now();
        match self.borrower.spend(now, 1) {
            Spend::Taken(_) => self.passed += 1,
            Spend::Ask => {
                if let Some(exchange) = self.borrower.ask(now, 1) {
                    self.passed += u64::from(self.exchange(exchange).await);
                }
            }
            Spend::Short(_) => {}
        }
    }

    /// Whether the request that waits for it may pass.
    async fn exchange(&mut self, exchange: Exchange) -> bool {
        self.asked += 1;
        match self.view.ask(&self.budget, "k", exchange).await {
            Ok(grant) => {
                let is_new = self.borrower.answer(self.clock.now(), &grant);
                is_new && grant.decision.is_allowed() && exchange.cost > 0
            }
            Err(_) => false,
        }
    }
}

/// What five nodes pass in two seconds or more, what of it asked, and how long it took at the most.
async fn run(redis: &mut Redis, restarts: bool) -> (u64, u64, Duration) {
    let clock = SystemClock::new();
    let begin = clock.now();
    let end = begin.after(Duration::from_secs(2));
    let mut nodes = tokio::task::JoinSet::new();
    let all = Arc::new(AtomicU64::new(0));
    for number in 0..5 {
        nodes.spawn(Member::new(&redis.url(), number, clock.clone()).run(end, Arc::clone(&all)));
    }
    while restarts && clock.now().since(begin) < Duration::from_millis(700) {
        pause().await;
    }
    if restarts {
        redis.restart_empty();
    }
    let all = nodes.join_all().await;
    let sum = |of: fn(&(u64, u64)) -> u64| all.iter().map(of).sum();
    (sum(|one| one.0), sum(|one| one.1), clock.now().since(begin))
}

fn most(span: Duration) -> u64 {
    RATE + span.as_micros() as u64 * RATE / 1_000_000
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_never_passes_the_limit() {
    let mut redis = Redis::start(&[]);
    let (passed, asked, span) = run(&mut redis, false).await;
    println!("{passed} of {} passed in {span:?}, with {asked} exchanges", most(span));
    assert!(passed <= most(span), "{passed} in {span:?}");
    assert!(passed > RATE, "more than the burst passed: {passed}");
    assert!(asked < passed / 2, "most were decided by nodes: {asked} of {passed} were not");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_never_passes_the_limit_when_the_store_starts_again_empty() {
    let mut redis = Redis::start(&[]);
    let (passed, asked, span) = run(&mut redis, true).await;
    println!("{passed} of {} passed in {span:?}, with {asked} exchanges", most(span));
    assert!(passed <= most(span), "{passed} in {span:?}");
}
