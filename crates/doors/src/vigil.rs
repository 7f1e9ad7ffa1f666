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
}

/// Notes that an answer was given.
#[inline]
pub(crate) fn answered() {
    let answers = ANSWERS.get().wrapping_add(1);
    ANSWERS.set(answers);
    if answers.is_multiple_of(SOME) {
        OFTEN.with(|often| often.notify_one());
    }
}

/// Keeps the thread that this runs on awake while it is worth it. Does not end.
pub(crate) async fn keep(clock: impl Timer) {
    let often = OFTEN.with(Rc::clone);
    loop {
        often.notified().await;
        loop {
            let before = ANSWERS.get();
            clock.sleep(WHILE).await;
            if ANSWERS.get().wrapping_sub(before) < MANY {
                break;
            }
            stay_awake(&clock).await;
        }
    }
}

/// Ends when nobody has asked for a moment.
async fn stay_awake(clock: &impl Clock) {
    let (mut seen, mut last) = (ANSWERS.get(), clock.now());
    loop {
        let (answers, now) = (ANSWERS.get(), clock.now());
        if answers != seen {
            (seen, last) = (answers, now);
        }
        if now.since(last) > MOMENT {
            return;
        }
        thread::yield_now();
        tokio::task::yield_now().await;
    }
}

/// After so many answers it is found out how often they are given.
const SOME: u64 = 1024;

/// It is worth it from so many in this while on: 40,000 a second.
const MANY: u64 = 80;
const WHILE: Duration = Duration::from_millis(2);

/// How long the next one is waited for.
const MOMENT: Duration = Duration::from_micros(30);
