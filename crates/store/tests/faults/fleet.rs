//! Five nodes that borrow from one key, each through a store of its own: what passes is never more
//! than the burst and what time has brought.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::lease::{Borrower, Exchange, Node, Spend};
use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::Budget;

use crate::moving::move_on;
use crate::process::{Kind, Redis, start_cluster};
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

/// Has five nodes borrow for two seconds or more, while something happens to servers, which live on,
/// and holds them to the limit. Says what they passed, and how often they asked.
async fn run<S: Send + 'static>(
    url: &str,
    happens: impl FnOnce() -> S + Send + 'static,
) -> (u64, u64) {
    let clock = SystemClock::new();
    let begin = clock.now();
    let end = begin.after(Duration::from_secs(2));
    let mut nodes = tokio::task::JoinSet::new();
    let all = Arc::new(AtomicU64::new(0));
    for number in 0..5 {
        nodes.spawn(Member::new(url, number, clock.clone()).run(end, Arc::clone(&all)));
    }
    while clock.now().since(begin) < Duration::from_millis(700) {
        pause().await;
    }
    let _servers = tokio::task::spawn_blocking(happens).await.unwrap();
    let all = nodes.join_all().await;
    let sum = |of: fn(&(u64, u64)) -> u64| all.iter().map(of).sum();
    let span = clock.now().since(begin);
    let (passed, asked) = (sum(|one| one.0), sum(|one| one.1));
    println!("{passed} of {} passed in {span:?}, with {asked} exchanges", most(span));
    assert!(passed <= most(span), "{passed} in {span:?}");
    (passed, asked)
}

fn most(span: Duration) -> u64 {
    RATE + span.as_micros() as u64 * RATE / 1_000_000
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_never_passes_the_limit() {
    let redis = Redis::start(&[]);
    let url = redis.url();
    let (passed, asked) = run(&url, || redis).await;
    assert!(passed > RATE, "more than the burst passed: {passed}");
    assert!(asked < passed / 2, "most were decided by nodes: {asked} of {passed} were not");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_never_passes_the_limit_when_the_store_starts_again_empty() {
    let mut redis = Redis::start(&[]);
    let url = redis.url();
    run(&url, || {
        redis.restart_empty();
        redis
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_never_passes_the_limit_while_its_slot_moves_from_server_to_server() {
    let servers = start_cluster(Kind::Redis);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    run(&url, || {
        (0..5).for_each(|_| move_on(&servers, "k"));
        servers
    })
    .await;
}
