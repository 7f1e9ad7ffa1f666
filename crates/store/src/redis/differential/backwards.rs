//! Clocks that are set back: a server says the time that it has, which may be earlier than what it said before.
//!
//! As long as nothing of a key is lent, the time that it knows is that of its state, as with the machines and logs
//! of the core. So both are asked the same at the same times, and say the same: no more passes than those let
//! pass, and no less. A script may take a time for now that is later than what the clock says, and that it said
//! before: then so does the core.

use proptest::prelude::*;
use tollgate_core::lease::Exchange;
use tollgate_core::{Decision, Limit, Log, LogRule, Machine, Phase, Tick, Word};

use super::world::{Question, What, World};
use crate::ask::Ask;
use crate::budget::Kind;
use crate::redis::answer::Reply;
use crate::redis::form::Past;

const KEYS: usize = 3;

/// One call.
#[derive(Clone, Debug)]
struct Deed {
    /// Microseconds since the one before, or until it.
    pause: u64,
    is_back: bool,
    /// Which keys are asked about, each at most once.
    keys: [bool; KEYS],
    cost: u64,
    /// Whether that is what it costs beside what is left, and what one of them more does.
    edge: Option<bool>,
    /// Which of the ways to ask it is.
    way: u8,
}

fn histories(limits: impl Strategy<Value = Limit>) -> impl Strategy<Value = (Limit, Vec<Deed>)> {
    limits.prop_flat_map(|limit| {
        let period = limit.quota().rate().unwrap().period().as_duration().as_micros() as u64;
        let most = limit.capacity().unwrap();
        let pause = (0..period, 0..16u32).prop_map(|(pause, shift)| pause >> shift);
        let cost = prop_oneof![4 => 0..=most / 3, 1 => Just(most), 1 => Just(0)];
        let edge = prop::option::weighted(0.3, any::<bool>());
        let back = prop::bool::weighted(0.35);
        let deed = (pause, back, any::<[bool; KEYS]>(), cost, edge, any::<u8>());
        let deed = deed.prop_map(|(pause, is_back, keys, cost, edge, way)| Deed {
            pause,
            is_back,
            keys,
            cost,
            edge,
            way,
        });
        (Just(limit), prop::collection::vec(deed, 1..50))
    })
}

fn compare(limit: &Limit, deeds: &[Deed]) {
    let mut world = World::new(super::budget(limit), KEYS, super::NOW, None);
    // Windows that began before all that a budget knows of are not those of the core.
    let (period, origin) = (world.budget.period(), world.budget.origin());
    let earliest = (origin.as_unix_nanos() / 1_000) + period.as_micros() as u64;
    let mut states = [0, 1, 2].map(|key| Core::of(&world, key));
    let mut latest = world.now;
    for deed in deeds {
        world.now = match deed.is_back {
            true => world.now.saturating_sub(deed.pause).max(earliest),
            false => world.now + deed.pause,
        };
        latest = latest.max(world.now);
        let keys: Vec<_> = (0..KEYS).filter(|key| deed.keys[*key]).collect();
        let Some(first) = keys.first() else { continue };
        let left = states[*first].step(world.tick(), 0).0.remaining();
        let cost = deed.edge.map_or(deed.cost, |is_more| left + u64::from(is_more));
        let what = What::Exchange(Exchange::once(cost), None);
        let questions: Vec<_> = keys.iter().map(|key| Question { key: *key, what }).collect();
        let word = match deed.way % 4 {
            _ if world.plain_cost(&questions[0]).is_none() => "each",
            0 | 1 if world.is_same_for_all() => ["all", "same"][usize::from(deed.way % 2)],
            3 => "each",
            _ => "every",
        };
        world.remember(Past::Unknown);
        let replies = world.in_redis(&questions, word, 0, Past::Unknown);
        for (key, (reply, _)) in keys.iter().zip(replies) {
            let Ok(Reply::Grant(grant)) = reply else { panic!("{reply:?}") };
            let at = grant.at.as_unix_nanos() / 1_000;
            let what = format!("{limit:?} at {at}, {word}: {cost} of key {key}");
            assert!((world.now..=latest).contains(&at), "{} to {latest}: {what}", world.now);
            let (decision, state) = states[*key].step(world.tick_of(at).unwrap(), cost);
            states[*key] = state;
            assert_eq!(grant.decision, decision, "{what}");
        }
    }
}

/// What the core knows of a key.
#[derive(Clone)]
enum Core {
    Word(Machine, Phase, Word),
    Log(LogRule, Log),
}

impl Core {
    fn of(world: &World, key: usize) -> Self {
        let key = world.keys[key].key.as_str();
        let phase = Ask::new(world.budget.clone(), key, Exchange::once(0)).phase();
        match world.budget.kind() {
            Kind::Lent(lender) => {
                let machine = lender.machine().expect("there are no permits").clone();
                Self::Word(machine, phase, Word::REST)
            }
            Kind::Log(rule) => Self::Log(*rule, Log::default()),
            Kind::Unlimited => panic!("there is nothing to compare"),
        }
    }

    /// The answer, and what is known then. Where nothing is spent or forgotten no time is left behind.
    fn step(&self, at: Tick, cost: u64) -> (Decision, Self) {
        match self {
            Self::Word(machine, phase, word) => {
                let step = machine.step(*word, at, cost, *phase);
                (step.decision, Self::Word(machine.clone(), *phase, step.word))
            }
            Self::Log(rule, log) => {
                let mut next = log.clone();
                let decision = next.step(*rule, at, cost);
                let is_spent = cost > 0 && decision.is_allowed();
                let next = match next.entries() {
                    // Also when it was is forgotten.
                    0 => Log::default(),
                    count if is_spent || count < log.entries() => next,
                    _ => log.clone(),
                };
                (decision, Self::Log(*rule, next))
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn buckets_agree((limit, deeds) in histories(super::buckets())) {
        compare(&limit, &deeds);
    }

    #[test]
    fn windows_agree((limit, deeds) in histories(super::windows())) {
        compare(&limit, &deeds);
    }

    #[test]
    fn logs_agree((limit, deeds) in histories(super::logs())) {
        compare(&limit, &deeds);
    }
}
