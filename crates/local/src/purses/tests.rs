use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64 as Total, Ordering as Order};
use std::time::Duration;

use tollgate_core::lease::{Account, Exchange, Lender, Node, Spend};
use tollgate_core::{Anchor, Decision, Limit, Phase};

use super::*;
use crate::key::{Key, Seed};
use crate::purses::pocket::Pocket;

const NODE: Node = Node { number: 1, incarnation: 1 };

fn key(name: &str) -> KeyHash {
    name.hash(&Seed::new(7))
}

fn at(millis: u64) -> Tick {
    Tick::ZERO.after(Duration::from_millis(millis))
}

/// A store for one key.
struct Bank {
    lender: Lender,
    account: Account,
}

impl Bank {
    fn new(limit: &Limit) -> Self {
        let lender = Lender::new(limit, Anchor::default(), Duration::ZERO).unwrap();
        let account = lender.open(Tick::ZERO, Phase::default());
        Self { lender, account }
    }

    fn borrower(&self) -> Borrower {
        Borrower::new(NODE, self.lender.terms().unwrap())
    }

    /// What is due is exchanged.
    fn exchange(&mut self, borrower: &mut Borrower, now: Tick) -> bool {
        let Some(exchange) = borrower.exchange(now) else { return false };
        let grant = self.lender.exchange(&mut self.account, now, &exchange).unwrap();
        borrower.answer(now, &grant)
    }
}

/// A purse of a key that was lent `tokens`, out of a thousand per second.
fn purse_with(tokens: u64) -> (Purses<()>, Bank) {
    purse_of("1k/s", tokens)
}

/// The same of another limit.
fn purse_of(limit: &str, tokens: u64) -> (Purses<()>, Bank) {
    let mut bank = Bank::new(&Limit::token_bucket(limit).unwrap());
    let purses = Purses::new(16);
    let mut lent = purses.open(key("a"), at(0), || (bank.borrower(), ())).unwrap();
    assert_eq!(lent.borrower().spend(at(0), tokens), Spend::Ask);
    assert!(bank.exchange(lent.borrower(), at(0)));
    drop(lent);
    (purses, bank)
}

#[test]
fn what_is_lent_is_spent_without_the_borrower_and_booked_when_it_is_asked() {
    let (purses, mut bank) = purse_with(10);
    let taken = |millis| match purses.take(key("a"), at(millis), 1) {
        Taken::Spent { decision, .. } => Some(decision.remaining()),
        _ => None,
    };
    assert_eq!((taken(1), taken(2), taken(3)), (Some(999), Some(998), Some(997)));
    let mut lent = purses.known(key("a"), at(4)).unwrap();
    assert_eq!(lent.borrower().tokens(at(4)), 7);
    assert!(bank.exchange(lent.borrower(), at(400)), "it is idle");
    drop(lent);
    assert_eq!(bank.lender.left(&mut bank.account, at(400)), 997, "seven came back");
}

#[test]
fn a_sum_is_taken_for_all_requests_or_for_none() {
    let (purses, _) = purse_with(10);
    let take = |sum| purses.take_sum(key("a"), at(1), sum, 3);
    assert!(!matches!(take(11), Taken::Spent { .. }), "there are ten");
    let Taken::Spent { decision, place, filling, .. } = take(8) else { panic!("it was all there") };
    assert_eq!(decision.remaining(), 992);
    assert!(!matches!(take(3), Taken::Spent { .. }));
    purses.put_back(place, filling, 4);
    assert_eq!(purses.known(key("a"), at(2)).unwrap().borrower().tokens(at(2)), 6);
    assert_eq!(purses.counts().0, 2, "one of three was in vain");
}

/// A lease ends with its window, and what the store said when it had nothing left is good for longer.
#[test]
fn a_purse_would_say_what_it_says_also_after_the_lease_has_ended() {
    let mut bank = Bank::new(&Limit::sliding_window("100/s").unwrap());
    let purses = Purses::<()>::new(16);
    let all = Exchange::once(100);
    assert!(bank.lender.exchange(&mut bank.account, at(970), &all).unwrap().decision.is_allowed());
    let mut lent = purses.open(key("a"), at(970), || (bank.borrower(), ())).unwrap();
    assert_eq!(lent.borrower().spend(at(970), 1), Spend::Ask);
    assert!(bank.exchange(lent.borrower(), at(970)));
    assert!(lent.borrower().short_until() > at(1_010));
    drop(lent);
    let both = |millis| {
        let now = at(millis);
        (purses.look(key("a"), now, 1), purses.take(key("a"), now, 1))
    };
    assert!(matches!(both(980), (Taken::Short(_), Taken::Short(_))));
    let said = both(1_010);
    assert!(matches!(said, (Taken::Locked(_), Taken::Locked(_))), "{said:?}");
}

#[test]
fn nothing_is_spent_after_the_lease_has_ended() {
    let (purses, _) = purse_with(10);
    let until = purses.known(key("a"), at(1)).unwrap().borrower().until();
    assert!(matches!(purses.take(key("a"), until, 1), Taken::Locked(_)));
    let before = Tick::from_nanos(until.as_nanos() - 1);
    assert!(matches!(purses.take(key("a"), before, 1), Taken::Spent { .. }));
}

#[test]
fn who_finds_too_little_asks_the_borrower_and_is_denied_if_the_store_had_none() {
    let (purses, mut bank) = purse_with(10);
    assert!(matches!(purses.take(key("a"), at(1), 11), Taken::Locked(_)));
    let mut lent = purses.known(key("a"), at(1)).unwrap();
    assert_eq!(lent.borrower().spend(at(1), 11), Spend::Ask);
    bank.lender.exchange(&mut bank.account, at(1), &Exchange::once(990));
    assert!(bank.exchange(lent.borrower(), at(1)), "all the rest is spent");
    drop(lent);
    let Taken::Short(denial) = purses.take(key("a"), at(2), 11) else { panic!("it passed") };
    assert!(denial.retry_after().is_some_and(|wait| wait <= Duration::from_millis(130)));
    assert!(matches!(purses.take(key("a"), at(2), 1), Taken::Spent { .. }), "ten are here");
}

/// A purse that holds as much as is asked for lately, and when that is: after a few exchanges.
fn busy_purse() -> (Purses<()>, Tick) {
    let mut bank = Bank::new(&Limit::token_bucket("100k/s").unwrap());
    let purses = Purses::new(16);
    let mut now = at(0);
    for _ in 0..20 {
        let mut lent = purses.open(key("a"), now, || (bank.borrower(), ())).unwrap();
        lent.borrower().spend(now, 10);
        bank.exchange(lent.borrower(), now);
        drop(lent);
        now = now.after(Duration::from_millis(1));
    }
    (purses, now)
}

/// Whether a request says that the purse is low, if there is enough for it.
fn says_that_it_is_low(purses: &Purses<()>, now: Tick) -> Option<bool> {
    match purses.take(key("a"), now, 1) {
        Taken::Spent { is_low, .. } => Some(is_low),
        _ => None,
    }
}

#[test]
fn a_purse_that_runs_low_says_so_once() {
    let (purses, now) = busy_purse();
    let calls = (0..10_000).filter(|_| says_that_it_is_low(&purses, now) == Some(true));
    assert_eq!(calls.count(), 1);
}

#[test]
fn who_looks_after_a_purse_is_not_told_that_it_is_low_while_he_has_put_that_off() {
    let (purses, now) = busy_purse();
    while says_that_it_is_low(&purses, now) == Some(false) {}
    let look = |tends: bool| {
        let mut lent = purses.known(key("a"), now).unwrap();
        assert!(lent.borrower().is_getting_more());
        if tends { lent.tended() } else { drop(lent) }
    };
    look(true);
    assert_eq!(says_that_it_is_low(&purses, now), Some(false), "he has seen that");
    look(false);
    assert_eq!(says_that_it_is_low(&purses, now), Some(true), "somebody else has");
}

#[test]
fn what_is_put_back_can_be_taken_again_unless_the_purse_was_filled_since() {
    let (purses, _) = purse_with(3);
    let take = || match purses.take(key("a"), at(1), 3) {
        Taken::Spent { place, filling, .. } => Some((place, filling)),
        _ => None,
    };
    let (place, filling) = take().unwrap();
    assert_eq!(take(), None);
    purses.put_back(place, filling, 3);
    let (place, filling) = take().unwrap();
    drop(purses.lock(place, at(1)));
    purses.put_back(place, filling, 3);
    assert_eq!(take(), None, "the borrower has booked them");
}

/// Of the number of a filling a word has the last eight bits.
#[test]
fn what_is_put_back_so_late_that_the_end_of_the_number_comes_again_is_lost() {
    let (purses, _) = purse_with(6);
    let take = || match purses.take(key("a"), at(1), 3) {
        Taken::Spent { place, filling, .. } => Some((place, filling)),
        _ => None,
    };
    let (place, first) = take().unwrap();
    for _ in 0..256 {
        drop(purses.lock(place, at(1)));
    }
    purses.put_back(place, first, 3);
    let (_, later) = take().expect("three were left");
    assert_eq!(later, first + 256);
    assert_eq!(take(), None, "those of the first filling are booked");
    purses.put_back(place, later, 3);
    assert!(take().is_some(), "those of this one are not");
}

/// A handful is counted as so many requests of one cost, and may be spent by more that cost less.
#[test]
fn what_was_spent_is_booked_however_many_requests_it_was_in_vain_for() {
    let (purses, _) = purse_with(20);
    let take = || match purses.take_sum(key("a"), at(1), 10, 1) {
        Taken::Spent { place, filling, .. } => (place, filling),
        other => panic!("{other:?}"),
    };
    let (place, filling) = take();
    purses.put_back(place, filling, 1);
    assert_eq!(purses.known(key("a"), at(2)).unwrap().borrower().tokens(at(2)), 11);
    assert_eq!(purses.counts().0, 0, "nobody is known to have passed");
}

#[test]
fn there_are_so_many_places_and_a_freed_one_says_nothing_of_its_last_owner() {
    let purses = Purses::new(1);
    let borrower = || {
        let lender = Lender::of_permits(NonZeroU32::MIN, Duration::ZERO);
        (Borrower::new(NODE, lender.terms().unwrap()), ())
    };
    let names: Vec<String> = (0..9).map(|number| number.to_string()).collect();
    let open = |name: &String| purses.open(key(name), at(0), borrower).map(|lent| lent.place());
    let places: Vec<_> = names.iter().map(open).collect();
    assert_eq!(places.iter().flatten().count(), 8, "a set has as many");
    assert_eq!(purses.places().count(), 8);
    purses.lock(places[0].unwrap(), at(0)).unwrap().close();
    assert!(matches!(purses.take(key("0"), at(0), 1), Taken::Unknown));
    assert_eq!(open(&names[8]), places[0]);
    assert!(matches!(purses.take(key("8"), at(0), 1), Taken::Locked(_)));
}

/// Four threads take all that was lent, while the borrower is asked again and again: what they have
/// taken, and what is left.
fn taken_by_threads(tokens: u64) -> (u64, u64) {
    let (purses, _) = purse_of("1M/s burst 200k", tokens);
    let (spent, now) = (Total::new(0), at(0));
    std::thread::scope(|scope| {
        for cost in 1..=4 {
            let (purses, spent) = (&purses, &spent);
            scope.spawn(move || {
                while matches!(purses.take(key("a"), now, cost), Taken::Spent { .. }) {
                    spent.fetch_add(cost, Order::Relaxed);
                }
            });
        }
        for _ in 0..ASKED {
            drop(purses.known(key("a"), now));
            std::thread::yield_now();
        }
    });
    let left = purses.known(key("a"), now).unwrap().borrower().tokens(now);
    (spent.into_inner(), left)
}

const ASKED: u64 = 100;

#[test]
fn threads_spend_together_what_was_lent() {
    let (spent, left) = taken_by_threads(8_000);
    assert_eq!(spent + left, 8_000, "nobody has a pocket");
}

#[test]
fn threads_with_pockets_spend_no_more_than_was_lent_and_lose_little() {
    let lent = 100_000;
    let (spent, left) = taken_by_threads(lent);
    let handful = lent / 4096;
    assert!(spent + left <= lent && spent + left >= lent - 4 * ASKED * handful, "{spent}, {left}");
}

#[test]
fn what_comes_in_later_is_found_when_it_is_there_and_not_looked_for_before() {
    let (purses, mut bank) = purse_with(10);
    bank.lender.exchange(&mut bank.account, at(0), &Exchange::once(990));
    for _ in 0..10 {
        assert!(matches!(purses.take(key("a"), at(0), 1), Taken::Spent { .. }));
    }
    let mut lent = purses.known(key("a"), at(0)).unwrap();
    assert_eq!(lent.borrower().spend(at(0), 1), Spend::Ask);
    assert!(bank.exchange(lent.borrower(), at(0)), "it is lent what comes in next");
    drop(lent);
    let Taken::Short(denial) = purses.take(key("a"), at(1), 1) else { panic!("none is there") };
    let soon = at(1).after(denial.retry_after().unwrap());
    assert!(soon < at(2), "{denial:?}");
    assert!(matches!(purses.take(key("a"), soon, 1), Taken::Locked(_)));
    assert_eq!(purses.known(key("a"), soon).unwrap().borrower().tokens(soon), 1);
    assert!(matches!(purses.take(key("a"), soon, 1), Taken::Spent { .. }));
}

/// What is said to a thread that takes while others do.
fn take_handful(purses: &Purses<()>, now: Tick, cost: u64) -> Taken {
    let place = purses.place_of(key("a")).unwrap();
    let owner = purses.owner(place);
    let whose = Whose { purses: purses.id, place, key: key("a").0, owner };
    let before = Pocket::of(purses.id, place);
    let mut said = Decision::unlimited();
    let purse = &purses.purses[place.0 as usize];
    purse.take_handful(whose, now, cost, before, &mut said).saying(said)
}

/// What lies in the purse, which nobody else uses.
fn lies_in(purses: &Purses<()>, now: Tick) -> u64 {
    match purses.look(key("a"), now, 1) {
        Taken::Spent { decision, .. } => decision.remaining() - 50_000,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handful_is_spent_without_touching_the_purse_and_the_next_is_larger() {
    let (purses, _) = purse_of("100k/s", 50_000);
    let mut takes = Vec::new();
    assert!(matches!(take_handful(&purses, at(1), 1), Taken::Spent { .. }));
    for _ in 0..30 {
        takes.push(lies_in(&purses, at(1)));
        let Taken::Spent { decision, .. } = purses.take(key("a"), at(1), 1) else { panic!() };
        assert_eq!(decision.remaining() % 50_000, 50_000 - 1 - takes.len() as u64);
    }
    takes.dedup();
    // As much as it may be of what is left.
    assert_eq!(takes, [50_000 - 8, 50_000 - 8 - 12, 50_000 - 8 - 2 * 12]);
}

#[test]
fn what_is_in_a_pocket_is_worth_nothing_when_the_borrower_was_asked() {
    let (purses, _) = purse_of("100k/s", 50_000);
    assert!(matches!(take_handful(&purses, at(1), 1), Taken::Spent { .. }));
    // As often as the same filling comes again, as well.
    for times in [1, 255] {
        for _ in 0..times {
            let tokens = purses.known(key("a"), at(1)).unwrap().borrower().tokens(at(1));
            assert!(tokens <= 50_000 - 8, "it counts as spent");
        }
        let before = lies_in(&purses, at(1));
        assert!(matches!(purses.take(key("a"), at(1), 1), Taken::Spent { .. }));
        assert_eq!(lies_in(&purses, at(1)), before - 1);
    }
}

#[test]
fn what_is_in_a_pocket_ends_with_the_lease() {
    let (purses, _) = purse_of("100k/s", 50_000);
    let until = purses.known(key("a"), at(1)).unwrap().borrower().until();
    assert!(matches!(take_handful(&purses, at(1), 1), Taken::Spent { .. }));
    assert!(matches!(purses.take(key("a"), until, 1), Taken::Locked(_)));
}

#[test]
fn little_is_taken_one_by_one() {
    let (purses, _) = purse_of("1k/s", 500);
    for _ in 0..3 {
        assert!(matches!(take_handful(&purses, at(1), 1), Taken::Spent { .. }));
    }
    let left = purses.known(key("a"), at(1)).unwrap().borrower().tokens(at(1));
    assert_eq!(left, 497);
}

#[test]
fn room_is_made_by_who_was_silent_for_longest_and_waits_for_nothing() {
    let lender =
        Lender::new(&Limit::token_bucket("100/min").unwrap(), Anchor::default(), Duration::ZERO);
    let lender = lender.unwrap();
    let purses = Purses::new(1);
    // All of one set: each was lent something, a second after the one before.
    let mut accounts: Vec<_> = (0..8).map(|_| lender.open(Tick::ZERO, Phase::default())).collect();
    for (number, account) in accounts.iter_mut().enumerate() {
        let (name, now) = (format!("{number}"), at(number as u64 * 1_000));
        let new = || (Borrower::new(NODE, lender.terms().unwrap()), number);
        let mut lent = purses.open(key(&name), now, new).unwrap();
        assert_eq!(lent.borrower().spend(now, 4), Spend::Ask);
        let more = lent.borrower().exchange(now).unwrap();
        // The third is never answered.
        if number != 2 {
            let grant = lender.exchange(account, now, &more).unwrap();
            assert!(lent.borrower().answer(now, &grant));
        }
    }
    let key_without_place = key("new");
    let gone = |now, least| {
        let mut gone = None;
        let is_made =
            purses.make_room(key_without_place, now, least, |it| gone = Some(*it.beside()));
        assert_eq!(is_made, gone.is_some(), "no place was free before");
        gone
    };
    let second = Duration::from_secs(1);
    assert_eq!(gone(at(8_000), second * 9), None, "nobody was silent for so long");
    assert!(matches!(purses.take(key("0"), at(8_000), 1), Taken::Spent { .. }));
    assert_eq!(gone(at(8_500), second), Some(1), "nobody has told the first borrower of it yet");
    assert!(purses.make_room(key_without_place, at(8_500), second, |_| panic!("there is room")));
    assert!(purses.make_room(key("0"), at(8_500), second, |_| panic!("it has a place")));
    let new = || (Borrower::new(NODE, lender.terms().unwrap()), 8);
    let come = |key| {
        let mut lent = purses.open(key, at(9_500), new).unwrap();
        assert_eq!(lent.borrower().spend(at(9_500), 1), Spend::Ask);
        assert!(lent.borrower().ask(at(9_500), 1).is_some(), "it waits from now on");
    };
    come(key_without_place);
    for idlest in [3, 4, 5, 6, 7] {
        let other = key(&format!("other {idlest}"));
        let mut gone = None;
        assert!(purses.make_room(other, at(9_500), second, |it| gone = Some(*it.beside())));
        assert_eq!(gone, Some(idlest), "who waits for an answer stays");
        come(other);
    }
}
