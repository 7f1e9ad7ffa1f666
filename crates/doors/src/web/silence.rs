//! How long nothing happens on a connection, and how long its client leaves something unfinished.
//!
//! A timer that every request sets anew would be more work than the rest of many requests. So there
//! is one that looks now and then whether there was any, and another that is set only while the
//! client owes something: the rest of a request that it has begun, or to take its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tollgate::{Sleep, Timer};

use crate::connection::Limits;

/// Requests of a connection. Only its own thread writes to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU32,
    ended: AtomicU32,
    owed: AtomicU8,
    strikes: AtomicU32,
    ending: AtomicBool,
}

/// What a client has still to do before it may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Owed {
    Nothing,
    /// To send the rest of the headers that it has begun. The rest of a body is waited for by
    /// whoever reads it.
    Rest,
    /// To take its answers.
    Taking,
}

/// A request that has not ended.
#[derive(Debug)]
pub(crate) struct OneRequest(Requests);

impl Requests {
    pub(super) fn begin(&self) -> OneRequest {
        add_one(&self.0.begun);
        self.owes(Owed::Nothing);
        OneRequest(self.clone())
    }

    /// Counts a request that is answered already.
    #[inline]
    pub(super) fn once(&self) {
        add_one(&self.0.begun);
        add_one(&self.0.ended);
        self.owes(Owed::Nothing);
    }

    #[inline]
    pub(super) fn owes(&self, owed: Owed) {
        self.0.owed.store(owed as u8, Ordering::Relaxed);
    }

    /// Takes no further requests.
    pub(super) fn end(&self) {
        self.0.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.0.ending.load(Ordering::Relaxed)
    }

    /// Counts something against the client, and says whether that is too much.
    pub(super) fn strike(&self) -> bool {
        add_one(&self.0.strikes);
        self.0.strikes.load(Ordering::Relaxed) >= STRIKES
    }

    pub(super) fn is_under_way(&self) -> bool {
        let (begun, ended) = self.counts();
        begun != ended
    }

    /// The client has taken something.
    #[inline]
    pub(super) fn taken(&self) {
        if self.0.owed.load(Ordering::Relaxed) == Owed::Taking as u8 {
            self.owes(Owed::Nothing);
        }
    }

    /// Whether it is the client that has to do something next. While a request is under way, it is
    /// not.
    pub(super) fn is_owed(&self) -> bool {
        !self.is_under_way() && self.0.owed.load(Ordering::Relaxed) != Owed::Nothing as u8
    }

    fn counts(&self) -> (u32, u32) {
        (self.0.begun.load(Ordering::Relaxed), self.0.ended.load(Ordering::Relaxed))
    }
}

impl Drop for OneRequest {
    fn drop(&mut self) {
        add_one(&self.0.0.ended);
        // What else was read may have been of its body.
        self.0.owes(Owed::Nothing);
    }
}

/// There is one writer, so nothing comes in between.
fn add_one(count: &AtomicU32) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Says when a connection has taken too long.
pub(super) struct Watch<T> {
    requests: Requests,
    timer: T,
    idle: Duration,
    patience: Duration,
    /// How many requests had begun at the last look.
    seen: u32,
    /// For how many looks in a row there was nothing.
    silent: u32,
    next_look: Option<Sleep>,
    /// Set only while something is owed, and how many requests had ended then.
    owed: Option<(Sleep, u32)>,
}

/// Why a connection has taken too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// There was no request, or there is to be none any more.
    Silent,
    /// The client owes something.
    Owing,
}

impl<T: Timer> Watch<T> {
    pub(super) const fn new(requests: Requests, timer: T, limits: &Limits) -> Self {
        Self {
            requests,
            timer,
            idle: limits.idle,
            patience: limits.patience,
            seen: 0,
            silent: 0,
            next_look: None,
            owed: None,
        }
    }

    /// Ends when it was waited enough. To do slowly what is owed does not make it longer.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Late> {
        if self.requests.is_ending() {
            return Poll::Ready(Late::Silent);
        }
        if self.requests.is_owed() {
            let (_, ended) = self.requests.counts();
            let sleep = match &mut self.owed {
                Some((sleep, since)) if *since == ended => sleep,
                owed => &mut owed.insert((self.timer.sleep(self.patience), ended)).0,
            };
            if sleep.as_mut().poll(context).is_ready() {
                return Poll::Ready(Late::Owing);
            }
        } else if self.owed.is_some() {
            self.owed = None;
        }
        loop {
            let (timer, pause) = (&self.timer, self.idle / LOOKS);
            let next_look = self.next_look.get_or_insert_with(|| timer.sleep(pause));
            ready!(next_look.as_mut().poll(context));
            self.next_look = None;
            if self.look() >= LOOKS {
                return Poll::Ready(Late::Silent);
            }
        }
    }

    /// For how many looks in a row there was nothing: none began, none is under way, and none is
    /// being sent.
    fn look(&mut self) -> u32 {
        let (begun, ended) = self.requests.counts();
        let is_silent = begun == self.seen && ended == begun && !self.requests.is_owed();
        self.silent = if is_silent { self.silent + 1 } else { 0 };
        self.seen = begun;
        self.silent
    }
}

/// A connection of whom so much is held against ends.
const STRIKES: u32 = 10;

/// How often it is looked during the time for which a connection may be silent.
const LOOKS: u32 = 4;

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tollgate::ManualClock;

    use super::*;

    const LIMITS: (Duration, Duration) = (Duration::from_secs(40), Duration::from_secs(10));

    fn watch(clock: &ManualClock) -> (Requests, Watch<ManualClock>) {
        let requests = Requests::default();
        let (idle, patience) = LIMITS;
        let limits = Limits { idle, patience, ..Limits::default() };
        (requests.clone(), Watch::new(requests, clock.clone(), &limits))
    }

    /// After how many seconds it is too late, if it is within a minute and a half.
    fn late(
        clock: &ManualClock,
        watch: &mut Watch<ManualClock>,
        mut each: impl FnMut(),
    ) -> Option<(u32, Late)> {
        let mut context = Context::from_waker(Waker::noop());
        for second in 0..90 {
            if let Poll::Ready(late) = watch.poll(&mut context) {
                return Some((second, late));
            }
            clock.advance(Duration::from_secs(1));
            each();
        }
        None
    }

    #[test]
    fn silence_ends_a_connection_and_requests_do_not() {
        let clock = ManualClock::new();
        let (requests, mut watch) = watch(&clock);
        assert_eq!(late(&clock, &mut watch, || requests.once()), None);
        let long = requests.begin();
        assert_eq!(late(&clock, &mut watch, || {}), None, "one is under way");
        drop(long);
        let (after, why) = late(&clock, &mut watch, || {}).unwrap();
        assert!((30..=51).contains(&after), "{after}");
        assert_eq!(why, Late::Silent);
    }

    #[test]
    fn whoever_owes_something_has_no_longer_than_patience() {
        for owed in [Owed::Rest, Owed::Taking] {
            let clock = ManualClock::new();
            let (requests, mut watch) = watch(&clock);
            requests.once();
            // That more comes, bit by bit, does not help.
            requests.owes(owed);
            let ended = late(&clock, &mut watch, || requests.owes(owed));
            assert_eq!(ended, Some((10, Late::Owing)), "{owed:?}");
        }
    }

    #[test]
    fn what_ends_is_not_owed_any_more() {
        let clock = ManualClock::new();
        let (requests, mut watch) = watch(&clock);
        let begin = || {
            requests.once();
            requests.owes(Owed::Rest);
        };
        begin();
        assert_eq!(late(&clock, &mut watch, begin), None, "each is another one");
        let one = requests.begin();
        requests.owes(Owed::Rest);
        assert_eq!(late(&clock, &mut watch, || {}), None, "it is our turn");
        drop(one);
        requests.owes(Owed::Taking);
        requests.taken();
        let (_, why) = late(&clock, &mut watch, || {}).unwrap();
        assert_eq!(why, Late::Silent);
    }

    #[test]
    fn a_request_that_is_begun_late_has_its_time() {
        let clock = ManualClock::new();
        let (requests, mut watch) = watch(&clock);
        let mut seconds = 0;
        let ended = late(&clock, &mut watch, || {
            seconds += 1;
            if seconds == 29 {
                requests.owes(Owed::Rest);
            }
        });
        assert_eq!(ended, Some((39, Late::Owing)));
    }
}
