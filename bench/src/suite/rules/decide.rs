//! What rules add to a decision.

use tollgate::{Engine, Limit, Limiter};

use super::file::{self, Client};
use crate::error::BenchError;
use crate::footprint::{self, Limiter as Measured};
use crate::keys;
use crate::measure::Contender;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

const FEW: usize = 10;
const MANY: usize = 10_000;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let size = session.scale.medium;
    let name = |what: &str| format!("{} clients, {what}", count_of(size));
    let few = name("10 rules of which 3 apply, over one bare decision");
    let many = name("10,000 rules of which 3 apply, over 10 rules");
    let overridden = name("every second with a limit of its own, over none");
    if session.wants_any([&few, &many, &overridden]) {
        decide(session, size, [few, many, overridden])?;
    }
    memory(session)
}

fn decide(session: &mut Session, size: usize, names: [String; 3]) -> Result<(), BenchError> {
    session.progress.say("making clients and rules");
    let clients = Client::all(size);
    let visits: Vec<&Client> =
        keys::visiting_order(size).into_iter().map(|index| &clients[index as usize]).collect();
    let ten = file::engine(file::rules(&file::text(FEW, ""))?, &clients)?;
    let [few, many, overridden] = names;
    if session.wants(&few) {
        let bare = bare(&clients)?;
        let check =
            |chunk: &[&Client]| count(chunk, |client| bare.check(client.user()).is_allowed());
        let bare = Contender::new("bare", &visits, check).intending(1.0);
        compare(session, few, [rules(&ten, &visits), bare], "one bare decision", 4.0)?;
    }
    if session.wants(&many) {
        let engine = file::engine(file::rules(&file::text(MANY, ""))?, &clients)?;
        compare(session, many, [rules(&engine, &visits), rules(&ten, &visits)], "10 rules", 1.5)?;
    }
    if session.wants(&overridden) {
        let overrides = overrides(clients.iter().step_by(2).map(|client| client.user().as_str()));
        let engine = file::engine(file::rules(&file::text(FEW, &overrides))?, &clients)?;
        let sides = [rules(&engine, &visits), rules(&ten, &visits)];
        compare(session, overridden, sides, "no overrides", 1.3)?;
    }
    Ok(())
}

/// A row that promises to take at most so many times as long as the other side.
pub(super) fn compare(
    session: &mut Session,
    name: String,
    sides: [Contender<'_>; 2],
    other: &'static str,
    most: f64,
) -> Result<(), BenchError> {
    let [ours, theirs] = session.measure(&name, sides)?;
    let row = Row::against(name, Unit::NanosPerDecision, ours.nanos, (other, theirs.nanos));
    session.add(row.promising(Reach::Within(most)));
    Ok(())
}

/// What single keys have, as a rule file says it: round rates, as people give.
fn overrides<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    const MILLIONS: [u32; 24] = [
        100, 120, 125, 150, 160, 180, 200, 225, 240, 250, 270, 300, 320, 360, 375, 400, 450, 480,
        500, 540, 600, 640, 720, 750,
    ];
    let quotas = MILLIONS.iter().cycle();
    let lines: Vec<_> =
        keys.zip(quotas).map(|(key, quota)| format!("{key}: {quota}M/day")).collect();
    format!(", overrides: {{ {} }}", lines.join(", "))
}

fn memory(session: &mut Session) -> Result<(), BenchError> {
    let size = session.scale.medium;
    let name =
        format!("{} keys with limits of their own, memory beyond their text", count_of(size));
    if !session.wants(&name) {
        return Ok(());
    }
    session.progress.say(&name);
    let bytes = footprint::in_child(Measured::Overrides, size)?.per_key(size);
    let row = Row::alone(name, Unit::BytesPerKey, bytes - keys::text(0).len() as f64);
    session.add(row.promising(Reach::AtMost(64.0, Unit::BytesPerKey)));
    Ok(())
}

/// One limit, with a counter for each client.
fn bare(clients: &[Client]) -> Result<Limiter, BenchError> {
    let limit = Limit::token_bucket("1G/day").map_err(tollgate::Error::from)?;
    let limiter = Limiter::builder(limit).keys(clients.len()).build()?;
    for index in keys::insertion_order(clients.len()) {
        let _ = limiter.check(clients[index as usize].user());
    }
    Ok(limiter)
}

fn rules<'a>(engine: &'a Engine, visits: &'a [&'a Client]) -> Contender<'a> {
    let decide = |chunk: &[&Client]| count(chunk, |client| client.ask(engine));
    Contender::new("rules", visits, decide).intending(1.0)
}

#[inline]
pub(super) fn count(chunk: &[&Client], ask: impl Fn(&Client) -> bool) -> u64 {
    chunk.iter().map(|client| u64::from(ask(client))).sum()
}
