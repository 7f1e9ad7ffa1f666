//! What real nodes let pass: five `tollgate serve` with a Redis between them, in real time, beside five
//! nodes that share the same limit the usual way.

use super::asking::runtime;
use super::client::Client;
use super::course::{Course, Node as _, Nodes, PACE};
use super::{server, synced};
use crate::error::BenchError;
use crate::report::{Panel, Reach, Row, Unit};
use crate::suite::Session;
use crate::suite::doors::peers::tollgate;
use crate::suite::doors::process::Server;

/// Measures, and returns what is to be drawn.
pub(super) fn run(session: &mut Session) -> Result<Vec<Panel>, BenchError> {
    let [steady, bursts] = ["five real nodes", "five real nodes, bursts"].map(Names::of);
    if !session.wants_any(steady.all().into_iter().chain(bursts.all())) {
        return Ok(Vec::new());
    }
    let fleet = Fleet::start(session, RULES)?;
    let mut clients = fleet.clients()?;
    clients.0.iter_mut().for_each(|client| client.turn_to("alice", "/"));
    let (runtime, url) = (runtime()?, server::url(&fleet.redis));
    let (seconds, count) = if session.scale.is_quick() { (2, 1) } else { (10, 10) };

    session.progress.say("five real nodes");
    let ours = clients.run(seconds, PACE)?;
    let peers = synced::run(&runtime, &url, (NODES, "steady"), |nodes| nodes.run(seconds, PACE))?;
    steady.add(session, 0.1, [&ours, &peers]);
    let mut panels = vec![ours.panel("5 real nodes, steady load", &peers)];

    session.progress.say("five real nodes, bursts");
    let ours = clients.run_in_bursts(count)?;
    let peers = synced::run(&runtime, &url, (NODES, "bursts"), |nodes| nodes.run_in_bursts(count))?;
    bursts.add(session, 0.3, [&ours, &peers]);
    panels.push(ours.panel("5 real nodes, bursts", &peers));
    Ok(panels)
}

/// The rows of one load.
struct Names {
    over: String,
    under: String,
}

impl Names {
    fn of(load: &str) -> Self {
        Self { over: format!("{load}: too many"), under: format!("{load}: too few") }
    }

    const fn all(&self) -> [&String; 2] {
        [&self.over, &self.under]
    }

    /// What passed beside what may have.
    fn add(self, session: &mut Session, may_lack: f64, [ours, synced]: [&Course; 2]) {
        let peers = "counters that are synced every 100 ms";
        let note = format!(
            "{} of {} passed; {peers}: {:.1} % at the worst moment",
            ours.passed, ours.asked, synced.over_percent
        );
        let row = Row::alone(self.over, Unit::Percent, ours.over_percent).noting(note);
        session.add(row.promising(Reach::AtMost(0.0, Unit::Percent)));
        let note = format!(
            "{peers}: {:.3} % in the end, {} of {} passed",
            synced.under_percent(),
            synced.passed,
            synced.asked
        );
        let row = Row::alone(self.under, Unit::Percent, ours.under_percent()).noting(note);
        session.add(row.promising(Reach::AtMost(may_lack, Unit::Percent)));
    }
}

/// Five nodes and their Redis. They end when this is dropped.
pub(super) struct Fleet {
    pub(super) redis: Server,
    pub(super) nodes: Vec<Server>,
}

impl Fleet {
    pub(super) fn start(session: &Session, rules: &str) -> Result<Self, BenchError> {
        let (tollgate, redis) = (tollgate(session)?, server::start()?);
        let store = server::url(&redis);
        let flags = ["--store", &store, "--threads", "1", "--log-level", "error"];
        let start = |_| Server::node(&tollgate, "--resp", rules, &flags);
        let nodes = (0..NODES).map(start).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { redis, nodes })
    }

    /// Connects to all, and has every node meet its store, with another key than those that count.
    pub(super) fn clients(&self) -> Result<Nodes<Client>, BenchError> {
        let clients = self.nodes.iter().map(Client::of).collect::<Result<Vec<_>, _>>()?;
        let mut clients = Nodes(clients);
        for client in &mut clients.0 {
            client.turn_to("somebody", "/");
            client.ask(1)?;
        }
        clients.hear_all()?;
        Ok(clients)
    }
}

pub(super) const NODES: usize = 5;

const RULES: &str = "rules: [{ name: hot, key: [user], limit: 1k/s, on_store_failure: deny }]";
