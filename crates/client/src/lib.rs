//! Asks a tollgate over gRPC whether requests may pass: one by one, in batches, or in a stream.
//!
//! ```no_run
//! use tollgate_client::{Check, Client};
//!
//! # async fn ask() -> Result<(), tollgate_client::Error> {
//! let client = Client::new("http://127.0.0.1:4293")?;
//! let answer = client.check(Check::new("GET", "/v1/items").attribute("user", "alice")).await?;
//! if !answer.allowed {
//!     println!("{}: come again after {:?}", answer.rule, answer.retry);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A batch takes a fraction of the time that as many single checks take; a stream is for whoever
//! asks all the time and wants each answer at once. Being over the limit is an answer, and an error
//! means that nobody could say: whoever asks decides what that is worth.

#![forbid(unsafe_code)]

mod answer;
mod check;
mod client;
mod stream;

pub use answer::{Answer, Retry};
pub use check::{Check, Ended};
pub use client::{Client, Error};
pub use stream::Checks;
