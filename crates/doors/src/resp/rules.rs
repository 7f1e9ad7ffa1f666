//! `TG.CHECK`, `TG.PEEK`, `TG.RESET` and `TG.REPORT`: what the rules of the file say.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate::{Clock as _, Decision, NewStart, Outcome, Request, Reserve, Ruling, Tick, Wait};

use crate::door::Name;
use crate::resp::Resp;
use crate::resp::asked::{Asked, Naming};
use crate::resp::ended::Ended;
use crate::resp::reply::Replies;
use crate::service::Turn;
use crate::tickets::Ticket;

impl Resp {
    /// Decides about all of these, and answers each. What is kept for them may be known already.
    #[inline(never)]
    pub(super) fn check(
        &self,
        asked: &Asked<'_>,
        client: &str,
        (turn, kept): (Turn, Option<&mut Reserve>),
        replies: &mut Replies<'_>,
    ) -> Result<(), Wait> {
        let now = self.service.clock().now();
        // Before anything is decided: slots may be free again.
        self.tickets.sweep(now);
        let requests: SmallVec<[Request<'_>; 4]> =
            asked.each(client).map(|(request, _)| request).collect();
        let has_room = self.tickets.has_room(requests.len(), now);
        if let ([request], None, true) = (&*requests, &kept, has_room) {
            let mut ruling = self.service.try_check(Name::Resp, request, turn)?;
            self.tell(&mut ruling, request, now, replies);
            return Ok(());
        }
        let mut own;
        let kept = match kept {
            Some(kept) => kept,
            None => {
                own = self.service.keep(&requests, &[], turn)?;
                &mut own
            }
        };
        match has_room {
            true => self.service.check_batch(Name::Resp, &requests, kept, |at, ruling| {
                self.tell(ruling, &requests[at], now, replies);
            }),
            false => {
                requests.iter().for_each(|it| self.check_in_need(it, now, kept, replies));
            }
        }
        Ok(())
    }

    /// Decides about one request where there may be no room for its ticket. Whether it needs one is
    /// found out before anything is spent.
    #[cold]
    fn check_in_need(
        &self,
        request: &Request<'_>,
        now: Tick,
        kept: &mut Reserve,
        replies: &mut Replies<'_>,
    ) {
        let needs_one = self.service.engine().will_need_report(request);
        match needs_one && !self.tickets.has_room(1, now) {
            true => replies
                .error("ERR too many requests are under way: say how they ended, with TG.REPORT"),
            false => {
                let mut ruling = self.service.check_with(Name::Resp, request, kept);
                self.tell(&mut ruling, request, now, replies);
            }
        }
    }

    /// Answers, and keeps what is under way.
    fn tell(
        &self,
        ruling: &mut Ruling,
        request: &Request<'_>,
        now: Tick,
        replies: &mut Replies<'_>,
    ) {
        let waits = ruling.is_allowed() && ruling.needs_report();
        let ticket = waits.then(|| self.tickets.draw(now));
        answer(ruling, ticket, replies);
        if let Some(ticket) = ticket {
            self.tickets.put(ticket, ruling.take_under_way(), request);
        }
    }

    /// Answers what [`check`](Self::check) would.
    pub(super) fn peek(
        &self,
        arguments: &[&[u8]],
        client: &str,
        turn: Turn,
        replies: &mut Replies<'_>,
    ) -> Result<(), Wait> {
        let mut asked = Asked::default();
        if let Err(error) = asked.add(arguments, Naming::Nothing) {
            replies.error(&format!("ERR {error}"));
        }
        for (request, _) in asked.each(client) {
            answer(&self.service.try_peek(&request, turn)?, None, replies);
        }
        Ok(())
    }

    /// Gives the keys of a request everything back, for all rules or for one. What is answered comes
    /// later if a store has to forget them.
    pub(super) fn reset(
        &self,
        arguments: &[&[u8]],
        client: &str,
        replies: &mut Replies<'_>,
    ) -> Option<impl Future<Output = NewStart> + Send + 'static> {
        let engine = self.service.engine();
        let mut asked = Asked::default();
        if let Err(error) = asked.add(arguments, Naming::Rules) {
            replies.error(&format!("ERR {error}"));
            return None;
        }
        // A command is about one request.
        let (request, rule) = asked.each(client).next()?;
        if engine.health().is_some() {
            match engine.reset_waiting(&request, rule) {
                Ok(reset) => return Some(reset),
                Err(error) => replies.error(&format!("ERR {error}")),
            }
            return None;
        }
        match engine.reset(&request, rule) {
            Ok(reset) => replies.integer(reset as i64),
            Err(error) => replies.error(&format!("ERR {error}")),
        }
        None
    }

    /// Says how a request ended: 1 if its ticket is known, 0 if not.
    pub(super) fn report(&self, arguments: &[&[u8]], replies: &mut Replies<'_>) {
        let ended = match Ended::read(arguments) {
            Ok(ended) => ended,
            Err(error) => return replies.error(&format!("ERR {error}")),
        };
        let known = ended.ticket.parse::<Ticket>().ok();
        let kept = known.and_then(|ticket| self.tickets.take(ticket, self.service.clock().now()));
        replies.integer(i64::from(kept.is_some()));
        if let Some(kept) = kept {
            let outcome = Outcome { status: ended.status, headers: &ended.headers };
            kept.report(self.service.engine(), &outcome);
        }
    }
}

impl Replies<'_> {
    /// What came of giving keys everything back.
    pub(super) fn new_start(&mut self, start: &NewStart) {
        match &start.failure {
            None => self.integer(start.counters as i64),
            Some(failure) => {
                let text = format!("ERR the store keeps this, and did not forget it: {failure}");
                self.error(&text);
            }
        }
    }
}

/// What a ruling is answered with: eight parts, in RESP2 and RESP3 alike.
fn answer(ruling: &Ruling, ticket: Option<Ticket>, replies: &mut Replies<'_>) {
    let decision = ruling.decision();
    replies.array(8);
    replies.integer(i64::from(!ruling.is_allowed()));
    replies.integer(tokens(decision.limit()));
    replies.integer(tokens(decision.remaining()));
    replies.integer(decision.retry_after().map_or(-1, seconds));
    replies.integer(seconds(decision.reset_after()));
    match ruling.rule() {
        Some(rule) => replies.text(rule),
        None => replies.null(),
    }
    replies.integer(milliseconds(decision.delay()));
    match ticket {
        Some(ticket) => replies.text(&ticket.to_string()),
        None => replies.null(),
    }
}

/// -1 is no limit.
fn tokens(count: u64) -> i64 {
    match count {
        Decision::UNLIMITED => -1,
        count => i64::try_from(count).unwrap_or(i64::MAX),
    }
}

/// Rounded up to the last nanosecond, so that whoever waits as told has waited long enough.
#[inline]
pub(crate) fn seconds(span: Duration) -> i64 {
    span.as_secs() as i64 + i64::from(span.subsec_nanos() > 0)
}

fn milliseconds(span: Duration) -> i64 {
    // Waits are far shorter than what fits.
    span.as_nanos().div_ceil(1_000_000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        let nanos = Duration::from_nanos;
        let of = [0, 1, 1_000_000_000, 1_000_000_001, 2_000_000_000];
        assert_eq!(of.map(|span| seconds(nanos(span))), [0, 1, 1, 2, 2]);
        let of = [0, 1, 1_000_000, 1_000_001, 2_000_000];
        assert_eq!(of.map(|span| milliseconds(nanos(span))), [0, 1, 1, 2, 2]);
    }
}
