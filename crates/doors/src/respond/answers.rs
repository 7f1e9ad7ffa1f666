//! What all doors answer with.

use arc_swap::ArcSwap;
use std::sync::Arc;
use tollgate::{Clock as _, Ruling};

use crate::config::{ResetStyle, Respond};
use crate::respond::terms::AllTerms;
use crate::respond::words::Words;
use crate::service::Service;

/// What all doors answer with.
#[derive(Debug)]
pub(crate) struct Answers {
    service: Arc<Service>,
    reset: ResetStyle,
    /// The terms of the rules in force.
    terms: ArcSwap<AllTerms>,
}

impl Answers {
    pub(crate) fn new(service: Arc<Service>, respond: Respond) -> Self {
        let terms = ArcSwap::from_pointee(AllTerms::new(&service.rules()));
        Self { service, reset: respond.reset, terms }
    }

    /// What is told about a ruling.
    pub(crate) fn words<'a>(&self, ruling: &'a Ruling) -> Words<'a> {
        let mut terms = self.terms.load();
        if terms.version() != ruling.version() {
            // Rules were exchanged, and this is either the first ruling by the new ones, or one of
            // the last by the old ones, whose terms are not kept.
            let new = Arc::new(AllTerms::new(ruling.rules()));
            if self.service.rules().version() == ruling.version() {
                self.terms.store(Arc::clone(&new));
            }
            terms = arc_swap::Guard::from_inner(new);
        }
        Words::new(ruling, terms, self.reset, self.service.clock().wall())
    }
}
