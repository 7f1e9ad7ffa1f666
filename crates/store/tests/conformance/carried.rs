//! Keys whose limit has changed, and what they bring along.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_core::lease::{Carried, Exchange, Grant};
use tollgate_store::{Ask, Budget, Store as _};

use crate::bench::{Bench, node};
use crate::suite::slow;

pub(crate) async fn run(bench: &impl Bench) {
    only_a_key_that_is_not_known_begins_with_it(bench).await;
    a_limit_that_is_changed_back_goes_on_with_both(bench).await;
    to_look_leaves_nothing_behind(bench).await;
    what_came_back_since_is_not_missing(bench).await;
    it_is_lent_from_what_is_left(bench).await;
    permits_bring_nothing(bench).await;
}

const fn carried(spent: u64) -> Carried {
    Carried { spent, ago: Duration::ZERO, of_known: false }
}

async fn ask(
    bench: &impl Bench,
    budget: &Arc<Budget>,
    key: &str,
    exchange: Exchange,
    carried: Carried,
) -> Grant {
    let ask = Ask::new(Arc::clone(budget), key, exchange).carrying(carried);
    bench.store().exchange(&[ask]).await.remove(0).unwrap()
}

async fn only_a_key_that_is_not_known_begins_with_it(bench: &impl Bench) {
    for (name, limit) in slow() {
        let budget = bench.budget(name, limit);
        let once = async |key: &str, cost, spent| {
            ask(bench, &budget, key, Exchange::once(cost), carried(spent)).await.decision
        };
        let decision = once("brings 12", 3, 12).await;
        assert_eq!((decision.is_allowed(), decision.remaining()), (true, 5), "{name}");
        assert_eq!(once("brings 12", 1, 19).await.remaining(), 4, "{name}: it is known");
        assert_eq!(bench.left(&budget, "brings 12").await, 4, "{name}");
        // Also one who is denied has it from then on.
        assert!(!once("brings 18", 3, 18).await.is_allowed(), "{name}");
        assert_eq!(bench.allowed(&budget, "brings 18", 9).await, 2, "{name}");
        for most in [20, 21, u64::MAX] {
            let key = format!("brings {most}");
            let denied = once(&key, 1, most).await;
            assert_eq!((denied.is_allowed(), denied.remaining()), (false, 0), "{name}");
            assert_eq!(bench.left(&budget, &key).await, 0, "{name}");
        }
        assert_eq!(once("brings nothing", 1, 0).await.remaining(), 19, "{name}");
        let knew = once("knew", 4, 0).await;
        assert_eq!(knew.remaining(), 16, "{name}");
        assert_eq!(once("knew", 0, 19).await.remaining(), 16, "{name}");
    }
}

async fn a_limit_that_is_changed_back_goes_on_with_both(bench: &impl Bench) {
    for (name, limit) in slow().into_iter().filter(|(name, _)| *name != "log") {
        let budget = bench.budget(name, limit);
        bench.ask(&budget, "back", Exchange::once(5)).await.unwrap();
        let of_known = |spent| Carried { of_known: true, ..carried(spent) };
        let once = async |cost, spent| {
            let grant = ask(bench, &budget, "back", Exchange::once(cost), of_known(spent)).await;
            grant.decision.remaining()
        };
        assert_eq!(once(0, 9).await, 11, "{name}: nine would be spent");
        assert_eq!(bench.left(&budget, "back").await, 15, "{name}: somebody only looked");
        assert_eq!(once(1, 9).await, 10, "{name}");
        assert_eq!(once(1, 3).await, 9, "{name}: it has spent more");
        assert_eq!(bench.left(&budget, "back").await, 9, "{name}");
        // A repeat is answered as at first, and what is brought counts.
        let lent = Exchange { want: 2, ..Exchange::strict(node(1), 1) };
        let grant = ask(bench, &budget, "back", lent, of_known(0)).await;
        let again = ask(bench, &budget, "back", lent, of_known(18)).await;
        assert_eq!(again, grant, "{name}");
        assert_eq!(bench.left(&budget, "back").await, 2, "{name}");
    }
}

async fn to_look_leaves_nothing_behind(bench: &impl Bench) {
    for (name, limit) in slow() {
        let budget = bench.budget(name, limit);
        for spent in [7, 30] {
            let left = 20 - spent.min(20);
            let seen = ask(bench, &budget, "seen", Exchange::once(0), carried(spent)).await;
            assert_eq!(seen.decision.remaining(), left, "{name}");
            assert!(seen.decision.reset_after() > Duration::ZERO, "{name}");
        }
        assert_eq!(bench.left(&budget, "seen").await, 20, "{name}");
        assert_eq!(bench.store().forget(&budget, b"seen").await, Ok(false), "{name}");
    }
}

async fn what_came_back_since_is_not_missing(bench: &impl Bench) {
    // Five of twenty come back in six hours. Windows of a month may have begun since.
    let ago = Duration::from_secs(6 * 3_600);
    for (name, limit, left) in [
        ("bucket", Limit::token_bucket("20/day").unwrap(), 5..6),
        ("police", Limit::leaky_police("20/day burst 20").unwrap(), 5..6),
        ("log", Limit::sliding_log("20/day").unwrap(), 0..1),
        ("short log", Limit::sliding_log("20/h").unwrap(), 20..21),
        ("window", Limit::fixed_window("20/h").unwrap(), 20..21),
        ("sliding", Limit::sliding_window("20/h").unwrap(), 20..21),
        ("long window", Limit::fixed_window("20/month").unwrap(), 0..21),
    ] {
        let budget = bench.budget(name, limit);
        let carried = Carried { ago, ..carried(20) };
        let grant = ask(bench, &budget, "ago", Exchange::once(0), carried).await;
        assert!(left.contains(&grant.decision.remaining()), "{name}: {:?}", grant.decision);
        ask(bench, &budget, "ago", Exchange::once(21), carried).await;
        assert!(left.contains(&bench.left(&budget, "ago").await), "{name}");
    }
}

async fn it_is_lent_from_what_is_left(bench: &impl Bench) {
    for (name, limit) in [
        ("bucket", Limit::token_bucket("1k/day").unwrap()),
        ("window", Limit::fixed_window("1k/month").unwrap()),
        ("sliding", Limit::sliding_window("1k/month").unwrap()),
    ] {
        let budget = bench.budget(name, limit);
        let first = Exchange { want: 500, ..Exchange::strict(node(1), 10) };
        let grant = ask(bench, &budget, "lends", first, carried(790)).await;
        assert_eq!((grant.tokens, grant.decision.remaining()), (100, 100), "{name}");
        let again = ask(bench, &budget, "lends", first, carried(900)).await;
        assert_eq!(again, grant, "{name}");
        let (lease, returned) = (Some(grant.lease), 100);
        let back = Exchange { sequence: 2, lease, returned, cost: 0, want: 0, ..first };
        assert_eq!(bench.ask(&budget, "lends", back).await.unwrap().decision.remaining(), 200);
    }
}

async fn permits_bring_nothing(bench: &impl Bench) {
    let budget = bench.permits("slots", 10);
    let six = ask(bench, &budget, "brings", Exchange::strict(node(1), 6), carried(9)).await;
    assert_eq!((six.tokens, six.decision.remaining()), (6, 4));
}

/// What a key brings along never makes up for what was lost.
pub(crate) async fn after_a_loss(bench: &impl Bench, budget: &Arc<Budget>, name: &str) {
    for spent in [0, 7, 20] {
        let grant = ask(bench, budget, "lost", Exchange::once(0), carried(spent)).await;
        assert_eq!(grant.decision.remaining(), 0, "{name}");
    }
}
