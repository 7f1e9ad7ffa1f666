//! When things happen, and what becomes of messages.

use std::cmp::{Ordering, Reverse};

use tollgate_core::lease::Exchange;

use super::{Event, Fleet};

/// Something that will happen. Of two at the same time, what was planned first happens first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheduled {
    pub(super) time: u64,
    order: u64,
    pub(super) event: Event,
}

impl Fleet {
    pub(super) fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Scheduled { time, order: self.order, event }));
    }

    pub(super) fn after_about(&mut self, time: Option<u64>, event: Event) {
        if let Some(time) = time {
            let wait = self.chance.between((time / 2, time * 3 / 2));
            self.at(self.now + wait, event);
        }
    }

    pub(super) fn send(&mut self, place: usize, exchange: Exchange) {
        self.deliver(place, Event::AtStore(place, exchange));
    }

    /// A message arrives late, twice or never.
    pub(super) fn deliver(&mut self, place: usize, event: Event) {
        let copies = if self.chance.per_mille(self.plan.repeated) { 2 } else { 1 };
        for _ in 0..copies {
            let delay = self.chance.between(self.plan.delay);
            if !self.chance.per_mille(self.plan.lost) && !self.is_cut_off(place) {
                self.at(self.now + delay, event);
            }
        }
    }

    pub(super) fn is_cut_off(&self, place: usize) -> bool {
        self.now < self.members[place].cut
    }

    /// Nothing gets from some nodes to the store, nor back, for a while.
    pub(super) fn some_are_cut_off(&mut self) {
        let longest = (2 * self.hold()).max(LEAST_LONGEST_CUT);
        let end = self.now + self.chance.below(longest);
        for place in 0..self.members.len() {
            if self.chance.per_mille(500) {
                self.members[place].cut = end;
                self.outcome.cuts += 1;
            }
        }
        self.after_about(self.plan.cuts, Event::Cut);
    }
}

/// Nodes are cut off for up to twice the time of a lease, or this.
const LEAST_LONGEST_CUT: u64 = 3_000_000_000;

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.order).cmp(&(other.time, other.order))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}
