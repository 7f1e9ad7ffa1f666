//! Every status and header that a client sees.
//!
//! ```text
//!   Answers    what all doors answer with: made once for each set of rules
//!      |
//!   Words      what is told about one ruling: headers, and the whole answer to who is denied
//! ```

mod admin;
mod answers;
mod denial;
mod fields;
mod policy;
mod prepared;
mod problem;
mod standing;
mod template;
mod terms;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use admin::{
    findings, millis, mode_name, told, too_many_tokens, unauthorized, versioned,
};
pub(crate) use answers::Answers;
pub(crate) use problem::{TOO_MANY_CONNECTIONS, no_body, no_room, problem, wrong_method};
pub(crate) use standing::{Message, Standing};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

use crate::web::Answer;

/// A page of plain text.
pub(crate) fn text(status: StatusCode, content_type: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::from(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Says that the connection ends with this answer, as far as the protocol has a word for it.
pub(crate) fn end<B>(answer: &mut Response<B>, is_http2: bool) {
    if !is_http2 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// A text of JSON.
pub(crate) fn json(status: StatusCode, text: Bytes) -> Answer {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, problem::JSON);
    answer
}
