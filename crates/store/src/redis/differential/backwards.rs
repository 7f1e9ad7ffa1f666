//! Clocks that are set back: a server says the time that it has, which may be earlier than what it said before.
//!
//! As long as nothing of a key is lent, the time that it knows is that of its state, as with the machine of the
//! core. So both are asked the same at the same times, and say the same: no more passes than the machine lets
//! pass, and no less. A script may take a time for now that is later than what the clock says, and that it said
//! before: then so does the machine.

use proptest::prelude::*;
use tollgate_core::lease::Exchange;
use tollgate_core::{Limit, Phase, Word};

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
    let Kind::Lent(lender) = world.budget.kind() else { panic!("it is lent") };
    let machine = lender.machine().expect("it is no log").clone();
    let period = world.budget.period().as_micros() as u64;
    let phases = [0, 1, 2].map(|key| phase(&world, key));
    let mut words = [Word::REST; KEYS];
    let mut latest = world.now;
    for deed in deeds {
        world.now = match deed.is_back {
            // Not before what any window that has begun can be told from.
            true => world.now.saturating_sub(deed.pause).max(latest - period),
            false => world.now + deed.pause,
        };
        latest = latest.max(world.now);
        let keys: Vec<_> = (0..KEYS).filter(|key| deed.keys[*key]).collect();
        let Some(first) = keys.first() else { continue };
        let step = |key: usize, tick, cost| machine.step(words[key], tick, cost, phases[key]);
        let left = step(*first, world.tick(), 0).decision.remaining();
        let cost = deed.edge.map_or(deed.cost, |is_more| left + u64::from(is_more));
        let what = What::Exchange(Exchange::once(cost), None);
        let questions: Vec<_> = keys.iter().map(|key| Question { key: *key, what }).collect();
        let word = match deed.way % 4 {
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
            let right = machine.step(words[*key], world.tick_of(at).unwrap(), cost, phases[*key]);
            words[*key] = right.word;
            assert_eq!(grant.decision, right.decision, "{what}");
        }
    }
}

fn phase(world: &World, key: usize) -> Phase {
    Ask::new(world.budget.clone(), world.keys[key].key.as_str(), Exchange::once(0)).phase()
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
}
