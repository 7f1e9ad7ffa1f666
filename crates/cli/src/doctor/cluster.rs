//! Whether a Cluster serves all keys, and will when one of its servers is gone.

use std::collections::BTreeSet;

use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::Diagnosis;
use super::info::Info;

/// A Cluster, as one of its servers sees it.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    info: Info,
    nodes: Vec<Node>,
}

/// A server, in a line of `CLUSTER NODES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    id: String,
    /// The host may be empty: it is that of whoever was asked.
    address: String,
    flags: Vec<String>,
    /// The id of whom it follows.
    primary: String,
    is_linked: bool,
    /// First and last slots.
    slots: Vec<(u16, u16)>,
}

impl Cluster {
    pub(super) async fn ask(visit: &RedisVisit) -> Result<Self, StoreError> {
        let info = visit.ask(&["CLUSTER", "INFO"]).await?.concat();
        let nodes = visit.ask(&["CLUSTER", "NODES"]).await?.concat();
        Ok(Self::read(info, &nodes))
    }

    fn read(info: String, nodes: &str) -> Self {
        let nodes = nodes.lines().take(MOST_NODES).filter_map(Node::read).collect();
        Self { info: Info::new(info), nodes }
    }

    /// Those that have slots, and are not known to be gone.
    pub(super) fn primaries(&self) -> Vec<&Node> {
        let has_slots = |node: &&Node| !node.slots.is_empty() && !node.is_gone();
        self.nodes.iter().filter(has_slots).collect()
    }

    pub(super) fn diagnoses(&self) -> Vec<Diagnosis> {
        vec![self.state(), self.covered(), self.gone(), self.replicas()]
    }

    fn state(&self) -> Diagnosis {
        let primaries = self.primaries().len();
        match self.info.text("cluster_state") {
            Some("ok") => {
                let count = self.nodes.len();
                Diagnosis::ok(
                    "cluster",
                    format!("its state is ok; {primaries} of {count} servers have slots"),
                )
            }
            state => Diagnosis::problem(
                "cluster",
                format!(
                    "its state is {}: it refuses requests, and decisions are left to the rule's policy",
                    state.unwrap_or("not told")
                ),
                "bring back the servers that are gone, or give their slots to others: `redis-cli \
                 --cluster check HOST:PORT` and `--cluster fix`",
            ),
        }
    }

    fn covered(&self) -> Diagnosis {
        let mut covered = vec![false; SLOTS];
        // A server that is gone may still have its slots in its name.
        for (from, to) in self.primaries().iter().flat_map(|node| &node.slots) {
            let range = covered.get_mut(usize::from(*from)..=usize::from(*to));
            range.into_iter().flatten().for_each(|slot| *slot = true);
        }
        let missing = covered.iter().filter(|is_covered| !**is_covered).count();
        if missing == 0 {
            return Diagnosis::ok("slots", format!("all {SLOTS} are served"));
        }
        Diagnosis::problem(
            "slots",
            format!(
                "{missing} of {SLOTS} are served by nobody: their keys cannot be decided about"
            ),
            "bring back whoever had them, or `redis-cli --cluster fix HOST:PORT`",
        )
    }

    fn gone(&self) -> Diagnosis {
        let is_bad = |node: &&Node| node.is_gone() || !node.is_linked;
        let bad: Vec<_> = self.nodes.iter().filter(is_bad).collect();
        if bad.is_empty() {
            return Diagnosis::ok("nodes", format!("all {} answer each other", self.nodes.len()));
        }
        let names: Vec<_> = bad.iter().take(NAMED).map(|node| node.name()).collect();
        let message = format!(
            "{} of {} do not answer the others: {}",
            bad.len(),
            self.nodes.len(),
            names.join(", ")
        );
        let remedy = "start them, or see what is between them (each also listens on its port + \
                      10000); one that will not come back: CLUSTER FORGET";
        match bad.iter().any(|node| !node.slots.is_empty()) {
            true => Diagnosis::problem("nodes", format!("{message}; slots are theirs"), remedy),
            false => Diagnosis::warning("nodes", message, remedy),
        }
    }

    fn replicas(&self) -> Diagnosis {
        let is_well = |node: &&Node| !node.is_gone() && node.is_linked;
        let followed: BTreeSet<_> =
            self.nodes.iter().filter(is_well).map(|node| node.primary.as_str()).collect();
        let primaries = self.primaries();
        let is_alone = |node: &&&Node| !followed.contains(node.id.as_str());
        let alone: Vec<_> = primaries.iter().filter(is_alone).collect();
        if alone.is_empty() {
            return Diagnosis::ok("replicas", "every primary has one that can take over");
        }
        let names: Vec<_> = alone.iter().take(NAMED).map(|node| node.name()).collect();
        Diagnosis::warning(
            "replicas",
            format!(
                "{} of {} primaries have no replica: if one of them is gone, so are its slots: {}",
                alone.len(),
                primaries.len(),
                names.join(", ")
            ),
            "add a server for each: `redis-cli --cluster add-node NEW:PORT HOST:PORT \
             --cluster-slave`",
        )
    }
}

/// A Cluster that tells nothing about itself, or is none.
pub(super) fn unknown(error: &StoreError, address: &str) -> Diagnosis {
    match error {
        StoreError::NotAllowed { reason, .. } => Diagnosis::unknown(
            "cluster",
            format!("this user may not look at it ({reason}), so one server was looked at alone"),
            "allow it `+cluster|info +cluster|nodes`",
        ),
        error => Diagnosis::problem(
            "cluster",
            format!("{address} knows of none: {error}"),
            "write redis:// in place of redis+cluster://, or start it with `cluster-enabled yes`",
        ),
    }
}

impl Node {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let id = words.next()?.to_owned();
        // `host:port@port of the others,name`
        let address = words.next()?.split(['@', ',']).next()?.to_owned();
        let flags = words.next()?.split(',').map(str::to_owned).collect();
        let primary = words.next()?.to_owned();
        let is_linked = words.nth(3)? == "connected";
        let slots = words.filter_map(range).collect();
        Some(Self { id, address, flags, primary, is_linked, slots })
    }

    /// Whether the others hold it to be gone, or suspect so.
    fn is_gone(&self) -> bool {
        let gone = ["fail", "fail?", "noaddr", "handshake"];
        self.flags.iter().any(|flag| gone.contains(&flag.as_str()))
    }

    /// Where it is, if it was named by a server at `asked`.
    pub(super) fn address_beside(&self, asked: &str) -> String {
        match (self.address.strip_prefix(':'), asked.rsplit_once(':')) {
            (Some(port), Some((host, _))) => format!("{host}:{port}"),
            _ => self.address.clone(),
        }
    }

    pub(super) fn first_slot(&self) -> Option<u16> {
        self.slots.first().map(|(from, _)| *from)
    }

    fn name(&self) -> &str {
        if self.address.len() > 1 { &self.address } else { &self.id }
    }
}

/// `5`, or `5-9`; one that moves stands in brackets, and still is where it was.
fn range(word: &str) -> Option<(u16, u16)> {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// How many slots there are.
const SLOTS: usize = 16_384;

/// Servers that are read of: Clusters have at most a thousand.
const MOST_NODES: usize = 4_096;

/// So many servers are named in one line.
const NAMED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    fn grades(nodes: &str) -> [Grade; 4] {
        let cluster = Cluster::read("cluster_state:ok\r\n".into(), nodes);
        let found = cluster.diagnoses();
        [found[0].grade, found[1].grade, found[2].grade, found[3].grade]
    }

    #[test]
    fn a_whole_cluster_is_well() {
        let nodes = "\
            a 127.0.0.1:1@10001 myself,master - 0 0 1 connected 0-8191 [93->-b]\n\
            b 127.0.0.1:2@10002,host master - 0 0 2 connected 8192-16382 16383\n\
            c :3@10003 slave a 0 0 1 connected\n\
            d 127.0.0.1:4@10004 slave b 0 0 2 connected\n";
        assert_eq!(grades(nodes), [Grade::Ok; 4]);
        let cluster = Cluster::read(String::new(), nodes);
        assert_eq!(cluster.nodes[2].address_beside("h:9"), "h:3");
        assert_eq!(cluster.nodes[1].first_slot(), Some(8192));
        assert_eq!(cluster.state().grade, Grade::Problem, "it does not say that it is well");
    }

    #[test]
    fn what_is_missing_is_found() {
        let replaced = "\
            a 127.0.0.1:1@10001 master,fail - 0 0 1 disconnected\n\
            b 127.0.0.1:2@10002 myself,master - 0 0 2 connected 0-16383\n";
        let [_, slots, nodes, replicas] = grades(replaced);
        assert_eq!((slots, nodes, replicas), (Grade::Ok, Grade::Warning, Grade::Warning));
        let lost = "\
            a 127.0.0.1:1@10001 master,fail - 0 0 1 disconnected 0-99\n\
            b 127.0.0.1:2@10002 myself,master - 0 0 2 connected 100-16383\n\
            c 127.0.0.1:3@10003 slave b 0 0 2 connected\n";
        let [_, slots, nodes, replicas] = grades(lost);
        assert_eq!((slots, nodes, replicas), (Grade::Problem, Grade::Problem, Grade::Ok));
        let found = Cluster::read(String::new(), lost).covered();
        assert!(found.message.starts_with("100 of 16384"), "{found:?}");
        assert_eq!(grades("nonsense\n\na b c\n")[1], Grade::Problem);
        assert_eq!(
            grades("a h:1@2 master - 0 0 1 connected 9-5 0-70000 7-65535\n")[1],
            Grade::Problem
        );
    }
}
