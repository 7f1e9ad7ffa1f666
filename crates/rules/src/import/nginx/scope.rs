//! Where limits apply: servers and their locations.

use super::super::Notes;
use super::reach::{Place, Reach};
use super::tokens::Directive;
use super::{Delay, Limit, wrong};
use crate::diagnostic::Diagnostic;

/// A server, its names, and the limits at its places.
pub(super) struct Server {
    names: Vec<String>,
    limits: Limits,
    locations: Vec<Location>,
}

struct Location {
    place: Place,
    limits: Limits,
}

/// The limits at a place, with where they stand in the text.
#[derive(Clone, Default)]
struct Limits {
    requests: Vec<(Limit, usize)>,
    connections: Vec<(Limit, usize)>,
    dry_requests: bool,
    dry_connections: bool,
}

/// The most locations that are looked at: each is compared with each.
const MAX_LOCATIONS: usize = 1000;

/// All servers; what stands outside of them is in one of its own.
pub(super) fn servers(
    top: &[&Directive],
    notes: &mut Notes<'_>,
) -> Result<Vec<Server>, Diagnostic> {
    let around = Limits::default().within(top.iter().copied())?;
    let mut servers = Vec::new();
    let blocks = top.iter().filter(|directive| directive.name == "server");
    for (directive, block) in blocks.filter_map(|one| Some((one, one.block.as_ref()?))) {
        let limits = around.within(block)?;
        let names = block.iter().filter(|inner| inner.name == "server_name");
        let names: Vec<_> = names.flat_map(|inner| inner.arguments.clone()).collect();
        let names: Vec<_> =
            names.into_iter().filter(|name| name != "_" && !name.is_empty()).collect();
        let mut locations = Vec::new();
        collect(block.iter(), &limits, &mut locations, notes)?;
        let server = Server { names, limits, locations };
        if server.names.is_empty() && server.first_limit().is_some() {
            note_nameless(directive, top, notes);
        }
        servers.push(server);
    }
    let mut locations = Vec::new();
    collect(top.iter().copied(), &around, &mut locations, notes)?;
    if servers.is_empty() || !locations.is_empty() {
        servers.push(Server { names: Vec::new(), limits: around, locations });
    }
    Ok(servers)
}

fn note_nameless(directive: &Directive, top: &[&Directive], notes: &mut Notes<'_>) {
    let several = top.iter().filter(|one| one.name == "server" && one.block.is_some()).count() > 1;
    if several {
        let message =
            "this server has no name and took what others did not; its rules meet all hosts";
        notes.add(directive.span.start, message, "add `host` to their `match`");
    }
}

fn collect<'d>(
    directives: impl Iterator<Item = &'d Directive>,
    around: &Limits,
    locations: &mut Vec<Location>,
    notes: &mut Notes<'_>,
) -> Result<(), Diagnostic> {
    for directive in directives.filter(|directive| directive.name == "location") {
        let Some(block) = &directive.block else { continue };
        let limits = around.within(block)?;
        match Place::of(directive) {
            Some(_) if locations.len() == MAX_LOCATIONS => {
                let message = format!("is one of more than {MAX_LOCATIONS}");
                return Err(wrong(directive, &message, "import the servers one by one"));
            }
            Some(place) => locations.push(Location { place, limits: limits.clone() }),
            None if limits.first().is_some() => {
                let remedy = "put the limit at the locations that lead to it";
                notes.add(
                    directive.span.start,
                    "the limits of a named location are not carried over",
                    remedy,
                );
            }
            None => {}
        }
        collect(block.iter(), &limits, locations, notes)?;
    }
    Ok(())
}

impl Limits {
    /// The limits of a block within this one: its own if it has any, else these.
    fn within<'d>(
        &self,
        block: impl IntoIterator<Item = &'d Directive>,
    ) -> Result<Self, Diagnostic> {
        let (mut requests, mut connections) = (Vec::new(), Vec::new());
        let (mut dry_requests, mut dry_connections) = (self.dry_requests, self.dry_connections);
        for directive in block {
            let on = directive.arguments.first().is_some_and(|argument| argument == "on");
            let at = directive.span.start;
            match directive.name.as_str() {
                "limit_req" => requests.push((limit_req(directive)?, at)),
                "limit_conn" => connections.push((limit_conn(directive)?, at)),
                "limit_req_dry_run" => dry_requests = on,
                "limit_conn_dry_run" => dry_connections = on,
                _ => {}
            }
        }
        let own = |own: Vec<_>, around: &Vec<_>| if own.is_empty() { around.clone() } else { own };
        let requests = own(requests, &self.requests);
        let connections = own(connections, &self.connections);
        Ok(Self { requests, connections, dry_requests, dry_connections })
    }

    fn all(&self) -> impl Iterator<Item = (Limit, usize)> {
        let dry =
            |dry_run| move |(limit, at): &(Limit, usize)| (Limit { dry_run, ..limit.clone() }, *at);
        let requests = self.requests.iter().map(dry(self.dry_requests));
        requests.chain(self.connections.iter().map(dry(self.dry_connections)))
    }

    fn has(&self, limit: &Limit) -> bool {
        self.all().any(|(other, _)| other == *limit)
    }

    fn first(&self) -> Option<usize> {
        self.all().map(|(_, at)| at).min()
    }
}

fn limit_req(directive: &Directive) -> Result<Limit, Diagnostic> {
    let remedy = "write `limit_req zone=name burst=20 nodelay;`";
    let (mut zone, mut burst, mut delay) = (None, 0, Delay::All);
    for argument in &directive.arguments {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let number = || {
            value.parse().map_err(|_| {
                wrong(directive, &format!("has `{argument}`, which is no number"), remedy)
            })
        };
        match name {
            "zone" => zone = Some(value.to_owned()),
            "burst" => burst = number()?,
            "delay" => delay = Delay::Above(number()?),
            "nodelay" => delay = Delay::Nothing,
            _ => {}
        }
    }
    // Without a burst there is nothing that could wait.
    let delay = match (burst, delay) {
        (0, _) | (_, Delay::Above(0)) => Delay::All,
        (burst, Delay::Above(above)) if above >= burst => Delay::Nothing,
        (_, delay) => delay,
    };
    let zone = zone.ok_or_else(|| wrong(directive, "has no zone", remedy))?;
    Ok(Limit { zone, connections: None, burst, delay, dry_run: false })
}

fn limit_conn(directive: &Directive) -> Result<Limit, Diagnostic> {
    match &directive.arguments[..] {
        [zone, number] if number.parse::<u64>().is_ok_and(|number| number > 0) => Ok(Limit {
            zone: zone.clone(),
            connections: number.parse().ok(),
            burst: 0,
            delay: Delay::All,
            dry_run: false,
        }),
        _ => Err(wrong(directive, "needs a zone and a number", "write `limit_conn name 5;`")),
    }
}

impl Server {
    /// The limits of all its places, and where each is first used.
    pub(super) fn limits(&self) -> Vec<(Limit, usize)> {
        let places = self.locations.iter().flat_map(|location| location.limits.all());
        let mut limits: Vec<_> = self.limits.all().chain(places).collect();
        limits.sort();
        limits.dedup_by(|later, first| later.0 == first.0);
        limits
    }

    pub(super) fn first_limit(&self) -> Option<usize> {
        self.limits().iter().map(|(_, at)| *at).min()
    }

    /// Where in this server a limit applies.
    pub(super) fn reach(&self, limit: &Limit) -> Reach {
        let (with, without): (Vec<_>, Vec<_>) =
            self.locations.iter().partition(|location| location.limits.has(limit));
        let root = |location: &&&Location| location.place == Place::Prefix("/".to_owned());
        let root_without = without.iter().any(|location| root(&location));
        let everywhere = with.iter().any(|location| root(&location))
            || (self.limits.has(limit) && !root_without);
        let mut reach = Reach::of_hosts(&self.names);
        let below =
            |inner: &Place, outer: &&Location| outer.place.contains(inner) && outer.place != *inner;
        if !everywhere {
            reach.add_places(with.iter().map(|location| &location.place));
        }
        let root = Place::Prefix("/".to_owned());
        let holes = without.iter().map(|location| &location.place).filter(|place| **place != root);
        let inside = |place: &&Place| everywhere || with.iter().any(|outer| below(place, outer));
        let holes: Vec<_> = holes.filter(inside).collect();
        for place in &holes {
            let between = |outer: &Place| {
                with.iter().any(|one| outer.contains(&one.place) && one.place.contains(place))
            };
            let wider =
                |outer: &&&Place| outer.contains(place) && **outer != *place && !between(outer);
            if holes.iter().any(|outer| wider(&outer)) {
                continue;
            }
            let back = with.iter().filter(|inner| place.contains(&inner.place));
            reach.add_hole(place, back.map(|inner| &inner.place));
        }
        reach
    }
}
