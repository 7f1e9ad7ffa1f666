//! Processes that tests start, and that end with them.

mod process;
mod server;

pub(crate) use process::{Process, until};
pub(crate) use server::Server;
