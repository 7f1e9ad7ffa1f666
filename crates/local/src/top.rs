//! Which keys are heavy: an estimate from a sample, in bounded memory.
//!
//! Every so many decisions one is sampled, and its key counted with that weight, in a list of
//! fixed length: a key that is not in it takes the place, and the count, of the lightest (the
//! *space saving* algorithm). A key that makes up more than 1 in [`HeavyKeys::LENGTH`] of the
//! sample is certain to be in the list. Counts are halved now and then, so the list follows what
//! happens now.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::key::KeyHash;
use crate::shards::lock;

/// A key that comes often.
///
/// ```
/// use tollgate_local::{HeavyKeys, Key, Seed};
/// let (heavy, seed) = (HeavyKeys::default(), Seed::random());
/// heavy.count(false, || ("alice".hash(&seed), "alice".label()));
/// let top = heavy.top(1);
/// assert_eq!((top[0].key.as_str(), top[0].share), ("alice", 1.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyKey {
    /// The key as its label.
    pub key: String,
    /// How often it came lately, by estimate.
    pub count: u64,
    /// The part of all decisions lately that it was part of, 0 to 1, by estimate; among those
    /// denied, of all denials. A decision about several keys is part of the share of each.
    pub share: f64,
}

/// Counts which keys come most often, and which are denied most often.
///
/// ```
/// use tollgate_local::{HeavyKeys, Key, Seed};
/// let (heavy, seed) = (HeavyKeys::default(), Seed::random());
/// for (name, denied) in [("alice", false), ("bob", true), ("alice", false)] {
///     heavy.count(denied, || (name.hash(&seed), name.label()));
/// }
/// assert_eq!(heavy.top(1)[0].key, "alice");
/// assert_eq!(heavy.top_denied(1)[0].key, "bob");
/// ```
pub struct HeavyKeys {
    /// Where our countdowns end. The high half tells instances apart.
    end: u64,
    /// Which of a thread's countdowns is ours.
    place: u32,
    /// One of so many decisions is sampled.
    interval: AtomicU32,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    asked: List,
    denied: List,
    samples: u32,
}

/// Keys by hash, how often each came, and what it is called: apart, because a sample looks at all
/// hashes, and mostly at nothing else.
#[derive(Debug, Default)]
struct List {
    hashes: Vec<KeyHash>,
    counts: Vec<u64>,
    labels: Vec<String>,
    /// Decisions, each of which may be about several keys.
    total: u64,
}

/// Instances have a countdown each in every thread. Where there are more instances than that, two
/// that share one and are asked in turns take it from each other, and sample more often.
const COUNTDOWNS: usize = 16;

thread_local! {
    /// Whose countdown it is, in the high half, and the decisions until this thread samples one.
    static UNTIL_SAMPLE: [Cell<u64>; COUNTDOWNS] =
        const { [const { Cell::new(0) }; COUNTDOWNS] };
    /// The state of a small generator that spreads the samples, so that they do not fall in step
    /// with the traffic.
    static SPREAD: Cell<u32> = const { Cell::new(0x9E37_79B9) };
}

impl HeavyKeys {
    /// How many keys are watched at once.
    ///
    /// ```
    /// assert_eq!(tollgate_local::HeavyKeys::LENGTH, 256);
    /// ```
    pub const LENGTH: usize = 256;

    /// The longest interval between samples. Short ones serve while there is little traffic.
    const MAX_INTERVAL: u32 = 4096;

    /// After so many samples the interval is doubled, or the counts are halved.
    const SAMPLES: u32 = 4096;

    /// The longest label that is kept.
    const MAX_LABEL: usize = 256;

    /// Counts a decision, if it is its turn; `key` says which key it was about.
    ///
    /// ```
    /// use tollgate_local::{HeavyKeys, Key, Seed};
    /// let seed = Seed::random();
    /// HeavyKeys::default().count(false, || (7u64.hash(&seed), 7u64.label()));
    /// ```
    #[inline(always)]
    pub fn count(&self, denied: bool, key: impl FnOnce() -> (KeyHash, String)) {
        self.count_each(move || {
            let (hash, label) = key();
            [(hash, denied, label)]
        });
    }

    /// Counts a decision about several keys at once, if it is its turn: each key, whether it was
    /// denied, and its label.
    ///
    /// ```
    /// use tollgate_local::{HeavyKeys, Key, Seed};
    /// let (heavy, seed) = (HeavyKeys::default(), Seed::random());
    /// let key = |name: &str, denied| (name.hash(&seed), denied, name.label());
    /// heavy.count_each(|| [key("alice", false), key("everybody", true)]);
    /// assert_eq!((heavy.top(9).len(), heavy.top_denied(9).len()), (2, 1));
    /// ```
    #[inline(always)]
    pub fn count_each<K, L>(&self, keys: impl FnOnce() -> K)
    where
        K: AsRef<[(KeyHash, bool, L)]>,
        L: AsRef<str>,
    {
        if self.is_turn() {
            self.sample(keys);
        }
    }

    /// Whether it is the turn of this decision to be [sampled](Self::sample); if not, it comes
    /// nearer. For whoever counts the time that it takes to say which key it was about.
    ///
    /// ```
    /// use tollgate_local::{HeavyKeys, Key, Seed};
    /// let (heavy, seed) = (HeavyKeys::default(), Seed::random());
    /// if heavy.is_turn() {
    ///     heavy.sample(|| [("alice".hash(&seed), false, "alice")]);
    /// }
    /// assert_eq!(heavy.top(9)[0].key, "alice", "the first is always sampled");
    /// ```
    #[inline(always)]
    pub fn is_turn(&self) -> bool {
        UNTIL_SAMPLE.with(|countdowns| {
            let countdown = &countdowns[self.place()];
            let next = countdown.get().wrapping_sub(1);
            // Neither at its end nor somebody else's.
            let goes_on = next.wrapping_sub(self.end) <= u64::from(u32::MAX);
            if goes_on {
                countdown.set(next);
            }
            !goes_on
        })
    }

    /// Counts the decisions of a batch; `at` gives the key at an index, and whether it was denied.
    ///
    /// ```
    /// use tollgate_local::{HeavyKeys, Key, Seed};
    /// let (keys, seed) = ([7u64, 8, 9], Seed::random());
    /// HeavyKeys::default().count_batch(3, |at| (keys[at].hash(&seed), false, keys[at].label()));
    /// ```
    #[inline]
    pub fn count_batch(&self, len: usize, at: impl Fn(usize) -> (KeyHash, bool, String)) {
        let mut passed = 0;
        loop {
            let until = self.until_sample() as usize;
            if passed + until >= len {
                // The difference of two numbers of which the first fits.
                self.set_until_sample((until - (len - passed)) as u32);
                return;
            }
            passed += until + 1;
            self.sample(|| [at(passed - 1)]);
        }
    }

    /// The `n` keys that came most often, the heaviest first.
    ///
    /// ```
    /// assert!(tollgate_local::HeavyKeys::default().top(10).is_empty());
    /// ```
    pub fn top(&self, n: usize) -> Vec<HeavyKey> {
        lock(&self.lists).asked.top(n)
    }

    /// The `n` keys that were denied most often.
    ///
    /// ```
    /// assert!(tollgate_local::HeavyKeys::default().top_denied(10).is_empty());
    /// ```
    pub fn top_denied(&self, n: usize) -> Vec<HeavyKey> {
        lock(&self.lists).denied.top(n)
    }

    /// Counts a decision whose turn it is: each key that it was about, whether that was denied, and
    /// its label.
    ///
    /// ```
    /// use tollgate_local::{HeavyKeys, Key, Seed};
    /// let (heavy, seed) = (HeavyKeys::default(), Seed::random());
    /// heavy.sample(|| [("alice".hash(&seed), true, "alice")]);
    /// assert_eq!(heavy.top_denied(9).len(), 1);
    /// ```
    #[cold]
    #[inline(never)]
    pub fn sample<K: AsRef<[(KeyHash, bool, L)]>, L: AsRef<str>>(&self, keys: impl FnOnce() -> K) {
        let interval = self.interval.load(Ordering::Relaxed);
        self.set_until_sample(spread(interval));
        // Before the lock: labels are made by code of others.
        let keys = keys();
        // Nobody waits for a statistic: whoever finds it locked leaves its sample out.
        let Ok(mut lists) = self.lists.try_lock() else { return };
        let keys = keys.as_ref();
        lists.asked.total += u64::from(interval);
        if keys.iter().any(|(_, denied, _)| *denied) {
            lists.denied.total += u64::from(interval);
        }
        for (hash, denied, label) in keys {
            let label = shortened(label.as_ref());
            if *denied {
                lists.denied.count(*hash, interval, &label);
            }
            lists.asked.count(*hash, interval, &label);
        }
        lists.samples += 1;
        if lists.samples == Self::SAMPLES {
            lists.samples = 0;
            if interval < Self::MAX_INTERVAL {
                self.interval.store(interval * 2, Ordering::Relaxed);
            } else {
                lists.asked.halve();
                lists.denied.halve();
            }
        }
    }

    /// Decisions until this thread samples one; 0 if the countdown is somebody else's.
    #[inline(always)]
    fn until_sample(&self) -> u32 {
        let countdown = UNTIL_SAMPLE.with(|countdowns| countdowns[self.place()].get());
        u32::try_from(countdown.wrapping_sub(self.end)).unwrap_or(0)
    }

    #[inline(always)]
    fn set_until_sample(&self, until: u32) {
        let countdown = self.end + u64::from(until);
        UNTIL_SAMPLE.with(|countdowns| countdowns[self.place()].set(countdown));
    }

    /// Which of a thread's countdowns is ours.
    #[inline(always)]
    const fn place(&self) -> usize {
        self.place as usize % COUNTDOWNS
    }
}

impl Default for HeavyKeys {
    fn default() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            end: u64::from(id) << 32,
            place: id,
            interval: AtomicU32::new(1),
            lists: Mutex::default(),
        }
    }
}

impl std::fmt::Debug for HeavyKeys {
    /// Keys may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad("HeavyKeys(..)")
    }
}

impl List {
    fn count(&mut self, hash: KeyHash, weight: u32, label: &str) {
        let weight = u64::from(weight);
        if let Some(at) = self.hashes.iter().position(|known| *known == hash) {
            self.counts[at] += weight;
        } else if self.hashes.len() < HeavyKeys::LENGTH {
            self.hashes.push(hash);
            self.counts.push(weight);
            // With room for any other that takes its place: who decides does not wait for memory.
            let mut room = String::with_capacity(HeavyKeys::MAX_LABEL + '…'.len_utf8());
            room.push_str(label);
            self.labels.push(room);
        } else if let Some(lightest) = (0..self.counts.len()).min_by_key(|at| self.counts[*at]) {
            self.hashes[lightest] = hash;
            self.counts[lightest] += weight;
            self.labels[lightest].clear();
            self.labels[lightest].push_str(label);
        }
    }

    fn top(&self, n: usize) -> Vec<HeavyKey> {
        let mut entries: Vec<_> = self.labels.iter().zip(self.counts.iter().copied()).collect();
        entries.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
        let heavy = |(label, count): (&String, u64)| HeavyKey {
            key: label.clone(),
            count,
            share: count as f64 / self.total.max(1) as f64,
        };
        entries.into_iter().take(n).map(heavy).collect()
    }

    fn halve(&mut self) {
        self.total /= 2;
        for at in (0..self.counts.len()).rev() {
            self.counts[at] /= 2;
            if self.counts[at] == 0 {
                self.hashes.swap_remove(at);
                self.counts.swap_remove(at);
                self.labels.swap_remove(at);
            }
        }
    }
}

/// How many decisions to leave out so that one of `interval` is sampled on average: evenly spread
/// from 0 to twice as many.
fn spread(interval: u32) -> u32 {
    let mut state = SPREAD.get();
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    SPREAD.set(state);
    let span = 2 * interval - 1;
    ((u64::from(state) * u64::from(span)) >> 32) as u32
}

fn shortened(label: &str) -> Cow<'_, str> {
    if label.len() <= HeavyKeys::MAX_LABEL {
        return label.into();
    }
    let end = (0..=HeavyKeys::MAX_LABEL).rev().find(|at| label.is_char_boundary(*at));
    format!("{}…", &label[..end.unwrap_or(0)]).into()
}
