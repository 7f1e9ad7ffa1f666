//! What happens between the look and the spending of a request, put there by its own clock: a
//! gate reads the clock when a request begins, and again when a key gets its place.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::{Clock, Gate, GateBuilder, Limit, LimitId, ManualClock, Tick, Wall};

use crate::{each_algorithm, each_that_gives_back, left};

/// A clock that lets somebody else act in the middle of a request.
#[derive(Clone, Default)]
struct Interrupting {
    clock: ManualClock,
    deed: Arc<Mutex<Option<Deed>>>,
}

struct Deed {
    /// How many readings go before.
    readings: u32,
    act: Box<dyn FnOnce() + Send>,
}

impl Interrupting {
    /// Acts in the middle of the next request: at the second reading of the clock.
    fn interrupt(&self, act: impl FnOnce() + Send + 'static) {
        *self.deed.lock().unwrap() = Some(Deed { readings: 1, act: Box::new(act) });
    }
}

impl Clock for Interrupting {
    fn now(&self) -> Tick {
        let mut deed = self.deed.lock().unwrap();
        let due = deed.take_if(|deed| deed.readings == 0);
        if let Some(deed) = &mut *deed {
            deed.readings -= 1;
        }
        // Whoever acts reads the clock, too.
        drop(deed);
        if let Some(due) = due {
            (due.act)();
        }
        self.clock.now()
    }

    fn wall(&self) -> Wall {
        self.clock.wall()
    }
}

/// A gate whose `last` limit loses all it has to a rival in the middle of the next request, when
/// `later` has passed.
struct Scene {
    gate: Arc<Gate<Interrupting>>,
    clock: Interrupting,
    last: LimitId,
}

impl Scene {
    fn new(last: Limit, others: impl FnOnce(&mut GateBuilder<Interrupting>)) -> Self {
        let clock = Interrupting::default();
        let mut builder = Gate::builder().keys(1_000).clock(clock.clone());
        let last = builder.limit("last", last);
        others(&mut builder);
        Self { gate: Arc::new(builder.build().unwrap()), clock, last }
    }

    fn rival_comes(&self, later: Duration) {
        let (gate, clock, last) = (Arc::clone(&self.gate), self.clock.clock.clone(), self.last);
        self.clock.interrupt(move || {
            clock.advance(later);
            let all = left(&gate, last.charge("alice"));
            assert!(gate.check(&[last.charge("alice").cost(all)]).is_allowed());
        });
    }

    fn rival_came(&self) -> bool {
        self.clock.deed.lock().unwrap().is_none()
    }
}

/// What was spent in a window after the one in which the request began stayed spent.
#[test]
fn a_denied_request_that_crossed_the_edge_of_a_window_leaves_nothing_spent() {
    let daily = [
        Limit::token_bucket("5/day").unwrap(),
        Limit::leaky_police("1/day burst 5").unwrap(),
        Limit::fixed_window("5/day").unwrap(),
        Limit::fixed_window("5/day").unwrap().jittered().unwrap(),
        Limit::sliding_window("5/day").unwrap(),
        Limit::sliding_log("5/day").unwrap(),
        Limit::calendar("5/day", "UTC").unwrap(),
    ];
    for limit in daily {
        let mut plenty = None;
        let scene = Scene::new(Limit::token_bucket("1/month").unwrap(), |builder| {
            plenty = Some(builder.limit("plenty", limit.clone()));
        });
        let (gate, plenty) = (&scene.gate, plenty.unwrap());
        scene.clock.clock.advance(Duration::from_secs(86_400) - Duration::from_millis(1));
        scene.rival_comes(Duration::from_millis(2));
        let denied = gate.check(&[plenty.charge("alice").cost(3), scene.last.charge("alice")]);
        assert!(scene.rival_came(), "{limit}");
        assert_eq!((denied.is_allowed(), denied.limit()), (false, scene.last), "{limit}");
        assert_eq!(left(gate, plenty.charge("alice")), 5, "{limit}");
    }
}

/// The answer told what was left while the request's own spending was still in.
#[test]
fn after_a_racing_denial_every_decision_says_what_is_left() {
    for limit in each_that_gives_back(5) {
        for last in each_algorithm(2) {
            let mut plenty = None;
            let scene = Scene::new(last.clone(), |builder| {
                plenty = Some(builder.limit("plenty", limit.clone()));
            });
            let (gate, plenty) = (&scene.gate, plenty.unwrap());
            scene.rival_comes(Duration::ZERO);
            let once = plenty.charge("alice");
            let denied = gate.check(&[once.cost(2), scene.last.charge("alice"), once]);
            assert!(scene.rival_came(), "{limit} and {last}");
            assert_eq!((denied.is_allowed(), denied.limit()), (false, scene.last));
            let told: Vec<_> = denied.each().iter().map(|each| each.remaining()).collect();
            assert_eq!(told, [5, 0, 5], "{limit} and {last}");
            let allowed: Vec<_> = denied.each().iter().map(|each| each.is_allowed()).collect();
            assert_eq!(allowed, [true, false, true], "{limit} and {last}");
            assert_eq!(left(gate, once), 5, "{limit} and {last}");
        }
    }
}

/// The promise about two limits that shape: the first loses one place to a request that the second
/// denies in a race, and none to one that it denies in peace.
#[test]
fn of_two_limits_that_shape_the_first_loses_one_place_to_a_race() {
    let mut pace = None;
    let scene = Scene::new(Limit::leaky_shape("1/h", 1).unwrap(), |builder| {
        pace = Some(builder.limit("pace", Limit::leaky_shape("1/h", 9).unwrap()));
    });
    let (gate, pace) = (&scene.gate, pace.unwrap());
    scene.rival_comes(Duration::ZERO);
    let request = [pace.charge("alice"), scene.last.charge("alice")];
    let denied = gate.check(&request);
    assert!(scene.rival_came());
    assert_eq!((denied.is_allowed(), denied.limit()), (false, scene.last));
    assert_eq!(denied.each()[0].remaining(), 9);
    for _ in 0..5 {
        assert!(!gate.check(&request).is_allowed());
        assert_eq!(left(gate, pace.charge("alice")), 9);
    }
}
