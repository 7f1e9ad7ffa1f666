//! `/v1/check` and `/v1/peek`: may these requests pass?

use ::http::StatusCode;
use tollgate::{Request, Ruling, Tick, Wait};

use crate::door::Name;
use crate::http::Http;
use crate::http::asked::Asked;
use crate::http::body::{self, Body, Unreadable};
use crate::http::told;
use crate::respond;
use crate::service::Turn;
use crate::tickets::Ticket;
use crate::web::Answer;

/// Whether something is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Spend,
    Look,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Stop {
    Unreadable(Unreadable),
    /// A store has to be asked first. Nothing was spent.
    Wait(Wait),
    /// There is no room for another request under way.
    Full,
}

impl From<Unreadable> for Stop {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
}

impl From<Wait> for Stop {
    fn from(wait: Wait) -> Self {
        Self::Wait(wait)
    }
}

/// How something is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) intent: Intent,
    pub(super) now: Tick,
    pub(super) turn: Turn,
}

impl Http {
    pub(super) fn check(&self, body: &[u8], client: &str, way: Way) -> Result<Answer, Stop> {
        // Before anything is decided: slots may be free again.
        self.tickets.sweep(way.now);
        let answer = match body::read::<Asked<'_>>(body, self.limits.batch)? {
            Body::One(asked) => self.check_one(&asked, client, way),
            Body::Many(all) => self.check_all(&all, client, way),
        };
        match answer {
            Err(Stop::Full) => Ok(respond::no_room(
                "too many requests are under way: say how they ended, at /v1/report",
            )),
            answer => answer,
        }
    }

    fn check_one(
        &self,
        asked: &Asked<'_>,
        client: &str,
        Way { intent, now, turn }: Way,
    ) -> Result<Answer, Stop> {
        let (headers, attributes) = asked.pairs();
        let request = asked.request(&headers, &attributes).client_cert(client);
        let mut ruling = match intent {
            Intent::Look => self.service.try_peek(&request, turn)?,
            Intent::Spend => {
                self.need_room(std::slice::from_ref(&request), now)?;
                self.service.try_check(Name::Http, &request, turn)?
            }
        };
        let ticket = self.ticket(&ruling, intent, now);
        let words = self.answers.words(&ruling);
        let answer = words.detailed(|problem| {
            let mut text = Vec::with_capacity(ROOM);
            told::write(&ruling, ticket, problem, &mut text);
            text.into()
        });
        drop(words);
        self.keep(&mut ruling, ticket, &request);
        Ok(answer)
    }

    /// Decides about each in order, or about none if there is no room for all of them.
    fn check_all(
        &self,
        all: &[Asked<'_>],
        client: &str,
        Way { intent, now, turn }: Way,
    ) -> Result<Answer, Stop> {
        let pairs: Vec<_> = all.iter().map(Asked::pairs).collect();
        let requests = all.iter().zip(&pairs);
        let requests = requests.map(|(asked, (headers, attributes))| {
            asked.request(headers, attributes).client_cert(client)
        });
        let requests: Vec<_> = requests.collect();
        let mut text = Vec::with_capacity((all.len() * ROOM).min(MOST_ROOM));
        text.extend_from_slice(br#"{"answers":["#);
        let mut each = |at: usize, ruling: &mut Ruling| {
            if at > 0 {
                text.push(b',');
            }
            let ticket = self.ticket(ruling, intent, now);
            told::write(ruling, ticket, None, &mut text);
            self.keep(ruling, ticket, &requests[at]);
        };
        match intent {
            Intent::Look => {
                self.service.keep(&[], &requests, turn)?;
                for (at, request) in requests.iter().enumerate() {
                    each(at, &mut self.service.peek(request));
                }
            }
            Intent::Spend => {
                self.need_room(&requests, now)?;
                let mut kept = self.service.keep(&requests, &[], turn)?;
                self.service.check_batch(Name::Http, &requests, &mut kept, each);
            }
        }
        text.extend_from_slice(b"]}");
        Ok(respond::json(StatusCode::OK, text.into()))
    }

    /// Whoever has to be told how a request ended needs a ticket. Whether there are enough is found
    /// out before anything is spent.
    fn need_room(&self, requests: &[Request<'_>], now: Tick) -> Result<(), Stop> {
        let has_room = self.tickets.have_room_for(requests, &self.service, now);
        has_room.then_some(()).ok_or(Stop::Full)
    }

    fn ticket(&self, ruling: &Ruling, intent: Intent, now: Tick) -> Option<Ticket> {
        let needed = intent == Intent::Spend && ruling.is_allowed() && ruling.needs_report();
        needed.then(|| self.tickets.draw(now))
    }

    fn keep(&self, ruling: &mut Ruling, ticket: Option<Ticket>, request: &Request<'_>) {
        if let Some(ticket) = ticket {
            self.tickets.put(ticket, ruling.take_under_way(), request);
        }
    }
}

/// Enough for what is told about two rules.
const ROOM: usize = 512;

/// The most that is set aside for several answers before they are known.
const MOST_ROOM: usize = 64 << 10;
