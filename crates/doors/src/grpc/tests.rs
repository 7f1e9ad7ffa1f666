//! What the tests of this door have in common.

use std::sync::Arc;

use tollgate::RuleSet;

use super::Asking;
use crate::config::Respond;
use crate::connection::Limits;
use crate::respond::Answers;
use crate::service::Service;
use crate::service::Turn;
use crate::tickets::Tickets;

/// A server with these rules, that nobody can connect to.
pub(super) fn asking(rules: &str) -> Asking {
    let limits = Limits { batch: 20, tickets: 2, ..Limits::default() };
    let service = Arc::new(Service::new(RuleSet::parse(rules).unwrap(), 1000).unwrap());
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
