//! How much a rule allows: a quota with an algorithm, or so many at once.

use std::time::Duration;

use tollgate_core::{Limit, LimitError, Quota};

use crate::attribute::Attribute;
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::read::{Fields, Reader};
use crate::tiered::Tiered;
use crate::tiers::Tiers;
use crate::window::Window;

/// How much a rule allows.
#[derive(Clone, Debug)]
pub(crate) enum Budget {
    /// So much per time.
    Rate(Rates),
    /// So many at once, by tier; a slot whose holder died comes back after a while.
    Concurrent { most: Tiered<u32>, expires: Option<Duration> },
}

/// The limits of a rule: one for each tier, and for each day a month can begin on.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    pub(crate) quotas: Tiered<Quota>,
    pub(crate) shape: Shape,
    /// For each quota one limit, or [`Shape::MONTHS`] of them.
    pub(crate) limits: Box<[Limit]>,
}

/// What makes limits of quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) algorithm: Algorithm,
    pub(crate) window: Window,
}

/// How requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    TokenBucket,
    /// With so many places in the queue; with none, who comes too early is denied.
    LeakyBucket {
        queue: u64,
    },
    FixedWindow,
    SlidingWindow,
    SlidingLog,
}

impl Shape {
    /// The days that a month can begin on, if each account has its own.
    pub(crate) const MONTHS: usize = 31;

    /// How many limits a quota makes.
    pub(crate) const fn limits_per_quota(&self) -> usize {
        match self.window.anchor() {
            Some(_) => Self::MONTHS,
            None => 1,
        }
    }

    /// The limits that a quota makes.
    pub(crate) fn limits(&self, quota: Quota) -> Result<Vec<Limit>, LimitError> {
        if let Window::Calendar { unit, zone, day, anchor } = &self.window {
            if quota.rate().is_some_and(|rate| rate.period().unit() != *unit) {
                return Err(LimitError::NotOnCalendar { quota });
            }
            return match anchor {
                Some(_) => (1..=31).map(|day| Limit::billing_month(quota, zone, day)).collect(),
                None if *day > 1 => Ok(vec![Limit::billing_month(quota, zone, *day)?]),
                None => Ok(vec![Limit::calendar(quota, zone)?]),
            };
        }
        let limit = match self.algorithm {
            Algorithm::TokenBucket => Limit::token_bucket(quota)?,
            Algorithm::LeakyBucket { queue: 0 } => Limit::leaky_police(quota)?,
            Algorithm::LeakyBucket { queue } => Limit::leaky_shape(quota, queue)?,
            Algorithm::FixedWindow => Limit::fixed_window(quota)?,
            Algorithm::SlidingWindow => Limit::sliding_window(quota)?,
            Algorithm::SlidingLog => Limit::sliding_log(quota)?,
        };
        Ok(vec![if self.window == Window::Jittered { limit.jittered()? } else { limit }])
    }
}

/// The fields of a rule that are about how much it allows.
pub(crate) const FIELDS: [&str; 7] =
    ["limit", "burst", "algorithm", "queue", "window", "concurrent", "expires"];

pub(crate) const ALGORITHMS: [(&str, Algorithm); 5] = [
    ("token_bucket", Algorithm::TokenBucket),
    ("leaky_bucket", Algorithm::LeakyBucket { queue: 0 }),
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_window", Algorithm::SlidingWindow),
    ("sliding_log", Algorithm::SlidingLog),
];

impl Algorithm {
    /// How many can wait, if any can.
    pub(crate) const fn queue(self) -> Option<u64> {
        match self {
            Self::LeakyBucket { queue } => Some(queue),
            _ => None,
        }
    }

    /// Its name in a file.
    pub(crate) fn name(self) -> &'static str {
        let same = |other: &Self| std::mem::discriminant(other) == std::mem::discriminant(&self);
        ALGORITHMS.iter().find(|(_, other)| same(other)).map_or("", |(name, _)| name)
    }
}

impl Budget {
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        tiers: Option<&Tiers>,
    ) -> Option<Self> {
        match (fields.get("limit"), fields.get("concurrent")) {
            (Some(node), None) => Rates::read(reader, fields, node, tiers).map(Self::Rate),
            (None, Some(node)) => read_concurrent(reader, fields, node, tiers),
            (Some(_), Some(_)) => {
                let message = "a rule has `limit` or `concurrent`, not both";
                let remedy = "make two rules of it, both of which must allow a request";
                let span = fields.name_span("concurrent");
                reader.add(Diagnostic::error(
                    "two-budgets",
                    span,
                    message,
                    "beside `limit`",
                    remedy,
                ));
                None
            }
            (None, None) => {
                let remedy = "say how much it allows: `limit: 100/min`, or `concurrent: 5`";
                reader.missing(fields, "the rule", "limit", remedy);
                None
            }
        }
    }

    /// The most that one request may cost and still pass, in the strictest tier.
    pub(crate) fn largest_cost(&self) -> Option<u64> {
        let Self::Rate(rates) = self else { return Some(1) };
        let most = |quota: &Quota| {
            let rate = quota.rate()?;
            match rates.shape.algorithm {
                Algorithm::LeakyBucket { queue } => Some(rate.burst().unwrap_or(1).max(queue + 1)),
                _ => Some(rate.burst().unwrap_or_else(|| rate.count())),
            }
        };
        rates.quotas.0.iter().filter_map(most).min()
    }
}

impl Rates {
    fn read(
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        node: &Node,
        tiers: Option<&Tiers>,
    ) -> Option<Self> {
        if fields.has("expires") {
            let message = "`expires` is about slots, and this rule limits a rate";
            let (span, label) = (fields.name_span("expires"), "beside `limit`");
            let remedy = "leave it out, or limit what is under way at once with `concurrent: 5`";
            reader.add(Diagnostic::error("no-slots", span, message, label, remedy));
        }
        let shape = Shape::read(reader, fields);
        let parse = |reader: &mut Reader<'_>, node: &Node| {
            Some(reader.parsed(node, "a limit", "100/min", str::parse::<Quota>)?.value)
        };
        let quotas = reader.tiered(node, "`limit`", tiers, true, parse)?;
        let bursts = match fields.get("burst") {
            Some(node) => {
                let read = |reader: &mut Reader<'_>, node: &Node| {
                    reader.count(node, "a burst").map(|count| count.value)
                };
                Some(reader.tiered(node, "`burst`", tiers, false, read)?)
            }
            None => None,
        };
        let (shape, mut with_burst, mut limits) = (shape?, Vec::new(), Vec::new());
        for (tier, quota) in quotas.iter().enumerate() {
            let quota = (*quota)?;
            let burst =
                bursts.as_ref().and_then(|bursts| bursts[if bursts.len() == 1 { 0 } else { tier }]);
            let made = match burst {
                Some(burst) if quota.rate().is_some() => {
                    quota.with_burst(burst).map_err(LimitError::from)
                }
                _ => Ok(quota),
            };
            let made = made.and_then(|quota| Ok((quota, shape.limits(quota)?)));
            match made {
                Ok((quota, made)) => {
                    with_burst.push(quota);
                    limits.extend(made);
                }
                Err(error) => reader.bad_limit(fields, node, &error),
            }
        }
        let complete = with_burst.len() == quotas.len();
        let (quotas, limits) = (Tiered(with_burst.into()), limits.into());
        complete.then_some(Self { quotas, shape, limits })
    }
}

impl Shape {
    fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Self> {
        let window = match fields.get("window") {
            Some(node) => Window::read(reader, node),
            None => Some(Window::Plain),
        };
        let algorithm = match fields.get("algorithm") {
            Some(node) => reader.choice(node, "algorithm", &ALGORITHMS).map(|it| it.value),
            None if fields.has("window") => Some(Algorithm::FixedWindow),
            None => Some(Algorithm::TokenBucket),
        };
        let queue = match fields.get("queue") {
            Some(node) => Some(reader.count(node, "`queue`")?),
            None => None,
        };
        let (window, mut algorithm) = (window?, algorithm?);
        if window != Window::Plain && algorithm != Algorithm::FixedWindow {
            let message = format!("`{}` has no windows to place", algorithm.name());
            let span = fields.name_span("window");
            let remedy = "write `algorithm: fixed_window`, or leave `window` out";
            reader.add(Diagnostic::error(
                "no-window",
                span,
                message,
                "not for this algorithm",
                remedy,
            ));
            return None;
        }
        match (&mut algorithm, queue) {
            (Algorithm::LeakyBucket { queue }, Some(given)) => *queue = given.value,
            (_, Some(given)) => {
                let message = format!("`{}` has no queue", algorithm.name());
                let span = given.span();
                let remedy = "write `algorithm: leaky_bucket`, or leave `queue` out";
                reader.add(Diagnostic::error(
                    "no-queue",
                    span,
                    message,
                    "not for this algorithm",
                    remedy,
                ));
                return None;
            }
            (_, None) => {}
        }
        Some(Self { algorithm, window })
    }
}

fn read_concurrent(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    node: &Node,
    tiers: Option<&Tiers>,
) -> Option<Budget> {
    for other in ["burst", "algorithm", "queue", "window", "count_if", "block_for", "cost"] {
        if fields.has(other) {
            let message = format!("`{other}` says nothing about what is under way at once");
            let span = fields.name_span(other);
            let remedy = "leave it out, or limit a rate with `limit: 100/min`";
            reader.add(Diagnostic::error(
                "not-for-concurrent",
                span,
                message,
                "beside `concurrent`",
                remedy,
            ));
        }
    }
    let parse = |text: &str| {
        let count = Quota::parse_count(text).map_err(|error| error.to_string())?;
        u32::try_from(count)
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| "it must be 1 to 4294967295".to_owned())
    };
    let read = |reader: &mut Reader<'_>, node: &Node| {
        Some(reader.parsed(node, "a number of slots", "5", parse)?.value)
    };
    let most = reader.tiered(node, "`concurrent`", tiers, true, read)?;
    let expires = match fields.get("expires") {
        Some(node) => Some(reader.duration(node, "`expires`")?),
        None => None,
    };
    let most: Option<Box<[u32]>> = most.into_iter().collect();
    Some(Budget::Concurrent { most: Tiered(most?), expires })
}

impl Reader<'_> {
    fn bad_limit(&mut self, fields: &Fields<'_>, node: &Node, error: &LimitError) {
        let at = match error {
            LimitError::NoBurst { .. } if fields.has("burst") => fields.name_span("burst"),
            LimitError::UnknownTimeZone { .. } | LimitError::NotOnCalendar { .. } => {
                fields.name_span("window")
            }
            _ => match node.value {
                Value::Map(_) => fields.name_span("limit"),
                _ => node.span.clone(),
            },
        };
        let message = format!("this limit cannot be kept: {error}");
        let remedy = "choose other numbers, or another algorithm";
        self.add(Diagnostic::error("bad-limit", at, message, "here", remedy));
    }
}

/// What of a request says on which day its months begin.
impl Window {
    pub(crate) const fn anchor(&self) -> Option<&Attribute> {
        match self {
            Self::Calendar { anchor: Some(attribute), .. } => Some(attribute),
            _ => None,
        }
    }
}
