//! What engines make of a real Redis that answers, and refuses.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate::store::{RedisConfig, RedisStore};
use tollgate::{
    Clock as _, Engine, Health, Request, RuleSet, SharingConfig, SystemClock, Timer as _,
};

use crate::process::{Kind, Redis, cli, free_port, start_cluster, until};
use crate::relay::Relay;
use crate::root;

/// A node that is patient: the machine may be busy.
fn node(rules: &str, url: &str) -> Engine {
    let config = RedisConfig { timeout: PATIENCE, ..Default::default() };
    let store = RedisStore::open(url, config, Arc::new(SystemClock::new())).unwrap();
    let config = SharingConfig { timeout: PATIENCE, ..Default::default() };
    let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
    Engine::builder(rules).store(store, config).unwrap().build().unwrap()
}

/// A node, the Redis that it shares its limits through, and the way there, which nobody else takes.
struct Shared {
    redis: Redis,
    relay: Relay,
    engine: Engine,
}

impl Shared {
    fn new(rules: &str) -> Self {
        let redis = Redis::start(&REDIS);
        let relay = Relay::to(redis.port);
        Self { engine: node(rules, &relay.url()), relay, redis }
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

    /// How many of so many pass that are decided by the policy of their rule.
    async fn passing_by_policy(&self, request: &Request<'_>, times: u64) -> usize {
        let degraded = || self.engine.sharing().expect("it has a store").degraded;
        let (clock, mut last) = (SystemClock::new(), degraded());
        let (begin, enough, mut passing) = (clock.now(), last + times, 0);
        while last < enough {
            let passes = self.passes(request).await;
            // What is lent to the node already is nobody else's to decide.
            if degraded() > last {
                (last, passing) = (degraded(), passing + usize::from(passes));
            }
            assert!(clock.now().since(begin) < DEADLINE, "in vain");
        }
        passing
    }

    /// The node leaves Redis alone, and this is part of why.
    fn assert_says(&self, part: &str) {
        let health = self.engine.health().expect("it has a store").borrow().clone();
        let is_said = matches!(&health, Health::Degraded { reason } if reason.contains(part));
        assert!(is_said, "{part} is missing in {health:?}");
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

/// What can be the matter with a Redis that is there, each of which it can tell.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Not enough replicas follow it.
    Lonely,
    /// Its user may not do what has to be done.
    Closed,
    /// Its mark was written by somebody else.
    Foreign,
    /// It has no memory left.
    Full,
    /// It is a replica, of a primary that is not there.
    Replica,
    /// It reads its data set, and is not done before somebody says so.
    Loading,
    /// It is too old.
    Old,
}

impl Trouble {
    fn begin(self, Shared { redis, relay, .. }: &Shared) {
        match self {
            Self::Lonely => _ = redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]),
            Self::Closed => _ = redis.cli(&["ACL", "SETUSER", "default", "-evalsha"]),
            Self::Foreign => {
                redis.cli(&["COPY", "tg:epoch", "kept"]);
                redis.cli(&["SET", "tg:epoch", "foreign"]);
            }
            Self::Full => _ = redis.cli(&["CONFIG", "SET", "maxmemory", "1"]),
            Self::Replica => {
                redis.cli(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]);
            }
            Self::Loading => {
                // Half a minute, unless somebody ends it.
                redis.cli(&["DEBUG", "POPULATE", "3000", "fill", "500"]);
                redis.cli(&["CONFIG", "SET", "key-load-delay", "10000"]);
                redis.cli(&["CONFIG", "SET", "loading-process-events-interval-bytes", "1024"]);
                let port = redis.port;
                std::thread::spawn(move || cli(port, &["DEBUG", "RELOAD"]));
                until("it loads", || is_loading(redis).then_some(()));
            }
            Self::Old => {
                relay.seems_old(true);
                // It is asked who it is when somebody connects.
                redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
            }
        }
    }

    fn end(self, Shared { redis, relay, .. }: &Shared) {
        match self {
            Self::Lonely => _ = redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]),
            Self::Closed => _ = redis.cli(&["ACL", "SETUSER", "default", "+evalsha"]),
            Self::Foreign => _ = redis.cli(&["RENAME", "kept", "tg:epoch"]),
            Self::Full => _ = redis.cli(&["CONFIG", "SET", "maxmemory", "0"]),
            Self::Replica => _ = redis.cli(&["REPLICAOF", "NO", "ONE"]),
            Self::Loading => {
                assert!(is_loading(redis), "it was meant to last");
                redis.cli(&["CONFIG", "SET", "key-load-delay", "0"]);
            }
            Self::Old => relay.seems_old(false),
        }
    }

    /// What is said of it.
    const fn reason(self) -> &'static str {
        match self {
            Self::Lonely => "the store takes no writes: NOREPLICAS",
            Self::Closed => "may not do this: NOPERM",
            Self::Foreign => "tg:epoch is not ours",
            Self::Full => "the store is out of memory: OOM",
            Self::Replica => "name the address of the primary",
            Self::Loading => "the store is loading its data set",
            Self::Old => "Redis from 6.0 on or Valkey is needed",
        }
    }
}

fn is_loading(redis: &Redis) -> bool {
    redis.cli(&["INFO", "persistence"]).lines().any(|line| line.trim() == "loading:1")
}

/// Nearly all of them say what time it is.
#[test]
fn a_redis_that_refuses_questions_is_left_alone_once_until_it_answers_them() {
    let troubles = [
        (BUCKET, Trouble::Lonely),
        (BUCKET, Trouble::Closed),
        (BUCKET, Trouble::Foreign),
        (BUCKET, Trouble::Full),
        ("limit: 4000/h, algorithm: fixed_window", Trouble::Full),
        ("limit: 4000/h, algorithm: sliding_log", Trouble::Full),
        (SLOTS, Trouble::Full),
        (BUCKET, Trouble::Replica),
        (SLOTS, Trouble::Replica),
        (BUCKET, Trouble::Loading),
        (BUCKET, Trouble::Old),
    ];
    run(async {
        for (limit, trouble) in troubles {
            let what = format!("{limit}, {trouble:?}");
            let rules = format!("rules: [{{ name: a, key: [], {limit}, on_store_failure: deny }}]");
            let shared = Shared::new(&rules);
            assert!(shared.passes(&root()).await, "{what}");
            trouble.begin(&shared);
            ask_until(&shared.engine, &root(), 12, || shared.relay.brought()).await;
            assert!(shared.engine.sharing().unwrap().is_degraded, "{what}");
            shared.assert_says(trouble.reason());
            assert_eq!(shared.passing_by_policy(&root(), 20).await, 0, "{what}");
            assert_eq!(shared.times_degraded(), 1, "{what}");
            trouble.end(&shared);
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
fn while_a_redis_refuses_questions_each_rule_does_as_it_says() {
    let rules = "rules:
  - { name: deny, match: { path: /deny }, key: [], limit: 40/day, on_store_failure: deny }
  - { name: allow, match: { path: /allow }, key: [], limit: 40/day, on_store_failure: allow }
  - { name: local, match: { path: /local }, key: [], limit: 40/day, on_store_failure: local }
  - { name: own, match: { path: /own }, key: [], limit: 40/day, consistency: local }";
    let of = |path| Request::new("GET", path);
    run(async {
        for trouble in [Trouble::Full, Trouble::Replica, Trouble::Loading, Trouble::Old] {
            let (shared, what) = (Shared::new(rules), format!("{trouble:?}"));
            // Also while the node has not found out yet.
            trouble.begin(&shared);
            assert_eq!(shared.passing(&of("/local"), 60).await, 20, "{what}");
            assert_eq!(shared.passing(&of("/deny"), 60).await, 0, "{what}");
            assert_eq!(shared.passing(&of("/allow"), 60).await, 60, "{what}");
            assert_eq!(shared.passing(&of("/own"), 60).await, 40, "{what}");
            shared.assert_says(trouble.reason());
            trouble.end(&shared);
            is_well(&shared.engine).await;
            assert_eq!(shared.times_degraded(), 1, "{what}");
            assert!(shared.passes(&of("/deny")).await, "{what}");
            assert!(!shared.passes(&of("/allow")).await, "{what}: what passed was told");
            let left = shared.passing(&of("/local"), 60).await;
            assert_eq!(left, 20, "{what}: what passed was told");
        }
    });
}

const BUCKET: &str = "limit: 4000/h";
const SLOTS: &str = "concurrent: 10";

/// It may be asked to load what it has.
const REDIS: [&str; 6] =
    ["--maxmemory-policy", "noeviction", "--enable-debug-command", "yes", "--rdbcompression", "no"];

const PATIENCE: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(60);
