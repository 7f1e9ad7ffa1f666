//! Laws of a key whose limit has changed: it has spent what it brings along, and is from then on like
//! any other that has.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::lease::{Account, Carried, Exchange, Lender, Node};
use tollgate_core::{Anchor, Limit, Phase, Tick};

const PHASE: Phase = Phase(77);

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::token_bucket("100/s").unwrap()),
        Just(Limit::token_bucket("97/13s burst 1000").unwrap()),
        Just(Limit::token_bucket("2/min").unwrap()),
        Just(Limit::leaky_police("10/s burst 20").unwrap()),
        Just(Limit::leaky_shape("100/s", 20).unwrap()),
        Just(Limit::fixed_window("100/s").unwrap()),
        Just(Limit::fixed_window("50/700ms").unwrap().jittered().unwrap()),
        Just(Limit::calendar("60/day", "America/St_Johns").unwrap()),
        Just(Limit::sliding_window("100/s").unwrap()),
        Just(Limit::sliding_window("60M/s").unwrap()),
    ]
}

fn lender(limit: &Limit) -> Lender {
    Lender::new(limit, Anchor::default(), Duration::from_millis(2)).unwrap()
}

fn period(limit: &Limit) -> u64 {
    u64::try_from(limit.quota().rate().unwrap().period().as_duration().as_nanos()).unwrap()
}

/// Some time in the third year.
fn start(nanos: u64) -> Tick {
    Tick::ZERO.after(Duration::from_secs(800 * 86_400) + Duration::from_nanos(nanos))
}

fn carry(lender: &Lender, account: &mut Account, now: Tick, spent: u64, ago: Duration) {
    lender.carry(account, now, &Carried { spent, ago, of_known: false });
}

proptest! {
    #[test]
    fn whoever_brings_something_along_has_so_much_less(
        limit in limits(), at in 0..90_000_000_000_000u64, spent in any::<u64>(), few in 0..150u64,
    ) {
        let (lender, now) = (lender(&limit), start(at));
        let capacity = lender.left(&mut lender.open(now, PHASE), now);
        for spent in [few, spent % (capacity + 1), spent] {
            let mut account = lender.open(now, PHASE);
            carry(&lender, &mut account, now, spent, Duration::ZERO);
            prop_assert_eq!(lender.left(&mut account, now), capacity.saturating_sub(spent));
        }
    }

    /// So everything that holds for such a key holds for this one: above all the bound, of which it has
    /// used up a part when it begins.
    #[test]
    fn it_is_answered_like_a_key_that_spent_it_when_the_limit_changed(
        limit in limits(),
        at in 0..90_000_000_000_000u64,
        spent in any::<u64>(),
        ago in any::<u64>(),
        deeds in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), 0..3u64), 1..40),
    ) {
        let (lender, since) = (lender(&limit), start(at));
        let (period, capacity) = (period(&limit), limit.capacity().unwrap());
        let ago = Duration::from_nanos(ago % (period * 5 / 2));
        let spent = spent % (capacity * 3 / 2);
        let mut now = since.after(ago);
        let mut carried = lender.open(now, PHASE);
        carry(&lender, &mut carried, now, spent, ago);
        let mut other = lender.open(since, PHASE);
        let cost = spent.min(lender.left(&mut other, since));
        lender.exchange(&mut other, since, &Exchange::once(cost));
        for (sequence, (pause, cost, want, number)) in (1..).zip(deeds) {
            let node = Node { number, incarnation: 1 };
            let (cost, want) = (cost % capacity / 4, want % capacity / 4);
            let exchange = match number {
                0 => Exchange::once(cost),
                _ => Exchange { sequence, want, ..Exchange::strict(node, cost) },
            };
            let both = [&mut carried, &mut other].map(|account| {
                (lender.exchange(account, now, &exchange), lender.left(account, now))
            });
            prop_assert_eq!(both[0], both[1]);
            now = now.after(Duration::from_nanos(pause % (period / 4)));
        }
    }

    /// No later than one who had spent everything when it changed.
    #[test]
    fn it_has_everything_back_when_the_new_limit_says(
        limit in limits(), at in 0..90_000_000_000_000u64, ago in any::<u64>(),
    ) {
        let (lender, since) = (lender(&limit), start(at));
        let by = limit.machine(Anchor::default()).unwrap().rested_by(since);
        let now = since.after(Duration::from_nanos(ago % (2 * period(&limit))));
        let mut account = lender.open(now, PHASE);
        carry(&lender, &mut account, now, u64::MAX, now.since(since));
        prop_assert_eq!(lender.left(&mut account, by.max(now)), limit.capacity().unwrap());
    }

    #[test]
    fn it_never_has_more_for_what_it_brings(
        limit in limits(),
        at in 0..90_000_000_000_000u64,
        lost in any::<u64>(),
        spent in any::<u64>(),
        ago in any::<u64>(),
        cost in any::<u64>(),
    ) {
        let period = period(&limit);
        let now = start(at);
        let lost = Tick::from_nanos(now.as_nanos() - lost % (3 * period));
        for lender in [lender(&limit), lender(&limit).after_loss(1, lost)] {
            let mut account = lender.open(now, PHASE);
            let capacity = limit.capacity().unwrap();
            lender.exchange(&mut account, now, &Exchange::once(cost % capacity));
            let without = account.clone();
            let ago = Duration::from_nanos(ago % (2 * period));
            carry(&lender, &mut account, now, spent % (2 * capacity), ago);
            for part in 0..20 {
                let now = now.after(Duration::from_nanos(period / 8 * part));
                let left = lender.left(&mut account, now);
                prop_assert!(left <= lender.left(&mut without.clone(), now));
            }
        }
    }
}
