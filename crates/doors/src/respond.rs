//! Every status and header that a client sees.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

use crate::web::{Answer, BodyError};

/// Something is wrong with a request, as RFC 9457 has it.
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    pub(crate) title: &'a str,
    pub(crate) status: u16,
    /// What exactly, and what would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<&'a str>,
}

/// The answer to a request with which something is wrong.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or("Error");
    let problem = Problem { title, status: status.as_u16(), detail: Some(detail) };
    // Texts and numbers can always be written.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut answer = Response::new(Full::from(Bytes::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The answer to a request whose body cannot be had.
pub(crate) fn no_body(error: &BodyError, most: usize) -> Answer {
    match error {
        BodyError::TooLong => problem(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the body has more than {most} bytes: send less at once"),
        ),
        BodyError::TooSlow => {
            problem(StatusCode::REQUEST_TIMEOUT, "the body did not come in time: send it faster")
        }
        BodyError::Broken => problem(StatusCode::BAD_REQUEST, "the body broke off"),
    }
}

/// A page of plain text.
pub(crate) fn text(status: StatusCode, content_type: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::from(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// What a connection of HTTP is told that is one too many.
pub(crate) const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
connection: close\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n";
