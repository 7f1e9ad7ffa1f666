//! How long a connection may take.

use std::task::{Context, Poll};
use std::time::Duration;

use tollgate::{Sleep, SystemClock, Timer as _};

use crate::connection::Limits;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// The next command.
    Nothing,
    /// The rest of a command that has begun.
    Command,
    /// The client to take its answers.
    Answers,
    /// The password, before anything else counts.
    Password,
}

/// How long a connection may take.
///
/// A client that has ever sent a command may be silent for as long as it likes, as with Redis: the
/// pools of libraries keep connections, and take it for an error if one ends. A silent connection
/// costs little, and one whose other end is gone is found out by TCP.
pub(super) struct Patience {
    idle: Duration,
    patience: Duration,
    /// How often something came to its end.
    ended: u64,
    /// Set only while something is waited for: most connections that are busy never need one.
    timer: Option<Timer>,
}

struct Timer {
    sleep: Sleep,
    /// What it was set for.
    waiting: Waiting,
    ended: u64,
}

impl Patience {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self { idle: limits.idle, patience: limits.patience, ended: 0, timer: None }
    }

    /// Begins anew: a command was answered, or all answers were taken.
    pub(super) const fn renew(&mut self) {
        self.ended += 1;
    }

    /// Ends when there was waited enough. To send a command slowly does not make it longer.
    pub(super) fn poll(
        &mut self,
        waiting: Waiting,
        clock: &SystemClock,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let ended = self.ended;
        let span = match waiting {
            Waiting::Nothing if ended > 0 => {
                self.timer = None;
                return Poll::Pending;
            }
            Waiting::Nothing => self.idle,
            Waiting::Command | Waiting::Answers | Waiting::Password => self.patience,
        };
        // What is answered before the password is said makes it no longer.
        let renews = waiting != Waiting::Password;
        let is_set = |timer: &Timer| timer.waiting == waiting && (timer.ended == ended || !renews);
        if !self.timer.as_ref().is_some_and(is_set) {
            self.timer = Some(Timer { sleep: clock.sleep(span), waiting, ended });
        }
        match &mut self.timer {
            Some(timer) => timer.sleep.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}
