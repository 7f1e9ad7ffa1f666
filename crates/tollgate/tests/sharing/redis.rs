//! What engines make of a real Redis that answers, and refuses.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate::store::{RedisConfig, RedisStore};
use tollgate::{
    Clock as _, Engine, Health, Request, RuleSet, SharingConfig, SystemClock, Timer as _,
};

use crate::process::{Kind, Redis, start_cluster};
use crate::root;

/// A node that is patient: the machine may be busy.
fn node(rules: &str, url: &str) -> Engine {
    let config = RedisConfig { timeout: PATIENCE, ..Default::default() };
    let store = RedisStore::open(url, config, Arc::new(SystemClock::new())).unwrap();
    let config = SharingConfig { timeout: PATIENCE, ..Default::default() };
    let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
    Engine::builder(rules).store(store, config).unwrap().build().unwrap()
}

/// A node, and the Redis that it shares its limits through.
struct Shared {
    redis: Redis,
    engine: Engine,
}

impl Shared {
    fn new(rules: &str) -> Self {
        let redis = Redis::start(&["--maxmemory-policy", "noeviction"]);
        Self { engine: node(rules, &redis.url()), redis }
    }

    async fn passes(&self, request: &Request<'_>) -> bool {
        self.engine.decide_waiting(request).await.is_allowed()
    }

    async fn passing(&self, request: &Request<'_>, times: usize) -> usize {
        let mut passing = 0;
        for _ in 0..times {
            passing += usize::from(self.passes(request).await);
        }
        passing
    }

    /// How many questions Redis has refused.
    fn refused(&self) -> u64 {
        let stats = self.redis.cli(&["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_error_replies:"));
        line.and_then(|count| count.trim().parse().ok()).expect("Redis counts them")
    }

    fn times_degraded(&self) -> u64 {
        self.engine.sharing().expect("it has a store").times_degraded
    }
}

/// Asks again and again until a count has grown by so much.
async fn ask_until(engine: &Engine, request: &Request<'_>, more: u64, count: impl Fn() -> u64) {
    let (clock, enough) = (SystemClock::new(), count() + more);
    let begin = clock.now();
    while count() < enough {
        let _ = engine.decide_waiting(request).await;
        assert!(clock.now().since(begin) < DEADLINE, "in vain");
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a node knows that Redis is well.
async fn is_well(engine: &Engine) {
    let mut health = engine.health().expect("it has a store");
    let is_well = health.wait_for(|health| *health == Health::Well);
    timeout(DEADLINE, is_well).await.expect("it is well in time").expect("the engine lives");
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
            ask_until(&shared.engine, &root(), 12, || shared.refused()).await;
            assert!(shared.engine.sharing().unwrap().is_degraded, "{what}");
            assert_eq!(shared.times_degraded(), 1, "{what}");
            cli(&mends);
            is_well(&shared.engine).await;
            assert!(shared.passes(&root()).await, "{what}");
            assert_eq!(shared.times_degraded(), 1, "{what}");
        }
    });
}

/// A Cluster whose last primary can be killed, and a path that lies there, the other one elsewhere.
struct Shards {
    servers: Vec<Redis>,
    replica: usize,
    paths: [String; 2],
}

impl Shards {
    fn start() -> Self {
        let servers = start_cluster(Kind::Redis);
        for server in &servers {
            server.cli(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
        }
        let id = servers[2].cli(&["CLUSTER", "MYID"]);
        let is_replica = |server: &Redis| {
            let own = server.cli(&["CLUSTER", "NODES"]);
            own.lines().any(|line| line.contains("myself,slave") && line.contains(&id))
        };
        let replica = servers.iter().position(is_replica).expect("each has one");
        let slot = |path: &str| -> u16 {
            servers[0].cli(&["CLUSTER", "KEYSLOT", &format!("path={path}")]).parse().unwrap()
        };
        // The last third of all slots.
        let paths = [true, false].map(|is_there| {
            let mut paths = (0..100).map(|number| format!("/{number}"));
            paths.find(|path| (slot(path) >= 10_923) == is_there).expect("some are, some are not")
        });
        Self { servers, replica, paths }
    }

    /// A node with a rule for each path that leaves the Cluster alone, because that primary is gone.
    async fn left_alone(&mut self) -> Engine {
        let rules = "rules: [{ name: a, key: [path], limit: 4000/h, on_store_failure: deny }]";
        let url = format!("redis+cluster://127.0.0.1:{}", self.servers[0].port);
        let (engine, request) = (node(rules, &url), Request::new("GET", &self.paths[0]));
        assert!(engine.decide_waiting(&request).await.is_allowed());
        self.servers[self.replica].kill();
        self.servers[2].kill();
        // Whoever does not find a server asks where its slots are now.
        let looked = || {
            let stats = self.servers[0].cli(&["INFO", "commandstats"]);
            let line = stats.lines().find(|line| line.starts_with("cmdstat_cluster|slots:"));
            let count = line.and_then(|line| line.split(['=', ',']).nth(1));
            count.map_or(0, |count| count.parse().unwrap())
        };
        ask_until(&engine, &request, 12, looked).await;
        let stats = engine.sharing().unwrap();
        assert_eq!((stats.is_degraded, stats.times_degraded), (true, 1));
        engine
    }
}

/// The others serve their keys, and whoever is asked for the time.
#[test]
fn a_cluster_that_lacks_a_server_is_left_alone_once_until_it_is_back() {
    let mut shards = Shards::start();
    run(async {
        let engine = shards.left_alone().await;
        shards.servers[2].restart_empty();
        is_well(&engine).await;
        assert_eq!(engine.sharing().unwrap().times_degraded, 1);
    });
}

/// Everything that is asked now lies elsewhere.
#[test]
fn a_cluster_that_lacks_a_server_for_good_is_well_when_no_rule_asks_it_any_more() {
    let mut shards = Shards::start();
    run(async {
        let engine = shards.left_alone().await;
        let other = Request::new("GET", &shards.paths[1]);
        assert!(!engine.decide_waiting(&other).await.is_allowed(), "it is kept from the others");
        let rules = "rules: [{ name: b, key: [path], limit: 4000/h, on_store_failure: deny }]";
        engine.exchange(RuleSet::parse(rules).unwrap()).unwrap();
        let degraded = || engine.sharing().unwrap().degraded;
        // Somebody has a question that can be answered.
        ask_until(&engine, &other, 1, degraded).await;
        is_well(&engine).await;
        assert!(engine.decide_waiting(&other).await.is_allowed());
        assert_eq!(engine.sharing().unwrap().times_degraded, 1);
    });
}

#[test]
fn a_value_that_is_not_ours_is_a_matter_of_its_key_alone() {
    run(async {
        for consistency in ["strict", "shared"] {
            let shared = Shared::new(&format!(
                "rules: [{{ name: a, key: [path], limit: 4000/h, consistency: {consistency}, \
                 on_store_failure: deny }}]"
            ));
            let [theirs, ours] = ["/theirs", "/ours"].map(|path| Request::new("GET", path));
            assert!(shared.passes(&theirs).await);
            let name = shared.redis.cli(&["KEYS", "tg:{path=/theirs}:*"]);
            shared.redis.cli(&["DEL", &name]);
            shared.redis.cli(&["SADD", &name, "something else"]);
            for _ in 0..10 {
                assert!(!shared.passes(&theirs).await, "{consistency}");
                assert!(shared.passes(&ours).await, "{consistency}");
            }
            assert_eq!(shared.times_degraded(), 0, "{consistency}");
            assert_eq!(shared.redis.cli(&["TYPE", &name]), "set", "it is left as it is");
            shared.redis.cli(&["DEL", &name]);
            assert!(shared.passes(&theirs).await, "{consistency}");
        }
    });
}

#[test]
fn in_a_redis_without_memory_each_rule_does_as_it_says() {
    run(async {
        let shared = Shared::new(
            "rules:
  - { name: deny, match: { path: /deny }, key: [], limit: 40/day, on_store_failure: deny }
  - { name: allow, match: { path: /allow }, key: [], limit: 40/day, on_store_failure: allow }
  - { name: local, match: { path: /local }, key: [], limit: 40/day, on_store_failure: local }
  - { name: own, match: { path: /own }, key: [], limit: 40/day, consistency: local }",
        );
        let of = |path| Request::new("GET", path);
        // Also while the node has not found out yet.
        shared.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(shared.passing(&of("/local"), 60).await, 20);
        assert_eq!(shared.passing(&of("/deny"), 60).await, 0);
        assert_eq!(shared.passing(&of("/allow"), 60).await, 60);
        assert_eq!(shared.passing(&of("/own"), 60).await, 40);
        let mut health = shared.engine.health().unwrap();
        let is_named = matches!(&*health.borrow_and_update(), Health::Degraded { reason }
            if reason.contains("out of memory"));
        assert!(is_named);
        shared.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        is_well(&shared.engine).await;
        assert!(shared.passes(&of("/deny")).await);
        assert!(!shared.passes(&of("/allow")).await, "what passed was told");
        assert_eq!(shared.passing(&of("/local"), 60).await, 20, "what passed was told");
    });
}

const PATIENCE: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(60);
