//! What a key brings along from a limit that it had before.

use std::time::Duration;

use super::account::Account;
use super::budget::Budget;
use super::lender::Lender;
use crate::time::{Tick, nanos};

/// What a key had spent of another limit when that gave way to this one.
///
/// A store keeps the books of each limit by themselves, so a key is new to it when its limit has
/// changed. It is not to have a second budget for that, nor to be kept out for longer than the new
/// limit keeps out those who have spent everything. So it begins as if it had spent this then, or all
/// that the new limit allows.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::lease::Carried;
/// let carried = Carried { spent: 80, ago: Duration::from_secs(3), of_known: false };
/// assert_eq!(carried.spent, 80);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What was spent, and had not come back.
    pub spent: u64,
    /// How long ago the limit changed.
    pub ago: Duration,
    /// Whether it counts also for a key that the store knows: the limit was changed back, and what the
    /// store knows is from before. Of a sliding log, which knows when everything was, it never does.
    pub of_known: bool,
}

impl Carried {
    /// When the limit changed, for whom it is `now`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::Carried};
    /// let carried = Carried { spent: 80, ago: Duration::from_secs(3), of_known: false };
    /// let now = Tick::ZERO.after(Duration::from_secs(5));
    /// assert_eq!(carried.since(now), Tick::ZERO.after(Duration::from_secs(2)));
    /// ```
    pub fn since(&self, now: Tick) -> Tick {
        Tick::from_nanos(now.as_nanos().saturating_sub(nanos(self.ago)))
    }
}

impl Lender {
    /// Takes for spent what the key brings along: the account becomes no less strict than one that
    /// began with it. To permits, which are held or not, it means nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::{Carried, Lender}};
    /// let limit = Limit::token_bucket("10/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let now = Tick::ZERO.after(Duration::from_secs(60));
    /// let mut account = lender.open(now, Phase::default());
    /// let ago = Duration::from_millis(300);
    /// lender.carry(&mut account, now, &Carried { spent: 80, ago, of_known: false });
    /// assert_eq!(lender.left(&mut account, now), 3, "it had spent all ten, and three are back");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn carry(&self, account: &mut Account, now: Tick, carried: &Carried) {
        let now = account.advance(&self.budget, now);
        let Budget::Tokens(machine) = &self.budget else { return };
        let phase = account.balance.phase;
        let spent = machine.rebased(carried.since(now), carried.spent, phase);
        account.balance.word = machine.join(account.balance.word, spent, phase);
    }
}
