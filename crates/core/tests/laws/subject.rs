//! The limits that laws are tried on: every algorithm that keeps its state in a word.

use proptest::prelude::*;
use tollgate_core::{Anchor, Decision, Limit, Machine, Phase, Rate, Step, Tick, Wall, Word};

/// A limit with all it takes to run it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) limit: Limit,
    pub(crate) kind: Kind,
    pub(crate) anchor: Anchor,
    pub(crate) phase: Phase,
    pub(crate) machine: Machine,
}

/// Which algorithm, with what its quota does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    TokenBucket,
    Police,
    Shape { queue: u64 },
    Fixed,
    Jittered,
    Calendar { zone: String },
    Billing { zone: String, day: u8 },
    Sliding,
}

impl Subject {
    /// `None` if the algorithm cannot keep the quota.
    pub(crate) fn new(kind: Kind, quota: &str, anchor: Anchor, phase: Phase) -> Option<Self> {
        let limit = match &kind {
            Kind::TokenBucket => Limit::token_bucket(quota),
            Kind::Police => Limit::leaky_police(quota),
            Kind::Shape { queue } => Limit::leaky_shape(quota, *queue),
            Kind::Fixed => Limit::fixed_window(quota),
            Kind::Jittered => Limit::fixed_window(quota).and_then(Limit::jittered),
            Kind::Calendar { zone } => Limit::calendar(quota, zone),
            Kind::Billing { zone, day } => Limit::billing_month(quota, zone, *day),
            Kind::Sliding => Limit::sliding_window(quota),
        };
        let limit = limit.ok()?;
        let machine = limit.machine(anchor)?;
        Some(Self { limit, kind, anchor, phase, machine })
    }

    /// The same at the beginning of time, for tests that need no anchor.
    pub(crate) fn plain(kind: Kind, quota: &str) -> Self {
        Self::new(kind, quota, Anchor::default(), Phase::default()).expect(quota)
    }

    pub(crate) fn step(&self, word: Word, now: Tick, cost: u64) -> Step {
        self.machine.step(word, now, cost, self.phase)
    }

    /// The answer to a cost of 0: what remains.
    pub(crate) fn peek(&self, word: Word, now: Tick) -> Decision {
        self.step(word, now, 0).decision
    }

    pub(crate) fn remaining(&self, word: Word, now: Tick) -> u64 {
        self.peek(word, now).remaining()
    }

    pub(crate) fn allows(&self, word: Word, now: Tick, cost: u64) -> bool {
        self.step(word, now, cost).decision.is_allowed()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.peek(Word::REST, Tick::ZERO).limit()
    }

    pub(crate) fn rate(&self) -> Rate {
        self.limit.quota().rate().expect("it limits")
    }

    /// The period of the quota, in nanoseconds.
    pub(crate) fn period(&self) -> u64 {
        u64::try_from(self.rate().period().as_duration().as_nanos()).expect("at most 366 days")
    }

    /// What the clock on the wall says at tick 0.
    pub(crate) fn origin(&self) -> i128 {
        i128::from(self.anchor.wall.as_unix_nanos()) - i128::from(self.anchor.tick.as_nanos())
    }

    pub(crate) fn is_bucket(&self) -> bool {
        matches!(self.kind, Kind::TokenBucket | Kind::Police | Kind::Shape { .. })
    }

    /// By how much a sliding counter may be too strict because it rounds the last window's count:
    /// 0 where two exact counts fit into a word beside the time, otherwise a 63rd of the limit.
    pub(crate) fn slack(&self) -> u64 {
        let counts = 2 * (self.capacity().ilog2() + 1).max(6);
        match self.kind == Kind::Sliding && counts > 5 + self.period().ilog2() {
            true => self.capacity().div_ceil(63) + 1,
            false => 0,
        }
    }
}

/// Any limit that fits a word.
pub(crate) fn all() -> impl Strategy<Value = Subject> {
    subjects(prop_oneof![
        4 => bucket_kinds(),
        3 => window_kinds(),
        2 => Just(Kind::Sliding),
    ])
}

pub(crate) fn buckets() -> impl Strategy<Value = Subject> {
    subjects(bucket_kinds())
}

pub(crate) fn of(kinds: &[Kind]) -> impl Strategy<Value = Subject> + use<> {
    subjects(prop::sample::select(kinds.to_vec()))
}

pub(crate) fn windows() -> impl Strategy<Value = Subject> {
    subjects(window_kinds())
}

pub(crate) fn shapes() -> impl Strategy<Value = Subject> {
    subjects(queues().prop_map(|queue| Kind::Shape { queue }))
}

fn subjects(kinds: impl Strategy<Value = Kind>) -> impl Strategy<Value = Subject> {
    let parts = (kinds, quotas(), anchors(), any::<u64>());
    parts.prop_filter_map("the algorithm keeps the quota", |(kind, quota, anchor, phase)| {
        let quota = match kind {
            Kind::Calendar { .. } => quota.on_calendar(),
            Kind::Billing { .. } => quota.per_month(),
            Kind::TokenBucket | Kind::Police => quota.text(),
            _ => quota.without_burst(),
        };
        Subject::new(kind, &quota, anchor, Phase(phase))
    })
}

fn bucket_kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::TokenBucket),
        1 => Just(Kind::Police),
        1 => queues().prop_map(|queue| Kind::Shape { queue }),
    ]
}

fn window_kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        2 => Just(Kind::Fixed),
        2 => Just(Kind::Jittered),
        1 => zones().prop_map(|zone| Kind::Calendar { zone }),
        1 => (zones(), 1u8..=31).prop_map(|(zone, day)| Kind::Billing { zone, day }),
    ]
}

fn queues() -> impl Strategy<Value = u64> {
    prop_oneof![1..=5u64, 1..=Limit::MAX_QUEUE]
}

pub(crate) fn zones() -> impl Strategy<Value = String> {
    prop::sample::select(ZONES.to_vec()).prop_map(str::to_owned)
}

/// Counters are made some time after the clock's beginning, at a time between 2005 and 2040.
pub(crate) fn anchors() -> impl Strategy<Value = Anchor> {
    let year = 31_556_952_000_000_000u64;
    let wall = (35 * year..70 * year).prop_map(Wall::from_unix_nanos);
    let tick = prop_oneof![Just(0), 0..year].prop_map(Tick::from_nanos);
    prop_oneof![
        Just(Anchor::default()),
        (tick, wall).prop_map(|(tick, wall)| Anchor { tick, wall })
    ]
}

/// The numbers of a quota, before anybody has checked them.
#[derive(Clone, Debug)]
struct Numbers {
    count: u64,
    period: &'static str,
    burst: Option<u64>,
}

impl Numbers {
    fn text(&self) -> String {
        match self.burst {
            Some(burst) => format!("{} burst {burst}", self.without_burst()),
            None => self.without_burst(),
        }
    }

    fn without_burst(&self) -> String {
        format!("{}/{}", self.count, self.period)
    }

    fn on_calendar(&self) -> String {
        let period = ["day", "week", "month"][(self.count % 3) as usize];
        format!("{}/{period}", self.count)
    }

    fn per_month(&self) -> String {
        format!("{}/month", self.count)
    }
}

fn quotas() -> impl Strategy<Value = Numbers> {
    let odd = prop::sample::select(ODD_RATES.to_vec());
    let free = (magnitudes(50), prop::sample::select(PERIODS.to_vec()));
    let burst = prop::option::of(prop_oneof![1..=20u64, magnitudes(40)]);
    (prop_oneof![odd, free], burst).prop_map(|((count, period), burst)| {
        let count = count.min(tollgate_core::Quota::MAX_COUNT);
        Numbers { count, period, burst }
    })
}

/// Numbers of all sizes below `2^bits`, each size as likely as the others.
pub(crate) fn magnitudes(bits: u32) -> impl Strategy<Value = u64> {
    (0..bits).prop_flat_map(|bit| (1u64 << bit)..(2u64 << bit))
}

const ODD_RATES: [(u64, &str); 14] = [
    (1, "s"),
    (3, "s"),
    (7, "s"),
    (33, "s"),
    (7, "min"),
    (100, "min"),
    (999, "min"),
    (9973, "s"),
    (1_000_000_000, "s"),
    (999_999_999, "s"),
    (1, "month"),
    (1, "366day"),
    (64, "ms"),
    (10, "15min"),
];

const PERIODS: [&str; 11] =
    ["1ms", "7ms", "s", "2s", "min", "15min", "h", "day", "week", "month", "366day"];

/// Half hours, three quarters of an hour, gaps at midnight, a day that never was, and no summer.
pub(crate) const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "America/Havana",
    "America/St_Johns",
    "Africa/Cairo",
    "Asia/Beirut",
    "Pacific/Apia",
    "Antarctica/Troll",
];
