//! A server of a Cluster that is another process than it was: what it has lost, of slots that nobody has
//! asked about yet.
//!
//! Where a mark was seen and is there no more, everything was lost. For a slot that this client has not
//! seen it is of no use, but the process tells: it began with nothing, or without marks that were there.
//! What it has lost is what it had then: slots that leave it are lost, and those that come to it are not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use redis::{ServerError, ServerErrorKind, Value};

use crate::error::StoreError;
use crate::redis::answer::text;
use crate::redis::failure;
use crate::redis::form::{Past, Seen};
use crate::redis::link::{Link, field};
use crate::redis::shared::{MOST_LOSSES, Shared};

/// What processes of a Cluster have lost.
#[derive(Debug, Default)]
pub(super) struct Losses(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Processes that have lost everything, and when, in microseconds. At most [`MOST_LOSSES`].
    processes: BTreeMap<Arc<str>, u64>,
    /// The slots that they had, each with the last who lost it, and when.
    slots: BTreeMap<u16, (Arc<str>, u64)>,
}

impl Losses {
    /// Takes note that a process has lost all it had.
    pub(super) fn learn(&self, process: &str, micros: u64, slots: impl FnOnce() -> Vec<u16>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { processes, slots: lost } = &mut *known;
        // Every answer of such a process says so. Slots of which that was found out at different times
        // were lost by the last of them.
        if processes.get(process).is_some_and(|latest| micros <= *latest) {
            return;
        }
        if processes.len() >= MOST_LOSSES {
            processes.clear();
        }
        let process: Arc<str> = process.into();
        processes.insert(Arc::clone(&process), micros);
        for slot in slots() {
            let last = lost.entry(slot).or_insert_with(|| (Arc::clone(&process), micros));
            if last.1 < micros {
                *last = (Arc::clone(&process), micros);
            }
        }
    }

    /// What is known of a slot in that process, if no mark of it was seen.
    pub(super) fn of(&self, slot: u16, process: &str) -> Past {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.slots.get(&slot) {
            Some((by, micros)) if **by == *process => Past::Lost(*micros),
            Some((_, micros)) => Past::LostElsewhere(*micros),
            None => Past::Unknown,
        }
    }
}

/// Takes note of who is at the other end of a link to a server with these slots, before anything is asked.
pub(super) async fn look(
    link: &Link,
    node: &str,
    slots: Vec<u16>,
    shared: &Shared,
) -> Result<(), StoreError> {
    if shared.is_cluster && shared.is_another_process(node, &link.process) {
        let seen = shared.seen_among(&slots);
        let mut ask = redis::pipe();
        ask.cmd("INFO").arg("keyspace");
        for (slot, _) in &seen {
            ask.cmd("GET").arg(shared.mark(*slot));
        }
        let replies = link.send(&ask, 1 + seen.len()).await?;
        // Who does not know its Cluster yet says nothing, and is asked again before anything else.
        let is_down = |error: &&ServerError| error.kind() == Some(ServerErrorKind::ClusterDown);
        if let Some(error) = replies.iter().find_map(refusal).filter(is_down) {
            return Err(failure::of_reply(error, &link.address, ""));
        }
        let now = shared.wall().as_unix_nanos() / 1_000;
        let seen: Vec<_> = seen.into_iter().map(|(_, seen)| seen).collect();
        shared.learn_start(&link.process, &slots, lost(&replies, &seen, &link.process, now));
    }
    shared.learn_process(node, &link.process);
    Ok(())
}

const fn refusal(reply: &Value) -> Option<&ServerError> {
    match reply {
        Value::ServerError(error) => Some(error),
        _ => None,
    }
}

/// When a process has lost everything, in microseconds; 0 if it has not, or if that cannot be told. First
/// stands what databases it has, then marks of slots of which this was seen, as far as they lie there.
fn lost(replies: &[Value], seen: &[Seen], process: &str, now: u64) -> u64 {
    let Some((databases, marks)) = replies.split_first() else { return 0 };
    if field(&text(databases), "db0").is_none() {
        return now;
    }
    if marks.iter().zip(seen).any(|(mark, seen)| is_of_before(&text(mark), *seen, process)) {
        return now;
    }
    let marks = marks.iter().filter(|mark| matches!(mark, Value::BulkString(_) | Value::Nil));
    let mut lost = None;
    for mark in marks.map(text) {
        let words: Vec<_> = mark.split(' ').collect();
        match words[..] {
            ["process", of, "epoch", _, "lost", micros, "kept", "0", "moved", moves, ..]
                if of == process =>
            {
                // Somebody has found out before, unless it is a slot that has come from elsewhere since.
                if moves == "0" {
                    let micros = micros.parse().ok().filter(|micros| *micros > 0);
                    lost = micros.or(lost).or(Some(now));
                }
            }
            [""] => lost = lost.or(Some(now)),
            // It knows what was.
            _ => return 0,
        }
    }
    lost.unwrap_or(0)
}

/// Whether a process has begun with what was long before the last answer. Other slots may have been asked for last
/// before that: what is there of them is no sign that nothing is missing.
fn is_of_before(mark: &str, seen: Seen, process: &str) -> bool {
    let words: Vec<_> = mark.split(' ').collect();
    let ["process", of, .., "beat", beat, "until", _, "since", _, "noted", _] = words[..] else {
        return false;
    };
    of != process && beat.parse().is_ok_and(|beat: u64| seen.at > beat.saturating_add(MISSING))
}

/// So many microseconds may be missing of what is kept: see the scripts, which have the last word on each slot.
const MISSING: u64 = 3_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_twice_was_lost_the_second_time_whoever_says_so_first() {
        let losses = Losses::default();
        for (micros, latest) in [(7, Past::Lost(7)), (9, Past::Lost(9)), (8, Past::Lost(9))] {
            losses.learn("p", micros, || vec![1]);
            assert_eq!(losses.of(1, "p"), latest);
        }
        assert_eq!(losses.of(2, "p"), Past::Unknown, "it had another");
    }

    #[test]
    fn a_slot_is_lost_wherever_it_is_now() {
        let losses = Losses::default();
        losses.learn("p", 7, || vec![1, 2]);
        assert_eq!(losses.of(1, "q"), Past::LostElsewhere(7));
        losses.learn("q", 9, || vec![1, 3]);
        let lost = [(1, "q"), (1, "p"), (2, "p"), (3, "q")].map(|(slot, by)| losses.of(slot, by));
        assert_eq!(lost, [Past::Lost(9), Past::LostElsewhere(9), Past::Lost(7), Past::Lost(9)]);
    }

    fn told(databases: &str, marks: &[Option<&str>]) -> u64 {
        let value = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let mut replies = vec![value(databases)];
        replies.extend(marks.iter().map(|mark| mark.map_or(Value::Nil, value)));
        let seen = vec![Seen { epoch: 1, at: 4_000_000, since: 1 }; marks.len()];
        lost(&replies, &seen, "new", 9)
    }

    #[test]
    fn a_process_without_keys_or_marks_that_were_there_has_lost_everything() {
        let some = "# Keyspace\r\ndb0:keys=3,expires=2,avg_ttl=0\r\n";
        let mark = |process: &str, rest: &str| {
            format!("process {process} epoch 2 {rest} until - since 2 noted 0")
        };
        let old = |beat: u64| mark("old", &format!("lost 0 kept 0 moved 0 beat {beat}"));
        let new = |rest: &str| mark("new", &format!("{rest} beat 8"));
        assert_eq!(told("# Keyspace\r\n", &[]), 9, "there is nothing");
        assert_eq!(told(some, &[]), 0, "nobody can tell");
        assert_eq!(told(some, &[None]), 9);
        assert_eq!(
            told(some, &[Some(&new("lost 7 kept 0 moved 0")), None]),
            7,
            "somebody has noticed"
        );
        assert_eq!(told(some, &[Some(&new("lost 0 kept 0 moved 0"))]), 9, "and did not know");
        assert_eq!(told(some, &[None, Some(&old(1_000_000))]), 0, "it was read from a disk");
        let both =
            [Some(&*old(1_000_000)), Some(&*old(999_999))].map(|mark| mark.map(str::to_owned));
        let both = [both[0].as_deref(), both[1].as_deref()];
        assert_eq!(told(some, &both), 9, "one of them was answered long after it was written");
        assert_eq!(told(some, &[Some(&new("lost 7 kept 1 moved 0"))]), 0);
        assert_eq!(told(some, &[Some("mine")]), 0);
        let moved = &new("lost 7 kept 0 moved 1");
        assert_eq!(told(some, &[Some(moved)]), 0, "that one was lost by another");
        assert_eq!(told(some, &[Some(moved), None]), 9);
    }
}
