//! The door for clients of Redis.

use std::sync::Arc;

use crate::connection::{Limits, Peer, Stream};
use crate::door::{Door, Name};
use crate::drain::Draining;
use crate::secret::Secret;
use crate::service::Service;
use crate::worker::Work;

#[derive(Debug)]
pub(crate) struct Resp {
    service: Arc<Service>,
    password: Option<Secret>,
    limits: Limits,
}

impl Resp {
    pub(crate) const fn new(
        service: Arc<Service>,
        password: Option<Secret>,
        limits: Limits,
    ) -> Self {
        Self { service, password, limits }
    }
}

impl Door for Resp {
    fn name(&self) -> Name {
        Name::Resp
    }

    fn serve(self: Arc<Self>, stream: Stream, _: Peer, _: Draining) -> Work {
        Box::pin(async move { drop(stream) })
    }

    fn refuse(self: Arc<Self>, stream: Stream) -> Work {
        Box::pin(async move { drop(stream) })
    }
}
