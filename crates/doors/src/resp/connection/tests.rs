use std::os::unix::net::UnixStream;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
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
}

impl Store for Slow {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
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

#[test]
fn whoever_waits_for_the_store_is_answered_before_the_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(MemoryStore::new(SystemClock::new(), 100));
        let slow = Slow { store, asked: Arc::default(), answers: Arc::default() };
        let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/h }]").unwrap();
        let config = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
        let service = Arc::new(Service::sharing(rules, 100, slow.clone(), config).unwrap());
        let limits = Limits::default();
        let tickets = Arc::new(Tickets::new(&limits));
        let door = Arc::new(Resp::new(Arc::clone(&service), tickets, None, limits));

        let (client, server) = UnixStream::pair().unwrap();
        [&client, &server].iter().for_each(|end| end.set_nonblocking(true).unwrap());
        let mut client = tokio::net::UnixStream::from_std(client).unwrap();
        let meter = Meter::new(Arc::clone(&service), Name::Resp);
        let (stream, _) = Accepted::Unix(server).join(meter, None).await.unwrap();
        let serving =
            tokio::spawn(serve(door, stream, Peer::default(), service.drain().listener()));

        client.write_all(b"TG.CHECK\r\nPING\r\n").await.unwrap();
        slow.asked.notified().await;
        service.drain().enter(Phase::Draining);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!serving.is_finished(), "somebody waits for an answer");
        slow.answers.notify_one();
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        assert!(answers.starts_with("*8\r\n:0\r\n:5\r\n:4\r\n"), "{answers:?}");
        assert!(answers.ends_with("+PONG\r\n"), "{answers:?}");
        serving.await.unwrap();
    });
}
