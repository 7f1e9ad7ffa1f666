//! The configuration of nginx: `limit_req` and `limit_conn`.
//!
//! There, a request is in one location, and a location has the limits that stand in it or, if none
//! do, those around it. A rule here says itself where it applies ([`scope`]).

mod key;
mod reach;
mod scope;
mod tokens;

use std::collections::BTreeMap;

use self::reach::Reach;
use self::scope::Server;
use self::tokens::Directive;
use super::rule_file::{Entry, Rule, RuleFile};
use super::{Failure, Imported, Notes};
use crate::diagnostic::Diagnostic;
use crate::source::Source;

pub(super) fn import(source: &Source) -> Result<Imported, Failure> {
    let directives = tokens::parse(source.text())?;
    let mut import = Import {
        notes: Notes::new(source),
        zones: BTreeMap::new(),
        made: BTreeMap::new(),
        answers_429: false,
        ignored: 0,
    };
    let top: Vec<_> = unwrapped(&directives).collect();
    import.collect(&directives)?;
    let servers = scope::servers(&top, &mut import.notes)?;
    let mut file = RuleFile::new("nginx", format!("Imported from {}.", source.name()));
    let mut reaches = reaches(&servers);
    reaches.sort_by_key(|(_, _, at)| *at);
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    for (limit, reach, at) in reaches {
        let place = places.entry((limit.connections.is_some(), limit.zone.clone())).or_default();
        *place += 1;
        if *place == 2 {
            let message = format!(
                "zone `{}` counted requests of several places together, and each rule counts its own",
                limit.zone
            );
            import.notes.add(at, message, "make one rule of them if the sum matters");
        }
        let rule = import.rule(&limit, reach, at)?;
        let name = file.name(&rule.name);
        file.entries.push(Entry::Rule(Rule { name, ..rule }));
    }
    let Some(first) = servers.iter().find_map(Server::first_limit) else {
        return Err(Failure::Empty);
    };
    if !import.answers_429 {
        let message = "denied requests were answered with 503, and are with 429 here";
        import.notes.add(first, message, "tell clients that look at the status");
    }
    let Import { mut notes, ignored, .. } = import;
    Ok(Imported { yaml: file.finish(&mut notes)?, notes: notes.finish(), ignored })
}

/// A use of a zone. Uses that are the same count together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Limit {
    zone: String,
    /// Connections at once, for `limit_conn`.
    connections: Option<u64>,
    burst: u64,
    delay: Delay,
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Delay {
    /// Whatever is above the rate waits.
    All,
    /// Nothing waits.
    Nothing,
    /// What is above the rate by more than this waits.
    Above(u64),
}

/// What a zone counts by, and how much of it may pass.
struct Zone {
    key: String,
    rate: Option<String>,
    at: usize,
}

struct Import<'a> {
    notes: Notes<'a>,
    /// By whether it is of connections, and its name.
    zones: BTreeMap<(bool, String), Zone>,
    /// Variables that `map`, `geo` and `set` make, and where.
    made: BTreeMap<String, usize>,
    answers_429: bool,
    ignored: usize,
}

/// Directives of the outermost level, those within `http` among them.
fn unwrapped(directives: &[Directive]) -> impl Iterator<Item = &Directive> {
    directives.iter().flat_map(|directive| match &directive.block {
        Some(block) if directive.name == "http" => block.iter(),
        _ => std::slice::from_ref(directive).iter(),
    })
}

/// Each limit with the places it applies at, and where it is first used.
fn reaches(servers: &[Server]) -> Vec<(Limit, Reach, usize)> {
    let mut all: BTreeMap<Limit, Vec<(Reach, usize, usize)>> = BTreeMap::new();
    for server in servers {
        for (limit, at) in server.limits() {
            let reach = server.reach(&limit);
            let reaches = all.entry(limit).or_default();
            match reaches.iter_mut().find(|(other, ..)| other.joins(&reach)) {
                Some((other, count, _)) => {
                    other.hosts.extend(reach.hosts);
                    *count += 1;
                }
                None => reaches.push((reach, 1, at)),
            }
        }
    }
    let mut found = Vec::new();
    for (limit, reaches) in all {
        for (mut reach, count, at) in reaches {
            if count == servers.len() && count > 1 {
                // All servers there are: requests for others never came.
                reach.forget_hosts();
            }
            found.push((limit.clone(), reach, at));
        }
    }
    found
}

impl Import<'_> {
    /// Zones, variables and settings, wherever they stand.
    fn collect(&mut self, directives: &[Directive]) -> Result<(), Diagnostic> {
        for directive in directives {
            let (at, first) = (directive.span.start, directive.arguments.first());
            match (directive.name.as_str(), directive.arguments.last()) {
                ("limit_req_zone" | "limit_conn_zone", _) => self.zone(directive)?,
                ("map" | "geo", Some(name)) => {
                    self.made.insert(name.trim_start_matches('$').to_owned(), at);
                }
                ("set", _) => {
                    self.made
                        .extend(first.map(|name| (name.trim_start_matches('$').to_owned(), at)));
                }
                ("limit_req_status" | "limit_conn_status", Some(status)) if status == "429" => {
                    self.answers_429 = true;
                }
                ("include", Some(file)) if !file.ends_with("mime.types") => {
                    let message = format!("`{file}` is included, and was not read");
                    self.notes.add(
                        at,
                        message,
                        "import what `nginx -T` prints: it has all files in it",
                    );
                }
                ("limit_rate", _) => {
                    let remedy = "leave it to nginx: Tollgate counts requests";
                    self.notes.add(
                        at,
                        "`limit_rate` limits bytes, and is not carried over",
                        remedy,
                    );
                }
                (name, _)
                    if name.starts_with("limit_")
                        || ["http", "server", "location", "server_name"].contains(&name) => {}
                _ => self.ignored += 1,
            }
            if let Some(block) = &directive.block {
                self.collect(block)?;
            }
        }
        Ok(())
    }

    fn zone(&mut self, directive: &Directive) -> Result<(), Diagnostic> {
        let connections = directive.name == "limit_conn_zone";
        let value =
            |name| directive.arguments.iter().find_map(|argument| argument.strip_prefix(name));
        let (Some(key), Some(zone)) = (directive.arguments.first(), value("zone=")) else {
            let remedy = "write `limit_req_zone $binary_remote_addr zone=name:10m rate=10r/s;`";
            return Err(wrong(directive, "has no key or no zone", remedy));
        };
        let name = zone.split(':').next().unwrap_or_default().to_owned();
        let rate = match (connections, value("rate=")) {
            (true, _) => None,
            (false, Some(rate)) => Some(rate_of(rate).ok_or_else(|| {
                wrong(
                    directive,
                    &format!("has a rate `{rate}` that is none"),
                    "write `rate=10r/s` or `rate=30r/m`",
                )
            })?),
            (false, None) => {
                return Err(wrong(directive, "has no rate", "write `rate=10r/s` or `rate=30r/m`"));
            }
        };
        self.zones
            .insert((connections, name), Zone { key: key.clone(), rate, at: directive.span.start });
        Ok(())
    }

    fn rule(&mut self, limit: &Limit, reach: Reach, at: usize) -> Result<Rule, Diagnostic> {
        let Some(zone) = self.zones.get(&(limit.connections.is_some(), limit.zone.clone())) else {
            let message = format!("the zone `{}` is used, and made nowhere", limit.zone);
            let remedy =
                "import it with the file that has its `limit_req_zone` or `limit_conn_zone`";
            return Err(Diagnostic::error("unknown-zone", at..at, message, "used here", remedy));
        };
        let mut rule = Rule { name: limit.zone.clone(), at, ..Rule::default() };
        key::write(&zone.key, zone.at, &self.made, &mut self.notes, &mut rule);
        match (limit.connections, &zone.rate) {
            (Some(connections), _) => rule.set("concurrent", connections.to_string()),
            (None, rate) => {
                rule.set("limit", rate.clone().unwrap_or_default());
                shape(limit, &mut rule);
            }
        }
        if limit.dry_run {
            rule.set("mode", "shadow");
        }
        if let Delay::Above(above) = limit.delay {
            let message = format!(
                "`delay={above}` let {above} through at once and the rest of the burst wait; all of it passes at once here"
            );
            self.notes.add(
                at,
                message,
                "use `algorithm: leaky_bucket` with `queue` if all are to wait",
            );
            rule.comments.push(format!("Had `delay={above}`: what was above waited."));
        }
        reach.write(at, &mut self.notes, &mut rule);
        Ok(rule)
    }
}

fn shape(limit: &Limit, rule: &mut Rule) {
    match (limit.delay, limit.burst) {
        (Delay::All, burst) => {
            rule.set("algorithm", "leaky_bucket");
            rule.set("queue", burst.to_string());
        }
        (_, burst) => {
            rule.set("burst", burst.saturating_add(1).to_string());
            rule.set("algorithm", "token_bucket");
        }
    }
}

/// `10r/s` as `10/s`.
fn rate_of(text: &str) -> Option<String> {
    let (count, unit) = text.split_once("r/")?;
    let count = count.parse::<u64>().ok().filter(|count| *count > 0)?;
    match unit {
        "s" => Some(format!("{count}/s")),
        "m" => Some(format!("{count}/min")),
        _ => None,
    }
}

fn wrong(directive: &Directive, message: &str, remedy: &str) -> Diagnostic {
    let message = format!("`{}` {message}", directive.name);
    Diagnostic::error("bad-directive", directive.span.clone(), message, "this directive", remedy)
}
