//! Staying awake where requests come thick and fast.
//!
//! A thread that has nothing to do sleeps, and whoever asks it next has to wake it, which costs them
//! more than the answer costs us. So a worker that answers tens of thousands of requests a second
//! looks for the next one for a moment before it sleeps, and gives its processor to anybody else who
//! wants it meanwhile. One that is asked less often sleeps at once.

use std::cell::Cell;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;
use tollgate::{Clock, Timer};

thread_local! {
    /// How many answers this thread has given.
    static ANSWERS: Cell<u64> = const { Cell::new(0) };
    static OFTEN: Rc<Notify> = Rc::default();
    /// Whether the next answer is waited for.
    static AWAITED: Cell<bool> = const { Cell::new(false) };
}

/// Notes that an answer was given.
#[inline]
pub(crate) fn answered() {
    let answers = ANSWERS.get().wrapping_add(1);
    ANSWERS.set(answers);
    if AWAITED.get() || answers.is_multiple_of(SOME) {
        AWAITED.set(false);
        OFTEN.with(|often| often.notify_one());
    }
}

/// Keeps the thread that this runs on awake while it is worth it. Does not end.
pub(crate) async fn keep(clock: impl Timer) {
    let often = OFTEN.with(Rc::clone);
    loop {
        often.notified().await;
        let before = ANSWERS.get();
        clock.sleep(WHILE).await;
        if ANSWERS.get().wrapping_sub(before) < MANY {
            continue;
        }
        // Whoever asked that often was kept from asking for a moment, and goes on soon.
        while stay_awake(&clock).await {
            AWAITED.set(true);
            often.notified().await;
        }
    }
}

/// Ends when nobody has asked for a moment, and says whether it was worth it until then.
async fn stay_awake(clock: &impl Clock) -> bool {
    let (before, start) = (ANSWERS.get(), clock.now());
    let (mut seen, mut last) = (before, start);
    loop {
        let (answers, now) = (ANSWERS.get(), clock.now());
        if answers != seen {
            (seen, last) = (answers, now);
        }
        if now.since(last) > MOMENT {
            let shares = u64::try_from(now.since(start).as_nanos() / EACH.as_nanos());
            return shares.is_ok_and(|shares| answers.wrapping_sub(before) >= shares);
        }
        thread::yield_now();
        tokio::task::yield_now().await;
    }
}

/// After so many answers it is found out how often they are given.
const SOME: u64 = 1024;

/// It is worth it from so many in this while on: 40,000 a second, or one in [`EACH`].
const MANY: u64 = 80;
const WHILE: Duration = Duration::from_millis(2);
const EACH: Duration = Duration::from_micros(25);

/// How long the next one is waited for.
const MOMENT: Duration = Duration::from_micros(30);

#[cfg(test)]
mod tests {
    use super::*;

    use tollgate::ManualClock;

    /// Somebody asks a hundred times with such a gap in between, and then no more.
    async fn is_worth_it(gap: Duration) -> bool {
        let clock = ManualClock::new();
        let asking = async {
            for asked in 0.. {
                clock.advance(gap);
                if asked < 100 {
                    answered();
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            is_worth_it = stay_awake(&clock) => is_worth_it,
            () = asking => unreachable!("nobody asks for ever"),
        }
    }

    #[tokio::test]
    async fn whoever_asks_often_is_waited_for_again() {
        assert!(is_worth_it(Duration::from_micros(10)).await);
        assert!(!is_worth_it(Duration::from_micros(28)).await, "35,000 a second");
        assert!(!is_worth_it(Duration::from_micros(200)).await);
    }
}
