//! How a request stands with its limits, for those who tell clients themselves: Envoy.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use smallvec::SmallVec;
use tollgate::Decision;

use crate::respond::words::{Headers, Words, enforced, seconds, stricter};
use crate::web::{self, Answer};

/// How a request stands with the limits of its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing<'w> {
    /// No rule applies.
    Free,
    /// Rules apply, and none of them has a limit.
    Unlimited,
    /// That of the strictest rule.
    Limited {
        rule: &'w str,
        /// So many.
        quota: u64,
        /// In so many seconds, if that is a whole number of them.
        window: Option<u64>,
        remaining: u64,
        /// When there is more, in seconds, rounded up.
        reset: u64,
    },
}

/// All that a client is told.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) status: StatusCode,
    pub(crate) headers: List,
    pub(crate) body: Bytes,
}

/// Headers in order, of which most are few.
pub(crate) type List = SmallVec<[(HeaderName, HeaderValue); 8]>;

impl Headers for List {
    fn put(&mut self, name: HeaderName, value: HeaderValue) {
        self.push((name, value));
    }
}

impl Words<'_> {
    /// How the request stands.
    pub(crate) fn standing(&self) -> Standing<'_> {
        let Some(strictest) = self.told().reduce(stricter) else {
            return match enforced(self.ruling).next() {
                Some(_) => Standing::Unlimited,
                None => Standing::Free,
            };
        };
        let decision = strictest.decision();
        let (quota, window) = self.terms.of(&strictest).numbers(decision.limit());
        let reset = decision.retry_after().unwrap_or_else(|| decision.reset_after());
        Standing::Limited {
            rule: strictest.name(),
            quota,
            window,
            remaining: decision.remaining(),
            reset: seconds(reset),
        }
    }

    /// All that the client is told, whether it passes or not.
    pub(crate) fn message(&self) -> Message {
        if self.ruling.is_allowed() {
            // Of these there are many, and a map is made for looking things up.
            let mut headers = List::new();
            self.write(&mut headers);
            return Message { status: StatusCode::OK, headers, body: Bytes::new() };
        }
        self.denied().into()
    }
}

impl From<Answer> for Message {
    fn from(answer: Answer) -> Self {
        let (head, body) = answer.into_parts();
        let headers = head.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        Self { status: head.status, headers: headers.collect(), body: web::at_once(body) }
    }
}

impl Message {
    /// What is told about a limit that came with the request.
    pub(crate) fn of_own_limit(decision: &Decision) -> Self {
        let detail = "The limit that came with the request is reached.";
        let mut answer = super::problem(StatusCode::TOO_MANY_REQUESTS, detail);
        if let Some(wait) = decision.retry_after() {
            let wait = seconds(wait).max(1);
            answer.headers_mut().insert(http::header::RETRY_AFTER, wait.into());
        }
        answer.into()
    }

    /// Whether it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        str::from_utf8(&self.body).ok()
    }

    /// Its headers. Those about a body are left out if there is none.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let told = self.headers.iter();
        let told = told.filter(|(name, _)| *name != CONTENT_TYPE || !self.body.is_empty());
        told.map(|(name, value)| (name.as_str(), value.as_bytes()))
    }
}
