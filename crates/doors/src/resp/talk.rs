//! A connection without a socket, for tests that send what they like.

use std::sync::Arc;

use crate::connection::{Limits, Peer};
use crate::resp::Resp;
use crate::resp::pipeline::{self, Next};
use crate::resp::session::Session;
use crate::secret::Secret;
use crate::service::{Service, Together, Turn};
use crate::tickets::Tickets;

/// A connection without a socket.
pub(crate) struct Talk {
    door: Resp,
    session: Session,
    input: Vec<u8>,
    next: Next,
}

impl Talk {
    pub(crate) fn new(
        service: Arc<Service>,
        tickets: Arc<Tickets>,
        password: Option<Secret>,
        limits: Limits,
    ) -> Self {
        let session = Session::new(Peer::default(), password.as_ref());
        let door = Resp::new(service, tickets, password, limits);
        Self { door, session, input: Vec::new(), next: Next::Read { needs: 1 } }
    }

    /// Sends bytes, and returns what is answered; `None` once the connection has ended.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.next == Next::End {
            return None;
        }
        self.input.extend_from_slice(bytes);
        let mut answers = Vec::new();
        loop {
            match self.next {
                Next::Read { needs } if self.input.len() < needs => break,
                Next::End => break,
                Next::Read { .. } | Next::Write => {}
            }
            let mut some = Vec::new();
            let (door, session) = (&self.door, &mut self.session);
            let turn = (Turn::Now, &mut Together::default());
            let answered = pipeline::answer(door, session, &self.input, turn, &mut some);
            self.input.drain(..answered.bytes);
            self.next = answered.next;
            answers.append(&mut some);
        }
        Some(answers)
    }
}
