//! What engines make of a real Redis that answers, and refuses.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate::store::{RedisConfig, RedisStore};
use tollgate::{
    Clock as _, Engine, Health, Request, RuleSet, SharingConfig, SystemClock, Timer as _,
};

use crate::process::Redis;
use crate::root;

/// A node, and the Redis that it shares its limits through. Both are patient: the machine may be busy.
struct Shared {
    redis: Redis,
    engine: Engine,
}

impl Shared {
    fn new(rules: &str) -> Self {
        let redis = Redis::start(&["--maxmemory-policy", "noeviction"]);
        let config = RedisConfig { timeout: PATIENCE, ..Default::default() };
        let store = RedisStore::open(&redis.url(), config, Arc::new(SystemClock::new())).unwrap();
        let config = SharingConfig { timeout: PATIENCE, ..Default::default() };
        let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
        let engine = Engine::builder(rules).store(store, config).unwrap().build().unwrap();
        Self { redis, engine }
    }

    async fn passes(&self, request: &Request<'_>) -> bool {
        self.engine.decide_waiting(request).await.is_allowed()
    }

    /// How many questions Redis has refused.
    fn refused(&self) -> u64 {
        let stats = self.redis.cli(&["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_error_replies:"));
        line.and_then(|count| count.trim().parse().ok()).expect("Redis counts them")
    }

    /// Asks until Redis has refused so many questions more.
    async fn asks_until_refused(&self, more: u64) {
        let (clock, enough) = (SystemClock::new(), self.refused() + more);
        let begin = clock.now();
        while self.refused() < enough {
            self.passes(&root()).await;
            assert!(clock.now().since(begin) < DEADLINE, "in vain");
            clock.sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the node knows that Redis is well.
    async fn is_well(&self) {
        let mut health = self.engine.health().expect("it has a store");
        let is_well = health.wait_for(|health| *health == Health::Well);
        timeout(DEADLINE, is_well).await.expect("it is well in time").expect("the engine lives");
    }

    fn times_degraded(&self) -> u64 {
        self.engine.sharing().expect("it has a store").times_degraded
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// All of these say what time it is.
#[test]
fn a_redis_that_refuses_questions_is_left_alone_once_until_it_answers_them() {
    let full = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    let lonely = ["min-replicas-to-write", "1", "0"];
    let lonely = (["CONFIG", "SET", lonely[0], lonely[1]], ["CONFIG", "SET", lonely[0], lonely[2]]);
    let closed =
        (["ACL", "SETUSER", "default", "-evalsha"], ["ACL", "SETUSER", "default", "+evalsha"]);
    let foreign = (["SET", "tg:epoch", "foreign", ""], ["RENAME", "kept", "tg:epoch", ""]);
    let troubles = [
        ("limit: 4000/h", lonely),
        ("limit: 4000/h", closed),
        ("limit: 4000/h", foreign),
        ("limit: 4000/h", full),
        ("limit: 4000/h, algorithm: fixed_window", full),
        ("limit: 4000/h, algorithm: sliding_log", full),
        ("concurrent: 10", full),
    ];
    run(async {
        for (limit, (breaks, mends)) in troubles {
            let what = format!("{limit}, {breaks:?}");
            let rules = format!("rules: [{{ name: a, key: [], {limit}, on_store_failure: deny }}]");
            let shared = Shared::new(&rules);
            assert!(shared.passes(&root()).await, "{what}");
            let cli = |words: &[&str]| {
                let words: Vec<_> = words.iter().copied().filter(|word| !word.is_empty()).collect();
                shared.redis.cli(&words)
            };
            cli(&["COPY", "tg:epoch", "kept"]);
            cli(&breaks);
            shared.asks_until_refused(12).await;
            assert!(shared.engine.sharing().unwrap().is_degraded, "{what}");
            assert_eq!(shared.times_degraded(), 1, "{what}");
            cli(&mends);
            shared.is_well().await;
            assert!(shared.passes(&root()).await, "{what}");
            assert_eq!(shared.times_degraded(), 1, "{what}");
        }
    });
}

const PATIENCE: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(60);
