//! The facts.
//!
//! Time is real for some stores and passes while they answer. So limits are such that nothing comes
//! back by chance, and a wait is for no less than what is needed.

use std::time::Duration;

use tollgate_core::lease::Exchange;
use tollgate_core::{Limit, Retry, Verdict, Wall};
use tollgate_store::{Ask, Store as _, StoreError};

use crate::bench::{Bench, node};
use crate::carried;

/// All that holds for every store. The memory is lost last.
pub(crate) async fn run(bench: &impl Bench) {
    run_without_loss(bench).await;
    a_loss_of_memory_grants_nothing(bench).await;
}

pub(crate) async fn run_without_loss(bench: &impl Bench) {
    every_algorithm_admits_its_limit_and_no_more(bench).await;
    costs_are_spent_whole_or_not_at_all(bench).await;
    keys_and_rules_are_counted_apart(bench).await;
    a_shaper_delays(bench).await;
    a_log_denies_until_the_first_is_over(bench).await;
    no_limit_is_no_limit(bench).await;
    many_questions_are_answered_in_their_order(bench).await;
    what_is_lent_is_settled_returned_and_lent_again(bench).await;
    repeats_are_answered_as_at_first(bench).await;
    a_lease_that_ends_counts_as_used(bench).await;
    permits_come_back_by_return_and_by_expiry(bench).await;
    permits_are_the_same_however_many_there_are(bench).await;
    tokens_come_back_with_time(bench).await;
    what_was_in_vain_is_taken_back(bench).await;
    a_key_that_is_forgotten_begins_anew(bench).await;
    carried::run(bench).await;
}

pub(crate) fn slow() -> [(&'static str, Limit); 6] {
    [
        ("bucket", Limit::token_bucket("20/day").unwrap()),
        ("police", Limit::leaky_police("20/day burst 20").unwrap()),
        ("window", Limit::fixed_window("20/month").unwrap()),
        ("calendar", Limit::calendar("20/month", "Pacific/Kiritimati").unwrap()),
        ("sliding", Limit::sliding_window("20/month").unwrap()),
        ("log", Limit::sliding_log("20/day").unwrap()),
    ]
}

async fn every_algorithm_admits_its_limit_and_no_more(bench: &impl Bench) {
    for (name, limit) in slow() {
        let budget = bench.budget(name, limit);
        assert_eq!(bench.left(&budget, "all").await, 20, "{name}");
        assert_eq!(bench.allowed(&budget, "all", 50).await, 20, "{name}");
        assert_eq!(bench.left(&budget, "all").await, 0, "{name}");
        let denied = bench.ask(&budget, "all", Exchange::once(1)).await.unwrap().decision;
        let wait = denied.retry_after().expect(name);
        assert!(
            wait > Duration::ZERO && wait < Duration::from_secs(62 * 86_400),
            "{name}: {wait:?}"
        );
    }
}

async fn costs_are_spent_whole_or_not_at_all(bench: &impl Bench) {
    for (name, limit) in slow() {
        let budget = bench.budget(name, limit);
        let ask = |cost| bench.ask(&budget, "costs", Exchange::once(cost));
        assert!(ask(15).await.unwrap().decision.is_allowed(), "{name}");
        let denied = ask(6).await.unwrap().decision;
        assert!(!denied.is_allowed(), "{name}");
        assert_eq!(denied.remaining(), 5, "{name}");
        for beyond in [21, u64::MAX] {
            let denied = ask(beyond).await.unwrap().decision;
            assert_eq!(denied.retry(), Some(Retry::Never), "{name}");
        }
        assert!(ask(5).await.unwrap().decision.is_allowed(), "{name}");
    }
}

async fn keys_and_rules_are_counted_apart(bench: &impl Bench) {
    let limit = || Limit::token_bucket("1/day").unwrap();
    let keys: [&[u8]; 9] = [
        b"",
        b"a",
        b"b",
        b"a:b",
        b"{a}",
        b"}a{",
        b"\0\xFF\r\n",
        &[b'x'; 70_000],
        "ключ".as_bytes(),
    ];
    for rule in ["one", "two", "a:b", "}:x", ""] {
        let budget = bench.budget(rule, limit());
        for key in keys {
            let ask = Ask::new(budget.clone(), key, Exchange::once(1));
            let answers = bench.store().exchange(&[ask.clone(), ask]).await;
            let allowed = |at: usize| answers[at].as_ref().unwrap().decision.is_allowed();
            assert_eq!((allowed(0), allowed(1)), (true, false), "{rule}, {key:?}");
        }
    }
}

async fn a_shaper_delays(bench: &impl Bench) {
    let budget = bench.budget("shape", Limit::leaky_shape("24/day", 2).unwrap());
    let ask = || async { bench.ask(&budget, "k", Exchange::once(1)).await.unwrap().decision };
    assert_eq!(ask().await.verdict(), Verdict::Allow);
    let Verdict::AllowAfter(delay) = ask().await.verdict() else { panic!("no delay") };
    assert!(delay > Duration::from_secs(3_500) && delay <= Duration::from_secs(3_600));
    assert!(ask().await.is_allowed());
    assert!(!ask().await.is_allowed());
}

async fn a_log_denies_until_the_first_is_over(bench: &impl Bench) {
    let budget = bench.budget("short log", Limit::sliding_log("2/s").unwrap());
    assert_eq!(bench.allowed(&budget, "k", 3).await, 2);
    bench.pass(Duration::from_secs(1)).await;
    assert_eq!(bench.allowed(&budget, "k", 3).await, 2);
}

async fn no_limit_is_no_limit(bench: &impl Bench) {
    let budget = bench.budget("free", Limit::token_bucket("unlimited").unwrap());
    assert_eq!(bench.allowed(&budget, "k", 100).await, 100);
}

async fn many_questions_are_answered_in_their_order(bench: &impl Bench) {
    let limits = slow().map(|(name, limit)| bench.budget(name, limit));
    let mut asks = Vec::new();
    for number in 0..200usize {
        let exchange = Exchange { sequence: 1 + number as u64, ..Exchange::strict(node(5), 0) };
        asks.push(Ask::new(limits[number % 6].clone(), format!("many{}", number % 7), exchange));
    }
    let answers = bench.store().exchange(&asks).await;
    let numbers: Vec<_> = answers.iter().map(|answer| answer.as_ref().unwrap().sequence).collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
    assert!(bench.store().exchange(&[]).await.is_empty());
}

async fn what_is_lent_is_settled_returned_and_lent_again(bench: &impl Bench) {
    for (name, limit) in [
        ("bucket", Limit::token_bucket("1k/day").unwrap()),
        ("window", Limit::fixed_window("1k/month").unwrap()),
        ("sliding", Limit::sliding_window("1k/month").unwrap()),
    ] {
        let budget = bench.budget(name, limit);
        let first = Exchange { want: 100, ..Exchange::strict(node(1), 10) };
        let grant = bench.ask(&budget, "lent", first).await.unwrap();
        assert_eq!((grant.tokens, grant.decision.remaining()), (100, 890), "{name}");
        assert!(grant.span > Duration::from_secs(1), "{name}");
        let other = Exchange { want: 2_000, ..Exchange::strict(node(2), 0) };
        let half = bench.ask(&budget, "lent", other).await.unwrap();
        assert_eq!(half.tokens, 297, "{name}: a third of what is left");
        let lease = Some(grant.lease);
        let (used, returned) = (60, 40);
        let second = Exchange { sequence: 2, lease, used, returned, cost: 0, want: 0, ..first };
        let settled = bench.ask(&budget, "lent", second).await.unwrap();
        assert_eq!((settled.tokens, settled.decision.remaining()), (0, 633), "{name}");
        assert_eq!(settled.lease, grant.lease, "{name}");
        assert_eq!(bench.left(&budget, "lent").await, 633, "{name}");
    }
}

async fn repeats_are_answered_as_at_first(bench: &impl Bench) {
    for (name, limit) in slow().into_iter().filter(|(name, _)| *name != "log") {
        let budget = bench.budget(name, limit);
        let first = Exchange { want: 4, ..Exchange::strict(node(1), 3) };
        let second = Exchange { sequence: 2, ..first };
        let grant = bench.ask(&budget, "repeats", first).await.unwrap();
        assert_eq!(bench.ask(&budget, "repeats", first).await, Ok(grant), "{name}");
        let grant = bench.ask(&budget, "repeats", second).await.unwrap();
        assert_eq!(bench.ask(&budget, "repeats", second).await, Ok(grant), "{name}");
        let late = bench.ask(&budget, "repeats", first).await;
        assert_eq!(late, Err(StoreError::Overtaken), "{name}");
        let lent = grant.tokens;
        assert_eq!(bench.left(&budget, "repeats").await, 20 - 6 - lent, "{name}");
    }
}

async fn a_lease_that_ends_counts_as_used(bench: &impl Bench) {
    let budget = bench.budget("short", Limit::token_bucket("20/s").unwrap());
    let ask = Exchange { want: 10, ..Exchange::strict(node(1), 0) };
    let grant = bench.ask(&budget, "ends", ask).await.unwrap();
    assert_eq!(grant.tokens, 10);
    bench.pass(budget.terms().unwrap().hold()).await;
    let late = Exchange { sequence: 2, lease: Some(grant.lease), returned: 10, want: 0, ..ask };
    let answer = bench.ask(&budget, "ends", late).await.unwrap();
    assert_ne!(answer.lease, grant.lease, "it is another lease");
    assert_eq!(answer.tokens, 0, "what came back too late is gone");
}

async fn permits_come_back_by_return_and_by_expiry(bench: &impl Bench) {
    let budget = bench.permits("slots", 10);
    let take =
        |number, sequence, cost| Exchange { sequence, ..Exchange::strict(node(number), cost) };
    let six = bench.ask(&budget, "k", take(1, 1, 6)).await.unwrap();
    assert!(six.decision.is_allowed());
    assert_eq!(six.tokens, 6);
    let five = bench.ask(&budget, "k", take(2, 1, 5)).await.unwrap();
    assert_eq!(five.decision.retry(), Some(Retry::OnReturn));
    assert_eq!(five.tokens, 0);
    let back = Exchange { lease: Some(six.lease), returned: 2, ..take(1, 2, 0) };
    assert_eq!(bench.ask(&budget, "k", back).await.unwrap().tokens, 4);
    let five = bench.ask(&budget, "k", take(2, 2, 5)).await.unwrap();
    assert!(five.decision.is_allowed());
    assert_eq!(bench.left(&budget, "k").await, 1);
    bench.pass(budget.terms().unwrap().hold()).await;
    assert_eq!(bench.left(&budget, "k").await, 10, "nobody was heard of");
}

/// Nodes with old and new rules share them, and never hold more than the most that any knows of.
async fn permits_are_the_same_however_many_there_are(bench: &impl Bench) {
    let (few, many) = (bench.permits("resized", 4), bench.permits("resized", 10));
    let take = |number, cost| Exchange::strict(node(number), cost);
    let three = bench.ask(&few, "k", take(1, 3)).await.unwrap();
    assert_eq!((three.tokens, three.decision.remaining()), (3, 1));
    let six = bench.ask(&many, "k", take(2, 6)).await.unwrap();
    assert_eq!((six.tokens, six.decision.remaining()), (6, 1));
    let none = bench.ask(&few, "k", take(3, 1)).await.unwrap();
    assert_eq!((none.tokens, none.decision.remaining(), none.decision.limit()), (0, 0, 4));
    let back = Exchange { sequence: 2, lease: Some(three.lease), returned: 3, ..take(1, 0) };
    assert_eq!(bench.ask(&few, "k", back).await.unwrap().decision.remaining(), 0);
    assert_eq!(bench.left(&many, "k").await, 4);
}

async fn tokens_come_back_with_time(bench: &impl Bench) {
    let budget = bench.budget("fast", Limit::token_bucket("3/s").unwrap());
    assert_eq!(bench.allowed(&budget, "back", 4).await, 3);
    bench.pass(Duration::from_secs(1)).await;
    assert_eq!(bench.allowed(&budget, "back", 5).await, 3);
}

async fn what_was_in_vain_is_taken_back(bench: &impl Bench) {
    for (name, limit) in slow() {
        let budget = bench.budget(name, limit);
        let spent = bench.ask(&budget, "vain", Exchange::once(15)).await.unwrap();
        bench.ask(&budget, "vain", Exchange::once(3)).await.unwrap();
        let undone = bench.ask(&budget, "vain", Exchange::undo(15, spent.at)).await.unwrap();
        assert_eq!(undone.decision.remaining(), 17, "{name}");
        let long_ago =
            Wall::from_unix_seconds(spent.at.as_unix_nanos() / 1_000_000_000 - 40_000_000);
        bench.ask(&budget, "vain", Exchange::undo(3, long_ago)).await.unwrap();
        bench.ask(&budget, "vain", Exchange::undo(21, spent.at)).await.unwrap();
        assert_eq!(bench.left(&budget, "vain").await, 17, "{name}: neither is from today");
    }
    // What time has given back is not given twice.
    let budget = bench.budget("fast", Limit::token_bucket("3/s").unwrap());
    let spent = bench.ask(&budget, "vain", Exchange::once(3)).await.unwrap();
    bench.pass(Duration::from_secs(1)).await;
    assert_eq!(bench.allowed(&budget, "vain", 3).await, 3);
    bench.ask(&budget, "vain", Exchange::undo(3, spent.at)).await.unwrap();
    let left = bench.left(&budget, "vain").await;
    assert!(left < 3, "{left} are left");
    let permits = bench.permits("slots", 10);
    let taken = bench.ask(&permits, "vain", Exchange::strict(node(1), 6)).await.unwrap();
    let undone = bench.ask(&permits, "vain", Exchange::undo(6, taken.at)).await.unwrap();
    assert_eq!(undone.decision.remaining(), 4, "they have a lease");
}

async fn a_key_that_is_forgotten_begins_anew(bench: &impl Bench) {
    for (name, limit) in slow() {
        let budget = bench.budget(name, limit);
        let forget = |key| bench.store().forget(&budget, key);
        assert_eq!(forget(b"again").await, Ok(false), "{name}: nobody knows it");
        assert_eq!(bench.allowed(&budget, "again", 30).await, 20, "{name}");
        bench.ask(&budget, "others", Exchange::once(7)).await.unwrap();
        assert_eq!(forget(b"again").await, Ok(true), "{name}");
        assert_eq!(bench.left(&budget, "others").await, 13, "{name}");
        assert_eq!(bench.left(&budget, "again").await, 20, "{name}");
        assert_eq!(forget(b"again").await, Ok(false), "{name}: to look leaves nothing behind");
        assert_eq!(bench.allowed(&budget, "again", 30).await, 20, "{name}");
    }
    let permits = bench.permits("slots", 10);
    bench.ask(&permits, "again", Exchange::strict(node(1), 6)).await.unwrap();
    assert_eq!(bench.store().forget(&permits, b"again").await, Ok(true));
    assert_eq!(bench.left(&permits, "again").await, 10);
    let free = bench.budget("free", Limit::token_bucket("unlimited").unwrap());
    assert_eq!(bench.store().forget(&free, b"again").await, Ok(false));
}

async fn a_loss_of_memory_grants_nothing(bench: &impl Bench) {
    let limits = slow().map(|(name, limit)| (name, bench.budget(name, limit)));
    for (name, budget) in &limits {
        bench.ask(budget, "lost", Exchange::once(1)).await.expect(name);
    }
    let permits = bench.permits("slots", 10);
    let taken = bench.ask(&permits, "lost", Exchange::strict(node(1), 3)).await.unwrap();
    let before = bench.store().ping().await.unwrap().epoch;
    bench.lose_memory().await;
    for (name, budget) in &limits {
        assert_eq!(bench.left(budget, "lost").await, 0, "{name}");
        carried::after_a_loss(bench, budget, name).await;
        if bench.knows_of_loss_everywhere() {
            assert_eq!(bench.left(budget, "never seen").await, 0, "{name}");
            assert_eq!(bench.store().forget(budget, b"never seen").await, Ok(true), "{name}");
        }
        // Whoever is let go after a loss has everything.
        assert_eq!(bench.store().forget(budget, b"lost").await, Ok(true), "{name}");
        assert_eq!(bench.left(budget, "lost").await, 20, "{name}");
        assert_eq!(bench.allowed(budget, "lost", 30).await, 20, "{name}");
    }
    let back = Exchange {
        sequence: 2,
        lease: Some(taken.lease),
        returned: 3,
        ..Exchange::strict(node(1), 0)
    };
    assert_eq!(bench.ask(&permits, "lost", back).await.unwrap().decision.remaining(), 0);
    // Who asks first may know of fewer than were out.
    assert_eq!(bench.left(&bench.permits("slots", 50), "lost").await, 0);
    if bench.knows_of_loss_everywhere() {
        assert_eq!(bench.store().forget(&permits, b"never seen").await, Ok(true));
    }
    bench.pass(permits.terms().unwrap().hold()).await;
    assert_eq!(bench.left(&permits, "lost").await, 10);
    assert_ne!(bench.store().ping().await.unwrap().epoch, before);
}
