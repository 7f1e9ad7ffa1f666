//! What the tests of this door have in common.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::MemoryStore;
use tollgate::{RuleSet, SharingConfig, SystemClock};

use super::Asking;
use crate::config::Respond;
use crate::connection::Limits;
use crate::respond::Answers;
use crate::service::Service;
use crate::service::Turn;
use crate::tickets::Tickets;

/// A server with these rules, that nobody can connect to.
pub(super) fn asking(rules: &str) -> Asking {
    asking_of(Service::new(RuleSet::parse(rules).unwrap(), 1000).unwrap())
}

/// The same with limits that are shared, while something is done with it.
pub(super) fn with_store<F: Future<Output = ()>>(rules: &str, act: impl FnOnce(Asking) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let rules = RuleSet::parse(rules).unwrap();
        let store = MemoryStore::new(SystemClock::new(), 1000);
        // However busy the machine is, it answers in time.
        let config = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
        act(asking_of(Service::sharing(rules, 1000, store, config).unwrap())).await;
    });
}

pub(super) fn asking_of(service: impl Into<Arc<Service>>) -> Asking {
    let limits = Limits { batch: 20, tickets: 2, ..Limits::default() };
    let service = service.into();
    let answers = Arc::new(Answers::new(Arc::clone(&service), Respond::default()));
    Asking {
        service,
        answers,
        tickets: Arc::new(Tickets::new(&limits)),
        limits,
        client: None,
        turn: Turn::First,
    }
}
