//! Lending: how a store lets many nodes decide by themselves, and the limit holds all the same.
//!
//! ```text
//!    node: Borrower                                 store: Lender, an Account for each key
//!      spend, spend, spend ...                        balance S, escrow O
//!      | Exchange { used, returned, want }              |
//!      |----------------------------------------------->|  used: out of O; returned: from O to S
//!      |       Grant { tokens, span, promise, lease }   |  granted: from S to O
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
//! Tokens of a bucket are lent before they come in, so S can be below nothing, by D. That A is not below
//! nothing is up to the nodes then: they keep back as much as D, or more, and D shrinks by what comes in.
//! The store knows what they keep back, and until when: P, which is a promise to somebody of every token
//! that comes in for a while. It promises none twice, so P shrinks no faster than D, and it has a node that
//! is lent more keep back what D is more than P then. Hence D <= P <= what is kept back, at all times. What a
//! node gives back P loses the last of, so that nobody is promised sooner what others wait for; a node that
//! was not answered cannot use at all what it never heard of; and a lease lasts longer than
//! what is promised of it takes to come in.
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
mod lanes;
mod lender;
mod pace;
mod purse;
mod renewal;
mod share;
mod spend;
mod terms;
mod transcript;

pub use account::Account;
pub use borrower::Borrower;
pub use carried::Carried;
pub use exchange::{Exchange, Grant, LeaseId, Node, Promise, Undo};
pub use lender::Lender;
pub use spend::{Receipt, Spend};
pub use terms::Terms;
pub use transcript::Record;
