//! The door for clients of Redis.
//!
//! ```text
//!   connection   bytes in, bytes out; who waits for what, and for how long
//!      |
//!   pipeline     all commands that have come, in order, decided in batches
//!      |
//!   frame        bytes to arguments          reply     answers to bytes
//!   command      what can be asked for       session   who asks
//!   transaction  what waits for EXEC
//!   throttle     CL.THROTTLE, ALLOW          rules     TG.CHECK and the like: `asked`, `ended`
//! ```

mod asked;
mod command;
mod connection;
mod ended;
mod frame;
mod info;
mod patience;
mod pipeline;
mod reply;
mod rules;
mod session;
mod talk;
mod throttle;
mod transaction;

pub(crate) use talk::Talk;

use std::sync::Arc;

use crate::connection::{Limits, Peer, Stream};
use crate::door::{Door, Name};
use crate::drain::Draining;
use crate::secret::Secret;
use crate::service::Service;
use crate::tickets::Tickets;
use crate::worker::Work;

#[derive(Debug)]
pub(crate) struct Resp {
    service: Arc<Service>,
    tickets: Arc<Tickets>,
    password: Option<Secret>,
    limits: Limits,
}

impl Resp {
    pub(crate) const fn new(
        service: Arc<Service>,
        tickets: Arc<Tickets>,
        password: Option<Secret>,
        limits: Limits,
    ) -> Self {
        Self { service, tickets, password, limits }
    }
}

impl Door for Resp {
    fn name(&self) -> Name {
        Name::Resp
    }

    fn serve(self: Arc<Self>, stream: Stream, peer: Peer, draining: Draining) -> Work {
        Box::pin(connection::serve(self, stream, peer, draining))
    }

    fn refuse(self: Arc<Self>, stream: Stream) -> Work {
        Box::pin(connection::refuse(stream))
    }
}
