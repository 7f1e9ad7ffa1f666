//! A descriptor as rules see it.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate::{Period, Quota, Request, Retry, Unit};
use tollgate_proto::envoy::r#type::v3::RateLimitUnit;

use crate::grpc::frame::{Code, Refusal};
use crate::grpc::wire::{self, Fields};

/// What Envoy asks about: a `RateLimitRequest`, read where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) descriptors: SmallVec<[Described<'a>; 2]>,
}

/// A descriptor as rules see it: `domain` as it is, each entry as `descriptor.KEY`, and the keys of
/// all of them in order as `descriptor_keys`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described<'a> {
    domain: &'a str,
    entries: SmallVec<[(&'a str, &'a str); 4]>,
    /// The names of all attributes behind one another, and at the end the keys.
    names: String,
    /// What it spends; 0 looks.
    pub(super) hits: u64,
    /// What it gives back.
    pub(super) gives: u64,
    /// The limit that came with it.
    pub(super) own: Option<Own>,
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

impl<'a> Asked<'a> {
    /// Reads a message with at most so many descriptors.
    pub(super) fn read(message: &'a [u8], most: usize) -> Result<Self, Refusal> {
        let (mut domain, mut hits, mut fields) = ("", 1, Fields::of(message));
        let mut parts = SmallVec::<[&[u8]; 2]>::new();
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => domain = value.text()?,
                2 => parts.push(value.bytes()?),
                // It has 32 bits.
                3 => hits = value.number()? & u64::from(u32::MAX),
                _ => {}
            }
        }
        if domain.is_empty() {
            return Err(Refusal::invalid("the domain is empty: Envoy has it in its configuration"));
        }
        if parts.is_empty() {
            return Err(Refusal::invalid("there are no descriptors: there is nothing to decide"));
        }
        if parts.len() > most {
            let message = format!("there are {} descriptors, and {most} are the most", parts.len());
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        let descriptors = parts.iter().map(|part| Described::read(domain, part, hits));
        Ok(Self { descriptors: descriptors.collect::<Result<_, _>>()? })
    }
}

impl<'a> Described<'a> {
    /// Reads a descriptor that spends so many hits, unless it says so itself.
    fn read(domain: &'a str, message: &'a [u8], mut hits: u64) -> Result<Self, Refusal> {
        let (mut entries, mut own, mut fields) = (SmallVec::new(), None, Fields::of(message));
        let mut is_negative = false;
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => entries.push(wire::pair(value.bytes()?)?),
                2 => own = Some(Own::read(value.bytes()?)?),
                3 => hits = wrapped(value.bytes()?)?,
                4 => is_negative = value.number()? != 0,
                _ => {}
            }
        }
        if entries.len() > MOST_ENTRIES {
            let message = format!("a descriptor has more than {MOST_ENTRIES} entries");
            return Err(Refusal::invalid(message));
        }
        if hits > MOST_HITS {
            return Err(Refusal::invalid(format!("hits_addend is more than {MOST_HITS}")));
        }
        let names = names(&entries);
        let (hits, gives) = if is_negative { (0, hits) } else { (hits, 0) };
        Ok(Self { domain, entries, names, hits, gives, own })
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        let mut rest = &*self.names;
        let mut all = Attributes::new();
        all.push(("domain", self.domain));
        for (key, value) in &self.entries {
            let (name, behind) = rest.split_at(FAMILY.len() + key.len());
            all.push((name, value));
            rest = behind;
        }
        all.push(("descriptor_keys", rest));
        all
    }

    /// The request that is decided about.
    pub(super) fn request<'r>(&self, attributes: &'r [(&'r str, &'r str)]) -> Request<'r> {
        Request::new("GET", "/").attributes(attributes).cost(self.hits)
    }

    /// Whose own limit it is: nobody else can have the same.
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        let entries = self.entries.iter().flat_map(|(key, value)| [*key, *value]);
        for text in [self.domain].into_iter().chain(entries) {
            key.extend((text.len() as u64).to_le_bytes());
            key.extend(text.as_bytes());
        }
        key
    }
}

/// The names of the attributes that entries are, and behind them the keys of all.
fn names(entries: &[(&str, &str)]) -> String {
    let length: usize = entries.iter().map(|(key, _)| FAMILY.len() + 2 * key.len() + 1).sum();
    let mut names = String::with_capacity(length);
    for (key, _) in entries {
        names.push_str(FAMILY);
        names.push_str(key);
    }
    for (number, (key, _)) in entries.iter().enumerate() {
        if number > 0 {
            names.push('/');
        }
        // A key must not look like two.
        match key.contains(['/', '%']) {
            false => names.push_str(key),
            true => names.push_str(&key.replace('%', "%25").replace('/', "%2F")),
        }
    }
    names
}

/// A number in a message of its own.
fn wrapped(message: &[u8]) -> Result<u64, Refusal> {
    let (mut wrapped, mut fields) = (0, Fields::of(message));
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            wrapped = value.number()?;
        }
    }
    Ok(wrapped)
}

impl Own {
    /// When so many can be spent, if everything is back after `reset`.
    pub(super) fn retry(&self, needs: u64, reset: Duration) -> Retry {
        let Some(more) = u64::from(self.requests).checked_sub(needs) else { return Retry::Never };
        // What comes back behind those that are needed. Rounded down, so that nobody is too early.
        let nanos = u128::from(more) * u128::from(self.seconds) * 1_000_000_000
            / u128::from(self.requests.max(1));
        Retry::After(reset.saturating_sub(Duration::from_nanos_u128(nanos)))
    }

    fn read(message: &[u8]) -> Result<Self, Refusal> {
        let (mut requests, mut unit, mut fields) = (0, 0, Fields::of(message));
        while let Some((number, value)) = fields.next()? {
            match number {
                // Both have 32 bits.
                1 => requests = value.number()? as u32,
                2 => unit = value.number()? as i32,
                _ => {}
            }
        }
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
        let quota = period.and_then(|period| Quota::new(requests.into(), period));
        Ok(Self { quota: quota.ok(), requests, seconds })
    }
}

/// What entries are called.
const FAMILY: &str = "descriptor.";

/// The most entries of a descriptor: rules look through all of them.
const MOST_ENTRIES: usize = 64;

/// What everybody can count up to.
const MOST_HITS: u64 = (1 << 53) - 1;
