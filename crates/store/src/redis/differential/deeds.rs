//! What is asked, and what happens meanwhile: histories by chance.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::Limit;
use tollgate_core::lease::{Carried, Exchange, Grant, LeaseId, Node, Undo};

use super::memory::{Fate, Known};
use super::world::{Question, What, World};

/// One call of a script.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    /// Microseconds since the one before.
    pause: u64,
    /// What happens before.
    fate: Option<Fate>,
    /// By how much the asker's clock is wrong, in microseconds.
    skew: i64,
    /// Whether only such questions are asked as can be answered quickly, and whether they are the same.
    is_plain: bool,
    is_same: bool,
    /// Which of the ways to ask it is, of those that can be.
    way: u8,
    /// How many answers ago whoever asks was answered last, if ever.
    answered: Option<usize>,
    wishes: Vec<Wish>,
}

/// What one question is about.
#[derive(Clone, Debug)]
struct Wish {
    key: usize,
    node: u64,
    sums: [u64; 2],
    cost: u64,
    want: u64,
    least: u64,
    /// Which lease it is about: its own, none, or somebody else's.
    about: u8,
    /// A new exchange, the last again, an old one, or one that is asked once, of which some are at the
    /// very edge: what is left, one more, or what was denied at the moment at which it is allowed;
    /// some take back what passed before, and some let the key be forgotten.
    kind: u8,
    /// What the key brings along from another limit, and how long ago that changed.
    carried: Option<Carried>,
}

/// Histories of up to so many keys. A single one has one question in each call, and nothing happens to it
/// meanwhile.
pub(super) fn deeds(usual: u64, longest: u64, keys: usize) -> impl Strategy<Value = Vec<Deed>> {
    let most = if keys > 1 { 6 } else { 1 };
    let wishes = prop::collection::vec(wish(usual, longest, keys), 1..=most);
    let fate = prop::option::weighted(0.2, fate(longest, keys));
    let ways = (any::<bool>(), any::<bool>(), any::<u8>());
    let answered = prop::option::weighted(0.8, prop_oneof![2 => Just(0), 1 => 0..12usize]);
    let one = (0..longest, 0..20u32, -5_000..5_000i64, ways, fate, answered, wishes);
    let one = one.prop_map(move |(pause, shift, skew, ways, fate, answered, wishes)| {
        let (is_plain, is_same, way) = ways;
        let (is_plain, fate) = (is_plain && keys > 1, fate.filter(|_| keys > 1));
        Deed { pause: pause >> shift, fate, skew, is_plain, is_same, way, answered, wishes }
    });
    prop::collection::vec(one, 1..if keys > 1 { 40 } else { 80 })
}

fn wish(usual: u64, longest: u64, keys: usize) -> impl Strategy<Value = Wish> {
    let sums = (numbers(usual), numbers(usual), numbers(usual), numbers(usual));
    let rest = (prop_oneof![3 => Just(0), 1 => numbers(usual)], 0..8u8, 0..17u8);
    let carried = (numbers(usual * 2), 0..longest * 3, 0..20u32, any::<bool>());
    let carried = carried.prop_map(|(spent, ago, shift, of_known)| {
        let ago = Duration::from_micros(ago >> shift);
        Carried { spent, ago, of_known }
    });
    let carried = prop::option::weighted(0.3, carried);
    let one = (0..keys, 0..5u64, sums, rest, carried);
    one.prop_map(|(key, node, sums, (least, about, kind), carried)| Wish {
        key,
        node,
        sums: [sums.0, sums.1],
        cost: sums.2,
        want: sums.3,
        least,
        about,
        kind,
        carried,
    })
}

fn fate(longest: u64, keys: usize) -> impl Strategy<Value = Fate> {
    let ago = (0..longest, 0..20u32).prop_map(|(ago, shift)| Known::Ago(ago >> shift));
    let ahead = (0..longest).prop_map(Known::Ahead);
    let elsewhere = (0..longest).prop_map(Known::Elsewhere);
    let known = prop_oneof![
        2 => Just(Known::Now),
        2 => ago,
        1 => elsewhere,
        1 => ahead,
        1 => Just(Known::Nothing),
    ];
    let heard = prop::option::weighted(0.2, known.clone());
    let gone = (any::<bool>(), known);
    let taken = (0..keys, any::<u8>());
    prop_oneof![
        3 => heard.prop_map(Fate::Kept),
        2 => Just(Fate::Deaf),
        2 => Just(Fate::Stale),
        1 => Just(Fate::Back),
        2 => gone.prop_map(|(is_emptied, known)| Fate::Gone { is_emptied, known }),
        1 => Just(Fate::Unmarked),
        2 => taken.prop_map(|(key, kind)| Fate::Taken { key, kind }),
        2 => Just(Fate::Freed),
    ]
}

/// Numbers that make sense mostly.
fn numbers(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..usual.max(2), 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

/// A history in the measure of a limit.
pub(super) fn history(
    limits: impl Strategy<Value = Limit>,
    keys: usize,
) -> impl Strategy<Value = (Limit, Vec<Deed>)> {
    limits.prop_flat_map(move |limit| {
        let period = limit.quota().rate().unwrap().period().as_duration().as_micros() as u64;
        let usual = limit.capacity().unwrap() * 6 / 10;
        let deeds = prop_oneof![deeds(usual, period, keys), deeds(usual / 10, period, keys)];
        (Just(limit), deeds)
    })
}

/// What somebody knows of a key who asks about it.
#[derive(Clone, Debug, Default)]
struct Seen {
    leases: [Option<LeaseId>; 5],
    last: [Option<Exchange>; 5],
    left: u64,
    denied: Option<(u64, Duration)>,
    passed: Option<Undo>,
}

/// Whoever asks.
pub(super) struct Player {
    world: World,
    seen: Vec<Seen>,
    sequence: u64,
}

impl Player {
    pub(super) fn new(world: World) -> Self {
        let seen = vec![Seen::default(); world.keys.len()];
        Self { world, seen, sequence: 0 }
    }

    pub(super) fn play(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            self.world.now += deed.pause;
            if let Some(fate) = deed.fate {
                // No two memories begin at the same time.
                self.world.now += 1;
                self.world.suffer(fate);
            }
            self.world.answered = deed.answered;
            let questions = self.questions(deed);
            let word = self.word(&questions, deed.way);
            let grants = self.world.ask(&questions, word, deed.skew);
            for ((wish, question), grant) in deed.wishes.iter().zip(&questions).zip(grants) {
                if let What::Exchange(exchange, _) = question.what {
                    self.learn(wish, exchange, grant);
                }
            }
            self.look(deed.way);
        }
    }

    /// What is left of all keys is compared as well.
    fn look(&mut self, way: u8) {
        let look = |key| Question { key, what: What::Exchange(Exchange::once(0), None) };
        let questions: Vec<_> = (0..self.world.keys.len()).map(look).collect();
        let word = self.word(&questions, way / 4);
        let grants = self.world.ask(&questions, word, 0);
        for (seen, grant) in self.seen.iter_mut().zip(grants) {
            seen.left = grant.map_or(0, |grant| grant.decision.remaining());
        }
    }

    fn questions(&mut self, deed: &Deed) -> Vec<Question> {
        let mut questions: Vec<Question> = Vec::new();
        for (index, wish) in deed.wishes.iter().enumerate() {
            let is_again = questions.iter().any(|one| one.key == wish.key);
            let what = match questions.first() {
                Some(first) if deed.is_plain && deed.is_same => first.what,
                _ => self.what(wish, deed.is_plain, index == 0),
            };
            // What a key brings along, or whether it is forgotten, depends on whether it is known. Of
            // one that was asked about in the same call nobody can tell from outside.
            let what = match what {
                What::Exchange(exchange, _) if is_again => What::Exchange(exchange, None),
                What::Forget if is_again => What::Exchange(Exchange::once(1), None),
                what => what,
            };
            questions.push(Question { key: wish.key, what });
        }
        questions
    }

    fn what(&mut self, wish: &Wish, is_plain: bool, is_first: bool) -> What {
        self.sequence += 1;
        let (seen, who) = (&mut self.seen[wish.key], wish.node as usize);
        let new = Exchange {
            node: Node { number: wish.node, incarnation: u64::MAX },
            sequence: self.sequence,
            lease: match wish.about {
                0 => None,
                1 => seen.leases[(who + 1) % 5],
                _ => seen.leases[who],
            },
            used: wish.sums[0],
            returned: wish.sums[1],
            cost: wish.cost,
            want: wish.want,
            least: wish.least,
            undo: None,
        };
        let kind = if is_plain { 2 + wish.kind % 6 } else { wish.kind };
        let exchange = match (kind, seen.last[who]) {
            (0, Some(last)) => last,
            (1, Some(last)) => Exchange { sequence: last.sequence / 2 + 1, ..new },
            (2..5, _) => Exchange::once(wish.cost),
            (5, _) => Exchange::once(seen.left),
            (6, _) => Exchange::once(seen.left.saturating_add(1)),
            (7, _) => {
                let (cost, wait) = seen.denied.take().unwrap_or_default();
                // Rounded up, as the clock is in microseconds. Whoever is not first has to do with it.
                if is_first {
                    self.world.now += wait.as_nanos().div_ceil(1_000) as u64;
                }
                Exchange::once(cost)
            }
            // The last that passed, or some part of it, or anything.
            (8..10, _) => Exchange { undo: seen.passed, ..Exchange::once(0) },
            (10, _) => {
                let at = seen.passed.map_or_else(super::wall, |undo| undo.at);
                Exchange::undo(wish.cost, at)
            }
            (16, _) => return What::Forget,
            _ => new,
        };
        What::Exchange(exchange, wish.carried.filter(|_| !is_plain))
    }

    /// A question that all have in common is read in another way than one for each.
    fn word(&self, questions: &[Question], way: u8) -> &'static str {
        let plain = |question: &Question| self.world.plain_cost(question);
        let Some(costs) = questions.iter().map(plain).collect::<Option<Vec<_>>>() else {
            return "each";
        };
        let is_for_all = questions.len() == 1 || self.world.is_same_for_all();
        let is_same = is_for_all && costs.iter().all(|cost| *cost == costs[0]);
        let mut keys: Vec<_> = questions.iter().map(|question| question.key).collect();
        keys.sort_unstable();
        let are_different = keys.windows(2).all(|pair| pair[0] != pair[1]);
        match way % 4 {
            0 if is_same && are_different => "all",
            0 | 1 if is_same => "same",
            0..=2 => "every",
            _ => "each",
        }
    }

    fn learn(&mut self, wish: &Wish, exchange: Exchange, grant: Option<Grant>) {
        let (seen, who) = (&mut self.seen[wish.key], wish.node as usize);
        let Some(grant) = grant else { return };
        if let Some(wait) = grant.decision.retry_after() {
            seen.denied = Some((exchange.cost, wait));
        }
        if exchange.cost > 0 && grant.decision.is_allowed() && wish.about < 6 {
            seen.passed = Some(Undo { cost: exchange.cost, at: grant.at });
        }
        if exchange.sequence > 0
            && seen.last[who].is_none_or(|last| last.sequence < exchange.sequence)
        {
            (seen.leases[who], seen.last[who]) = (Some(grant.lease), Some(exchange));
        }
    }
}
