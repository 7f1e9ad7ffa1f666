//! A descriptor as rules see it.

use smallvec::SmallVec;
use tollgate::{Period, Quota, Request, Unit};
use tollgate_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use tollgate_proto::envoy::r#type::v3::RateLimitUnit;

use crate::grpc::frame::Refusal;

/// A descriptor as rules see it: `domain` as it is, each entry as `descriptor.KEY`, and the keys of
/// all of them in order as `descriptor_keys`.
#[derive(Debug)]
pub(super) struct Described<'a> {
    domain: &'a str,
    descriptor: &'a RateLimitDescriptor,
    /// The names of all attributes behind one another, and at the end the keys.
    names: String,
    /// What it spends; 0 looks.
    pub(super) hits: u64,
}

/// Attributes, as a [`Request`] wants them.
pub(super) type Attributes<'a> = SmallVec<[(&'a str, &'a str); 8]>;

/// A limit that came with the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// `None` is none at all.
    pub(super) quota: Option<Quota>,
    pub(super) requests: u32,
    pub(super) seconds: u64,
}

impl<'a> Described<'a> {
    /// A descriptor that spends so many hits, unless it says so itself.
    pub(super) fn new(
        domain: &'a str,
        descriptor: &'a RateLimitDescriptor,
        hits: u64,
    ) -> Result<Self, Refusal> {
        let entries = &descriptor.entries;
        if entries.len() > MOST_ENTRIES {
            let message = format!("a descriptor has more than {MOST_ENTRIES} entries");
            return Err(Refusal::invalid(message));
        }
        let hits = descriptor.hits_addend.unwrap_or(hits);
        if hits > MOST_HITS {
            return Err(Refusal::invalid(format!("hits_addend is more than {MOST_HITS}")));
        }
        let length: usize =
            entries.iter().map(|entry| FAMILY.len() + 2 * entry.key.len() + 1).sum();
        let mut names = String::with_capacity(length);
        for entry in entries {
            names.push_str(FAMILY);
            names.push_str(&entry.key);
        }
        for (number, entry) in entries.iter().enumerate() {
            if number > 0 {
                names.push('/');
            }
            // A key must not look like two.
            match entry.key.contains(['/', '%']) {
                false => names.push_str(&entry.key),
                true => names.push_str(&entry.key.replace('%', "%25").replace('/', "%2F")),
            }
        }
        Ok(Self { domain, descriptor, names, hits })
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        let mut rest = &*self.names;
        let mut all = Attributes::new();
        all.push(("domain", self.domain));
        for entry in &self.descriptor.entries {
            let (name, behind) = rest.split_at(FAMILY.len() + entry.key.len());
            all.push((name, &entry.value));
            rest = behind;
        }
        all.push(("descriptor_keys", rest));
        all
    }

    /// The request that is decided about.
    pub(super) fn request<'r>(&self, attributes: &'r [(&'r str, &'r str)]) -> Request<'r> {
        Request::new("GET", "/").attributes(attributes).cost(self.hits)
    }

    /// The limit that came with it.
    pub(super) fn own(&self) -> Result<Option<Own>, Refusal> {
        let Some(RateLimitOverride { requests_per_unit, unit }) = self.descriptor.limit else {
            return Ok(None);
        };
        let (unit, times, seconds) = match RateLimitUnit::try_from(unit) {
            Ok(RateLimitUnit::Second) => (Unit::Second, 1, 1),
            Ok(RateLimitUnit::Minute) => (Unit::Minute, 1, 60),
            Ok(RateLimitUnit::Hour) => (Unit::Hour, 1, 3600),
            Ok(RateLimitUnit::Day) => (Unit::Day, 1, 86_400),
            Ok(RateLimitUnit::Month) => (Unit::Day, 30, 30 * 86_400),
            Ok(RateLimitUnit::Year) => (Unit::Day, 365, 365 * 86_400),
            Ok(RateLimitUnit::Unknown) | Err(_) => {
                return Err(Refusal::invalid(
                    "the limit of a descriptor has no unit that is known",
                ));
            }
        };
        let period = Period::new(times, unit);
        let quota = period.and_then(|period| Quota::new(requests_per_unit.into(), period));
        Ok(Some(Own { quota: quota.ok(), requests: requests_per_unit, seconds }))
    }

    /// Whose limit that is: nobody else can have the same.
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        let entries = self.descriptor.entries.iter();
        let entries = entries.flat_map(|entry| [&*entry.key, &*entry.value]);
        for text in [self.domain].into_iter().chain(entries) {
            key.extend((text.len() as u64).to_le_bytes());
            key.extend(text.as_bytes());
        }
        key
    }
}

/// What entries are called.
const FAMILY: &str = "descriptor.";

/// The most entries of a descriptor: rules look through all of them.
const MOST_ENTRIES: usize = 64;

/// What everybody can count up to.
const MOST_HITS: u64 = (1 << 53) - 1;
