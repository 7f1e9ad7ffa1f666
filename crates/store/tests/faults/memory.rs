//! A server that was started again, with its data or without.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Node};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::Budget;

use crate::process::Redis;
use crate::view::{View, now, pause, until_meanwhile};

#[tokio::test]
async fn a_server_that_starts_empty_grants_no_burst() {
    let mut redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let (bucket, window) =
        (view.bucket("20/day"), view.budget("w", &Limit::fixed_window("20/month").unwrap()));
    let node = Node { number: 1, incarnation: 1 };
    let lent = Exchange { want: 5, ..Exchange::strict(node, 1) };
    let grant = view.ask(&bucket, "k", lent).await.unwrap();
    assert_eq!(grant.tokens, 5);
    assert_eq!(view.left(&window, "k").await, Ok(20), "one that is new has its whole budget");
    redis.restart_empty();
    assert_eq!(view.left_at_last(&bucket, "k").await, 0);
    assert_eq!(view.left_at_last(&bucket, "never seen").await, 0);
    assert_eq!(view.left_at_last(&window, "k").await, 0);
    // The lease is of the former memory: it is not settled, and not renewed.
    let next =
        Exchange { sequence: 2, lease: Some(grant.lease), returned: 5, want: 0, cost: 0, ..lent };
    let answer = view.ask(&bucket, "k", next).await.unwrap();
    assert_ne!(answer.lease.epoch, grant.lease.epoch);
    assert_eq!((answer.tokens, answer.decision.remaining()), (0, 0));
    // Somebody who comes now learns of it.
    let newcomer = View::of(&redis.url());
    assert_eq!(newcomer.left(&bucket, "another").await, Ok(0));
    // An operator who knows better says so.
    let says = "local m = redis.call('GET', KEYS[1]) \
         return redis.call('SET', KEYS[1], (string.gsub(m, ' lost %d+ ', ' lost 0 ')), 'KEEPTTL')";
    assert_eq!(redis.cli(&["EVAL", says, "1", "tg:epoch"]), "OK");
    assert_eq!(view.left(&window, "new").await, Ok(20));
}

#[tokio::test]
async fn a_server_that_starts_with_old_data_empties_buckets_and_keeps_long_windows() {
    let mut redis = Redis::start(&["--dbfilename", "old.rdb"]);
    let view = View::of(&redis.url());
    let bucket = view.bucket("20/day");
    let window = view.budget("long", &Limit::fixed_window("20/month").unwrap());
    let minute = view.budget("short", &Limit::fixed_window("20/min").unwrap());
    for _ in 0..3 {
        assert_eq!(view.spend(&bucket, "k").await, Ok(true));
        assert_eq!(view.spend(&window, "k").await, Ok(true));
    }
    assert_eq!(redis.cli(&["SAVE"]), "OK");
    assert_eq!(view.spend(&window, "k").await, Ok(true));
    redis.restart_empty();
    assert_eq!(view.left_at_last(&bucket, "k").await, 0);
    assert_eq!(
        view.left_at_last(&window, "k").await,
        17,
        "one that came a moment later is missing"
    );
    assert_eq!(view.left_at_last(&window, "new").await, 20);
    let left = view.left_at_last(&minute, "k").await;
    // Unless it is over just now.
    assert!(left == 0 || view.left_at_last(&minute, "k").await == 20);
}

/// What was spent after the last snapshot is known to nobody, and may be everything. Whoever was answered in the
/// meantime knows that there was something.
#[tokio::test]
async fn a_server_that_starts_with_a_snapshot_of_before_grants_no_long_window_twice() {
    let mut redis = Redis::start(&["--dbfilename", "before.rdb"]);
    let (view, other) = (View::of(&redis.url()), View::of(&redis.url()));
    let windows = [
        view.budget("window", &Limit::fixed_window("20/month").unwrap()),
        view.budget("sliding", &Limit::sliding_window("20/month").unwrap()),
    ];
    for window in &windows {
        assert_eq!(view.spend(window, "k").await, Ok(true));
        assert_eq!(other.left(window, "k").await, Ok(19));
    }
    assert_eq!(redis.cli(&["SAVE"]), "OK");
    let saved = beat(&redis);
    // It is noted once a second that somebody asks, and three seconds may be missing of what is kept.
    until_meanwhile("more than that has passed", || {
        (now(&redis) > saved + 3_200_000).then_some(())
    })
    .await;
    for window in &windows {
        for _ in 0..19 {
            assert_eq!(view.spend(window, "k").await, Ok(true));
        }
    }
    redis.restart_empty();
    // These have seen nothing that is missing, and go on with what there is.
    for view in [&other, &View::of(&redis.url())] {
        assert_eq!(view.left_at_last(&windows[0], "k").await, 19);
    }
    for window in &windows {
        assert_eq!(view.left_at_last(window, "k").await, 0, "{window}");
    }
    // From then on they all know.
    for view in [other, View::of(&redis.url()), view] {
        for key in ["k", "new"] {
            let left = [view.left(&windows[0], key).await, view.left(&windows[1], key).await];
            assert_eq!(left, [Ok(0), Ok(0)], "{key}");
        }
    }
}

/// A node that is the first to ask after everything was lost, and was not there before, grants budgets to whoever
/// comes. The next one who knows better puts an end to it.
#[tokio::test]
async fn who_knows_of_a_loss_tells_also_if_somebody_else_was_first() {
    let mut redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let (bucket, window) =
        (view.bucket("20/day"), view.budget("w", &Limit::fixed_window("20/month").unwrap()));
    assert_eq!(view.left(&window, "k").await, Ok(20));
    redis.restart_empty();
    let newcomer = View::of(&redis.url());
    assert_eq!(newcomer.left(&bucket, "k").await, Ok(20));
    assert_eq!(view.left_at_last(&window, "k").await, 0);
    for budget in [&bucket, &window] {
        assert_eq!(newcomer.left(budget, "k").await, Ok(0), "{budget}");
    }
}

/// The newcomer's memory goes on in another process, and what it does not know of is not forgotten by that.
#[tokio::test]
async fn who_knows_of_a_loss_tells_also_after_a_restart() {
    let mut redis = Redis::start(&["--dbfilename", "kept.rdb"]);
    let view = View::of(&redis.url());
    let window = view.budget("w", &Limit::fixed_window("20/month").unwrap());
    assert_eq!(view.spend(&window, "k").await, Ok(true));
    assert_eq!(redis.cli(&["FLUSHALL"]), "OK");
    let newcomer = View::of(&redis.url());
    assert_eq!(newcomer.left(&window, "k").await, Ok(20));
    assert_eq!(redis.cli(&["SAVE"]), "OK");
    redis.restart_empty();
    assert_eq!(newcomer.left_at_last(&window, "k").await, 20);
    assert_eq!(view.left_at_last(&window, "k").await, 0);
    assert_eq!(newcomer.left(&window, "k").await, Ok(0));
}

/// When the mark was last written, in microseconds.
pub(crate) fn beat(redis: &Redis) -> u64 {
    let mark = redis.cli(&["GET", "tg:epoch"]);
    let mut words = mark.split(' ').skip_while(|word| *word != "beat");
    words.nth(1).and_then(|beat| beat.parse().ok()).unwrap_or_else(|| panic!("{mark}"))
}

/// A key that is not known is decided with as few commands as if nothing had ever been lost, as soon as
/// whatever was lost would have come back.
#[tokio::test]
async fn a_loss_that_is_long_ago_costs_nothing() {
    let mut redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let most = NonZeroU32::new(100).unwrap();
    let (trip, now) = (Duration::from_millis(5), SystemClock::new().wall());
    let budgets = [
        view.budget("bucket", &Limit::token_bucket("100/s").unwrap()),
        view.budget("window", &Limit::fixed_window("100/s").unwrap()),
        view.budget("sliding", &Limit::sliding_window("100/s").unwrap()),
        view.budget("log", &Limit::sliding_log("100/s").unwrap()),
        Arc::new(Budget::of_permits("permits", most, trip, now)),
    ];
    let mut before = Vec::new();
    for (number, budget) in budgets.iter().enumerate() {
        view.left_at_last(budget, "somebody").await;
        before.push(commands(&redis, &view, budget, &format!("first{number}")).await);
    }
    redis.restart_empty();
    assert_eq!(view.left_at_last(&budgets[0], "somebody").await, 0);
    for (number, budget) in budgets.iter().enumerate() {
        let mut after = Vec::new();
        for turn in 0..3_000 {
            after = commands(&redis, &view, budget, &format!("second{number}.{turn}")).await;
            if after == before[number] {
                break;
            }
            pause().await;
        }
        assert_eq!(after, before[number], "{budget}");
    }
}

/// What becomes of a question about a new key: how often the server is told what. In a moment in which the mark
/// was written already.
async fn commands(redis: &Redis, view: &View, budget: &Arc<Budget>, key: &str) -> Vec<String> {
    view.left_at_last(budget, "somebody").await;
    assert_eq!(redis.cli(&["CONFIG", "RESETSTAT"]), "OK");
    let once = match budget.terms() {
        Some(_) if budget.rule() == "permits" => {
            Exchange::strict(Node { number: 1, incarnation: 1 }, 1)
        }
        _ => Exchange::once(1),
    };
    view.ask(budget, key, once).await.unwrap();
    let all = redis.cli(&["INFO", "commandstats"]);
    let commands = all.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(',').next());
    let is_ours = |line: &&str| !line.starts_with("config") && !line.starts_with("info");
    let mut commands: Vec<_> = commands.filter(is_ours).map(str::to_owned).collect();
    commands.sort();
    commands
}

/// Windows that began after a loss, and long ones of which something was kept, are as quick as others.
#[tokio::test]
async fn long_windows_that_were_kept_cost_nothing_after_a_restart() {
    let mut redis = Redis::start(&["--dbfilename", "kept.rdb"]);
    let view = View::of(&redis.url());
    let windows = [
        view.budget("window", &Limit::fixed_window("100/month").unwrap()),
        view.budget("sliding", &Limit::sliding_window("100/month").unwrap()),
    ];
    let mut before = Vec::new();
    for budget in &windows {
        view.left_at_last(budget, "somebody").await;
        before.push(commands(&redis, &view, budget, "first").await);
    }
    assert_eq!(redis.cli(&["SAVE"]), "OK");
    redis.restart_empty();
    for (budget, before) in windows.iter().zip(&before) {
        assert_eq!(view.left_at_last(budget, "somebody").await, 100, "{budget}");
        assert_eq!(&commands(&redis, &view, budget, "second").await, before, "{budget}");
    }
}
