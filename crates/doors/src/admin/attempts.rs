//! Wrong tokens.

use tollgate::{Limiter, SystemClock};

use crate::respond;
use crate::web::{Answer, Strike};

/// How many wrong tokens are sent, by all clients together: so there is nothing to keep of each.
///
/// It does not stand in the way of the right token, or whoever sends wrong ones could lock out those
/// who run the server. So it slows guessing down, to a connection for each guess, and says so in the
/// log; what keeps a token from being guessed is its length.
#[derive(Debug)]
pub(super) struct Attempts {
    /// `None` never happens, and would slow nobody down.
    pace: Option<Limiter>,
}

impl Attempts {
    pub(super) fn new(clock: &SystemClock) -> Self {
        Self { pace: Limiter::builder(PACE).keys(1).clock(clock.clone()).build().ok() }
    }

    /// The answer to one more.
    pub(super) fn wrong(&self) -> Answer {
        let decision = self.pace.as_ref().map(|pace| pace.check(&()));
        let wait = decision.and_then(|decision| decision.retry_after());
        let (mut answer, strike) = match wait {
            None => {
                // So often, and no more.
                tracing::warn!("somebody sent a wrong token to the admin door");
                (respond::unauthorized(), Strike::One)
            }
            Some(wait) => (respond::too_many_tokens(wait), Strike::Last),
        };
        answer.extensions_mut().insert(strike);
        answer
    }
}

/// More than people who are mistaken send.
const PACE: &str = "10/min burst 20";
