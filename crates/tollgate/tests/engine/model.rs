//! The engine against a model that can be read in a minute: lists of what was spent when.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tollgate::{Charge, Gate, Limit, LimitId, ManualClock, Request};

use crate::engine;

/// A rule as it is written, and as the model knows it.
#[derive(Clone, Debug)]
struct Written {
    algorithm: &'static str,
    count: u64,
    seconds: u64,
    key: &'static [&'static str],
    path: Option<&'static str>,
    mode: &'static str,
    cost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    user: Option<&'static str>,
    ip: Option<u8>,
    path: &'static str,
    /// How long after the one before.
    wait: Duration,
    only_looks: bool,
}

const ALGORITHMS: [&str; 6] =
    ["token_bucket", "leaky_bucket", "queue", "fixed_window", "sliding_window", "sliding_log"];
const KEYS: [&[&str]; 4] = [&[], &["user"], &["ip"], &["user", "ip"]];

fn written() -> impl Strategy<Value = Written> {
    let numbers = (select(&[1, 2, 3, 4, 5, 6][..]), select(&[1u64, 60][..]), 1..3u64);
    let key = any::<Index>().prop_map(|at| *at.get(&KEYS));
    let path = select(&[None, Some("/a/**"), Some("/b")][..]);
    let mode = select(&["enforce", "enforce", "enforce", "shadow", "off"][..]);
    (select(&ALGORITHMS[..]), numbers, key, path, mode).prop_map(
        |(algorithm, (count, seconds, cost), key, path, mode)| {
            let cost = if algorithm == "leaky_bucket" { 1 } else { cost.min(count) };
            Written { algorithm, count, seconds, key, path, mode, cost }
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let user = select(&[None, Some("alice"), Some("bob")][..]);
    let ip = select(&[None, Some(1), Some(2)][..]);
    let millis = select(&[0u64, 0, 0, 1, 90, 250, 1_000, 7_000, 30_000, 59_999][..]);
    let rest = (select(&["/a", "/a/b/c", "/b", "/c"][..]), millis, 0..8u8);
    (user, ip, rest).prop_map(|(user, ip, (path, millis, look))| Asked {
        user,
        ip,
        path,
        wait: Duration::from_millis(millis),
        only_looks: look == 0,
    })
}

impl Written {
    fn text(&self, number: usize) -> String {
        let Self { algorithm, count, seconds, mode, cost, .. } = self;
        let algorithm = match *algorithm {
            "queue" => "leaky_bucket, queue: 3",
            other => other,
        };
        let matching =
            self.path.map_or_else(String::new, |path| format!("match: {{ path: {path} }}, "));
        let (key, limit) = (self.key.join(", "), format!("{count}/{seconds}s"));
        format!(
            "  - {{ name: r{number}, {matching}key: [{key}], limit: {limit}, \
             algorithm: {algorithm}, mode: {mode}, cost: {cost} }}\n"
        )
    }

    /// What the request is counted by, if the rule applies to it.
    fn key_of(&self, asked: &Asked) -> Option<Vec<String>> {
        let fits = match self.path {
            None => true,
            Some("/b") => asked.path == "/b",
            Some(_) => asked.path.starts_with("/a"),
        };
        let part = |part: &&str| match *part {
            "user" => asked.user.map(str::to_owned),
            _ => asked.ip.map(|ip| ip.to_string()),
        };
        let key = self.key.iter().map(part).collect::<Option<_>>()?;
        (fits && self.mode != "off").then_some(key)
    }
}

/// What a rule has spent: for each key when, and how much.
struct Spent<'a> {
    rule: &'a Written,
    by_key: BTreeMap<Vec<String>, Vec<(u64, u64)>>,
    /// For two algorithms a limit alone: others have shown what they do.
    alone: Option<(Gate<ManualClock>, LimitId)>,
}

impl<'a> Spent<'a> {
    fn new(rule: &'a Written, clock: &ManualClock) -> Self {
        let quota = format!("{}/{}s", rule.count, rule.seconds);
        let limit = match rule.algorithm {
            "sliding_window" => Some(Limit::sliding_window(&quota).unwrap()),
            "queue" => Some(Limit::leaky_shape(&quota, 3).unwrap()),
            _ => None,
        };
        let alone = limit.map(|limit| {
            let mut builder = Gate::builder().keys(1_000).clock(clock.clone());
            let id = builder.limit("alone", limit);
            (builder.build().unwrap(), id)
        });
        Self { rule, by_key: BTreeMap::new(), alone }
    }

    fn fits(&self, key: &[String], now: u64) -> bool {
        if let Some((gate, id)) = &self.alone {
            return gate.peek(&[charge(*id, &key.join("/"), self.rule.cost)]).is_allowed();
        }
        let spent = self.by_key.get(key).map_or(&[][..], |spent| spent);
        let period = self.rule.seconds * 1_000;
        let within = |from: u64| -> u64 {
            spent.iter().filter(|(when, _)| *when >= from).map(|(_, cost)| cost).sum()
        };
        match self.rule.algorithm {
            "token_bucket" => self.bucket_fits(spent, self.rule.count, now),
            "leaky_bucket" => self.bucket_fits(spent, 1, now),
            "fixed_window" => within(now - now % period) + self.rule.cost <= self.rule.count,
            // What is one period old is over.
            _ => within((now + 1).saturating_sub(period)) + self.rule.cost <= self.rule.count,
        }
    }

    /// Fills a bucket from the beginning, in parts of a token.
    fn bucket_fits(&self, spent: &[(u64, u64)], most: u64, now: u64) -> bool {
        let token = self.rule.seconds * 1_000;
        let (mut level, mut then) = (most * token, 0);
        for (when, cost) in spent.iter().copied().chain([(now, 0)]) {
            level = (level + (when - then) * self.rule.count).min(most * token) - cost * token;
            then = when;
        }
        level >= self.rule.cost * token
    }

    fn spend(&mut self, key: Vec<String>, now: u64) {
        if let Some((gate, id)) = &self.alone {
            let _ = gate.check(&[charge(*id, &key.join("/"), self.rule.cost)]);
        }
        self.by_key.entry(key).or_default().push((now, self.rule.cost));
    }
}

fn charge<'a>(id: LimitId, key: &'a str, cost: u64) -> Charge<'a> {
    id.charge(key).cost(cost)
}

/// What the model says: whether the request passes, and each rule that applies.
fn decide(all: &mut [Spent<'_>], asked: &Asked, now: u64) -> (bool, Vec<(String, bool)>) {
    let meets = |(number, one): (usize, &Spent<'_>)| {
        let key = one.rule.key_of(asked)?;
        Some((number, one.fits(&key, now), key))
    };
    let met: Vec<_> = all.iter().enumerate().filter_map(meets).collect();
    let passes = met.iter().all(|(number, fits, _)| *fits || all[*number].rule.mode == "shadow");
    let each = met.iter().map(|(number, fits, _)| (format!("r{number}"), *fits)).collect();
    if passes && !asked.only_looks {
        for (number, _, key) in met.into_iter().filter(|(_, fits, _)| *fits) {
            all[number].spend(key, now);
        }
    }
    (passes, each)
}

proptest! {
    #[test]
    fn decides_as_rules_that_are_asked_one_by_one(
        rules in prop::collection::vec(written(), 1..6),
        requests in prop::collection::vec(asked(), 1..60),
    ) {
        let text: String = rules.iter().enumerate().map(|(at, rule)| rule.text(at)).collect();
        let (engine, clock) = engine(&format!("rules:\n{text}"));
        let mut all: Vec<_> = rules.iter().map(|rule| Spent::new(rule, &clock)).collect();
        let mut now = 0;
        for asked in &requests {
            clock.advance(asked.wait);
            now += asked.wait.as_millis() as u64;
            let attributes = asked.user.map(|user| ("user", user));
            let mut request = Request::new("GET", asked.path).attributes(attributes.as_slice());
            if let Some(ip) = asked.ip {
                request = request.peer(IpAddr::from([192, 0, 2, ip]));
            }
            let ruling = if asked.only_looks { engine.peek(&request) } else { engine.decide(&request) };
            let each = ruling.each().map(|each| (each.name().to_owned(), each.is_allowed()));
            let said = (ruling.is_allowed(), each.collect::<Vec<_>>());
            prop_assert_eq!(said, decide(&mut all, asked, now), "{:?} after {} ms\n{}", asked, now, text);
        }
    }
}
