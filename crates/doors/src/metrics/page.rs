//! All that is counted, as Prometheus reads it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Clock as _, SharingStats, Stats};

use super::Metrics;
use super::family::{self, Family, Labels, Samples};
use super::histogram::Timings;
use super::quotas::of_quotas;
use super::series::{MOST_RULES, OUTCOMES, Series};
use super::shard;
use crate::door::{Name, Places};
use crate::held::Budget;
use crate::service::{Service, THROTTLED};
use crate::switches::Killed;
use crate::tls::Tls;

impl Metrics {
    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, service: &Service) -> String {
        family::write(self.families(service))
    }

    /// All of it.
    pub(crate) fn families(&self, service: &Service) -> Vec<Family> {
        let series = self.series.load_full();
        let mut families = self.of_decisions(&series);
        families.extend(self.of_doors());
        families.extend(self.of_rules(&series));
        families.extend(of_switches(service));
        families.extend(of_engine(service));
        families.extend(of_store(service));
        families.extend(of_held(service.held()));
        let quotas = self.quotas.get().map(|desk| desk.counts(service.clock().now()));
        families.extend(of_quotas(&quotas.unwrap_or_default()));
        families.push(of_heaviest(service, &series));
        families.extend(self.tls.get().map_or_else(Vec::new, |tls| of_tls(tls)));
        families.extend(self.of_process(service));
        families
    }

    fn of_decisions(&self, series: &Series) -> Vec<Family> {
        let mut by_door = Vec::new();
        for door in ASKED {
            for (denied, outcome) in ["allowed", "denied"].into_iter().enumerate() {
                let count =
                    shard::sum(&*self.shards, |shard| &shard.decisions[door as usize][denied]);
                by_door.push((of_door(door, Some(outcome)), count));
            }
        }
        let mut by_rule = Vec::new();
        for (rule, totals) in series.totals() {
            for (outcome, total) in OUTCOMES.iter().zip(totals) {
                let labels = vec![("rule", rule.to_owned()), ("outcome", (*outcome).to_owned())];
                by_rule.push((labels, total));
            }
        }
        let throttled =
            |outcome: usize| shard::sum(&*self.shards, |shard| &shard.throttled[outcome]);
        let totals = [throttled(0), throttled(1)];
        if totals != [0, 0] {
            for (outcome, total) in OUTCOMES.iter().zip(totals) {
                let labels =
                    vec![("rule", THROTTLED.to_owned()), ("outcome", (*outcome).to_owned())];
                by_rule.push((labels, total));
            }
        }
        let deciding = Timings::of(&*self.shards, |shard| &shard.deciding);
        vec![
            counter("tollgate_decisions", "Requests decided, by door and outcome.", by_door),
            counter(
                "tollgate_rule_decisions",
                "What each rule said about the requests that it applies to. A rule in shadow denies \
                 nothing: what it would have denied is shadow_denied. Rules beyond the first 1000 \
                 are counted together, as (other); what CL.THROTTLE and TOLLGATE.ALLOW were answered \
                 as (cl.throttle).",
                by_rule,
            ),
            histogram(
                "tollgate_decision_seconds",
                "How long a decision takes, without reading and answering. One in 64 is timed; of \
                 those that came together, a few at once, each for its part of the time.",
                vec![(Labels::new(), deciding)],
            ),
        ]
    }

    fn of_doors(&self) -> Vec<Family> {
        let open = || {
            let places = |door: Name| Some((door, self.places[door as usize].get()?));
            Name::ALL.into_iter().filter_map(places)
        };
        let gauges = |value: fn(&Places) -> usize| {
            open().map(|(door, places)| (of_door(door, None), value(places) as f64)).collect()
        };
        let refused = open().map(|(door, places)| (of_door(door, None), places.refused()));
        let serving = open().map(|(door, _)| {
            let histogram = Timings::of(&*self.shards, |shard| &shard.serving[door as usize]);
            (of_door(door, None), histogram)
        });
        let wrong = [Name::Resp, Name::Admin].map(|door| {
            let count = self.wrong_secrets[door as usize].load(Ordering::Relaxed);
            (of_door(door, None), count)
        });
        let tickets = self.tickets.get();
        vec![
            counter(
                "tollgate_wrong_secrets",
                "Wrong passwords at the door for clients of Redis, and wrong tokens at that for \
                 those who run it.",
                wrong.into(),
            ),
            alone(
                "tollgate_tickets",
                "Requests under way whose end is still to be told, with the ticket that they were \
                 given where they were asked about.",
                tickets.map_or(0, |tickets| tickets.count()),
            ),
            alone(
                "tollgate_tickets_max",
                "How many of them there can be. A request that needs one more is refused.",
                tickets.map_or(0, |tickets| tickets.most()),
            ),
            histogram(
                "tollgate_door_seconds",
                "Time inside the server: from the moment that bytes were read to the moment that an \
                 answer was written. What is pipelined counts once.",
                serving.collect(),
            ),
            gauge("tollgate_connections", "Connections that are open.", gauges(Places::taken)),
            gauge("tollgate_connections_max", "How many there can be.", gauges(Places::most)),
            counter(
                "tollgate_connections_refused",
                "Connections that were turned away because there were too many.",
                refused.collect(),
            ),
        ]
    }

    fn of_rules(&self, series: &Series) -> Vec<Family> {
        let rules = series.rules();
        let info = vec![
            ("version", rules.version().to_string()),
            ("namespace", rules.namespace().to_owned()),
        ];
        let count = |count: &AtomicU64| vec![(Labels::new(), count.load(Ordering::Relaxed))];
        let swap = self.last_swap.load(Ordering::Relaxed);
        vec![
            info_of("tollgate_rules", "The rules in force.", info),
            alone("tollgate_rules_loaded", "How many rules are in force.", rules.rules().len()),
            counter(
                "tollgate_rules_swaps",
                "How often rules were put in force, after the first ones.",
                count(&self.rules_swapped),
            ),
            counter(
                "tollgate_rules_refused",
                "How often rules were refused. Those in force stayed.",
                count(&self.rules_refused),
            ),
            gauge(
                "tollgate_rules_last_swap_timestamp_seconds",
                "When the rules were put in force.",
                vec![(Labels::new(), seconds(swap))],
            ),
        ]
    }

    fn of_process(&self, service: &Service) -> Vec<Family> {
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let mut families = vec![
            info_of("tollgate_build", "What this is.", version),
            alone(
                "tollgate_ready",
                "Whether requests should be sent here: 1, or 0 when it is about to end.",
                usize::from(service.is_ready()),
            ),
            gauge(
                "process_start_time_seconds",
                "When it was started.",
                vec![(Labels::new(), seconds(self.began.as_unix_nanos()))],
            ),
        ];
        if let Some(bytes) = resident_bytes() {
            let help = "Memory that it has, in bytes.";
            families.push(alone("process_resident_memory_bytes", help, bytes));
        }
        families
    }
}

fn of_engine(service: &Service) -> Vec<Family> {
    let stats = service.engine().stats();
    let mut families = of_tables(&stats.counters, service.throttle_stats().as_ref());
    families.extend([
        alone(
            "tollgate_rules_retired",
            "Versions of the rules that are not in force and still held by requests under way.",
            stats.retired,
        ),
        counter(
            "tollgate_evaluation_failures",
            "How often something about a request could not be found out. It was then decided as its \
             rule says, and never let pass for it.",
            one_count(stats.failures),
        ),
        counter(
            "tollgate_denials_unlogged",
            "Denials that the log says nothing about, but for their number.",
            one_count(service.denials().left_out()),
        ),
    ]);
    families
}

/// How full the counters are: those of the rules, and those of `CL.THROTTLE` once it was asked.
fn of_tables(rules: &Stats, throttle: Option<&Stats>) -> Vec<Family> {
    let tables = || [("rules", rules)].into_iter().chain(throttle.map(|it| (THROTTLED, it)));
    let labels = |table: &str| vec![("table", table.to_owned())];
    let gauges = |value: fn(&Stats) -> f64| {
        tables().map(|(table, stats)| (labels(table), value(stats))).collect()
    };
    let counts = |count: fn(&Stats) -> u64| {
        tables().map(|(table, stats)| (labels(table), count(stats))).collect()
    };
    vec![
        gauge(
            "tollgate_table_occupancy_ratio",
            "The part of the slots for keys that is in use, from 0 to 1, by estimate. As many keys \
             as were planned fill 0.56 of them.",
            gauges(|stats| stats.occupancy),
        ),
        gauge(
            "tollgate_table_keys",
            "How many keys can be live at once before the excess is counted together.",
            gauges(|stats| stats.keys as f64),
        ),
        gauge(
            "tollgate_counters_bytes",
            "Memory of all counters in bytes, in use or not.",
            gauges(|stats| stats.memory as f64),
        ),
        counter(
            "tollgate_sketch_decisions",
            "Decisions with a count shared between keys, and so too strict. If it rises, plan for \
             more keys. It begins anew with limits that change.",
            counts(|stats| stats.overflowed),
        ),
        counter(
            "tollgate_sketch_promotions",
            "Keys that came from a shared count to one of their own. It begins anew with limits \
             that change.",
            counts(|stats| stats.promoted),
        ),
    ]
}

fn of_tls(tls: &Tls) -> Vec<Family> {
    vec![
        alone(
            "tollgate_tls_certificate_not_after_seconds",
            "Until when the certificate of the doors holds, in seconds since 1970.",
            usize::try_from(tls.not_after()).unwrap_or(0),
        ),
        counter(
            "tollgate_tls_refused",
            "How often files of certificates changed that could not be used.",
            one_count(tls.refused()),
        ),
        counter(
            "tollgate_tls_failed",
            "How many connections could not agree on TLS, or showed no certificate that is believed.",
            one_count(tls.failed()),
        ),
    ]
}

/// How limits are shared. Without a store, that there is none.
fn of_store(service: &Service) -> Vec<Family> {
    let stats = service.engine().sharing().unwrap_or_default();
    let SharingStats { lent, short, asked, degraded, exchanges, failures, .. } = stats;
    let losses = service.engine().losses().map(|losses| losses.borrow().clone());
    let losses = losses.unwrap_or_default();
    let by = |how: &str, count| (vec![("how", how.to_owned())], count);
    let decisions =
        vec![by("lent", lent), by("short", short), by("asked", asked), by("degraded", degraded)];
    let one = |count: u64| vec![(Labels::new(), count)];
    vec![
        counter(
            "tollgate_store_decisions",
            "Decisions of shared limits: lent, with what the store had lent to this node; short, \
             denied because the store had nothing a moment ago; asked, by the store; degraded, by \
             on_store_failure while it fails.",
            decisions,
        ),
        counter("tollgate_store_exchanges", "Questions to the store.", one(exchanges)),
        counter(
            "tollgate_store_failures",
            "Questions that the store did not answer.",
            one(failures),
        ),
        counter(
            "tollgate_store_late",
            "Questions that the store answered when more than half of the timeout was over.",
            one(stats.late),
        ),
        counter(
            "tollgate_store_degradations",
            "How often the store was left alone because it failed.",
            one(stats.times_degraded),
        ),
        counter(
            "tollgate_store_unpaid",
            "What passed while the store was away and could not be told to it later.",
            one(stats.unpaid),
        ),
        counter(
            "tollgate_store_losses",
            "How often this node found that the store has lost its memory, or that another server has \
             taken it over: keys count as used up for a while.",
            one(losses.found),
        ),
        gauge(
            "tollgate_store_lost_timestamp_seconds",
            "When that last happened, in seconds since 1970; 0 if it never did.",
            vec![(
                Labels::new(),
                losses.latest.map_or(0.0, |loss| seconds(loss.at.as_unix_nanos())),
            )],
        ),
        gauge(
            "tollgate_store_degraded",
            "1 while the store is left alone because it fails.",
            vec![(Labels::new(), f64::from(u8::from(stats.is_degraded)))],
        ),
        gauge(
            "tollgate_store_leased_keys",
            "Keys that the store lends to this node.",
            vec![(Labels::new(), stats.keys as f64)],
        ),
    ]
}

fn of_held(budget: &Budget) -> Vec<Family> {
    vec![
        alone(
            "tollgate_held_bytes",
            "What is held of long requests that are not complete, and of long answers that are not \
             taken.",
            budget.held(),
        ),
        alone("tollgate_held_bytes_max", "How much that can be.", budget.most()),
        counter(
            "tollgate_held_refused",
            "How often there was no room to hold more, and somebody was refused for it.",
            one_count(budget.refused()),
        ),
    ]
}

/// How heavy the heaviest key of each rule is that counts by anything. Which one that is stays
/// with those who run it: keys are as many as clients like, and may be secrets.
fn of_heaviest(service: &Service, series: &Series) -> Family {
    let mut heaviest = BTreeMap::new();
    // At most 256, the heaviest first.
    for key in service.engine().top(usize::MAX) {
        // Names of rules have no blanks. One without more counts everybody together.
        if let Some((rule, _)) = key.key.split_once(' ')
            && series.has(rule)
        {
            heaviest.entry(rule.to_owned()).or_insert(key.share);
        }
    }
    let samples = heaviest.into_iter().map(|(rule, share)| (vec![("rule", rule)], share));
    gauge(
        "tollgate_heaviest_key_ratio",
        "The part of all requests that the heaviest key of a rule makes up, from 0 to 1, by \
         estimate. `tollgate keys top` says which key that is.",
        samples.collect(),
    )
}

/// The switches: all of them, and those of single rules that are switched.
fn of_switches(service: &Service) -> Vec<Family> {
    let in_force = service.now_in_force();
    let killed = in_force.switches.all().map_or("", Killed::as_str);
    let all = ["shadow", "off"].map(|mode| {
        let labels = vec![("mode", mode.to_owned())];
        (labels, f64::from(u8::from(mode == killed)))
    });
    let each = in_force.switches.each().take(MOST_RULES).map(|(rule, killed)| {
        (vec![("rule", rule.to_owned()), ("mode", killed.as_str().to_owned())], 1.0)
    });
    vec![
        gauge("tollgate_killed_all", "Whether all rules are killed, by mode.", all.into()),
        gauge("tollgate_killed", "The rules that are killed by name.", each.collect()),
    ]
}

pub(super) fn one_count(count: u64) -> Vec<(Labels, u64)> {
    vec![(Labels::new(), count)]
}

fn of_door(door: Name, outcome: Option<&str>) -> Labels {
    let door = ("door", door.as_str().to_owned());
    let outcome = outcome.map(|outcome| ("outcome", outcome.to_owned()));
    [door].into_iter().chain(outcome).collect()
}

pub(super) const fn counter(
    name: &'static str,
    help: &'static str,
    of: Vec<(Labels, u64)>,
) -> Family {
    Family { name, help, samples: Samples::Counter(of) }
}

const fn gauge(name: &'static str, help: &'static str, of: Vec<(Labels, f64)>) -> Family {
    Family { name, help, samples: Samples::Gauge(of) }
}

const fn histogram(name: &'static str, help: &'static str, of: Vec<(Labels, Timings)>) -> Family {
    Family { name, help, samples: Samples::Histogram(of) }
}

const fn info_of(name: &'static str, help: &'static str, labels: Labels) -> Family {
    Family { name, help, samples: Samples::Info(labels) }
}

pub(super) fn alone(name: &'static str, help: &'static str, value: usize) -> Family {
    gauge(name, help, vec![(Labels::new(), value as f64)])
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// What the system says; nothing where it does not say so.
fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The doors that decide.
const ASKED: [Name; 4] = [Name::Http, Name::ForwardAuth, Name::Resp, Name::Grpc];
