//! Where shares are given out: the pools of all limits that buckets meet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate::Tick;

use crate::grpc::frame::{Code, Refusal};
use crate::grpc::rlqs::bucket::Met;
use crate::grpc::rlqs::counts::Counts;
use crate::grpc::rlqs::fill::Fill;
use crate::grpc::rlqs::pool::{Pool, Share, Usage};

/// Where shares are given out. Reports are rare, and what is done about one is short: one lock is
/// enough.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<Pools>);

#[derive(Debug, Default)]
struct Pools {
    by_key: BTreeMap<Box<str>, Pool>,
    counts: Counts,
    /// In all pools.
    holders: usize,
    last_holder: u64,
    /// When pools were last looked through for those that nobody needs.
    swept: Option<Tick>,
}

/// A bucket of one stream.
#[derive(Debug)]
pub(super) struct Bucket {
    holder: u64,
    limits: Vec<Met>,
    told: Told,
    /// How long Envoy goes by what it was told, as far as we know.
    until: Tick,
    began: Tick,
    /// When it last had requests.
    busy: Tick,
}

/// What Envoy does with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// What it is configured to do without an assignment.
    Nothing,
    AllowAll,
    DenyAll,
    Share(Share),
}

/// What Envoy is to be told about a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Assign(Told),
    /// Another share than the one that it has, beginning full.
    Replace(Share),
    /// Nobody needs the bucket.
    Abandon,
}

impl Desk {
    /// Another stream begins.
    pub(super) fn open(&self) -> Result<(), Refusal> {
        let mut pools = self.pools();
        if pools.counts.streams >= MOST_STREAMS {
            pools.counts.refused += 1;
            let message = format!("there are {MOST_STREAMS} streams already, which are the most");
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        pools.counts.streams += 1;
        Ok(())
    }

    /// A stream ends.
    pub(super) fn close(&self, buckets: impl Iterator<Item = Bucket>) {
        let mut pools = self.pools();
        pools.counts.streams = pools.counts.streams.saturating_sub(1);
        for bucket in buckets {
            pools.counts.buckets = pools.counts.buckets.saturating_sub(1);
            pools.leave(&bucket);
        }
    }

    /// A bucket that nothing is known about yet.
    pub(super) fn bucket(&self, now: Tick) -> Bucket {
        let mut pools = self.pools();
        pools.counts.buckets += 1;
        pools.last_holder += 1;
        let holder = pools.last_holder;
        let (limits, told) = (Vec::new(), Told::Nothing);
        Bucket { holder, limits, told, until: now, began: now, busy: now }
    }

    /// Takes a report about a bucket that meets these limits, and says what Envoy is to be told.
    pub(super) fn report(
        &self,
        bucket: &mut Bucket,
        limits: Vec<Met>,
        usage: Usage,
        now: Tick,
    ) -> Result<Option<Action>, Refusal> {
        let mut pools = self.pools();
        pools.sweep(now);
        if now >= bucket.until {
            bucket.told = Told::Nothing;
        }
        if usage.allowed > 0 || usage.denied > 0 {
            bucket.busy = now;
        } else if now.since(bucket.busy) >= IDLE {
            // It forgets what it has.
            for met in &bucket.limits {
                pools.at(met, |pool| pool.remove(bucket.holder));
            }
            pools.counts.buckets = pools.counts.buckets.saturating_sub(1);
            pools.counts.tell(Action::Abandon);
            return Ok(Some(Action::Abandon));
        }
        let is_same = bucket.limits == limits;
        pools.join(bucket, limits, usage, now)?;
        let told = match bucket.limits.is_empty() {
            true => Told::AllowAll,
            false => match (bucket.told, pools.share(bucket)) {
                (Told::Share(old), new) if is_same && new.is_none_or(|new| !is_worth(old, new)) => {
                    Told::Share(old)
                }
                (_, Some(new)) => Told::Share(new),
                // It does what it is configured to, or goes by what an earlier stream has told it.
                (Told::Nothing, None) if now.since(bucket.began) < TIME_TO_LIVE => return Ok(None),
                (_, None) => Told::DenyAll,
            },
        };
        let action = pools.tell(bucket, told, now);
        if let Some(action) = action {
            pools.counts.tell(action);
        }
        Ok(action)
    }

    /// A report was refused.
    pub(super) fn refuse(&self) {
        self.pools().counts.refused += 1;
    }

    /// What is counted about all this by now.
    pub(crate) fn counts(&self, now: Tick) -> Counts {
        let mut pools = self.pools();
        // Nobody may have reported for long: what ended meanwhile is to be seen.
        pools.sweep(now);
        pools.counts
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pools {
    /// Reports what a bucket did to all whose limits it met, and makes it a holder of those that it
    /// meets.
    fn join(
        &mut self,
        bucket: &mut Bucket,
        limits: Vec<Met>,
        usage: Usage,
        now: Tick,
    ) -> Result<(), Refusal> {
        let is_new = |met: &&Met| !bucket.limits.iter().any(|old| old.key == met.key);
        let new = limits.iter().filter(is_new).count();
        if new > 0 && self.holders + new > MOST_HOLDERS {
            let message = format!("more than {MOST_HOLDERS} buckets are shared out: use fewer");
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        for old in &bucket.limits {
            if !limits.iter().any(|met| met.key == old.key) {
                self.at(old, |pool| {
                    pool.report(bucket.holder, usage, now);
                    pool.remove(bucket.holder);
                });
            }
        }
        for met in &limits {
            if !self.by_key.contains_key(&met.key) {
                self.by_key.insert(met.key.clone(), Pool::new(met.budget, now));
            }
            self.at(met, |pool| {
                if pool.budget() != met.budget {
                    pool.change(met.budget, now);
                }
                pool.report(bucket.holder, usage, now);
            });
        }
        bucket.limits = limits;
        Ok(())
    }

    /// What a bucket could have now: as much as each of its limits lets it.
    fn share(&self, bucket: &Bucket) -> Option<Share> {
        let pools = || bucket.limits.iter().filter_map(|met| self.by_key.get(&met.key));
        let fill = Fill::of(pools().map(|pool| pool.rate_for(bucket.holder)).reduce(f64::min)?)?;
        let tokens = pools().map(|pool| pool.tokens_for(bucket.holder, fill.rate()));
        // `None` is less than any number.
        Some(Share { fill, tokens: tokens.min()?? })
    }

    /// Keeps in mind what Envoy is told. It is told nothing if it knows.
    fn tell(&mut self, bucket: &mut Bucket, told: Told, now: Tick) -> Option<Action> {
        let (is_new, had_share) = (bucket.told != told, matches!(bucket.told, Told::Share(_)));
        if !is_new && bucket.until.since(now) >= RENEWAL {
            return None;
        }
        bucket.told = told;
        bucket.until = now.after(TIME_TO_LIVE + DELAY);
        let (holder, until) = (bucket.holder, bucket.until);
        for met in &bucket.limits {
            self.at(met, |pool| match told {
                Told::Share(share) if is_new => pool.give(holder, share, until),
                Told::Share(_) => pool.renew(holder, until),
                Told::Nothing | Told::AllowAll | Told::DenyAll => pool.take_back(holder),
            });
        }
        Some(match told {
            Told::Share(share) if is_new && had_share => Action::Replace(share),
            told => Action::Assign(told),
        })
    }

    /// A bucket is not reported any more.
    fn leave(&mut self, bucket: &Bucket) {
        for met in &bucket.limits {
            self.at(met, |pool| pool.leave(bucket.holder));
        }
    }

    fn at(&mut self, met: &Met, act: impl FnOnce(&mut Pool)) {
        if let Some(pool) = self.by_key.get_mut(&met.key) {
            let before = pool.len();
            act(pool);
            self.holders = (self.holders + pool.len()).saturating_sub(before);
            self.counts.expired += pool.take_expired();
        }
    }

    /// Drops what is as good as new, now and then. Where there are too many pools, also those that
    /// nobody holds anything of.
    fn sweep(&mut self, now: Tick) {
        if self.swept.is_some_and(|swept| now.since(swept) < SWEEPING) {
            return;
        }
        self.swept = Some(now);
        let is_full = self.by_key.len() > MOST_HOLDERS;
        self.by_key.retain(|_, pool| {
            pool.settle(now);
            self.counts.expired += pool.take_expired();
            !(pool.is_at_rest() || is_full && pool.len() == 0)
        });
        self.holders = self.by_key.values().map(Pool::len).sum();
    }
}

/// Whether Envoy should be told of a new share. A bucket that is replaced begins full, so it is not
/// done for little.
fn is_worth(old: Share, new: Share) -> bool {
    let rate = new.fill.rate() / old.fill.rate();
    !(0.875..=1.125).contains(&rate) || new.tokens > old.tokens.saturating_add(old.tokens / 4)
}

/// How long Envoy may go by an assignment. It has to report more often than that to keep it.
pub(super) const TIME_TO_LIVE: Duration = Duration::from_secs(60);

/// How long an assignment may take to Envoy: from then on it counts the time to live.
const DELAY: Duration = Duration::from_secs(2);

/// An assignment is renewed when no more than this is left of it.
const RENEWAL: Duration = Duration::from_secs(45);

/// A bucket without requests for so long is abandoned.
const IDLE: Duration = Duration::from_secs(600);

const SWEEPING: Duration = Duration::from_secs(5);

const MOST_STREAMS: usize = 1_000;

/// Of all streams together. Each takes up to a few KB.
const MOST_HOLDERS: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::rlqs::pool::Budget;

    const BUSY: Usage = Usage { allowed: 0, denied: 100 };
    const QUIET: Usage = Usage { allowed: 0, denied: 0 };

    fn at(seconds: u64) -> Tick {
        Tick::from_nanos(seconds * 1_000_000_000)
    }

    fn limit(rate: f64, burst: f64) -> Vec<Met> {
        vec![Met { key: "a".into(), budget: Budget { rate, burst } }]
    }

    fn share(tokens: u32, fill: u32, seconds: u32) -> Option<Action> {
        let fill = Fill { tokens: fill, seconds };
        Some(Action::Assign(Told::Share(Share { fill, tokens })))
    }

    #[test]
    fn an_assignment_is_renewed_before_it_ends() {
        let (desk, limit) = (Desk::default(), limit(10.0, 20.0));
        let mut bucket = desk.bucket(at(0));
        let mut report =
            |second| desk.report(&mut bucket, limit.clone(), BUSY, at(second)).unwrap();
        assert_eq!(report(0), share(20, 10, 1));
        assert_eq!([5, 10, 15].map(&mut report), [None, None, None]);
        assert_eq!(report(20), share(20, 10, 1), "a third of its time is over");
        assert_eq!([25, 30, 35].map(report), [None, None, None]);
    }

    #[test]
    fn a_bucket_without_requests_is_abandoned() {
        let (desk, limit) = (Desk::default(), limit(10.0, 20.0));
        let mut bucket = desk.bucket(at(0));
        for second in (0..600).step_by(10) {
            let told = desk.report(&mut bucket, limit.clone(), QUIET, at(second)).unwrap();
            assert!(told.is_none() || told == share(20, 10, 1), "{told:?}");
        }
        let told = desk.report(&mut bucket, limit, QUIET, at(600));
        assert_eq!(told, Ok(Some(Action::Abandon)));
    }

    #[test]
    fn whoever_comes_later_gets_its_share_when_others_have_less() {
        let (desk, limit) = (Desk::default(), limit(16.0, 16.0));
        let mut buckets = [desk.bucket(at(0)), desk.bucket(at(0))];
        let mut report = |who: usize, second| {
            desk.report(&mut buckets[who], limit.clone(), BUSY, at(second)).unwrap()
        };
        assert_eq!(report(0, 0), share(16, 16, 1));
        assert_eq!(report(1, 1), None, "it does what it is configured to");
        let Some(Action::Replace(less)) = report(0, 5) else { panic!("it has less") };
        let Some(Action::Assign(Told::Share(rest))) = report(1, 6) else { panic!("it has some") };
        assert!(less.fill.rate() + rest.fill.rate() <= 16.0, "{less:?} and {rest:?}");
    }

    #[test]
    fn whoever_gets_no_share_for_long_may_let_nobody_pass() {
        let (desk, limit) = (Desk::default(), limit(0.001, 1.0));
        let mut bucket = desk.bucket(at(0));
        let usage = Usage { allowed: 90, denied: 0 };
        let mut report = |second| desk.report(&mut bucket, limit.clone(), usage, at(second));
        assert_eq!(report(0), Ok(None));
        assert_eq!(report(59), Ok(None));
        assert_eq!(report(60), Ok(Some(Action::Assign(Told::DenyAll))));
    }

    #[test]
    fn there_are_only_so_many_streams() {
        let desk = Desk::default();
        assert!((0..MOST_STREAMS).all(|_| desk.open().is_ok()));
        assert!(desk.open().is_err());
        desk.close(std::iter::empty());
        assert!(desk.open().is_ok());
    }

    #[test]
    fn what_is_told_what_ends_and_what_is_refused_is_counted() {
        let desk = Desk::default();
        desk.open().unwrap();
        let mut buckets = [desk.bucket(at(0)), desk.bucket(at(0)), desk.bucket(at(0))];
        desk.report(&mut buckets[0], limit(10.0, 20.0), BUSY, at(0)).unwrap();
        desk.report(&mut buckets[1], Vec::new(), BUSY, at(0)).unwrap();
        desk.report(&mut buckets[2], Vec::new(), QUIET, at(0)).unwrap();
        desk.refuse();
        let told = Counts { streams: 1, buckets: 3, told: [1, 2, 0, 0], expired: 0, refused: 1 };
        assert_eq!(desk.counts(at(61)), told, "it has two seconds to get there");
        let ended = Counts { expired: 1, ..told };
        assert_eq!(desk.counts(at(67)), ended, "nobody has reported, and still it is seen");
        desk.report(&mut buckets[2], Vec::new(), QUIET, at(600)).unwrap();
        let abandoned = Counts { buckets: 2, told: [1, 2, 0, 1], ..ended };
        assert_eq!(desk.counts(at(600)), abandoned);
        let [first, second, _] = buckets;
        desk.close([first, second].into_iter());
        assert_eq!(desk.counts(at(601)), Counts { streams: 0, buckets: 0, ..abandoned });
    }

    #[test]
    fn what_nobody_needs_is_forgotten() {
        let desk = Desk::default();
        let mut bucket = desk.bucket(at(0));
        desk.report(&mut bucket, limit(1.0, 9.0), BUSY, at(0)).unwrap();
        desk.open().unwrap();
        desk.close([bucket].into_iter());
        let known = |second| {
            let mut pools = desk.pools();
            pools.sweep(at(second));
            (pools.by_key.len(), pools.holders)
        };
        assert_eq!(known(61), (1, 1));
        assert_eq!(known(70), (1, 0));
        assert_eq!(known(200), (0, 0));
    }
}
