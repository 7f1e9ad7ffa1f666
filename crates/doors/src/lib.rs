//! Ways in to a tollgate: HTTP, forward-auth, RESP and gRPC for those who ask, admin and status for those
//! who run it.
//!
//! ```text
//!   listener          accepts, one for each door
//!      |
//!   worker            a thread with its connections: they never move
//!      |
//!   door              http, forward_auth, resp, grpc, admin, status: bytes to requests, answers to bytes
//!      |
//!   service           one decision, its metrics, its line in the log
//!      |
//!   tollgate::Engine
//! ```
//!
//! Every status and header that a client sees comes from [`respond`].

#![forbid(unsafe_code)]

mod address;
mod admin;
mod config;
mod connection;
mod denials;
mod door;
mod drain;
mod forward_auth;
#[doc(hidden)]
pub mod fuzzing;
mod given;
mod grpc;
mod held;
mod http;
mod log_level;
mod metrics;
mod observer;
mod resp;
pub mod respond;
mod secret;
mod server;
mod service;
mod status;
mod switches;
mod tickets;
mod tls;
mod unheard;
mod vigil;
mod watch;
mod web;
mod worker;

pub use address::{Address, AddressError};
pub use config::{
    Config, ConfigError, DrainTimes, Log, LogFormat, ResetStyle, Respond, StoreConfig,
    StoreIdentity, listen,
};
pub use connection::Limits;
pub use given::Given;
pub use log_level::LogLevel;
pub use metrics::{Family, Labels, Samples, Timings};
pub use observer::{Decided, Observer};
pub use secret::Secret;
pub use server::{Doors, StartError, Started};
pub use service::{Service, SwapError};
pub use tls::{TlsError, TlsFiles};
pub use watch::{LoadError, Stamps, Watched};
