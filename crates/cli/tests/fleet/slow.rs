//! A store that answers slowly is taken for one that fails, before it slows down whoever asks.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::load::Outcome;
use crate::overload::{SECOND, Said};
use crate::recovery::{Busy, Recovery, assert_no_burst, unspoiled};
use crate::redis::{Redis, until};
use crate::relay::Relay;
use crate::{Fleet, now, pass};

const NODES: usize = 2;
const BURST: f64 = 300.0;
const RATE: f64 = 100.0;

/// Each node lets as much pass alone as all may together: more than comes in. So nothing is left when the
/// store is told what has passed.
const RULES: &str = "rules:
  - { name: lent, match: { path: /lent }, key: [user], limit: 100/s burst 300,
      on_store_failure: local 100% }
  - { name: strict, match: { path: /strict }, key: [user], limit: 100/s burst 300,
      consistency: strict, on_store_failure: deny }";

/// For how long nodes wait for their store unless told otherwise.
const TIMEOUT: Duration = Duration::from_millis(50);

/// How long answers take: more than half of that, and less than all of it. A question that waits for the answer
/// to another one has no time left for its own.
const WAY: Duration = Duration::from_millis(30);

/// No lease lasts longer: half of the time that the limit takes to refill.
const LEASE: Duration = Duration::from_millis(1_500);

/// The time in which nodes left the store alone, when all that was asked before had been answered.
struct Alone {
    begin: Instant,
    end: Instant,
    /// How many decisions there were meanwhile with what was lent before.
    lent: f64,
}

impl Alone {
    /// What was let pass is what rules say: the share of each node, and nothing.
    fn assert_by_policy(&self, name: &str, outcome: &Outcome) {
        let passed = outcome.allowed_between(self.begin, self.end) as f64;
        let time = (self.end - self.begin).as_secs_f64();
        let (least, most) = match name {
            "lent" => (RATE * time, self.lent + NODES as f64 * (BURST + RATE * time)),
            _ => (0.0, 0.0),
        };
        let is_right = (least..=most).contains(&passed);
        assert!(is_right, "{name}: {passed} passed in {time} s, not {least} to {most}");
    }
}

/// What each node has said of its store.
fn said(busy: &Busy) -> Vec<Said> {
    busy.overload.fleet.nodes.iter().map(Said::by).collect()
}

/// Makes answers slow, and waits until all nodes leave the store alone and have said so once.
fn leave_alone(busy: &Busy, relay: &Relay) -> Alone {
    let before = until("all are well at the same time", || {
        let said = said(busy);
        (!said.iter().any(|node| node.is_degraded())).then_some(said)
    });
    relay.answers_take(WAY);
    busy.overload.all_are_degraded();
    // What was on its way has come by then.
    busy.overload.all_are_answered();
    let (begin, asked, lent) = (now(), busy.decided("asked"), busy.decided("lent"));
    busy.overload.all_stay_degraded();
    pass(LEASE.saturating_sub(now() - begin));
    busy.overload.all_are_answered();
    assert_eq!(busy.decided("asked"), asked, "nobody asks, and nobody waits for an answer");
    let once = |it: &Said| Said { fails: it.fails + 1, ..*it };
    assert_eq!(said(busy), before.iter().map(once).collect::<Vec<_>>(), "each has said so once");
    Alone { begin, end: now(), lent: busy.decided("lent") - lent }
}

/// Makes answers quick again, and waits until all nodes have said once that the store is well. Nobody asks
/// until they have told it what passed. Since when they are quick, and what came then.
fn come_back(busy: &Busy, relay: &Relay) -> (Instant, Recovery) {
    let before = said(busy);
    busy.is_on.store(false, Ordering::Relaxed);
    let quick = now();
    relay.answers_take(Duration::ZERO);
    busy.overload.all_are_well_again();
    let once = |it: &Said| Said { well: it.well + 1, ..*it };
    assert_eq!(said(busy), before.iter().map(once).collect::<Vec<_>>(), "each has said so once");
    (quick, busy.recovery(|| SECOND))
}

#[test]
fn a_store_that_answers_slowly_is_left_alone_until_it_is_quick_again() {
    unspoiled(|| {
        let redis = Redis::start(&[]);
        let relay = Relay::to(redis.port);
        let busy = Busy::waiting(TIMEOUT, NODES, &relay.url(), RULES);
        let alone = leave_alone(&busy, &relay);
        let (quick, recovery) = come_back(&busy, &relay);
        // Nobody has waited for longer than the timeout, or this fails.
        let outcomes = busy.overload.end();
        for (name, outcome) in &outcomes {
            alone.assert_by_policy(name, outcome);
            match *name {
                "lent" => {
                    let came_in = |at: Instant| RATE * (at - quick).as_secs_f64();
                    assert_no_burst("once the store is quick", outcome, &recovery, came_in);
                }
                // All that passed was granted, and nobody has spent what came in meanwhile.
                _ => {
                    let excess = outcome.excess(BURST, RATE);
                    assert!(excess <= 0.0, "{excess:.1} more passed than may in some interval");
                }
            }
        }
        recovery.undisturbed(&outcomes)
    });
}

/// No answer is missing, and each would be heeded: they are only late.
#[test]
fn no_more_than_five_callers_wait_for_a_store_that_is_late_with_every_answer() {
    let redis = Redis::start(&[]);
    let relay = Relay::to(redis.port);
    let rules = "rules: [{ name: strict, key: [user], limit: 600/day, consistency: strict,
      on_store_failure: deny }]";
    let timeout = format!("{TIMEOUT:?}");
    let fleet = Fleet::waiting(&timeout, "1", NODES, &relay.url(), rules);
    let mut clients: Vec<_> = fleet.nodes.iter().map(Client::of).collect();
    let mut ask = |node: usize| clients[node].ask(&["TG.CHECK", "user", "alice"]);
    for node in 0..NODES {
        until("the store decides", || ask(node).starts_with("*8\r\n:0\r\n").then_some(()));
    }
    relay.answers_take(WAY);
    for (number, node) in fleet.nodes.iter().enumerate() {
        // If the machine was so busy that the store did not answer in time, that counts as well.
        let slowed = || {
            let of = |what| fleet.metric(number, &format!("tollgate_store_{what}_total"));
            of("late") + of("failures")
        };
        let before = slowed();
        until("the node says that the store fails", || {
            ask(number);
            Said::by(node).is_degraded().then_some(())
        });
        let slowed = slowed() - before;
        assert!(slowed <= 5.0, "{slowed} have waited for the store");
    }
}
