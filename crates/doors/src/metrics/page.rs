//! All that is counted, as Prometheus reads it.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Metrics;
use super::family::{self, Family, Labels, Samples};
use super::histogram::Histogram;
use super::series::{OUTCOMES, Series};
use super::shard;
use crate::door::{Name, Places};
use crate::service::Service;

impl Metrics {
    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, service: &Service) -> String {
        let series = self.series.load_full();
        let mut families = self.of_decisions(&series);
        families.extend(self.of_doors());
        families.extend(self.of_rules(&series));
        families.extend(of_engine(service));
        families.extend(self.of_process());
        family::write(families)
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
        let deciding = Histogram::of(&*self.shards, |shard| &shard.deciding);
        vec![
            counter("tollgate_decisions", "Requests decided, by door and outcome.", by_door),
            counter(
                "tollgate_rule_decisions",
                "What each rule said about the requests that it applies to. A rule in shadow denies \
                 nothing: what it would have denied is shadow_denied. Rules beyond the first 1000 \
                 are counted together, as (other).",
                by_rule,
            ),
            histogram(
                "tollgate_decision_seconds",
                "How long a decision takes, without reading and answering. One in 64 is timed.",
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
            let histogram = Histogram::of(&*self.shards, |shard| &shard.serving[door as usize]);
            (of_door(door, None), histogram)
        });
        vec![
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

    fn of_process(&self) -> Vec<Family> {
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let mut families = vec![
            info_of("tollgate_build", "What this is.", version),
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
    let failures = service.engine().failures();
    vec![counter(
        "tollgate_evaluation_failures",
        "How often something about a request could not be found out. It was then decided as its \
         rule says, and never let pass for it.",
        vec![(Labels::new(), failures)],
    )]
}

fn of_door(door: Name, outcome: Option<&str>) -> Labels {
    let door = ("door", door.as_str().to_owned());
    let outcome = outcome.map(|outcome| ("outcome", outcome.to_owned()));
    [door].into_iter().chain(outcome).collect()
}

const fn counter(name: &'static str, help: &'static str, of: Vec<(Labels, u64)>) -> Family {
    Family { name, help, samples: Samples::Counter(of) }
}

const fn gauge(name: &'static str, help: &'static str, of: Vec<(Labels, f64)>) -> Family {
    Family { name, help, samples: Samples::Gauge(of) }
}

const fn histogram(name: &'static str, help: &'static str, of: Vec<(Labels, Histogram)>) -> Family {
    Family { name, help, samples: Samples::Histogram(of) }
}

const fn info_of(name: &'static str, help: &'static str, labels: Labels) -> Family {
    Family { name, help, samples: Samples::Info(labels) }
}

fn alone(name: &'static str, help: &'static str, value: usize) -> Family {
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
const ASKED: [Name; 3] = [Name::Http, Name::ForwardAuth, Name::Resp];
