//! Answers of HTTP/2 that are accounted for until they are sent.
//!
//! There a client says how much of each answer it takes, which may be nothing.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::body::Body;

use crate::held::{Budget, Held, OverBudget};
use crate::respond;
use crate::web::{Answer, Plain, at_once};

/// What answers consist of.
pub(crate) trait Sent: Body + Sized {
    /// An answer that is accounted for until all of it is sent, or one that says that there is no
    /// room.
    fn until_sent(answer: Response<Self>, budget: &Arc<Budget>) -> Response<Self>;
}

impl Sent for Plain {
    fn until_sent(answer: Answer, budget: &Arc<Budget>) -> Answer {
        until_sent(answer, budget)
    }
}

fn until_sent(answer: Answer, budget: &Arc<Budget>) -> Answer {
    if answer.body().size_hint().lower() <= SHORT as u64 {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let bytes = at_once(body);
    match held(bytes, budget) {
        Ok(bytes) => Answer::from_parts(head, Full::from(bytes)),
        Err(OverBudget) => respond::no_room(NO_ROOM),
    }
}

/// Bytes that are accounted for as long as anybody has a part of them, if they are long.
pub(crate) fn held(bytes: Bytes, budget: &Arc<Budget>) -> Result<Bytes, OverBudget> {
    if bytes.len() <= SHORT {
        return Ok(bytes);
    }
    let mut held = Held::nothing(Arc::clone(budget));
    held.hold(bytes.len())?;
    Ok(Bytes::from_owner(Kept { bytes, _held: held }))
}

/// Answers that are no longer than this are not counted. A connection has many of them at once, so it
/// is less than what one of another protocol may have.
const SHORT: usize = 1 << 10;

pub(crate) const NO_ROOM: &str = "too many long answers wait to be taken: try again";

/// Bytes, and that they are held as long as anybody has a part of them.
struct Kept {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_held_until_its_last_part_is_gone() {
        let budget = Arc::new(Budget::new(100_000));
        let answer = |bytes: usize| {
            let body = Full::from(Bytes::from(vec![b'a'; bytes]));
            until_sent(Response::new(body), &budget)
        };
        let short = answer(SHORT);
        assert_eq!((short.status().as_u16(), budget.held()), (200, 0));
        let mut rest = at_once(answer(60_000).into_body());
        assert_eq!((rest.len(), budget.held()), (60_000, 60_000));
        drop(rest.split_to(50_000));
        assert_eq!(budget.held(), 60_000);
        assert_eq!(answer(60_000).status(), 503);
        drop(rest);
        assert_eq!(answer(60_000).status(), 200);
        assert_eq!((budget.held(), budget.refused()), (0, 1));
    }
}
