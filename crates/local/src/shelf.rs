//! Where the logs of a shard stand, and the bytes they take.
//!
//! The standard library's map grows when it sees fit, and does not say by how much. A shelf asks
//! [`Bytes`] before it takes any memory, for itself or for a log, and does without where there is
//! none. Places are found by hash, each key at the first free one from its own on; a hand that
//! goes round them drops logs at rest, a few at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tollgate_core::{Log, LogRule, Tick};

use crate::key::KeyHash;

/// The logs of some keys. Each has memory for one entry at least, so that it can always count.
pub(crate) struct Shelf {
    places: Vec<Option<(KeyHash, Log)>>,
    /// How many places are taken: at most three of four, so that a search comes to an end soon.
    len: usize,
    /// Where the next look for logs at rest begins.
    hand: usize,
    bytes: Arc<Bytes>,
}

/// Where a key stands, until something is put onto the shelf or dropped.
#[derive(Clone, Copy)]
pub(crate) struct At(usize);

impl Shelf {
    pub(crate) const fn new(bytes: Arc<Bytes>) -> Self {
        Self { places: Vec::new(), len: 0, hand: 0, bytes }
    }

    pub(crate) fn find(&self, key: KeyHash) -> Option<At> {
        let mut at = self.home(key)?;
        while let Some((other, _)) = &self.places[at] {
            if *other == key {
                return Some(At(at));
            }
            at = self.next(at);
        }
        None
    }

    pub(crate) fn log(&mut self, at: At) -> Option<&mut Log> {
        self.places[at.0].as_mut().map(|(_, log)| log)
    }

    /// Puts a log onto the shelf, with memory for so many entries, for a key that has none there.
    /// Where there is no memory, nothing happens.
    pub(crate) fn insert(&mut self, key: KeyHash, mut log: Log, entries: usize) -> Option<At> {
        let ring = ring_bytes(entries);
        if !self.bytes.take(ring) {
            return None;
        }
        let crowded = (self.len + 1) * 4 > self.places.len() * 3;
        if crowded && !self.resize((self.places.len() * 3 / 2).max(Self::FEWEST_PLACES)) {
            self.bytes.give_back(ring);
            return None;
        }
        log.set_capacity(entries);
        self.put(key, log)
    }

    /// Sees to it that the log has memory for one more entry: if need be for twice as many, up to
    /// the most that it can come to hold. `false` if there is none.
    pub(crate) fn make_room(&mut self, at: At, most: usize) -> bool {
        let Some((_, log)) = &mut self.places[at.0] else { return false };
        let capacity = log.capacity();
        if log.entries() < capacity || capacity >= most {
            return true;
        }
        Self::set_capacity(&self.bytes, log, (capacity * 2).min(most))
    }

    /// Gives back memory of a log that needs no more than a quarter of it.
    pub(crate) fn trim(&mut self, at: At) {
        let Some((_, log)) = &mut self.places[at.0] else { return };
        let wanted = (log.entries() * 2).max(1);
        if wanted * 2 <= log.capacity() {
            // Without the memory to move to, it stays as it is, and is trimmed another time.
            Self::set_capacity(&self.bytes, log, wanted);
        }
    }

    /// Makes a log forget everything.
    pub(crate) fn clear(&mut self, at: At) {
        let Some((_, log)) = &mut self.places[at.0] else { return };
        let before = ring_bytes(log.capacity());
        *log = Log::default();
        log.set_capacity(1);
        self.bytes.give_back(before - ring_bytes(1));
    }

    /// Takes a log off the shelf, and what memory that leaves over.
    pub(crate) fn drop_log(&mut self, at: At) {
        let Some((_, log)) = self.places[at.0].take() else { return };
        let ring = ring_bytes(log.capacity());
        drop(log);
        self.bytes.give_back(ring);
        self.len -= 1;
        self.close_gap(at.0);
        if self.len * 8 < self.places.len() {
            self.resize(match self.len {
                0 => 0,
                len => (len * 2).max(Self::FEWEST_PLACES),
            });
        }
    }

    /// Moves the hand over so many places, and drops the logs at rest that it meets. Says how
    /// many that were.
    pub(crate) fn drop_at_rest(&mut self, rule: LogRule, now: Tick, places: usize) -> usize {
        let before = self.len;
        for _ in 0..places.min(self.places.len()) {
            match self.places.get(self.hand) {
                // Another log may have moved up to this place: the hand stays.
                Some(Some((_, log))) if log.is_at_rest(rule, now) => self.drop_log(At(self.hand)),
                Some(_) => self.hand += 1,
                None => self.hand = 0,
            }
        }
        before - self.len
    }

    const FEWEST_PLACES: usize = 4;

    /// Moves all logs to so many places. `false` if there is no memory for both while they move.
    fn resize(&mut self, places: usize) -> bool {
        let before = place_bytes(self.places.len());
        if !self.bytes.take(place_bytes(places)) {
            return false;
        }
        let mut empty = Vec::new();
        empty.reserve_exact(places);
        empty.resize_with(places, || None);
        let old = std::mem::replace(&mut self.places, empty);
        self.len = 0;
        for (key, log) in old.into_iter().flatten() {
            self.put(key, log);
        }
        self.bytes.give_back(before);
        true
    }

    fn put(&mut self, key: KeyHash, log: Log) -> Option<At> {
        let mut at = self.home(key)?;
        while self.places[at].is_some() {
            at = self.next(at);
        }
        self.places[at] = Some((key, log));
        self.len += 1;
        Some(At(at))
    }

    /// Moves up what stands after a place that became free, so that searches need not go past it.
    fn close_gap(&mut self, mut gap: usize) {
        let places = self.places.len();
        let mut at = self.next(gap);
        while let Some((key, _)) = &self.places[at] {
            let Some(home) = self.home(*key) else { return };
            // Between its home and where it stands there is no gap, unless this is one.
            if (at + places - home) % places >= (at + places - gap) % places {
                self.places.swap(gap, at);
                gap = at;
            }
            at = self.next(at);
        }
    }

    /// The key's own place; none if there are no places at all.
    fn home(&self, key: KeyHash) -> Option<usize> {
        let places = self.places.len();
        // Scaled from the top bits: those that picked the shard are the same for all keys here.
        (places > 0).then_some(((u128::from(key.0) * places as u128) >> 64) as usize)
    }

    const fn next(&self, at: usize) -> usize {
        if at + 1 < self.places.len() { at + 1 } else { 0 }
    }

    /// `false` if there is no memory for the old and the new entries while they move.
    fn set_capacity(bytes: &Bytes, log: &mut Log, entries: usize) -> bool {
        let before = ring_bytes(log.capacity());
        if !bytes.take(ring_bytes(entries)) {
            return false;
        }
        log.set_capacity(entries);
        bytes.give_back(before);
        true
    }
}

/// The memory of all logs of a limit: what they hold, and the most they may hold.
#[derive(Debug)]
pub(crate) struct Bytes {
    held: AtomicUsize,
    max: usize,
    short: AtomicBool,
}

impl Bytes {
    /// With the two counts of whoever shares them.
    pub(crate) const SIZE: usize = size_of::<Self>() + 2 * size_of::<usize>();

    pub(crate) const fn new(held: usize, max: usize) -> Self {
        Self { held: AtomicUsize::new(held), max, short: AtomicBool::new(false) }
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether somebody was refused lately, and there has not been plenty since.
    pub(crate) fn are_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// To be asked before the memory is allocated.
    fn take(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.max);
        // Relaxed: it is a number, and guards nothing but itself.
        let taken = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if !taken {
            self.short.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// To be told after the memory was freed.
    fn give_back(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        if self.are_short() && before - bytes < self.max / 4 * 3 {
            self.short.store(false, Ordering::Relaxed);
        }
    }
}

/// What an allocation takes beside the bytes that were asked for: room for the allocator's own
/// notes, and for rounding up. Generous for the sizes asked for here, which are multiples of 16.
pub(crate) const ALLOCATION: usize = 16;

/// The memory of a log's entries.
pub(crate) const fn ring_bytes(entries: usize) -> usize {
    if entries == 0 { 0 } else { entries * Log::ENTRY_BYTES + ALLOCATION }
}

/// The memory of places, taken or not.
const fn place_bytes(places: usize) -> usize {
    if places == 0 { 0 } else { places * size_of::<Option<(KeyHash, Log)>>() + ALLOCATION }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;
    use tollgate_core::Limit;

    use super::*;

    impl Shelf {
        /// The memory that is held, found by looking at all of it.
        pub(crate) fn measured(&self) -> usize {
            let logs = self.places.iter().flatten().map(|(_, log)| log);
            let rings: usize = logs.map(|log| log.capacity() * 16).sum();
            self.places.capacity() * 64 + rings
        }
    }

    #[derive(Clone, Debug)]
    enum Event {
        Spend,
        Clear,
        Drop,
        LookForRest(usize),
    }

    fn events() -> impl Strategy<Value = (u64, u64, Event)> {
        let event = prop_oneof![
            12 => Just(Event::Spend),
            1 => Just(Event::Clear),
            2 => Just(Event::Drop),
            2 => (0..40usize).prop_map(Event::LookForRest),
        ];
        (0..60u64, 0..20u64, event)
    }

    /// Homes close to each other and up to the end, so that keys stand in each other's way.
    fn hash(key: u64) -> KeyHash {
        KeyHash(u64::MAX - key * (u64::MAX / 200))
    }

    const LIMIT: u64 = 20;

    /// The requests of each key that has a log.
    type Model = BTreeMap<u64, Vec<Tick>>;

    fn spent(requests: &[Tick], now: Tick) -> u64 {
        let inside = |at: &&Tick| now.since(**at) < Duration::from_secs(1);
        requests.iter().filter(inside).count() as u64
    }

    fn apply(shelf: &mut Shelf, model: &mut Model, now: Tick, key: u64, event: &Event) {
        let rule = Limit::sliding_log("20/s").unwrap().log_rule().unwrap();
        match (event, shelf.find(hash(key))) {
            (Event::Spend, Some(at)) => {
                shelf.log(at).unwrap().forget(rule, now);
                let has_room = shelf.make_room(at, LIMIT as usize);
                if has_room && shelf.log(at).unwrap().step(rule, now, 1).is_allowed() {
                    model.get_mut(&key).unwrap().push(now);
                }
                shelf.trim(at);
            }
            (Event::Spend, None) => {
                if let Some(at) = shelf.insert(hash(key), Log::default(), 1) {
                    shelf.log(at).unwrap().step(rule, now, 1);
                    model.insert(key, vec![now]);
                }
            }
            (Event::Clear, Some(at)) => {
                shelf.clear(at);
                model.insert(key, Vec::new());
            }
            (Event::Drop, Some(at)) => {
                shelf.drop_log(at);
                model.remove(&key);
            }
            (Event::LookForRest(places), _) => {
                let (before, dropped) = (model.len(), shelf.drop_at_rest(rule, now, *places));
                model.retain(|key, requests| {
                    spent(requests, now) > 0 || shelf.find(hash(*key)).is_some()
                });
                assert_eq!(before - model.len(), dropped);
            }
            (Event::Clear | Event::Drop, None) => {}
        }
        assert_eq!(shelf.len, model.len());
        for (key, requests) in model {
            let at = shelf.find(hash(*key)).unwrap();
            let left = shelf.log(at).unwrap().peek(rule, now, 0).remaining();
            assert_eq!(left, LIMIT - spent(requests, now), "key {key}");
        }
    }

    proptest! {
        #[test]
        fn a_shelf_is_a_map_that_knows_its_memory(
            events in prop::collection::vec(events(), 0..400), max in 0..12_000usize,
        ) {
            let bytes = Arc::new(Bytes::new(0, max));
            let mut shelf = Shelf::new(Arc::clone(&bytes));
            let (mut model, mut now) = (Model::new(), Tick::ZERO);
            for (key, millis, event) in events {
                now = now.after(Duration::from_millis(millis));
                apply(&mut shelf, &mut model, now, key, &event);
                let allocations = shelf.len + usize::from(shelf.places.capacity() > 0);
                prop_assert_eq!(bytes.held(), shelf.measured() + allocations * ALLOCATION);
                prop_assert!(bytes.held() <= max);
            }
        }

        #[test]
        fn whoever_is_dropped_takes_nobody_along(
            keys in prop::collection::hash_set(0..150u64, 0..100), drop in 0..150u64,
        ) {
            let mut shelf = Shelf::new(Arc::new(Bytes::new(0, usize::MAX)));
            for key in &keys {
                prop_assert!(shelf.insert(hash(*key), Log::default(), 1).is_some());
            }
            let dropped = keys.iter().filter(|key| **key % 3 == drop % 3);
            for key in dropped {
                let at = shelf.find(hash(*key));
                shelf.drop_log(at.unwrap());
            }
            for key in 0..150 {
                let is_there = keys.contains(&key) && key % 3 != drop % 3;
                prop_assert_eq!(shelf.find(hash(key)).is_some(), is_there, "key {}", key);
            }
        }
    }

    #[test]
    fn the_hand_meets_every_log() {
        let rule = Limit::sliding_log("1/s").unwrap().log_rule().unwrap();
        let mut shelf = Shelf::new(Arc::new(Bytes::new(0, usize::MAX)));
        for key in 0..150 {
            shelf.insert(hash(key), Log::default(), 1);
        }
        // Once round at the least: a step for each place, and one for each log.
        for _ in 0..1_000 {
            shelf.drop_at_rest(rule, Tick::ZERO, 1);
        }
        assert_eq!((shelf.len, shelf.bytes.held()), (0, 0));
    }
}
