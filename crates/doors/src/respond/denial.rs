//! What is told to whoever is denied.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use tollgate::{Retry, RuleDecision};

use crate::respond::fields::Values;
use crate::respond::prepared::{Hole, Prepared};
use crate::respond::problem::{JSON, PROBLEM_JSON};
use crate::respond::template::Filling;
use crate::respond::terms::Terms;
use crate::respond::words::{Again, Words, enforced, seconds, stricter, wants};
use crate::web::Answer;

/// What there is to say about a denial.
struct Denial<'w> {
    strictest: RuleDecision<'w>,
    /// Those of the strictest rule.
    terms: &'w Terms,
    retry: Retry,
    filling: Filling,
    /// All rules that deny, if there are several.
    names: Option<String>,
}

impl Words<'_> {
    /// The answer to whoever is denied: with the status and in the words of the strictest rule.
    pub(crate) fn denied(&self) -> Answer {
        let Some(denial) = self.denial() else { return self.allowed() };
        let Denial { terms, retry, filling, names, .. } = &denial;
        let (content_type, body) = terms.body(*retry, *filling, names.as_deref());
        let headers = self.headers_of(&denial, Some(content_type));
        answer(terms.status, headers, body)
    }

    /// The answer to whoever is denied, for those who take nothing but 403 for a denial, and do not
    /// look at its body.
    pub(crate) fn forbidden(&self) -> Answer {
        let Some(denial) = self.denial() else { return self.allowed() };
        answer(StatusCode::FORBIDDEN, self.headers_of(&denial, None), Bytes::new())
    }

    /// The answer for programs, whose body says more than the problem that a denial is: `body` is
    /// given that, as an object of JSON, and makes the whole of it.
    pub(crate) fn detailed(&self, body: impl FnOnce(Option<&[u8]>) -> Bytes) -> Answer {
        let Some(denial) = self.denial() else {
            let headers = with_content_type(self.headers(), Some(JSON));
            return answer(StatusCode::OK, headers, body(None));
        };
        let Denial { terms, retry, filling, names, .. } = &denial;
        let body = body(Some(&terms.problem_of(*retry, *filling, names.as_deref())));
        answer(terms.status, self.headers_of(&denial, Some(PROBLEM_JSON)), body)
    }

    /// What there is to say about a denial; `None` if nobody denied it.
    fn denial(&self) -> Option<Denial<'_>> {
        if self.again == Again::Allowed {
            return None;
        }
        let denying = || enforced(self.ruling).filter(|each| !each.is_allowed());
        let strictest = denying().reduce(stricter)?;
        let (terms, decision) = (self.terms.of(&strictest), strictest.decision());
        let names = denying().nth(1).is_some().then(|| {
            let names: Vec<_> = denying().map(|each| &*self.terms.of(&each).json_name).collect();
            names.join(",")
        });
        let retry = decision.retry().unwrap_or(Retry::Never);
        let filling = Filling { retry_after: self.retry_after(), limit: decision.limit() };
        Some(Denial { strictest, terms, retry, filling, names })
    }

    /// All headers of a denial. Mostly they are about one rule, and then they are prepared.
    fn headers_of(&self, denial: &Denial<'_>, content_type: Option<HeaderValue>) -> HeaderMap {
        let (terms, decision) = (denial.terms, denial.strictest.decision());
        let (limit, remaining) = (decision.limit(), decision.remaining());
        let (Retry::After(wait), true, Some(prepared)) = (
            denial.retry,
            self.is_about_alone(&denial.strictest),
            terms.prepared(limit, content_type.is_some()),
        ) else {
            return with_content_type(self.headers(), content_type);
        };
        let mut values = Values::new();
        let make = || {
            let headers = with_content_type(self.headers(), content_type.clone());
            Box::new(Prepared::from(headers))
        };
        prepared.get_or_init(make).fill(|hole| match hole {
            Hole::ContentType => content_type.clone().unwrap_or(PROBLEM_JSON),
            Hole::RetryAfter => values.number(self.retry_after().unwrap_or(1)),
            Hole::Left => {
                values.add_left(&terms.name, remaining, Some(seconds(wait)));
                values.take()
            }
            Hole::Remaining => values.number(remaining),
            Hole::Used => values.number(limit.saturating_sub(remaining)),
            Hole::Reset => values.number(self.reset_of(&decision)),
        })
    }

    /// Whether the headers of a denial are about this rule and no other.
    fn is_about_alone(&self, strictest: &RuleDecision<'_>) -> bool {
        let has_legacy = wants(strictest).legacy;
        let mut others = enforced(self.ruling).filter(|each| each.number() != strictest.number());
        others.all(|each| each.is_allowed() && (has_legacy || !wants(&each).legacy))
    }
}

fn answer(status: StatusCode, headers: HeaderMap, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

fn with_content_type(mut headers: HeaderMap, content_type: Option<HeaderValue>) -> HeaderMap {
    headers.extend(content_type.map(|value| (CONTENT_TYPE, value)));
    headers
}
