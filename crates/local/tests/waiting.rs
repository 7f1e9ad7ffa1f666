//! Waiting rooms: first come, first served, and whoever gives up has spent nothing.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};
use tollgate_core::{Decision, Limit, Tick, Wall};
use tollgate_local::{
    Clock, Counters, Key, KeyHash, ManualClock, Seed, Sleep, Table, Timer, WaitError, WaitingRoom,
};

const SECOND: Duration = Duration::from_secs(1);

type Outcome = Result<Decision, WaitError>;

/// A waiting room with all that belongs to it, and a record of who was let through when.
struct Place {
    room: WaitingRoom,
    counters: Counters,
    clock: ManualClock,
    seed: Seed,
    served: Mutex<Vec<(usize, Tick)>>,
}

impl Place {
    fn new(limit: &Limit, max: usize) -> Arc<Self> {
        let (clock, seed) = (ManualClock::new(), Seed::new(4));
        let table = Arc::new(Table::with_keys(10_000).unwrap());
        let counters = Counters::new(&table, limit, clock.anchor(), seed.salt(0));
        let room = WaitingRoom::new(max);
        Arc::new(Self { room, counters, clock, seed, served: Mutex::default() })
    }

    /// One per second, after one that goes at once.
    fn per_second(max: usize) -> Arc<Self> {
        Self::new(&Limit::token_bucket("1/s").unwrap(), max)
    }

    fn key(&self, name: usize) -> KeyHash {
        name.to_string().hash(&self.seed)
    }

    /// Somebody, known by a number, waits for a key in a task of their own.
    fn comes(self: &Arc<Self>, number: usize, key: usize) -> JoinHandle<Outcome> {
        let place = Arc::clone(self);
        tokio::spawn(async move {
            let key = place.key(key);
            let outcome = place.room.wait(&place.counters, key, 1, &place.clock).await;
            if outcome.is_ok() {
                place.served.lock().unwrap().push((number, place.clock.now()));
            }
            outcome
        })
    }

    /// Polls a request for a key once: it begins to wait.
    fn begin(&self, key: usize) -> Pin<Box<dyn Future<Output = Outcome> + '_>> {
        let key = self.key(key);
        let mut wait: Pin<Box<dyn Future<Output = Outcome> + '_>> =
            Box::pin(self.room.wait(&self.counters, key, 1, &self.clock));
        assert!(poll(&mut wait).is_none(), "it was let through at once");
        wait
    }

    /// Time passes, and everybody does what there is to do.
    async fn passes(&self, span: Duration) {
        settle().await;
        self.clock.advance(span);
        settle().await;
    }

    fn served(&self) -> Vec<usize> {
        self.served.lock().unwrap().iter().map(|(number, _)| *number).collect()
    }

    fn left(&self, key: usize) -> u64 {
        self.counters.peek(self.key(key), 1, self.clock.now()).remaining()
    }

    /// How many keys the room remembers.
    fn queues(&self) -> usize {
        format!("{:?}", self.room).matches("Queue").count()
    }
}

/// Lets all other tasks run until they wait for something.
async fn settle() {
    for _ in 0..200 {
        yield_now().await;
    }
}

fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn those_who_wait_are_served_in_the_order_they_came() {
    let place = Place::per_second(100);
    for number in 0..20 {
        drop(place.comes(number, 0));
        settle().await;
    }
    assert_eq!(place.room.waiting(), 19);
    for second in 0..19 {
        assert_eq!(place.served(), (0..=second).collect::<Vec<_>>(), "after {second} s");
        place.passes(SECOND - Duration::from_nanos(1)).await;
        assert_eq!(place.served().len(), second + 1, "just before second {second} is over");
        place.passes(Duration::from_nanos(1)).await;
    }
    assert_eq!(place.served(), (0..20).collect::<Vec<_>>());
    assert_eq!((place.room.waiting(), place.queues()), (0, 0));
}

#[tokio::test]
async fn whoever_is_let_through_was_let_through_exactly_when_the_limit_allows_it() {
    let place = Place::new(&Limit::sliding_log("3/s").unwrap(), 100);
    let all: Vec<_> = (0..12).map(|number| place.comes(number, 0)).collect();
    for _ in 0..40 {
        place.passes(SECOND / 10).await;
    }
    let served = place.served.lock().unwrap().clone();
    let seconds: Vec<_> = served.iter().map(|(_, at)| at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert!(all.iter().all(JoinHandle::is_finished));
}

#[tokio::test]
async fn a_queue_that_is_full_turns_further_ones_away() {
    let place = Place::per_second(3);
    assert!(place.comes(0, 0).await.unwrap().is_ok(), "nobody is waiting");
    let waiting: Vec<_> = (0..3).map(|_| place.begin(0)).collect();
    let full = Err(WaitError::QueueFull { max: 3 });
    assert_eq!(place.comes(5, 0).await.unwrap(), full);
    assert_eq!(place.room.waiting(), 3, "whoever is turned away does not wait");
    drop(waiting);
    assert_eq!((place.room.waiting(), place.queues()), (0, 0));
    place.clock.advance(SECOND);
    assert!(place.comes(6, 0).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_room_without_a_queue_serves_one_at_a_time() {
    let place = Place::per_second(0);
    assert!(place.comes(0, 0).await.unwrap().is_ok());
    let next = place.begin(0);
    assert_eq!(place.comes(1, 0).await.unwrap(), Err(WaitError::QueueFull { max: 0 }));
    drop(next);
}

/// Five come, the first of whom is served; then one of those who wait gives up.
async fn one_gives_up(who: usize) {
    let place = Place::per_second(100);
    let mut tasks: Vec<_> = Vec::new();
    for number in 0..5 {
        tasks.push(place.comes(number, 0));
        settle().await;
    }
    tasks[who].abort();
    settle().await;
    assert_eq!(place.room.waiting(), 3, "{who} is gone");
    for _ in 0..3 {
        place.passes(SECOND).await;
    }
    let others: Vec<_> = (0..5).filter(|number| *number != who).collect();
    assert_eq!(place.served(), others, "those behind {who} move up, and lose no time");
    place.passes(SECOND).await;
    assert_eq!(place.left(0), 1, "{who} has spent nothing");
    assert_eq!((place.room.waiting(), place.queues()), (0, 0));
}

#[tokio::test]
async fn the_first_in_the_queue_may_give_up() {
    one_gives_up(1).await;
}

#[tokio::test]
async fn one_in_the_middle_of_the_queue_may_give_up() {
    one_gives_up(2).await;
    one_gives_up(3).await;
}

#[tokio::test]
async fn the_last_in_the_queue_may_give_up() {
    one_gives_up(4).await;
}

#[tokio::test]
async fn a_future_that_is_never_polled_does_nothing() {
    let place = Place::per_second(100);
    let key = place.key(0);
    drop(place.room.wait(&place.counters, key, 1, &place.clock));
    assert_eq!((place.left(0), place.room.waiting(), place.queues()), (1, 0, 0));
}

#[tokio::test]
async fn all_may_give_up_at_the_same_moment() {
    let place = Place::per_second(100);
    place.comes(0, 0).await.unwrap().unwrap();
    let tasks: Vec<_> = (1..50).map(|number| place.comes(number, 0)).collect();
    settle().await;
    assert_eq!(place.room.waiting(), 49);
    tasks.iter().for_each(JoinHandle::abort);
    place.passes(SECOND).await;
    assert_eq!(place.served(), [0], "it was too late for the first in the queue as well");
    assert_eq!((place.left(0), place.room.waiting(), place.queues()), (1, 0, 0));
}

#[tokio::test]
async fn whoever_does_not_queue_may_pass_first_and_the_queue_waits_longer() {
    let place = Place::per_second(100);
    place.comes(0, 0).await.unwrap().unwrap();
    let patient = place.comes(1, 0);
    settle().await;
    place.clock.advance(SECOND);
    assert!(place.counters.check(place.key(0), 1, &place.clock).is_allowed());
    settle().await;
    assert!(!patient.is_finished(), "its token was taken");
    place.passes(SECOND).await;
    assert!(patient.is_finished());
}

/// A clock at whose second reading somebody who does not queue takes the turn.
struct Overtaken {
    place: Arc<Place>,
    readings: AtomicU64,
}

impl Clock for Overtaken {
    fn now(&self) -> Tick {
        let Place { counters, clock, .. } = &*self.place;
        if self.readings.fetch_add(1, Ordering::Relaxed) == 1 {
            assert!(counters.check(self.place.key(0), 1, clock).is_allowed());
        }
        clock.now()
    }

    fn wall(&self) -> Wall {
        self.place.clock.wall()
    }
}

impl Timer for Overtaken {
    fn sleep(&self, span: Duration) -> Sleep {
        self.place.clock.sleep(span)
    }
}

#[test]
fn whoever_is_overtaken_at_the_last_moment_and_gives_up_has_spent_nothing() {
    let place = Place::new(&Limit::leaky_shape("1/s", 10).unwrap(), 10);
    let clock = Overtaken { place: Arc::clone(&place), readings: AtomicU64::new(0) };
    let mut wait: Pin<Box<dyn Future<Output = Outcome> + '_>> =
        Box::pin(place.room.wait(&place.counters, place.key(0), 1, &clock));
    assert!(poll(&mut wait).is_none(), "its turn was taken");
    drop(wait);
    let next = place.counters.check(place.key(0), 1, &place.clock);
    assert_eq!(next.delay(), SECOND, "the one who took the turn is the only one before");
}

#[tokio::test]
async fn what_never_fits_is_refused_at_its_turn() {
    let place = Place::new(&Limit::token_bucket("5/s").unwrap(), 100);
    let key = place.key(0);
    let never = place.room.wait(&place.counters, key, 6, &place.clock).await;
    assert_eq!(never, Err(WaitError::NeverFits));
    assert_eq!((place.left(0), place.room.waiting(), place.queues()), (5, 0, 0));
    let fits = place.room.wait(&place.counters, key, 5, &place.clock).await;
    assert!(fits.is_ok());
}

/// A wait that was never over went round without a pause, since time had stopped.
#[tokio::test]
async fn when_time_has_come_to_its_end_nobody_waits() {
    for limit in [Limit::token_bucket("1/s").unwrap(), Limit::sliding_log("1/s").unwrap()] {
        let place = Place::new(&limit, 100);
        place.clock.advance(Duration::MAX);
        assert!(place.comes(0, 0).await.unwrap().is_ok(), "there is something left");
        assert_eq!(place.comes(1, 0).await.unwrap(), Err(WaitError::ClockEnded));
        assert_eq!((place.room.waiting(), place.queues()), (0, 0));
    }
}

#[tokio::test]
async fn whoever_waits_when_time_comes_to_its_end_is_told() {
    let place = Place::per_second(100);
    assert!(place.comes(0, 0).await.unwrap().is_ok());
    place.clock.advance(Tick::MAX.since(Tick::ZERO) - SECOND / 2);
    assert!(place.comes(1, 0).await.unwrap().is_ok());
    let late = place.comes(2, 0);
    place.passes(SECOND).await;
    assert_eq!(late.await.unwrap(), Err(WaitError::ClockEnded));
}

#[tokio::test]
async fn a_large_request_is_not_overtaken_by_small_ones() {
    let place = Place::new(&Limit::token_bucket("10/s").unwrap(), 100);
    place.counters.check(place.key(0), 10, &place.clock);
    let large = {
        let place = Arc::clone(&place);
        tokio::spawn(async move {
            let key = place.key(0);
            place.room.wait(&place.counters, key, 10, &place.clock).await
        })
    };
    settle().await;
    let small = place.comes(1, 0);
    place.passes(SECOND / 2).await;
    assert!(!small.is_finished(), "there is enough for it, but it is not its turn");
    place.passes(SECOND / 2).await;
    assert!(large.is_finished() && !small.is_finished());
    place.passes(SECOND / 10).await;
    assert!(small.is_finished());
}

#[tokio::test]
async fn a_shaping_limit_lets_through_at_a_constant_pace() {
    let place = Place::new(&Limit::leaky_shape("10/s", 3).unwrap(), 100);
    let all: Vec<_> = (0..30).map(|number| place.comes(number, 0)).collect();
    settle().await;
    for _ in 0..60 {
        place.passes(Duration::from_millis(50)).await;
    }
    assert!(all.iter().all(JoinHandle::is_finished));
    let served = place.served.lock().unwrap().clone();
    for (number, (who, at)) in served.into_iter().enumerate() {
        assert_eq!((who, at.as_nanos()), (number, number as u64 * 100_000_000));
    }
}

#[tokio::test]
async fn keys_do_not_wait_for_each_other() {
    let place = Place::per_second(100);
    for key in 0..200 {
        drop((place.comes(key, key), place.comes(1_000 + key, key)));
    }
    settle().await;
    assert_eq!(place.served().len(), 200, "one of each key");
    assert_eq!((place.room.waiting(), place.queues()), (200, 200));
    place.passes(SECOND).await;
    assert_eq!(place.served().len(), 400);
    assert_eq!((place.room.waiting(), place.queues()), (0, 0));
}

#[tokio::test]
async fn without_a_limit_nobody_waits() {
    let place = Place::new(&Limit::token_bucket("unlimited").unwrap(), 0);
    for number in 0..100 {
        assert!(place.comes(number, 0).await.unwrap().is_ok());
    }
}

/// The room as a whole is bounded, and those it turns away leave nothing behind.
#[test]
fn a_room_that_is_full_remembers_nobody_it_turned_away() {
    let place = Place::per_second(2 * WaitingRoom::MAX_WAITING);
    assert!(place.counters.check(place.key(0), 1, &place.clock).is_allowed());
    let waiting: Vec<_> = (0..WaitingRoom::MAX_WAITING).map(|_| place.begin(0)).collect();
    assert_eq!(place.queues(), 1);
    for key in 1..1_000 {
        let key = place.key(key);
        let mut wait = pin!(place.room.wait(&place.counters, key, 1, &place.clock));
        let outcome = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let max = WaitingRoom::MAX_WAITING;
        assert_eq!(outcome, Poll::Ready(Err(WaitError::RoomFull { max })));
    }
    assert_eq!(place.queues(), 1);
    // From the tail: each gives up a place in front of nobody.
    waiting.into_iter().rev().for_each(drop);
    assert_eq!((place.room.waiting(), place.queues()), (0, 0));
}
