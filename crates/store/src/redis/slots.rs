//! Which server of a Cluster has which slots.

use std::collections::BTreeSet;

use redis::Value;

use crate::redis::answer::{text, whole};

#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    /// First and last slot, and the address.
    ranges: Vec<(u16, u16, String)>,
    /// All servers that were heard of last, replicas too: one of them will know more. At most
    /// [`MOST_KNOWN`].
    known: BTreeSet<String>,
}

impl Slots {
    /// What `CLUSTER SLOTS` says, and the host that says it.
    pub(super) fn read(ranges: &[Value], asked: &str) -> Self {
        let mut slots = Self::default();
        for range in ranges {
            let Value::Array(parts) = range else { continue };
            let [from, to, servers @ ..] = &parts[..] else { continue };
            let (Some(from), Some(to)) = (whole(from), whole(to)) else { continue };
            let addresses: Vec<_> =
                servers.iter().filter_map(|server| address_of(server, asked)).collect();
            for address in addresses.iter().take(MOST_REPLICAS) {
                slots.learn(address);
            }
            let ends = (u16::try_from(from), u16::try_from(to));
            if let (Some(first), (Ok(from), Ok(to))) = (addresses.into_iter().next(), ends) {
                slots.ranges.push((from, to, first));
            }
        }
        slots
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn node_of(&self, slot: u16) -> Option<&str> {
        let range = self.ranges.iter().find(|(from, to, _)| (*from..=*to).contains(&slot));
        range.map(|(_, _, node)| node.as_str())
    }

    /// The slots of a server.
    pub(super) fn of(&self, node: &str) -> Vec<u16> {
        let ranges = self.ranges.iter().filter(|(_, _, of)| of == node);
        ranges.flat_map(|(from, to, _)| *from..=*to).collect()
    }

    /// All servers that have slots.
    pub(super) fn primaries(&self) -> BTreeSet<String> {
        self.ranges.iter().map(|(_, _, node)| node.clone()).collect()
    }

    pub(super) fn known(&self) -> BTreeSet<String> {
        self.known.clone()
    }

    /// Takes note that a slot lies elsewhere, as its former server says.
    pub(super) fn give(&mut self, slot: u16, node: &str) {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 2);
        for (from, to, of) in self.ranges.drain(..) {
            if !(from..=to).contains(&slot) {
                ranges.push((from, to, of));
                continue;
            }
            if from < slot {
                ranges.push((from, slot - 1, of.clone()));
            }
            if slot < to {
                ranges.push((slot + 1, to, of));
            }
        }
        ranges.push((slot, slot, node.to_owned()));
        self.ranges = ranges;
        self.learn(node);
    }

    fn learn(&mut self, node: &str) {
        if self.known.len() < MOST_KNOWN {
            self.known.insert(node.to_owned());
        }
    }
}

/// Where a server that was asked at a host says that a slot lies: `3999 127.0.0.1:6381`.
pub(super) fn pointed_at(words: &str, asked: &str) -> Option<String> {
    let (host, port) = words.split_whitespace().nth(1)?.rsplit_once(':')?;
    Some(format!("{}:{port}", known_host(host, asked)))
}

fn address_of(server: &Value, asked: &str) -> Option<String> {
    let Value::Array(parts) = server else { return None };
    let (host, port) = (text(parts.first()?), whole(parts.get(1)?)?);
    Some(format!("{}:{port}", known_host(&host, asked)))
}

/// A server that does not know its own name, or was told not to say it, is where it was asked.
fn known_host<'a>(host: &'a str, asked: &'a str) -> &'a str {
    if host.is_empty() || host == "?" { asked } else { host }
}

/// Replicas of one range that are remembered.
const MOST_REPLICAS: usize = 16;

/// Servers that are remembered: more than a Cluster should have.
const MOST_KNOWN: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    type Range<'a> = (i64, i64, &'a [(&'a str, i64)]);

    fn slots(ranges: &[Range<'_>]) -> Slots {
        let server = |(host, port): &(&str, i64)| {
            let host = Value::BulkString(host.as_bytes().to_vec());
            Value::Array(vec![host, Value::Int(*port)])
        };
        let range = |(from, to, servers): &Range<'_>| {
            let mut parts = vec![Value::Int(*from), Value::Int(*to)];
            parts.extend(servers.iter().map(server));
            Value::Array(parts)
        };
        Slots::read(&ranges.iter().map(range).collect::<Vec<_>>(), "here")
    }

    #[test]
    fn a_slot_lies_where_its_former_server_points() {
        for (words, place) in [
            ("3999 127.0.0.1:6381", Some("127.0.0.1:6381")),
            ("3999 fe80::1:6381", Some("fe80::1:6381")),
            ("3999 :6381", Some("here:6381")),
            ("3999 ?:6381", Some("here:6381")),
            ("3999", None),
            ("3999 6381", None),
        ] {
            assert_eq!(pointed_at(words, "here").as_deref(), place);
        }
    }

    #[test]
    fn who_has_no_name_is_where_it_was_asked() {
        let slots = slots(&[(0, 10, &[("", 1), ("b", 2)]), (11, 12, &[("c", 3)])]);
        assert_eq!(slots.node_of(10), Some("here:1"));
        assert_eq!(slots.node_of(11), Some("c:3"));
        assert_eq!(slots.node_of(13), None);
        assert_eq!(slots.known().len(), 3);
        assert_eq!(slots.primaries().len(), 2);
    }

    #[test]
    fn a_slot_that_was_given_away_leaves_the_others_where_they_are() {
        let mut slots = slots(&[(0, 10, &[("a", 1)]), (11, 12, &[("b", 2)])]);
        for (slot, node) in [(5, "b:2"), (0, "c:3"), (10, "c:3"), (5, "a:1"), (13, "d:4")] {
            slots.give(slot, node);
        }
        let owners: Vec<_> = (0..14).map(|slot| slots.node_of(slot).unwrap()).collect();
        let mut wanted = vec!["a:1"; 14];
        (wanted[0], wanted[10], wanted[11], wanted[12], wanted[13]) =
            ("c:3", "c:3", "b:2", "b:2", "d:4");
        assert_eq!(owners, wanted);
    }
}
