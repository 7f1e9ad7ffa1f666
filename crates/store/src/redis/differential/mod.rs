//! The scripts against the core: the same questions at the same times get the same answers.
//!
//! The scripts are those that are in use, except that they read the time from a key.
//!
//! A history is a list of calls, each with one question or several, about the same key or others. Among
//! the keys are some that are unknown, at rest, kept as a text or lent, and some that somebody else has
//! written to. In between the memory is lost, or goes on in another process, as it was or as it had been.
//!
//! Reading order: [`world`], [`memory`], [`model`], [`deeds`]; for the mark of the memory [`lineage`], and for clocks
//! that are set back [`backwards`].

mod backwards;
mod deeds;
mod lineage;
mod memory;
mod model;
#[path = "../../../tests/support/process.rs"]
mod process;
mod server;
mod world;

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::lease::{Borrower, Exchange, Grant, Node, Spend};
use tollgate_core::{Limit, Tick, Wall};

use crate::budget::Budget;
use deeds::{Deed, Player, deeds, history};
use memory::{Fate, Known};
use world::{Question, What, World};

fn budget(limit: &Limit) -> Budget {
    Budget::new("rule", limit, Duration::from_millis(2), wall())
}

fn permits() -> Budget {
    let max = NonZeroU32::new(40).unwrap();
    Budget::of_permits("rule", max, Duration::from_millis(2), wall())
}

fn wall() -> Wall {
    Wall::from_unix_nanos(NOW * 1_000)
}

/// Some day in 2027, not on a round second.
const NOW: u64 = 1_800_000_000_123_457;

/// So many keys are asked about in one history, if it is about more than one.
const KEYS: usize = 5;

fn compare(budget: Budget, keys: usize, deeds: &[Deed], lost: Option<u64>) {
    Player::new(World::new(budget, keys, NOW, lost)).play(deeds);
}

/// Asks about the first key.
fn ask(world: &mut World, exchange: Exchange) -> Option<Grant> {
    let question = Question { key: 0, what: What::Exchange(exchange, None) };
    let word = if world.plain_cost(&question).is_some() { "all" } else { "each" };
    world.ask(&[question], word, 0)[0]
}

/// Also of odd rates, rounded ones, and the largest.
fn buckets() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::token_bucket("100/s").unwrap()),
        Just(Limit::token_bucket("3/s burst 50").unwrap()),
        Just(Limit::token_bucket("97/13s burst 1000").unwrap()),
        Just(Limit::token_bucket("1234567/s").unwrap()),
        Just(Limit::token_bucket("1M/ms burst 900000000000000").unwrap()),
        Just(Limit::token_bucket("7/min burst 50").unwrap()),
        Just(Limit::token_bucket("1/week").unwrap()),
        Just(Limit::leaky_police("10/s burst 20").unwrap()),
        Just(Limit::leaky_shape("100/s", 20).unwrap()),
        Just(Limit::leaky_shape("77/s", 500).unwrap()),
    ]
}

fn windows() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::fixed_window("100/s").unwrap()),
        Just(Limit::fixed_window("50/300ms").unwrap()),
        Just(Limit::fixed_window("50/700ms").unwrap().jittered().unwrap()),
        Just(Limit::fixed_window("1G/7s").unwrap().jittered().unwrap()),
        Just(Limit::calendar("60/day", "America/St_Johns").unwrap()),
        Just(Limit::calendar("60/month", "America/St_Johns").unwrap()),
        Just(Limit::sliding_window("100/s").unwrap()),
        Just(Limit::sliding_window("77/333ms").unwrap()),
        Just(Limit::sliding_window("123457/min").unwrap()),
        // So many that counts of the last window are rounded.
        Just(Limit::sliding_window("60M/s").unwrap()),
    ]
}

/// More than a minute long.
fn long_windows() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::fixed_window("100/2min").unwrap()),
        Just(Limit::fixed_window("50/5min").unwrap().jittered().unwrap()),
        Just(Limit::calendar("60/day", "America/St_Johns").unwrap()),
        Just(Limit::calendar("60/month", "America/St_Johns").unwrap()),
        Just(Limit::sliding_window("100/2min").unwrap()),
        Just(Limit::sliding_window("12345/h").unwrap()),
    ]
}

/// Short and long ones, and one that is seldom full.
fn logs() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::sliding_log("20/s").unwrap()),
        Just(Limit::sliding_log("7/333ms").unwrap()),
        Just(Limit::sliding_log("500/2min").unwrap()),
    ]
}

fn lost() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => (0..2_000_000u64).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn buckets_agree((limit, deeds) in history(buckets(), 1), lost in lost()) {
        compare(budget(&limit), 1, &deeds, lost);
    }

    #[test]
    fn windows_agree((limit, deeds) in history(windows(), 1), lost in lost()) {
        compare(budget(&limit), 1, &deeds, lost);
    }

    #[test]
    fn permits_agree(deeds in deeds(30, 1_500_000, 1), lost in lost()) {
        compare(permits(), 1, &deeds, lost);
    }

    #[test]
    fn logs_agree((limit, deeds) in history(logs(), 1), lost in lost()) {
        compare(budget(&limit), 1, &deeds, lost);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn many_buckets_agree_whatever_becomes_of_the_memory(
        (limit, deeds) in history(buckets(), KEYS), lost in lost(),
    ) {
        compare(budget(&limit), KEYS, &deeds, lost);
    }

    #[test]
    fn many_windows_agree_whatever_becomes_of_the_memory(
        (limit, deeds) in history(windows(), KEYS), lost in lost(),
    ) {
        compare(budget(&limit), KEYS, &deeds, lost);
    }

    #[test]
    fn many_long_windows_agree_whatever_becomes_of_the_memory(
        (limit, deeds) in history(long_windows(), KEYS), lost in lost(),
    ) {
        compare(budget(&limit), KEYS, &deeds, lost);
    }

    #[test]
    fn permits_of_many_keys_agree_whatever_becomes_of_the_memory(
        deeds in deeds(30, 1_500_000, KEYS), lost in lost(),
    ) {
        compare(permits(), KEYS, &deeds, lost);
    }

    #[test]
    fn many_logs_agree_whatever_becomes_of_the_memory(
        (limit, deeds) in history(logs(), KEYS), lost in lost(),
    ) {
        compare(budget(&limit), KEYS, &deeds, lost);
    }
}

/// The same in Valkey, with fewer histories.
mod in_valkey {
    use super::*;

    fn compare(budget: Budget, deeds: &[Deed], lost: Option<u64>) {
        server::ask_of(process::Kind::Valkey);
        super::compare(budget, KEYS, deeds, lost);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn buckets_agree((limit, deeds) in history(buckets(), KEYS), lost in lost()) {
            compare(budget(&limit), &deeds, lost);
        }

        #[test]
        fn windows_agree((limit, deeds) in history(windows(), KEYS), lost in lost()) {
            compare(budget(&limit), &deeds, lost);
        }

        #[test]
        fn long_windows_agree((limit, deeds) in history(long_windows(), KEYS), lost in lost()) {
            compare(budget(&limit), &deeds, lost);
        }

        #[test]
        fn permits_agree(deeds in deeds(30, 1_500_000, KEYS), lost in lost()) {
            compare(permits(), &deeds, lost);
        }

        #[test]
        fn logs_agree((limit, deeds) in history(logs(), KEYS), lost in lost()) {
            compare(budget(&limit), &deeds, lost);
        }
    }

    #[test]
    fn it_is_valkey_that_is_asked() {
        server::ask_of(process::Kind::Valkey);
        let says: String = server::said(redis::cmd("INFO").arg("server"));
        assert!(says.contains("valkey_version:"), "{says}");
    }
}

/// However long somebody spends half of what there is, again and again: a key lives on, whether its time to live is put
/// off with every write or now and then.
#[test]
fn keys_in_use_live_on() {
    let limits = [
        Limit::token_bucket("100/s").unwrap(),
        Limit::leaky_shape("100/s", 20).unwrap(),
        Limit::token_bucket("50/day").unwrap(),
        Limit::fixed_window("100/s").unwrap(),
        Limit::calendar("60/day", "America/St_Johns").unwrap(),
        Limit::calendar("60/month", "America/St_Johns").unwrap(),
        Limit::sliding_window("100/s").unwrap(),
        Limit::sliding_window("50/day").unwrap(),
        Limit::sliding_log("20/s").unwrap(),
    ];
    for limit in limits {
        let period = limit.quota().rate().unwrap().period().as_duration();
        live_on(World::new(budget(&limit), 1, NOW, None), period, |left, _| Exchange::once(left));
    }
    // Whoever has permits has them for a second and a half.
    let world = World::new(permits(), 1, NOW, None);
    live_on(world, Duration::from_secs(1), |left, number| {
        Exchange::strict(Node { number, incarnation: 1 }, left)
    });
}

fn live_on(mut world: World, period: Duration, spend: impl Fn(u64, u64) -> Exchange) {
    let (step, life) = ((period / 3).as_micros() as u64, world.longest_life().as_micros() as u64);
    for number in 0..3 * life / step {
        let left = ask(&mut world, Exchange::once(0)).unwrap().decision.remaining();
        if left > 0 {
            ask(&mut world, spend(left.div_ceil(2), number));
        }
        world.now += step;
    }
}

/// More entries than are looked at in one go, some of which are over at a time, and then all.
#[test]
fn long_logs_agree() {
    let limit = Limit::sliding_log("500/s").unwrap();
    let mut world = World::new(budget(&limit), 1, NOW, None);
    for number in 0..700u64 {
        world.now += 1_500 + number % 7;
        ask(&mut world, Exchange::once(1 + number % 2));
    }
    for pause in [350_000, 1, 900_000, 5_000_000] {
        world.now += pause;
        ask(&mut world, Exchange::once(400));
        ask(&mut world, Exchange::once(400));
    }
}

/// More is used of a lease in the long run than can be told in one sum.
#[test]
fn agrees_on_a_lease_that_goes_on_and_on() {
    const BURST: u64 = 1_000_000_000_000_000;
    let limit = Limit::token_bucket("1M/ms burst 1000000000000000").unwrap();
    let mut world = World::new(budget(&limit), 1, NOW, None);
    let node = Node { number: 1, incarnation: 1 };
    let mut borrower = Borrower::new(node, world.budget.terms().unwrap());
    let mut passed = 0;
    while passed < (1 << 50) + BURST / 50 {
        world.now += 14_000_000;
        let nanos = (world.now - NOW) * 1_000;
        let now = Tick::from_nanos(nanos);
        let cost = borrower.tokens(now).max(1);
        if let Spend::Taken(_) = borrower.spend(now, cost) {
            passed += cost;
        }
        assert!(passed <= BURST + nanos, "{passed} in {nanos} ns");
        borrower.spend(now, BURST / 50);
        if let Some(exchange) = borrower.exchange(now) {
            let grant = ask(&mut world, exchange).unwrap();
            assert!(borrower.answer(now, &grant));
        }
    }
}

/// More nodes than there are places: those who hold nothing make room, others do not.
#[test]
fn agrees_when_all_places_are_taken() {
    let limit = Limit::token_bucket("100k/s").unwrap();
    let mut world = World::new(budget(&limit), 1, NOW, None);
    for number in 0..600u64 {
        world.now += 1;
        let want = if number % 3 == 0 { 0 } else { 5 };
        let node = Node { number, incarnation: 1 };
        ask(&mut world, Exchange { want, ..Exchange::strict(node, 1) });
    }
    world.now += 10_000_000;
    ask(&mut world, Exchange::once(0));
}

/// What was taken for spent because everything was lost is not there again because somebody took over.
#[test]
fn a_long_window_that_was_lost_stays_lost_when_another_process_takes_over() {
    for limit in [Limit::fixed_window("50/day").unwrap(), Limit::sliding_window("50/day").unwrap()]
    {
        let mut world = World::new(budget(&limit), 1, NOW, None);
        let left = |world: &mut World| {
            world.now += 1_000_000;
            ask(world, Exchange::once(0)).unwrap().decision.remaining()
        };
        assert_eq!(left(&mut world), 50);
        world.suffer(Fate::Gone { is_emptied: false, known: Known::Now });
        assert_eq!(left(&mut world), 0);
        for _ in 0..2 {
            world.suffer(Fate::Kept(None));
            assert_eq!(left(&mut world), 0, "{limit}");
        }
        // One that was forgotten since has its whole budget, and keeps it.
        world.ask(&[Question { key: 0, what: What::Forget }], "each", 0);
        world.suffer(Fate::Kept(None));
        assert_eq!(left(&mut world), 50, "{limit}");
    }
}

/// Whoever was answered by another that had taken over does not believe what is of before, however short that was.
#[test]
fn a_process_that_comes_back_has_lost_everything() {
    let mut world = World::new(budget(&Limit::fixed_window("100/day").unwrap()), 1, NOW, None);
    world.answered = Some(0);
    let mut left = |fate: Option<Fate>| {
        world.now += 1_000;
        fate.into_iter().for_each(|fate| world.suffer(fate));
        ask(&mut world, Exchange::once(0)).unwrap().decision.remaining()
    };
    assert_eq!([left(None), left(Some(Fate::Deaf))], [100, 100]);
    assert_eq!([left(Some(Fate::Kept(None))), left(Some(Fate::Back))], [100, 0]);
}

/// A loss that was noted long ago says nothing of one that came after it.
#[test]
fn what_was_noted_before_a_snapshot_is_no_excuse_for_what_came_after_it() {
    let window = budget(&Limit::fixed_window("50/day").unwrap());
    let mut world = World::new(window, 1, NOW, None);
    world.answered = Some(0);
    let mut left = |fate: Option<Fate>| {
        world.now += 1_000;
        fate.into_iter().for_each(|fate| world.suffer(fate));
        ask(&mut world, Exchange::once(0)).unwrap().decision.remaining()
    };
    assert_eq!([left(None), left(Some(Fate::Deaf))], [50, 50]);
    let gone = Fate::Gone { is_emptied: false, known: Known::Nothing };
    // The replica is what is read again, and does not go with the rest.
    let replica = world.replica.take();
    world.suffer(gone);
    world.replica = replica;
    world.now += 1_000;
    assert_eq!(ask(&mut world, Exchange::once(20)).unwrap().decision.remaining(), 30);
    world.suffer(Fate::Stale);
    world.now += 1_000;
    assert_eq!(ask(&mut world, Exchange::once(0)).unwrap().decision.remaining(), 0);
}

/// Whoever asks has heard of the loss by a clock that is an hour ahead of the server's.
#[test]
fn what_is_said_to_be_lost_in_the_future_is_lost_now() {
    let mut world = World::new(budget(&Limit::token_bucket("100/s").unwrap()), 1, NOW, None);
    world.suffer(Fate::Gone { is_emptied: false, known: Known::Ahead(3_600_000_000) });
    assert_eq!(ask(&mut world, Exchange::once(0)).unwrap().decision.remaining(), 0);
    world.now += 10_000_000;
    assert_eq!(ask(&mut world, Exchange::once(0)).unwrap().decision.remaining(), 100);
}

/// How long leases of the former memory may last does not depend on how far away somebody is who asks first:
/// near, far, and so far that nothing is lent to them.
#[test]
fn agrees_on_what_was_lent_before_a_loss_however_far_away_one_is() {
    let limit = Limit::token_bucket("100/s").unwrap();
    for trip in [0, 2, 100, 300] {
        let budget = Budget::new("rule", &limit, Duration::from_millis(trip), wall());
        assert_eq!(budget.terms().is_some(), trip < 300);
        let mut world = World::new(budget, 1, NOW, Some(0));
        for (pause, left) in [(0, 0), (500_000, 0), (10_000, 1), (490_000, 50)] {
            world.now += pause;
            let grant = ask(&mut world, Exchange::once(0)).unwrap();
            assert_eq!(grant.decision.remaining(), left, "{trip} ms away, after {pause} us");
        }
    }
}

/// A call is about many keys. One that is somebody else's is none of the others' business.
#[test]
fn a_text_of_somebody_else_keeps_nobody_else_from_permits() {
    let mut world = World::new(permits(), 3, NOW, None);
    world.suffer(Fate::Taken { key: 1, kind: 0 });
    let node = Node { number: 1, incarnation: 1 };
    let what = What::Exchange(Exchange::strict(node, 1), None);
    let questions = [0, 1, 2].map(|key| Question { key, what });
    let grants = world.ask(&questions, "each", 0);
    assert_eq!([0, 1, 2].map(|key| grants[key].is_some()), [true, false, true]);
}

/// Only what was spent in the window in which the memory was lost can be taken back in it.
#[test]
fn agrees_on_what_is_taken_back_of_a_sliding_window_that_was_lost() {
    let limit = Limit::sliding_window("100/s").unwrap();
    let mut world = World::new(budget(&limit), 1, NOW, None);
    ask(&mut world, Exchange::once(60));
    world.now += 1_000_000;
    let at = ask(&mut world, Exchange::once(30)).unwrap().at;
    world.suffer(Fate::Kept(None));
    world.now += 1;
    ask(&mut world, Exchange::undo(30, at));
}
