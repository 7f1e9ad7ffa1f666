use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tollgate_core::lease::{Borrower, Exchange};
use tollgate_core::{Decision, Limit, Retry};
use tollgate_local::{Counters, Key, ManualClock, Table};
use tollgate_rules::RuleSet;
use tollgate_store::{MemoryStore, StoreError};

use super::told::Said;
use super::*;

const LIMIT: &str = "100/s";

fn limit_of(sharing: &Sharing) -> Arc<SharedLimit> {
    let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 100/s }]").unwrap();
    let (limit, seed) = (Limit::token_bucket(LIMIT).unwrap(), Seed::new(7));
    let table = Arc::new(Table::with_keys(100).unwrap());
    let own = Arc::new(Counters::new(&table, &limit, sharing.clock.anchor(), seed.salt(0)));
    SharedLimit::new(sharing, "", &rules.rules()[0], &limit, &own, (&seed, seed.salt(1))).into()
}

/// The steward looks after a purse just when the store has denied a request for which there is enough
/// in it.
#[tokio::test]
async fn who_is_denied_waits_for_whoever_has_the_purse_in_his_hands() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(400 * 86_400));
    let store = MemoryStore::new(clock.clone(), 100);
    let sharing = Sharing::begin(store, SharingConfig::default(), clock.clone()).unwrap();
    let (limit, now) = (limit_of(&sharing), sharing.now());
    let key = "alice".hash(&Seed::new(7));
    let shared = Shared { limit: &limit, owner: limit.owner(key), key, cost: 1 };
    let about = shared.about(Arc::from(*b"alice"));

    let (node, terms) = (sharing.newborn(), limit.budget.terms().unwrap());
    let new = || (Borrower::new(node, terms), Loan::new(about.clone(), node));
    let open = || sharing.purses.open(shared.owner, now, new).unwrap();
    let ask = Exchange { want: 5, ..open().borrower().ask(now, 0).unwrap() };
    let grant = sharing.store.exchange(&[about.ask(ask)]).await.remove(0).unwrap();
    let mut lent = open();
    assert!(lent.borrower().answer(now, &grant));
    assert_eq!(lent.borrower().tokens(now), 5);

    let denial = Decision::deny(100, 0, Duration::ZERO, Retry::After(Duration::ZERO));
    sharing.tell(about.clone(), 1, Said::Decided(denial, Some(sharing.wall())), now);
    let (says, said) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let name = || Arc::clone(&about.name);
            let spent = sharing.spend(&shared, now, Asking::Now, &clock, name);
            says.send(spent.unwrap().0.is_allowed()).unwrap();
        });
        // Whoever does not wait has said something by then.
        let in_haste = said.recv_timeout(Duration::from_millis(100));
        assert!(in_haste.is_err(), "{in_haste:?}");
        drop(lent);
        assert!(said.recv().unwrap());
    });
}

fn debtor(sharing: &Sharing) -> About {
    let (limit, key) = (limit_of(sharing), "alice".hash(&Seed::new(7)));
    let shared = Shared { limit: &limit, owner: limit.owner(key), key, cost: 1 };
    shared.about(Arc::from(*b"alice"))
}

/// Two payments of one key are under way, and the second is answered long after the first.
#[tokio::test]
async fn a_payment_that_takes_long_is_not_too_much() {
    let clock = ManualClock::new();
    let store = MemoryStore::new(clock.clone(), 100);
    let sharing = Sharing::begin(store, SharingConfig::default(), clock).unwrap();
    let (debts, about, owner) = (Debts::default(), debtor(&sharing), debtor(&sharing).owner);
    let at = |seconds| Tick::ZERO.after(Duration::from_secs(seconds));
    let take = || {
        assert!(debts.add(owner, 3, || about.clone()));
        debts.take(1)[0].1
    };
    let (first, second) = (take(), take());
    assert_eq!(debts.paid(owner, first, at(2)), 0);
    debts.sweep(at(60));
    assert_eq!(debts.paid(owner, second, at(62)), 0, "nobody made up for it");

    let (third, fourth) = (take(), take());
    assert_eq!(debts.make_up(owner, 4), 0, "it pays for what may not be paid");
    assert_eq!(debts.paid(owner, third, at(64)), 1);
    debts.sweep(at(64));
    assert_eq!(debts.paid(owner, fourth, at(66)), 3);
    assert_eq!(debts.make_up(owner, 1), 1, "all of it is paid");
}

#[tokio::test]
async fn what_may_not_have_been_written_down_stays_spent() {
    let clock = ManualClock::new();
    let store = MemoryStore::new(clock.clone(), 100);
    let sharing = Sharing::begin(store, SharingConfig::default(), clock).unwrap();
    let (debts, about) = (Debts::default(), debtor(&sharing));
    let owner = |number: u64| number.hash(&Seed::new(7));
    let mut number = 0;
    while debts.add(owner(number), 1, || about.clone()) {
        number += 1;
    }
    assert_eq!(debts.settle(owner(number), 1), 0, "it had no room");
    assert_eq!(debts.settle(owner(0), 3), 2);
    assert_eq!(debts.settle(owner(number), 1), 1, "there is room again");
}

/// Many questions go at once, to several servers. The store is not left alone because of one key in forty,
/// however long its server is silent; it is because of one in three.
#[tokio::test]
async fn a_few_questions_of_many_that_fail_are_no_failure_of_the_store() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(400 * 86_400));
    let store = MemoryStore::new(clock.clone(), 100);
    let sharing = Sharing::begin(store, SharingConfig::default(), clock).unwrap();
    let limit = limit_of(&sharing);
    sharing.put_in_force(vec![Arc::clone(&limit.budget)]);
    let key = "alice".hash(&Seed::new(7));
    let shared = Shared { limit: &limit, owner: limit.owner(key), key, cost: 1 };
    let ask = shared.about(Arc::from(*b"alice")).ask(Exchange::once(0));
    let asks = vec![ask; 42];
    let answers = sharing.store.exchange(&asks).await;
    let took = sharing.config.timeout;
    let is_left_alone_if = |failed: usize| {
        let mut answers = answers.clone();
        answers[..failed].fill_with(|| Err(StoreError::Timeout { after: took }));
        (0..20).for_each(|_| sharing.weigh(&asks, &answers, took));
        sharing.breaker.is_open()
    };
    assert!(!is_left_alone_if(1) && !is_left_alone_if(13));
    assert!(is_left_alone_if(14));
}
