//! Commands that run a server, through its admin door, and one that looks at its status.

mod client;
mod error;
mod keys;
mod ready;
mod rules;
mod switches;
mod tls;

pub(crate) use error::AdminError;
pub(crate) use keys::run as keys;
pub(crate) use ready::run as ready;
pub(crate) use rules::{push, show};
pub(crate) use switches::{drain, kill, log_level, unkill};
