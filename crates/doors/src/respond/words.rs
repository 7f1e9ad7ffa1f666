//! What is told about one ruling.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use http::Response;
use http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http_body_util::Full;
use tollgate::{Decision, Mode, Retry, RuleDecision, Ruling, Wall};
use tollgate_rules::HeaderStyle;

use crate::config::ResetStyle;
use crate::respond::fields::{self, Values};
use crate::respond::problem::NO_STORE;
use crate::respond::terms::AllTerms;
use crate::web::Answer;

/// What a client is told about a ruling.
///
/// It is told of all rules that apply and are enforced, unless they have no limit for it: rules in
/// shadow are nobody's business. Who is denied is told of those that deny. Each rule is told of in
/// the headers that it chose. There is only one `X-RateLimit-Limit`: the strictest of those rules has
/// it that chose it.
///
/// Numbers are such that whoever waits as told is let in, if nobody else is meanwhile: times are
/// rounded up, and what is left is rounded down. Who is denied is told of the time at which the
/// same request would pass, not of the one at which everything is as new. If several rules deny,
/// that is the last of these times.
pub(crate) struct Words<'a> {
    pub(super) ruling: &'a Ruling,
    pub(super) terms: Guard<Arc<AllTerms>>,
    reset: ResetStyle,
    now: Wall,
    pub(super) again: Again,
}

/// Where headers are written to.
pub(crate) trait Headers {
    /// There is only one of this name.
    fn put(&mut self, name: HeaderName, value: HeaderValue);
}

impl Headers for HeaderMap {
    fn put(&mut self, name: HeaderName, value: HeaderValue) {
        self.insert(name, value);
    }
}

/// When whoever is denied may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It is not denied.
    Allowed,
    After(Duration),
    Never,
}

impl<'a> Words<'a> {
    pub(super) fn new(
        ruling: &'a Ruling,
        terms: Guard<Arc<AllTerms>>,
        reset: ResetStyle,
        now: Wall,
    ) -> Self {
        let again = match ruling.is_allowed() {
            true => Again::Allowed,
            false => enforced(ruling).filter_map(|each| each.decision().retry()).fold(
                Again::After(Duration::ZERO),
                |so_far, retry| match (so_far, retry) {
                    (Again::After(so_far), Retry::After(wait)) => Again::After(so_far.max(wait)),
                    (Again::After(so_far), Retry::OnReturn) => Again::After(so_far.max(A_MOMENT)),
                    _ => Again::Never,
                },
            ),
        };
        Self { ruling, terms, reset, now, again }
    }

    /// After how many seconds whoever is denied may come again. `None` if the request is allowed,
    /// or can never be.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self.again {
            Again::After(wait) => Some(seconds(wait).max(1)),
            Again::Allowed | Again::Never => None,
        }
    }

    /// Adds the headers of this answer: about limits, and if it is a denial, also about when to come
    /// again and that it must not be kept.
    pub(crate) fn write(&self, headers: &mut impl Headers) {
        let mut values = Values::new();
        if self.again != Again::Allowed {
            headers.put(CACHE_CONTROL, NO_STORE);
            if let Some(seconds) = self.retry_after() {
                headers.put(RETRY_AFTER, values.number(seconds));
            }
        }
        self.write_standard(headers, &mut values);
        self.write_legacy(headers, &mut values);
    }

    /// The answer that lets a request pass, without a body.
    pub(crate) fn allowed(&self) -> Answer {
        let mut answer = Response::new(Full::default());
        *answer.headers_mut() = self.headers();
        answer
    }

    /// All headers of this answer but those about its body.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        self.write(&mut headers);
        headers
    }

    /// `RateLimit` and `RateLimit-Policy`.
    fn write_standard(&self, headers: &mut impl Headers, values: &mut Values) {
        let wanted = || {
            let told = self.told().filter(|each| wants(each).standard);
            // Beside a denial, a rule that allows would only take room: its time may even be later
            // than that of `Retry-After`, which it must not be.
            told.filter(|each| self.again == Again::Allowed || !each.is_allowed())
        };
        let mut policies =
            wanted().map(|each| self.terms.of(&each).policy(each.decision().limit()));
        let Some(first) = policies.next() else { return };
        let policy = match policies.next() {
            None => first,
            Some(second) => {
                for item in [first, second].into_iter().chain(policies) {
                    values.add_item(item.as_bytes());
                }
                values.take()
            }
        };
        headers.put(fields::RATELIMIT_POLICY, policy);
        for each in wanted() {
            let decision = each.decision();
            let time = match (self.again, decision.retry()) {
                (Again::Allowed, _) => Some(decision.reset_after()).filter(|time| !time.is_zero()),
                (_, Some(Retry::After(wait))) => Some(wait),
                // Nobody knows when, or it does not help.
                _ => None,
            };
            let name = &self.terms.of(&each).name;
            values.add_left(name, decision.remaining(), time.map(seconds));
        }
        headers.put(fields::RATELIMIT, values.take());
    }

    /// `X-RateLimit-Limit` and those that go with it.
    fn write_legacy(&self, headers: &mut impl Headers, values: &mut Values) {
        let wanted = self.told().filter(|each| wants(each).legacy);
        let Some(each) = wanted.reduce(stricter) else { return };
        let decision = each.decision();
        let (limit, remaining) = (decision.limit(), decision.remaining());
        headers.put(fields::X_LIMIT, values.number(limit));
        headers.put(fields::X_REMAINING, values.number(remaining));
        if wants(&each).used {
            let used = limit.saturating_sub(remaining);
            headers.put(fields::X_USED, values.number(used));
        }
        headers.put(fields::X_RESET, values.number(self.reset_of(&decision)));
    }

    /// What `X-RateLimit-Reset` says. It is not before the time at which a denied request would
    /// pass all rules.
    pub(super) fn reset_of(&self, decision: &Decision) -> u64 {
        let after = match self.again {
            Again::Allowed | Again::Never => decision.reset_after(),
            Again::After(wait) if decision.is_allowed() => wait.max(decision.reset_after()),
            Again::After(wait) => wait,
        };
        match self.reset {
            ResetStyle::Seconds => seconds(after),
            ResetStyle::Epoch => {
                let now = Duration::from_nanos(self.now.as_unix_nanos());
                seconds(now.saturating_add(after))
            }
        }
    }

    /// The rules that clients are told of.
    pub(super) fn told(&self) -> impl Iterator<Item = RuleDecision<'a>> {
        enforced(self.ruling).filter(|each| each.decision().limit() != Decision::UNLIMITED)
    }
}

impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").field("ruling", self.ruling).finish_non_exhaustive()
    }
}

/// The headers in which a rule is told of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    standard: bool,
    pub(super) legacy: bool,
    used: bool,
}

pub(super) fn wants(each: &RuleDecision<'_>) -> Wants {
    let (standard, legacy, used) = match each.rule().headers() {
        HeaderStyle::Standard => (true, false, false),
        HeaderStyle::Legacy => (false, true, false),
        HeaderStyle::Both => (true, true, false),
        HeaderStyle::Github => (false, true, true),
        HeaderStyle::None => (false, false, false),
    };
    Wants { standard, legacy, used }
}

pub(super) fn enforced(ruling: &Ruling) -> impl Iterator<Item = RuleDecision<'_>> {
    ruling.each().filter(|each| each.mode() == Mode::Enforce)
}

/// The stricter of two, the first if they are as strict.
pub(super) fn stricter<'r>(first: RuleDecision<'r>, second: RuleDecision<'r>) -> RuleDecision<'r> {
    match first.decision().stricter(second.decision()) == first.decision() {
        true => first,
        false => second,
    }
}

/// In whole seconds, rounded up.
pub(super) fn seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

/// After this it is worth trying again whether somebody has finished: nobody knows when that is.
const A_MOMENT: Duration = Duration::from_secs(1);

/// Room for all headers of an answer.
const HEADERS: usize = 12;
