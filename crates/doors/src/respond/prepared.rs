//! The headers of a denial, of which only a few numbers change.

use http::HeaderName;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};

use crate::respond::fields;

/// The headers of a denial by one rule, made once. To copy them and change a few is much less than to
/// put all of them into a map.
#[derive(Debug)]
pub(super) struct Prepared {
    headers: HeaderMap,
    /// For each header, in the order in which they are met, what it says.
    holes: Box<[Option<Hole>]>,
}

/// What changes from one denial to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hole {
    ContentType,
    RetryAfter,
    /// `RateLimit`.
    Left,
    Remaining,
    Used,
    Reset,
}

impl Prepared {
    /// What these headers have in common with those of the next denial of the same kind.
    pub(super) fn from(headers: HeaderMap) -> Self {
        let holes = headers.keys().map(Hole::of).collect();
        Self { headers, holes }
    }

    /// A copy, with what `fill` says in the holes.
    pub(super) fn fill(&self, mut fill: impl FnMut(Hole) -> HeaderValue) -> HeaderMap {
        let mut headers = self.headers.clone();
        // A copy has the order of what it is copied from.
        for (value, hole) in headers.values_mut().zip(&self.holes) {
            if let Some(hole) = hole {
                *value = fill(*hole);
            }
        }
        headers
    }
}

impl Hole {
    fn of(name: &HeaderName) -> Option<Self> {
        [
            (CONTENT_TYPE, Self::ContentType),
            (RETRY_AFTER, Self::RetryAfter),
            (fields::RATELIMIT, Self::Left),
            (fields::X_REMAINING, Self::Remaining),
            (fields::X_USED, Self::Used),
            (fields::X_RESET, Self::Reset),
        ]
        .into_iter()
        .find_map(|(known, hole)| (known == *name).then_some(hole))
    }
}
