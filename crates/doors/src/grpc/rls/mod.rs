//! Envoy's rate limit service: `ShouldRateLimit`.
//!
//! Each descriptor is a request of its own. If one of them is denied, so is all that Envoy asks
//! about, and nothing is spent, unless the rules say `descriptors: each`.

mod decide;
mod described;
mod json;
mod tell;

use std::time::Duration;

use tollgate_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use tollgate_proto::envoy::service::ratelimit::v3::RateLimitResponse;

use crate::grpc::frame::{Code, Refusal};
use crate::grpc::rls::described::Described;
use crate::grpc::{Asking, Told};

pub(super) use json::answer_json;

impl Asking {
    /// Whether what Envoy asks about may pass.
    pub(super) fn should_rate_limit(&self, asked: RateLimitRequest) -> Told<RateLimitResponse> {
        let described = self.describe(&asked)?;
        let decided = self.decide(&described)?;
        let delay = decided.iter().map(|each| each.delay()).max().unwrap_or(Duration::ZERO);
        Ok((self.tell(&decided), delay))
    }

    /// What rules see of it.
    fn describe<'a>(&self, asked: &'a RateLimitRequest) -> Result<Vec<Described<'a>>, Refusal> {
        let (most, count) = (self.limits.batch, asked.descriptors.len());
        if asked.domain.is_empty() {
            return Err(Refusal::invalid("the domain is empty: Envoy has it in its configuration"));
        }
        if count == 0 {
            return Err(Refusal::invalid("there are no descriptors: there is nothing to decide"));
        }
        if count > most {
            let message = format!("there are {count} descriptors, and {most} are the most");
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        let hits = u64::from(asked.hits_addend.unwrap_or(1));
        let all = asked.descriptors.iter();
        all.map(|descriptor| Described::new(&asked.domain, descriptor, hits)).collect()
    }
}

#[cfg(test)]
mod imported;
#[cfg(test)]
mod tests;
