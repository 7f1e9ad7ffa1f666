//! What went wrong, as RFC 9457 has it.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

use crate::web::{Answer, BodyError};

/// Something is wrong with a request.
#[derive(Debug, Serialize)]
struct Problem<'a> {
    title: &'a str,
    status: u16,
    /// What exactly, and what would be right.
    detail: &'a str,
}

/// The answer to a request with which something is wrong.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or("Error");
    // What a client sent may be in it. JSON escapes what controls a terminal, but for these.
    let detail = &*detail.replace(|c: char| ('\u{7f}'..='\u{9f}').contains(&c), "?");
    let problem = Problem { title, status: status.as_u16(), detail };
    // Texts and numbers can always be written.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut answer = Response::new(Full::from(Bytes::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, PROBLEM_JSON);
    headers.insert(CACHE_CONTROL, NO_STORE);
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
        BodyError::NoRoom => no_room("too many long requests come at once: try again"),
        BodyError::Broken => problem(StatusCode::BAD_REQUEST, "the body broke off"),
    }
}

/// The answer to a method that is none here.
pub(crate) fn wrong_method(allowed: &'static str) -> Answer {
    let detail = format!("only {allowed} is answered here");
    let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, &detail);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// The answer to a request for which there is no room now.
pub(crate) fn no_room(detail: &str) -> Answer {
    let mut answer = problem(StatusCode::SERVICE_UNAVAILABLE, detail);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// Why a request is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A limit is reached.
    Quota,
    /// It was reached before, and whoever did so is blocked.
    Abuse,
}

impl Cause {
    const fn kind(self) -> &'static str {
        match self {
            Self::Quota => "quota-exceeded",
            Self::Abuse => "abnormal-usage-detected",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Quota => "Quota Exceeded",
            Self::Abuse => "Abnormal Usage Detected",
        }
    }
}

/// The body of a denial. `detail` and `rules` are in the form of JSON, the latter with quotes and
/// commas.
pub(super) fn denial(
    cause: Cause,
    status: StatusCode,
    detail: Option<&str>,
    rules: &str,
) -> String {
    let (kind, title, status) = (cause.kind(), cause.title(), status.as_str());
    let (before, detail, after) = match detail {
        Some(detail) => (",\"detail\":\"", detail, "\""),
        None => ("", "", ""),
    };
    [
        "{\"type\":\"https://iana.org/assignments/http-problem-types#",
        kind,
        "\",\"title\":\"",
        title,
        "\",\"status\":",
        status,
        before,
        detail,
        after,
        ",\"violated-policies\":[",
        rules,
        "]}",
    ]
    .concat()
}

/// A text as JSON has it, without its quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut json = serde_json::Value::from(text).to_string();
    json.pop();
    json.remove(0);
    json
}

/// What a connection of HTTP is told that is one too many.
pub(crate) const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
connection: close\r\nretry-after: 1\r\ncache-control: no-store\r\n\
content-type: application/problem+json\r\ncontent-length: 136\r\n\r\n\
{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\",\
\"title\":\"Temporary Reduced Capacity\",\"status\":503}\n";

pub(super) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_json_whatever_is_in_them() {
        let detail = escaped("\"\\\u{7}\n}é");
        let body = denial(Cause::Abuse, StatusCode::FORBIDDEN, Some(&detail), "\"a\",\"b\"");
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(json["detail"], "\"\\\u{7}\n}é");
        assert_eq!(json["violated-policies"], serde_json::json!(["a", "b"]));
        assert_eq!(json["status"], 403);
        let kind = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
        assert_eq!(json["type"], kind);
    }

    #[test]
    fn nothing_that_controls_a_terminal_is_repeated() {
        let answer = problem(StatusCode::BAD_REQUEST, "no `a\u{7f}\u{9b}\u{1b}`: write `é`");
        let body = format!("{:?}", answer.body());
        assert!(!body.contains("\\x7f") && !body.contains("\\xc2\\x9b"), "{body}");
        assert!(body.contains("no `a??") && body.contains("u001b"), "{body}");
    }

    #[test]
    fn the_length_of_what_is_always_said_is_right() {
        let text = str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["status"], 503);
    }
}
