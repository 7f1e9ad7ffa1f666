//! Lending: how a store lets many nodes decide by themselves, and the limit holds all the same.
//!
//! ```text
//!    node: Borrower                                 store: Lender, an Account for each key
//!      spend, spend, spend ...                        balance S, escrow O
//!      | Exchange { used, returned, want }              |
//!      |----------------------------------------------->|  used: out of O; returned: from O to S
//!      |       Grant { tokens, span, all_in, lease }    |  granted: from S to O
//!      |<-----------------------------------------------|
//!      may spend `tokens` until sent + span             keeps them in O for longer than that
//! ```
//!
//! **The promise.** What passes in any interval of length D is at most `burst + rate x D` for a
//! bucket, and the limit in a window, by the store's clock: whatever messages are lost, repeated,
//! reordered or late, whatever nodes die, and whether or not the store remembers, as long as no
//! clock is faster or slower than another by more than a hundredth.
//!
//! **Why it holds.** Call `A` what is in S and O less what nodes have used and not told yet. A
//! request that passes takes from A, whoever decides it. Time adds to A at the limit's rate at the
//! most, and only while S + O is below the burst. Telling, returning and lending move tokens within
//! A. A lease that ends takes from A what nobody used. So A is a bucket like any other: never above
//! the burst, never below nothing.
//!
//! Tokens of a bucket are lent before they come in, so S can be below nothing, until some moment T if
//! no more is lent. That A is not below nothing is up to the nodes then: at every moment t before T,
//! what they hold and may not use has to be as much as comes in from t to T, or more. A node that is
//! answered is told T, and takes its tokens for the last that come in. What is lent makes T later by as
//! much, and whoever gets it waits for it. What is returned makes T earlier by as much as is kept back
//! no more. A node that is not answered uses no more than before, and of what it was lent nothing. And
//! a lease lasts longer than what is lent ahead takes to come in: when it ends, it keeps nothing back.
//!
//! * A bucket stops refilling at `burst - O`. A lease that ends counts as used.
//! * A window has spent what it has lent, and a lease ends with its window at the latest.
//! * Permits are out as long as they are lent.
//! * Sliding logs and shaping buckets are never lent: [`Terms::of`] has none for them, and the
//!   store decides each request.
//!
//! **Messages.** A node has one exchange under way for each key. Sums since the lease began are
//! told, so that a lost message takes nothing with it. An exchange that comes again is answered as
//! it was at first; one that was overtaken is not answered. A node takes no answer but the first to
//! its latest exchange.
//!
//! **Requests in vain.** What the store has spent for a request that another limit denies, or that
//! does not count for the way it ended, is taken back: see [`Exchange::undo`]. Had it never been
//! spent, S would be higher by as much, less what could not have come in because S + O was at the
//! burst: at most what comes in from then to now. So no more than the rest is put back, and S is
//! where it could be if the request had never been.
//!
//! **Loss of memory.** What a store that forgot cannot know, it takes for spent: see
//! [`Lender::after_loss`].
//!
//! **Changed limits.** A key whose limit has changed is new to the store, and brings along what it had
//! spent: see [`Carried`]. That only ever lowers S.
//!
//! A request that the store decides at once ([`Exchange::cost`]) passes at the store's time. That
//! its answer takes a while to travel is not counted.
//!
//! Reading order: [`Terms`], [`Exchange`] and [`Grant`], [`Lender`], [`Borrower`]; for a store that
//! keeps its books elsewhere, [`Record`].

mod account;
mod borrower;
mod budget;
mod carried;
mod coming;
mod demand;
mod exchange;
mod lender;
mod purse;
mod renewal;
mod share;
mod spend;
mod terms;
mod transcript;

pub use account::Account;
pub use borrower::Borrower;
pub use carried::Carried;
pub use exchange::{Exchange, Grant, LeaseId, Node, Undo};
pub use lender::Lender;
pub use spend::{Receipt, Spend};
pub use terms::Terms;
pub use transcript::Record;
