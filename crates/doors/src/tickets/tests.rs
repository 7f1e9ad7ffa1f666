use proptest::prelude::*;
use tollgate::{Clock as _, Engine, ManualClock, Outcome, Retry, RuleSet};

use super::*;

fn tickets(most: usize, time: u64) -> Tickets {
    let ticket_time = Duration::from_secs(time);
    Tickets::new(&Limits { tickets: most, ticket_time, ..Limits::default() })
}

fn engine(clock: &ManualClock, rules: &str) -> Engine<ManualClock> {
    let rules = RuleSet::parse(rules).unwrap();
    Engine::builder(rules).clock(clock.clone()).build().unwrap()
}

const ONE_AT_ONCE: &str = "rules: [{ name: a, key: [], concurrent: 1 }]";

#[test]
fn a_slot_is_held_until_the_end_is_told() {
    let clock = ManualClock::new();
    let (engine, tickets) = (engine(&clock, ONE_AT_ONCE), tickets(10, 60));
    let request = Request::new("GET", "/");
    let ticket = tickets.draw(clock.now());
    tickets.put(ticket, engine.decide(&request).keep(), &request);
    assert!(!engine.decide(&request).is_allowed());
    let kept = tickets.take(ticket, clock.now()).unwrap();
    kept.report(&engine, &Outcome::default());
    assert!(engine.decide(&request).is_allowed());
    assert!(tickets.take(ticket, clock.now()).is_none(), "it is told once");
    assert_eq!(tickets.count(), 0);
}

#[test]
fn a_ticket_that_nobody_uses_ends() {
    let clock = ManualClock::new();
    let (engine, tickets) = (engine(&clock, ONE_AT_ONCE), tickets(10, 60));
    let request = Request::new("GET", "/");
    let ticket = tickets.draw(clock.now());
    tickets.put(ticket, engine.decide(&request).keep(), &request);
    clock.advance(Duration::from_secs(59));
    tickets.sweep(clock.now());
    assert_eq!(engine.peek(&request).decision().retry(), Some(Retry::OnReturn));
    clock.advance(Duration::from_secs(1));
    assert!(tickets.take(ticket, clock.now()).is_none(), "its time is over");
    tickets.put(ticket, engine.decide(&request).keep(), &request);
    tickets.sweep(clock.now());
    assert_eq!((tickets.count(), engine.decide(&request).is_allowed()), (0, true));
}

#[test]
fn what_does_not_count_comes_back() {
    let clock = ManualClock::new();
    let failures =
        "rules: [{ name: a, key: [user], limit: 1/h, count_if: 'response.status == 401' }]";
    let (engine, tickets) = (engine(&clock, failures), tickets(10, 60));
    let request = Request::new("POST", "/login").attributes(&[("user", "ann")]);
    for (status, allowed) in [(200, true), (401, false)] {
        let ticket = tickets.draw(clock.now());
        tickets.put(ticket, engine.decide(&request).keep(), &request);
        let outcome = Outcome { status: Some(status), headers: &[] };
        tickets.take(ticket, clock.now()).unwrap().report(&engine, &outcome);
        assert_eq!(engine.peek(&request).is_allowed(), allowed, "{status}");
    }
}

#[test]
fn there_is_room_for_so_many_and_for_so_much() {
    let clock = ManualClock::new();
    let many = "rules: [{ name: a, key: [], concurrent: 100 }]";
    let engine = engine(&clock, many);
    let put = |tickets: &Tickets, request: &Request<'_>| {
        tickets.put(tickets.draw(clock.now()), engine.decide(request).keep(), request);
    };
    let three = tickets(3, 60);
    assert!(three.has_room(3, clock.now()) && !three.has_room(4, clock.now()));
    for _ in 0..3 {
        assert!(three.has_room(1, clock.now()));
        put(&three, &Request::new("GET", "/"));
    }
    assert!(!three.has_room(1, clock.now()));
    let long = format!("/{}", "a".repeat(4 * BYTES_EACH));
    let four = tickets(4, 60);
    put(&four, &Request::new("GET", &long));
    assert!(!four.has_room(1, clock.now()), "it takes as much as four");
    clock.advance(Duration::from_secs(60));
    assert!(three.has_room(1, clock.now()) && four.has_room(1, clock.now()));
    assert_eq!((three.count(), three.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn tickets_are_not_alike_and_not_shown() {
    let tickets = tickets(3, 60);
    let (one, two) = (tickets.draw(Tick::ZERO), tickets.draw(Tick::ZERO));
    assert!(one.end == two.end && one.secret != two.secret);
    assert_ne!(one.secret, self::tickets(3, 60).draw(Tick::ZERO).secret);
    assert!(!format!("{one:?}").contains(&format!("{:x}", one.secret)));
}

proptest! {
    #[test]
    fn a_ticket_is_read_as_it_is_written(end in any::<u64>(), secret in any::<u128>()) {
        let ticket = Ticket { end, secret };
        prop_assert_eq!(ticket.to_string().parse(), Ok(ticket));
    }

    #[test]
    fn other_text_is_no_ticket(text in "[0-9a-f+é]{0,60}") {
        let read = text.parse::<Ticket>().map(|ticket| ticket.to_string());
        prop_assert!(read == Err(NoTicket) || read == Ok(text));
    }

    /// Whatever is put, taken and waited for: as many slots are held as there are tickets.
    #[test]
    fn slots_are_held_by_tickets_alone(steps in prop::collection::vec((0..3_u8, 0..20_u64), 1..60)) {
        let clock = ManualClock::new();
        let engine = engine(&clock, "rules: [{ name: a, key: [], concurrent: 50 }]");
        let (tickets, request) = (tickets(50, 30), Request::new("GET", "/"));
        let mut drawn = Vec::new();
        for (step, number) in steps {
            tickets.sweep(clock.now());
            match step {
                0 if tickets.has_room(1, clock.now()) => {
                    let ticket = tickets.draw(clock.now());
                    tickets.put(ticket, engine.decide(&request).keep(), &request);
                    drawn.push(ticket);
                }
                1 if !drawn.is_empty() => {
                    let at = number as usize % drawn.len();
                    drop(tickets.take(drawn.swap_remove(at), clock.now()));
                }
                _ => clock.advance(Duration::from_secs(number)),
            }
            let now = clock.now().as_nanos();
            let alive = drawn.iter().filter(|ticket| ticket.end > now).count();
            prop_assert!(tickets.count() >= alive);
            let left = engine.peek(&request).decision().remaining();
            prop_assert_eq!(left, 50 - tickets.count() as u64);
        }
        // However many ended at once, some are thrown away with every step.
        clock.advance(Duration::from_secs(30));
        (0..50).for_each(|_| tickets.sweep(clock.now()));
        prop_assert_eq!(tickets.count(), 0);
    }
}
