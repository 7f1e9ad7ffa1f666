//! Questions that come while a server is busy go together: in one call those about the same limit, and in one
//! write those about different ones.

use std::sync::Arc;

use tokio::task::{JoinSet, yield_now};
use tollgate_core::Limit;
use tollgate_core::lease::Exchange;
use tollgate_store::{Ask, Budget, Store as _};

use crate::process::{Kind, Redis, free_port};
use crate::view::View;

const QUESTIONS: usize = 64;

/// Two calls are under way at most, and then everybody else goes in two.
const FEW: u64 = 8;

async fn questions_about_a_limit_share_calls(kind: Kind) {
    for limit in [
        Limit::token_bucket("50/day").unwrap(),
        Limit::fixed_window("50/month").unwrap(),
        Limit::sliding_window("50/month").unwrap(),
        Limit::sliding_log("50/day").unwrap(),
    ] {
        let redis = Redis::start_as(kind, free_port(), &[]);
        let view = View::of(&redis.url());
        let budget = view.budget("api", &limit);
        view.left(&budget, "k").await.unwrap();
        let before = calls(&redis);
        ask_meanwhile(&redis, &view, |_| Arc::clone(&budget)).await;
        let calls = calls(&redis) - before;
        assert!((1..=FEW).contains(&calls), "{limit}: {calls} calls");
    }
}

async fn questions_about_many_limits_share_writes(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &[]);
    let view = View::of(&redis.url());
    let limit = Limit::token_bucket("50/day").unwrap();
    view.left(&view.budget("api", &limit), "k").await.unwrap();
    let (calls_before, reads_before) = (calls(&redis), reads(&redis));
    ask_meanwhile(&redis, &view, |number| view.budget(&format!("api{number}"), &limit)).await;
    // Whoever asks for this is read as well, and what is long comes in pieces.
    let reads = reads(&redis) - reads_before;
    assert_eq!(calls(&redis) - calls_before, QUESTIONS as u64);
    assert!(reads <= 3 * FEW, "{reads} reads");
}

/// Asks about one key after the other while the server stands still, and waits for the answers when it goes on.
async fn ask_meanwhile(redis: &Redis, view: &View, budget: impl Fn(usize) -> Arc<Budget>) {
    redis.signal("STOP");
    let mut questions = JoinSet::new();
    for number in 0..QUESTIONS {
        let ask = Ask::new(budget(number), format!("k{number}"), Exchange::once(1));
        let store = view.store.clone();
        questions.spawn(async move { store.exchange(&[ask]).await.remove(0) });
        // Each is sent by itself if it can be.
        for _ in 0..5 {
            yield_now().await;
        }
    }
    redis.signal("CONT");
    for grant in questions.join_all().await {
        assert_eq!(grant.unwrap().decision.remaining(), 49);
    }
}

/// How many calls of scripts there were.
fn calls(redis: &Redis) -> u64 {
    number(&redis.cli(&["INFO", "commandstats"]), "cmdstat_evalsha:calls=")
}

/// How often something was read from anybody.
fn reads(redis: &Redis) -> u64 {
    number(&redis.cli(&["INFO", "stats"]), "total_reads_processed:")
}

fn number(info: &str, name: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    let digits = line.and_then(|line| line.split(|letter: char| !letter.is_ascii_digit()).next());
    digits.unwrap_or_else(|| panic!("{name} is missing: {info}")).parse().unwrap()
}

with_every_kind!(questions_about_a_limit_share_calls, questions_about_many_limits_share_writes);
