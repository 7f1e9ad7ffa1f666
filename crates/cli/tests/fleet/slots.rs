//! So many at once, over all nodes.

use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::redis::{Redis, until};
use crate::{Fleet, now, pass};

const RULES: &str =
    "rules: [{ name: exports, key: [user], concurrent: 6, on_store_failure: deny }]";
const MOST: usize = 6;

/// Where the store keeps who holds them.
const KEY: &str = "tg:{user=alice}:default/exports:permits";

/// So many clients of each node race for them.
const CLIENTS: usize = 4;

/// Clients of three nodes, each of which takes a permit, holds it for a while, and says that it has
/// ended.
#[derive(Default)]
struct Race {
    held: Mutex<Held>,
    /// Those of the third node end, and one of them at least without giving back what it has.
    holds_on: AtomicBool,
    ends: AtomicBool,
}

/// What clients know to be in flight: never more than there is, because a permit counts from when it
/// was heard of until its end is about to be told.
#[derive(Clone, Copy, Default)]
struct Held {
    by_node: [usize; 3],
    /// The most that nodes held together which live, and which ever lived.
    most_living: usize,
    most: usize,
    /// When it was first more than there are.
    beyond: Option<Instant>,
    is_third_dead: bool,
    taken: [usize; 3],
    denied: usize,
}

impl Held {
    fn take(&mut self, node: usize) {
        self.by_node[node] += 1;
        self.taken[node] += 1;
        let all: usize = self.by_node.iter().sum();
        let living = if self.is_third_dead { all - self.by_node[2] } else { all };
        (self.most, self.most_living) = (self.most.max(all), self.most_living.max(living));
        if all > MOST {
            self.beyond.get_or_insert_with(now);
        }
    }

    /// From now on only those of the others live.
    fn third_dies(&mut self) {
        (self.is_third_dead, self.most_living) = (true, 0);
    }
}

impl Race {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    /// Begins with the clients of a node.
    fn join<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        fleet: &Fleet,
        node: usize,
    ) -> [ScopedJoinHandle<'s, ()>; CLIENTS] {
        array::from_fn(|number| {
            let client = Client::of(&fleet.nodes[node]);
            scope.spawn(move || self.run(client, node, number))
        })
    }

    fn run(&self, mut client: Client, node: usize, number: usize) {
        let mut turn = number as u64;
        while !self.ends.load(Ordering::Relaxed) {
            let holds_on = node == 2 && self.holds_on.load(Ordering::Relaxed);
            if holds_on && self.held().by_node[node] > 0 {
                return;
            }
            let answer = client.ask(&["TG.CHECK", "path", "/export", "user", "alice"]);
            if !answer.starts_with("*8\r\n:0\r\n") {
                self.held().denied += 1;
                pass(Duration::from_millis(1));
                continue;
            }
            self.held().take(node);
            if holds_on {
                return;
            }
            // Some hold it for longer than others.
            turn += 7;
            pass(Duration::from_millis(turn % 25));
            self.held().by_node[node] -= 1;
            let ticket = answer.trim_end().rsplit("\r\n").next().unwrap();
            assert_eq!(client.ask(&["TG.REPORT", ticket]), ":1\r\n", "{answer:?}");
        }
    }
}

/// When the store's leases end, by its clock.
fn leases(redis: &Redis) -> BTreeMap<String, Duration> {
    let all = redis.cli(&["--raw", "HGETALL", KEY]);
    let lines: Vec<_> = all.lines().collect();
    let pairs = lines.chunks(2).filter(|pair| pair[0].starts_with("lease "));
    let end = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        Duration::from_secs(numbers[5]) + Duration::from_nanos(numbers[6])
    };
    pairs.map(|pair| (pair[0].to_owned(), end(pair[1]))).collect()
}

/// What the store's clock says, and a moment before by ours.
fn clocks(redis: &Redis) -> (Duration, Instant) {
    let before = now();
    let time = redis.cli(&["--raw", "TIME"]);
    let (seconds, micros) = time.split_once('\n').unwrap();
    let seconds = Duration::from_secs(seconds.parse().unwrap());
    (seconds + Duration::from_micros(micros.trim().parse().unwrap()), before)
}

/// The end of a race, however its test ends.
struct Ended<'r>(&'r AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn permits_of_a_node_that_was_killed_come_back_and_never_are_there_more() {
    let redis = Redis::start(&[]);
    let mut fleet = Fleet::start(3, &redis.url(), RULES);
    let race = Race::default();
    thread::scope(|scope| {
        // Also if this fails: clients that race on would keep it from ending.
        let _ended = Ended(&race.ends);
        let [_, _, third] = array::from_fn(|node| race.join(scope, &fleet, node));
        pass(Duration::from_secs(2));
        until("all are in flight, and every node had many of them", || {
            let Held { most, taken, denied, .. } = *race.held();
            (most == MOST && taken.iter().all(|taken| *taken > 20) && denied > 20).then_some(())
        });

        race.holds_on.store(true, Ordering::Relaxed);
        until("those of the third node hold on", || {
            third.iter().all(ScopedJoinHandle::is_finished).then_some(())
        });
        assert_eq!(race.held().beyond, None, "more than six were in flight");
        fleet.nodes[2].process.signal("KILL");
        fleet.nodes[2].process.wait();
        let (at_death, (theirs, ours)) = (leases(&redis), clocks(&redis));
        race.held().third_dies();

        until("the permits of the dead have come back", || {
            (race.held().most_living >= MOST).then_some(())
        });
        pass(Duration::from_secs(1));

        let later = leases(&redis);
        let is_dead =
            |(node, end): &(&String, &Duration)| later.get(*node).is_none_or(|it| it == *end);
        let dead: Vec<_> = at_death.iter().filter(is_dead).collect();
        let [(_, end)] = dead[..] else { panic!("{at_death:?} and then {later:?}") };
        let end = ours + end.saturating_sub(theirs);
        let Held { most_living, beyond, by_node, .. } = *race.held();
        assert!(by_node[2] > 0, "the dead held some");
        assert!(most_living <= MOST, "{most_living} were in flight among the living");
        assert!(beyond.is_some_and(|beyond| beyond >= end), "they came back too early");
    });
}
