use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(60);

fn at(seconds: f64) -> Tick {
    Tick::from_nanos((seconds * 1e9) as u64)
}

fn usage(allowed: u64, denied: u64) -> Usage {
    Usage { allowed, denied }
}

/// What somebody who has just reported is given.
fn give(pool: &mut Pool, who: u64, now: Tick) -> Option<Share> {
    let fill = Fill::of(pool.rate_for(who))?;
    let share = Share { fill, tokens: pool.tokens_for(who, fill.rate())? };
    pool.give(who, share, now.after(TTL));
    Some(share)
}

fn report(pool: &mut Pool, who: u64, usage: Usage, now: Tick) -> Option<Share> {
    pool.report(who, usage, now);
    give(pool, who, now)
}

fn pool(rate: f64, burst: f64) -> Pool {
    Pool::new(Budget { rate, burst }, at(0.0))
}

#[test]
fn one_alone_has_everything_that_is_not_spent() {
    let mut pool = pool(10.0, 30.0);
    let share = report(&mut pool, 1, usage(4, 0), at(0.0)).unwrap();
    assert_eq!(share, Share { fill: Fill { tokens: 10, seconds: 1 }, tokens: 26 });
}

#[test]
fn shares_follow_demand() {
    let mut pool = pool(160.0, 160.0);
    report(&mut pool, 1, usage(0, 0), at(0.0));
    for second in (5..100).step_by(5) {
        for (who, wanted) in [(1, 100), (2, 900)] {
            report(&mut pool, who, usage(0, wanted), at(f64::from(second)));
        }
    }
    let [small, large] = [1, 2].map(|who| pool.rate_for(who));
    assert!(small < 30.0 && large > 120.0, "{small} and {large}");
    // They want the opposite.
    for second in (100..200).step_by(5) {
        for (who, wanted) in [(1, 900), (2, 100)] {
            report(&mut pool, who, usage(0, wanted), at(f64::from(second)));
        }
    }
    let [large, small] = [1, 2].map(|who| pool.rate_for(who));
    assert!(small < 30.0 && large > 120.0, "{small} and {large}");
}

#[test]
fn the_share_of_one_who_is_gone_comes_back_when_it_ends() {
    let mut pool = pool(10.0, 10.0);
    report(&mut pool, 1, usage(0, 50), at(0.0));
    pool.leave(1);
    pool.report(2, usage(0, 50), at(1.0));
    assert_eq!(pool.rate_for(2), 0.0, "the other may still use all of it");
    pool.report(2, usage(0, 50), at(59.0));
    assert_eq!(pool.rate_for(2), 0.0);
    pool.report(2, usage(0, 50), at(60.0));
    assert_eq!((pool.rate_for(2), pool.len()), (10.0, 1));
}

#[test]
fn one_who_is_silent_loses_its_share_and_is_forgotten() {
    let mut pool = pool(10.0, 10.0);
    report(&mut pool, 1, usage(0, 50), at(0.0));
    for second in [30, 60, 90, 119] {
        pool.report(2, usage(0, 50), at(f64::from(second)));
        assert_eq!(pool.len(), 2);
    }
    assert!(pool.rate_for(2) > 5.0);
    pool.report(2, usage(0, 50), at(120.0));
    assert!(pool.len() == 1 && pool.rate_for(2) > 9.9, "{pool:?}");
}

#[test]
fn what_is_spent_stays_spent_when_the_limit_changes() {
    let mut pool = pool(1.0 / 3600.0, 3.0);
    report(&mut pool, 1, usage(0, 0), at(0.0));
    pool.report(1, usage(3, 1), at(1.0));
    pool.change(Budget { rate: 1.0 / 3600.0, burst: 8.0 }, at(1.0));
    assert_eq!(give(&mut pool, 1, at(1.0)).unwrap().tokens, 5);
    pool.report(1, usage(5, 0), at(2.0));
    pool.change(Budget { rate: 1.0 / 3600.0, burst: 2.0 }, at(2.0));
    assert_eq!(give(&mut pool, 1, at(2.0)), None, "it has had more than that");
}

#[test]
fn what_comes_in_is_kept_for_its_holder_until_it_reports() {
    let mut pool = pool(1.0, 10.0);
    pool.report(2, usage(6, 0), at(0.0));
    let share = report(&mut pool, 1, usage(0, 6), at(0.0)).unwrap();
    assert_eq!((share.tokens, pool.tokens), (4, 0.0));
    // While it is silent, all that it had and all that came in may have passed.
    pool.settle(at(10.0));
    let silent = 4.0 + share.fill.rate() * 10.0;
    assert_eq!(6.0 + silent + pool.tokens, 10.0 + 1.0 * 10.0);
    // It was full all the time: what it could not hold is there for others.
    pool.report(1, usage(0, 6), at(10.0));
    assert_eq!(pool.tokens, 6.0);
}

#[test]
fn a_pool_comes_to_rest() {
    let mut pool = pool(1.0, 10.0);
    assert!(pool.is_at_rest());
    report(&mut pool, 1, usage(10, 0), at(0.0));
    pool.leave(1);
    pool.settle(at(59.0));
    assert!(!pool.is_at_rest());
    pool.settle(at(60.0));
    pool.settle(at(90.0));
    assert!(pool.is_at_rest(), "{pool:?}");
}

/// A proxy that enforces a share on its own.
#[derive(Clone, Copy, Default)]
struct Proxy {
    share: Option<Share>,
    level: f64,
    until: f64,
    /// Since the last report.
    allowed: u64,
    denied: u64,
    is_gone: bool,
}

impl Proxy {
    /// Time passes.
    fn pass(&mut self, from: f64, to: f64) {
        let Some(share) = self.share else { return };
        let end = to.min(self.until);
        let filled = self.level + share.fill.rate() * (end - from).max(0.0);
        self.level = filled.min(share.tokens.into());
        if to >= self.until {
            (self.share, self.level) = (None, 0.0);
        }
    }

    /// Requests come. How many pass?
    fn request(&mut self, wanted: u64) -> u64 {
        let passed = wanted.min(self.level.floor() as u64);
        self.level -= passed as f64;
        self.allowed += passed;
        self.denied += wanted - passed;
        passed
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Pass(f64),
    Request(usize, u64),
    Report(usize),
    Renew(usize),
    End(usize),
    Begin(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let who = 0..4_usize;
    prop::collection::vec(
        prop_oneof![
            (0.0..20.0_f64).prop_map(Event::Pass),
            (who.clone(), 0..200_u64).prop_map(|(who, wanted)| Event::Request(who, wanted)),
            who.clone().prop_map(Event::Report),
            who.clone().prop_map(Event::Renew),
            who.clone().prop_map(Event::End),
            who.prop_map(Event::Begin),
        ],
        1..200,
    )
}

proptest! {
    /// Whatever comes, in whatever order: all that have shares are together no faster than the
    /// limit, and what passes is no more than the limit lets pass, and what one second gives.
    #[test]
    fn shares_are_never_more_than_the_limit(
        rate in prop_oneof![0.001..1.0_f64, 1.0..500.0_f64],
        burst in 1_u32..500,
        events in events(),
    ) {
        let budget = Budget { rate, burst: burst.into() };
        let (mut pool, mut now, mut passed) = (Pool::new(budget, at(0.0)), 0.0, 0);
        // Those that are replaced go on until their shares end.
        let mut proxies: Vec<Proxy> = vec![Proxy::default(); 4];
        let mut places = [0_usize, 1, 2, 3];
        for event in events {
            match event {
                Event::Pass(time) => {
                    proxies.iter_mut().for_each(|proxy| proxy.pass(now, now + time));
                    now += time;
                }
                Event::Request(who, wanted) => {
                    // One that has ended and its successor both serve.
                    passed += proxies[places[who]].request(wanted);
                    passed += proxies[who].request(wanted);
                }
                Event::Report(who) if !proxies[places[who]].is_gone => {
                    let (id, proxy) = (places[who] as u64, &mut proxies[places[who]]);
                    let told = usage(proxy.allowed, proxy.denied);
                    (proxy.allowed, proxy.denied) = (0, 0);
                    if let Some(share) = report(&mut pool, id, told, at(now)) {
                        proxy.share = Some(share);
                        (proxy.level, proxy.until) = (share.tokens.into(), now + TTL.as_secs_f64());
                    }
                }
                Event::Renew(who) if !proxies[places[who]].is_gone => {
                    let (id, proxy) = (places[who] as u64, &mut proxies[places[who]]);
                    pool.settle(at(now));
                    if proxy.share.is_some() {
                        proxy.until = now + TTL.as_secs_f64();
                        pool.renew(id, at(now).after(TTL));
                    }
                }
                Event::End(who) => {
                    proxies[places[who]].is_gone = true;
                    pool.leave(places[who] as u64);
                }
                Event::Begin(who) if proxies[places[who]].is_gone => {
                    places[who] = proxies.len();
                    proxies.push(Proxy::default());
                }
                Event::Report(_) | Event::Renew(_) | Event::Begin(_) => {}
            }
            let live = proxies.iter().filter_map(|proxy| proxy.share);
            let together: f64 = live.map(|share| share.fill.rate()).sum();
            prop_assert!(together <= rate * 1.001 + 1e-5, "{together} of {rate}");
            let most = f64::from(burst) + rate.max(1.0) + rate * now * 1.001;
            prop_assert!(passed as f64 <= most + 0.01, "{passed} of {most}");
        }
    }
}
