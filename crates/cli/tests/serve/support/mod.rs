//! Processes that tests start, and that end with them.

mod ask;
mod client;
mod gateway;
mod process;
mod server;
mod tools;

pub(crate) use ask::{exchange, run, run_command};
pub(crate) use client::{Answer, Client};
pub(crate) use gateway::{Gateway, Proxy, assert_denied, files};
pub(crate) use process::{Process, free_port, until};
pub(crate) use server::Server;
pub(crate) use tools::{python, tool};
