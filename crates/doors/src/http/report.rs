//! `/v1/report`: how requests ended.

use ::http::StatusCode;
use bytes::Bytes;
use tollgate::{Outcome, Tick};

use crate::http::Http;
use crate::http::body::{self, Body, Ended, Unreadable};
use crate::respond;
use crate::tickets::Ticket;
use crate::web::Answer;

impl Http {
    pub(super) fn report(&self, body: &[u8], now: Tick) -> Result<Answer, Unreadable> {
        let answer = match body::read::<Ended<'_>>(body, self.limits.batch)? {
            Body::One(ended) => match self.end(&ended, now) {
                true => respond::json(StatusCode::OK, Bytes::from_static(REPORTED)),
                false => respond::problem(StatusCode::NOT_FOUND, UNKNOWN),
            },
            Body::Many(all) => {
                let each = all.iter().map(|ended| match self.end(ended, now) {
                    true => REPORTED,
                    false => br#"{"reported":false}"#,
                });
                let list = each.collect::<Vec<_>>().join(&b',');
                let text = [br#"{"answers":["#, &*list, b"]}"].concat();
                respond::json(StatusCode::OK, text.into())
            }
        };
        Ok(answer)
    }

    /// Says how a request ended, if its ticket is known.
    fn end(&self, ended: &Ended<'_>, now: Tick) -> bool {
        let Some(Ok(ticket)) = ended.ticket.as_deref().map(str::parse::<Ticket>) else {
            return false;
        };
        let Some(kept) = self.tickets.take(ticket, now) else { return false };
        let headers = ended.headers.pairs();
        let status = ended.status.and_then(|status| u16::try_from(status).ok());
        kept.report(self.service.engine(), &Outcome { status, headers: &headers });
        true
    }
}

const REPORTED: &[u8] = br#"{"reported":true}"#;

const UNKNOWN: &str = "there is no such ticket: its time is over, or the end was reported before";
