//! Law: what is promised is in when it may be used. Nodes use it at that very moment here, by the store's
//! own clock, whether or not they have heard of what came after; real ones wait a little longer.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::lease::{Account, Exchange, Grant, LeaseId, Lender, Node, Promise};
use tollgate_core::{Anchor, Limit, Phase, Tick};

/// A node that uses all it may.
#[derive(Clone, Debug)]
struct Eager {
    number: u64,
    sequence: u64,
    lease: Option<LeaseId>,
    used: u64,
    returned: u64,
    held: u64,
    promise: Promise,
    told: Tick,
    until: Tick,
}

impl Eager {
    fn new(number: u64) -> Self {
        Self {
            number,
            sequence: 0,
            lease: None,
            used: 0,
            returned: 0,
            held: 0,
            promise: Promise::NOTHING,
            told: Tick::ZERO,
            until: Tick::ZERO,
        }
    }

    /// Lets time pass, and says how much it uses.
    fn use_up(&mut self, now: Tick, interval: u64) -> u64 {
        if now >= self.until {
            self.give_back();
        }
        let Promise { tokens, all_in, lanes } = self.promise;
        let wait = all_in.saturating_sub(now.since(self.told)).as_nanos() as u64;
        let missing = (wait * lanes).div_ceil(interval * Promise::LANES).min(tokens);
        let used = self.held.saturating_sub(missing);
        (self.held, self.used) = (self.held - used, self.used + used);
        used
    }

    fn give_back(&mut self) {
        self.returned += std::mem::take(&mut self.held);
    }

    fn ask(&mut self, want: u64) -> Exchange {
        self.sequence += 1;
        let node = Node { number: self.number, incarnation: 1 };
        let (sequence, lease) = (self.sequence, self.lease);
        let (used, returned) = (self.used, self.returned);
        Exchange { sequence, lease, used, returned, want, ..Exchange::strict(node, 0) }
    }

    fn hear(&mut self, now: Tick, grant: &Grant) {
        if self.lease != Some(grant.lease) {
            (self.lease, self.used, self.returned) = (Some(grant.lease), 0, 0);
        }
        (self.held, self.promise) = (grant.tokens, grant.promise);
        (self.told, self.until) = (now, now.after(grant.span));
    }
}

/// What a node does after so many microseconds.
#[derive(Clone, Debug)]
struct Deed {
    after: u64,
    node: usize,
    want: u64,
    gives_back: bool,
    hears: bool,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let after = prop_oneof![4 => 0..4_000u64, 1 => 0..150_000u64];
    let want = prop_oneof![1..12u64, 1..400u64];
    let deed =
        (after, 0..NODES, want, prop::bool::weighted(0.2), prop::bool::weighted(0.7)).prop_map(
            |(after, node, want, gives_back, hears)| Deed { after, node, want, gives_back, hears },
        );
    prop::collection::vec(deed, 1..150)
}

struct World {
    lender: Lender,
    account: Account,
    nodes: Vec<Eager>,
    now: Tick,
    /// Nanoseconds' worth of tokens that may pass.
    level: u64,
    capacity: u64,
    interval: u64,
}

impl World {
    fn passes(&mut self, now: Tick) -> Result<(), TestCaseError> {
        self.level = (self.level + now.since(self.now).as_nanos() as u64).min(self.capacity);
        self.now = now;
        let used = self.nodes.iter_mut().map(|node| node.use_up(now, self.interval)).sum::<u64>();
        let left = self.level.checked_sub(used * self.interval);
        prop_assert!(left.is_some(), "{used} pass at {now:?}, too many for {}", self.level);
        self.level = left.unwrap_or(0);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn nothing_is_used_before_it_is_in(
        deeds in deeds(),
        (quota, interval) in prop_oneof![
            Just(("1k/s burst 300", 1_000_000)),
            Just(("100/s burst 40", 10_000_000)),
            Just(("20k/s burst 5k", 50_000)),
        ],
    ) {
        let limit = Limit::token_bucket(quota).unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let account = lender.open(Tick::ZERO, Phase::default());
        let capacity = limit.capacity().unwrap() * interval;
        let nodes = (0..NODES as u64).map(Eager::new).collect();
        let now = Tick::ZERO;
        let mut world = World { lender, account, nodes, now, level: capacity, capacity, interval };
        for Deed { after, node, want, gives_back, hears } in deeds {
            let now = world.now.after(Duration::from_micros(after));
            // All that comes in on the way is used as it does.
            for part in 1..=8 {
                let passed = Duration::from_micros(after) * part / 8;
                let then = now.since(Tick::ZERO) - Duration::from_micros(after) + passed;
                world.passes(Tick::ZERO.after(then))?;
            }
            if gives_back {
                world.nodes[node].give_back();
            }
            let ask = world.nodes[node].ask(want);
            let grant = world.lender.exchange(&mut world.account, now, &ask).unwrap();
            prop_assert!(grant.promise.all_in < grant.span, "it is in before the lease is over");
            if hears {
                world.nodes[node].hear(now, &grant);
            }
            world.passes(now)?;
        }
    }
}

const NODES: usize = 6;
