//! Envoy's rate limit service: `ShouldRateLimit`.
//!
//! Each descriptor is a request of its own. If one of them is denied, so is all that Envoy asks
//! about, and nothing is spent, unless the rules say `descriptors: each`.
//!
//! Messages are read where they stand, and written where they go: there are many of them, and all
//! that Envoy waits for is in between.

mod decide;
mod described;
mod json;
mod tell;

use std::time::Duration;

use bytes::Bytes;

use crate::grpc::rls::decide::Decided;
use crate::grpc::rls::described::Asked;
use crate::grpc::{Asking, Told};

pub(super) use json::answer_json;

impl Asking {
    /// Whether what Envoy asks about may pass: a message as it came, to one as it goes.
    pub(super) fn should_rate_limit(&self, message: &[u8]) -> Told<Bytes> {
        let asked = Asked::read(message, self.limits.batch)?;
        if let [one] = &*asked.descriptors
            && one.own.is_none()
            && one.hits > 0
        {
            let decided = self.decide_single(one)?;
            return Ok((self.tell(std::slice::from_ref(&decided)), decided.delay()));
        }
        let decided = self.decide(&asked.descriptors)?;
        let delay = decided.iter().map(Decided::delay).max().unwrap_or(Duration::ZERO);
        Ok((self.tell(&decided), delay))
    }
}

#[cfg(test)]
mod imported;
#[cfg(test)]
mod tests;
