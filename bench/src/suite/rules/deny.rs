//! What a denial costs: whoever floods a server must not make it slower than those it serves.

use tollgate::Engine;

use super::decide::{compare, count};
use super::file::{self, Client};
use crate::error::BenchError;
use crate::keys;
use crate::measure::Contender;
use crate::report::count_of;
use crate::suite::Session;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    // Keys that a core's own cache holds, those of both sides at once, show what a denial takes. With
    // more of them both sides wait for the same memory, and differ by chance.
    let (few, many) = (session.scale.medium / 1_000, session.scale.medium);
    // The last of three denies: the first two are asked, and then what they have left.
    let three = file::text(10, "");
    let rules = [("one rule", ONE, "key: [user]"), ("3 rules", &three, "key: [account]")];
    for (what, rules, strict) in rules {
        for (size, most) in [(few, 1.0), (many, 1.05)] {
            let name = format!("{} clients, {what}, all denied, over all allowed", count_of(size));
            if session.wants(&name) {
                row(session, name, size, [rules, strict], most)?;
            }
        }
    }
    Ok(())
}

/// The same rules twice, once so strict that everybody is denied.
fn row(
    session: &mut Session,
    name: String,
    size: usize,
    [rules, strict]: [&str; 2],
    most: f64,
) -> Result<(), BenchError> {
    session.progress.say("making clients and rules");
    let clients = Client::all(size);
    let visits: Vec<&Client> =
        keys::visiting_order(size).into_iter().map(|index| &clients[index as usize]).collect();
    // On neither side does anybody get back what they spend while it is measured: keys at rest are
    // found by other ways.
    let plenty = rules.replace("1G/day", "1M/366day");
    let none = plenty.replace(&format!("{strict}, limit: 1M"), &format!("{strict}, limit: 1"));
    // Who comes most often is not watched: that is sampled ever more rarely, and a short run would
    // measure the beginning of it.
    let engine = |text: &str| {
        file::engine_of(Engine::builder(file::rules(text)?).heavy_keys(false), &clients)
    };
    // Their first request has spent what they have.
    let (denying, allowing) = (engine(&none)?, engine(&plenty)?);
    let sides =
        [side("denied", &denying, &visits, false), side("allowed", &allowing, &visits, true)];
    compare(session, name, sides, "all allowed", most)
}

/// Counts what is decided as it is meant, on both sides.
fn side<'a>(
    name: &'static str,
    engine: &'a Engine,
    visits: &'a [&'a Client],
    allowed: bool,
) -> Contender<'a> {
    let decide = move |chunk: &[&Client]| count(chunk, |client| client.ask(engine) == allowed);
    Contender::new(name, visits, decide).intending(1.0)
}

const ONE: &str = "rules: [{ name: per-user, key: [user], limit: 1G/day }]";
