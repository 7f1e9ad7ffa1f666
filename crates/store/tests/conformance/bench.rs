//! What a store needs beside itself to be put to the test.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::{Exchange, Grant, Node};
use tollgate_core::{Limit, Wall};
use tollgate_store::{Ask, Budget, Store, StoreError};

pub(crate) trait Bench {
    type Store: Store;

    fn store(&self) -> &Self::Store;

    /// About the time.
    fn wall(&self) -> Wall;

    /// Lets so much time pass by the store's clock, or more.
    async fn pass(&self, span: Duration);

    /// The store loses its memory.
    async fn lose_memory(&self);

    /// Whether it knows of the loss also where nobody has asked before.
    fn knows_of_loss_everywhere(&self) -> bool {
        true
    }

    fn budget(&self, rule: &str, limit: Limit) -> Arc<Budget> {
        Arc::new(Budget::new(rule, &limit, ROUND_TRIP, self.wall()))
    }

    fn permits(&self, rule: &str, max: u32) -> Arc<Budget> {
        let max = NonZeroU32::new(max).unwrap();
        Arc::new(Budget::of_permits(rule, max, ROUND_TRIP, self.wall()))
    }

    async fn ask(
        &self,
        budget: &Arc<Budget>,
        key: &str,
        exchange: Exchange,
    ) -> Result<Grant, StoreError> {
        let ask = Ask::new(Arc::clone(budget), key, exchange);
        let mut answers = self.store().exchange(&[ask]).await;
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    /// How many of so many requests pass.
    async fn allowed(&self, budget: &Arc<Budget>, key: &str, requests: usize) -> usize {
        let ask = Ask::new(Arc::clone(budget), key, Exchange::once(1));
        let answers = self.store().exchange(&vec![ask; requests]).await;
        assert_eq!(answers.len(), requests);
        answers.into_iter().filter(|answer| answer.as_ref().unwrap().decision.is_allowed()).count()
    }

    async fn left(&self, budget: &Arc<Budget>, key: &str) -> u64 {
        self.ask(budget, key, Exchange::once(0)).await.unwrap().decision.remaining()
    }
}

pub(crate) const fn node(number: u64) -> Node {
    Node { number, incarnation: 1 }
}

const ROUND_TRIP: Duration = Duration::from_millis(5);
