use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tollgate::store::{Ask, Budget, Grant, MemoryStore, Pulse, Store, StoreError};
use tollgate::{RuleSet, SharingConfig, SystemClock};

use super::*;
use crate::connection::{Accepted, Limits, Meter};
use crate::drain::Phase;
use crate::service::Service;
use crate::tickets::Tickets;

/// A store that answers when it is told to.
#[derive(Clone)]
struct Slow {
    store: Arc<MemoryStore<SystemClock>>,
    asked: Arc<Notify>,
    answers: Arc<Notify>,
    /// How many questions it was asked each time.
    asks: Arc<Mutex<Vec<usize>>>,
}

impl Slow {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new(SystemClock::new(), 1000));
        Self { store, asked: Arc::default(), answers: Arc::default(), asks: Arc::default() }
    }

    fn asks(&self) -> Vec<usize> {
        self.asks.lock().unwrap().clone()
    }
}

impl Store for Slow {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        self.asks.lock().unwrap().push(asks.len());
        self.asked.notify_one();
        self.answers.notified().await;
        self.store.exchange(asks).await
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.store.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        self.store.ping().await
    }
}

/// A connection to a server whose limits are in a store that answers when it is told to.
struct Served {
    slow: Slow,
    service: Arc<Service>,
    client: tokio::net::UnixStream,
    serving: JoinHandle<()>,
}

impl Served {
    async fn new(rules: &str, timeout: Duration) -> Self {
        let slow = Slow::new();
        let rules = RuleSet::parse(rules).unwrap();
        let config = SharingConfig { timeout, ..Default::default() };
        let service = Arc::new(Service::sharing(rules, 1000, slow.clone(), config).unwrap());
        let limits = Limits::default();
        let tickets = Arc::new(Tickets::new(&limits));
        let door = Arc::new(Resp::new(Arc::clone(&service), tickets, None, limits));
        let (client, server) = UnixStream::pair().unwrap();
        [&client, &server].iter().for_each(|end| end.set_nonblocking(true).unwrap());
        let client = tokio::net::UnixStream::from_std(client).unwrap();
        let meter = Meter::new(Arc::clone(&service), Name::Resp);
        let (stream, _) = Accepted::Unix(server).join(meter, None).await.unwrap();
        let serving =
            tokio::spawn(serve(door, stream, Peer::default(), service.drain().listener()));
        Self { slow, service, client, serving }
    }

    async fn send(&mut self, commands: &str) {
        self.client.write_all(commands.as_bytes()).await.unwrap();
    }

    /// What is answered until there is so much of it.
    async fn answers(&mut self, lines: usize) -> Vec<String> {
        let mut answers = Vec::new();
        while answers.iter().filter(|byte| **byte == b'\n').count() < lines {
            assert_ne!(self.client.read_buf(&mut answers).await.unwrap(), 0, "it goes on");
        }
        String::from_utf8(answers).unwrap().lines().map(str::to_owned).collect()
    }

    /// Lets the server come to where it waits.
    async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ends = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    runtime.block_on(ends).expect("it ends");
}

/// A command as clients send it.
fn command(words: &str) -> String {
    let words: Vec<_> = words.split(' ').collect();
    let bulks: String = words.iter().map(|it| format!("${}\r\n{it}\r\n", it.len())).collect();
    format!("*{}\r\n{bulks}", words.len())
}

/// The lines of an answer about one rule.
const LINES: usize = 10;

const DENIES: &str = "rules: [{ name: a, key: [user], limit: 5/h, on_store_failure: deny }]";

#[test]
fn whoever_waits_for_the_store_is_answered_before_the_end() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 5/h }]";
        let mut served = Served::new(rules, Duration::from_secs(60)).await;
        served.send("TG.CHECK\r\nPING\r\n").await;
        served.slow.asked.notified().await;
        served.service.drain().enter(Phase::Draining);
        served.settle().await;
        assert!(!served.serving.is_finished(), "somebody waits for an answer");
        served.slow.answers.notify_one();
        let mut answers = String::new();
        served.client.read_to_string(&mut answers).await.unwrap();
        assert!(answers.starts_with("*8\r\n:0\r\n:5\r\n:4\r\n"), "{answers:?}");
        assert!(answers.ends_with("+PONG\r\n"), "{answers:?}");
        served.serving.await.unwrap();
    });
}

#[test]
fn the_store_is_asked_once_for_all_that_came_together() {
    run(async {
        for verb in ["TG.CHECK", "TG.PEEK"] {
            let mut served = Served::new(DENIES, Duration::from_secs(60)).await;
            let each = (0..100).map(|it| {
                // What has nothing to do with the store is in nobody's way.
                let cost = 1 + it % 3;
                let words = [format!("{verb} user u{it} cost {cost}"), format!("ECHO {it}")];
                words.map(|words| command(&words)).concat()
            });
            let all: String = each.collect();
            served.send(&all).await;
            served.slow.asked.notified().await;
            served.slow.answers.notify_one();
            let answers = served.answers(100 * (LINES + 2)).await;
            assert_eq!(served.slow.asks(), [100], "{verb}");
            for (it, answer) in answers.chunks(LINES + 2).enumerate() {
                let left = if verb == "TG.CHECK" { 4 - it % 3 } else { 5 };
                assert_eq!(answer[1..4], [":0".into(), ":5".into(), format!(":{left}")]);
                assert_eq!(answer[LINES + 1], it.to_string(), "each in its place");
            }
        }
    });
}

/// Whatever stands before a look in a transaction, the look is answered in it.
#[test]
fn a_look_behind_a_check_is_answered_within_its_transaction() {
    run(async {
        let mut served = Served::new(DENIES, Duration::from_secs(60)).await;
        let words = ["MULTI", "TG.CHECK user a", "TG.PEEK user b", "EXEC", "ECHO after"];
        served.send(&words.map(command).concat()).await;
        served.slow.asked.notified().await;
        served.slow.answers.notify_one();
        // Three lines before the array, its length, both answers, and two lines behind.
        let told = served.answers(3 + 1 + 2 * LINES + 2).await;
        assert_eq!(told[3], "*2", "{told:?}");
        assert_eq!(told[told.len() - 1], "after", "{told:?}");
        let left = [4, 4 + LINES].map(|at| &*told[at + 3]);
        assert_eq!(left, [":4", ":5"], "{told:?}");
    });
}

#[test]
fn what_is_kept_for_a_pipeline_ends_where_more_comes_back() {
    run(async {
        let mut served = Served::new(DENIES, Duration::from_secs(60)).await;
        let check = command("TG.CHECK user u cost 5");
        served.send(&[&*check, &check, &command("TG.RESET user u"), &check].concat()).await;
        let answers = tokio::spawn({
            let answers = Arc::clone(&served.slow.answers);
            async move {
                loop {
                    answers.notify_one();
                    tokio::task::yield_now().await;
                }
            }
        });
        let told = served.answers(3 * LINES + 1).await;
        answers.abort();
        let said = [0, LINES, 2 * LINES + 1].map(|at| &*told[at + 1]);
        assert_eq!(said, [":0", ":1", ":0"], "{told:?}");
    });
}

/// Each waits by itself, or would: what is behind a look must not be spent before it.
fn one_by_one() -> String {
    let looks_and_checks = (0..20).map(|it| {
        let looks = command(&format!("TG.PEEK user u{it}"));
        looks + &command(&format!("TG.CHECK user u{it}"))
    });
    let checks = ["MULTI", "TG.CHECK user v", "EXEC"].map(command).concat();
    looks_and_checks.collect::<String>() + &checks.repeat(10)
}

#[test]
fn all_that_came_together_have_the_time_of_one() {
    run(async {
        let mut served = Served::new(DENIES, Duration::from_millis(40)).await;
        served.send(&one_by_one()).await;
        let lines = 20 * 2 * LINES + 10 * (3 + LINES);
        let answers = served.answers(lines).await;
        assert_eq!(served.slow.asks(), [1], "nobody asks when the time is over");
        let denied = answers.iter().filter(|line| *line == "*8").count();
        assert_eq!((answers.len(), denied), (lines, 50));
    });
}

#[test]
fn what_came_meanwhile_has_waited_and_what_comes_later_has_not() {
    run(async {
        let mut served = Served::new(DENIES, Duration::from_millis(40)).await;
        served.send(&command("TG.CHECK user a")).await;
        served.slow.asked.notified().await;
        served.send(&command("TG.CHECK user b")).await;
        served.answers(2 * LINES).await;
        assert_eq!(served.slow.asks(), [1], "the second has waited with the first");
        served.settle().await;
        served.send(&command("TG.CHECK user c")).await;
        served.answers(LINES).await;
        assert_eq!(served.slow.asks(), [1, 1], "the third has a time of its own");
    });
}
