//! `/v1/check` and `/v1/peek`: may these requests pass?

use bytes::Bytes;
use tollgate::{Clock as _, Request, Ruling, Tick};

use crate::door::Name;
use crate::http::Http;
use crate::http::asked::Asked;
use crate::http::body::{self, Body, Unreadable};
use crate::http::told;
use crate::respond;
use crate::tickets::{Ticket, Tickets};
use crate::web::Answer;

/// Whether something is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Spend,
    Look,
}

/// There is no room for another request under way.
struct Full;

impl Http {
    pub(super) fn check(&self, body: &Bytes, intent: Intent) -> Result<Answer, Unreadable> {
        let now = self.service.clock().now();
        // Before anything is decided: slots may be free again.
        self.tickets.sweep(now);
        let answer = match body::read::<Asked<'_>>(body, self.limits.batch)? {
            Body::One(asked) => self.check_one(&asked, intent, now),
            Body::Many(all) => self.check_all(&all, intent, now),
        };
        Ok(answer.unwrap_or_else(|Full| {
            respond::no_room("too many requests are under way: say how they ended, at /v1/report")
        }))
    }

    fn check_one(&self, asked: &Asked<'_>, intent: Intent, now: Tick) -> Result<Answer, Full> {
        let (headers, attributes) = asked.pairs();
        let request = asked.request(&headers, &attributes);
        let (ruling, ticket) = self.decide(&request, intent, now)?;
        let words = self.answers.words(&ruling);
        let mut text = Vec::with_capacity(ROOM);
        told::write(&ruling, ticket, words.problem().as_deref(), &mut text);
        let answer = words.detailed(text.into());
        drop(words);
        self.keep(ruling, ticket, &request);
        Ok(answer)
    }

    /// Decides about each in order. If there is no room for one, the rest is not decided, and those
    /// before it are as if nobody had asked for them, but for what they have spent.
    fn check_all(&self, all: &[Asked<'_>], intent: Intent, now: Tick) -> Result<Answer, Full> {
        let mut text = Vec::with_capacity(16 + all.len() * ROOM);
        text.extend_from_slice(br#"{"answers":["#);
        for (number, asked) in all.iter().enumerate() {
            if number > 0 {
                text.push(b',');
            }
            let (headers, attributes) = asked.pairs();
            let request = asked.request(&headers, &attributes);
            let (ruling, ticket) = self.decide(&request, intent, now)?;
            told::write(&ruling, ticket, None, &mut text);
            self.keep(ruling, ticket, &request);
        }
        text.extend_from_slice(b"]}");
        Ok(respond::json(::http::StatusCode::OK, text.into()))
    }

    fn decide(
        &self,
        request: &Request<'_>,
        intent: Intent,
        now: Tick,
    ) -> Result<(Ruling, Option<Ticket>), Full> {
        if intent == Intent::Look {
            return Ok((self.service.peek(request), None));
        }
        // Somebody who has to be told how the request ended needs a ticket. That is found out before
        // anything is spent.
        if self.tickets.is_full(now) && Tickets::are_for(&self.service.peek(request)) {
            return Err(Full);
        }
        let ruling = self.service.check(Name::Http, request);
        let ticket = (ruling.is_allowed() && ruling.needs_report()).then(|| self.tickets.draw(now));
        Ok((ruling, ticket))
    }

    fn keep(&self, ruling: Ruling, ticket: Option<Ticket>, request: &Request<'_>) {
        if let Some(ticket) = ticket {
            self.tickets.put(ticket, ruling.keep(), request);
        }
    }
}

/// Enough for what is told about two rules.
const ROOM: usize = 512;
