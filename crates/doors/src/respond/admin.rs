//! What whoever runs the server is told.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use tollgate::Mode;

use super::problem::{NO_STORE, PROBLEM_JSON};
use super::{json, problem};
use crate::web::Answer;

/// A result, never kept by anybody in between.
pub(crate) fn told(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => {
            let mut answer = json(status, Bytes::from(body));
            answer.headers_mut().insert(http::header::CACHE_CONTROL, NO_STORE);
            answer
        }
        // Texts and numbers can always be written.
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// A result that has a version.
pub(crate) fn versioned(version: &str, body: &impl Serialize) -> Answer {
    let mut answer = told(StatusCode::OK, body);
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}

/// The answer to who does not know the token.
pub(crate) fn unauthorized() -> Answer {
    let detail = "send the token of this server: `Authorization: Bearer TOKEN`";
    let mut answer = problem(StatusCode::UNAUTHORIZED, detail);
    let how = HeaderValue::from_static("Bearer realm=\"tollgate\"");
    answer.headers_mut().insert(WWW_AUTHENTICATE, how);
    answer
}

/// The answer to a wrong token after many of them. The right one is taken all the same.
pub(crate) fn too_many_tokens(wait: Duration) -> Answer {
    let detail = "too many wrong tokens were sent: see that yours is the one of this server";
    let mut answer = problem(StatusCode::TOO_MANY_REQUESTS, detail);
    let seconds = millis(wait).div_ceil(1000).max(1);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// The answer to rules that are wrong, with all that is.
pub(crate) fn findings(detail: &str, findings: &[impl Serialize], left_out: usize) -> Answer {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let title = status.canonical_reason().unwrap_or_default();
    let wrong = Wrong { title, status: status.as_u16(), detail, findings, left_out };
    let mut answer = told(status, &wrong);
    answer.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
    answer
}

#[derive(Serialize)]
struct Wrong<'a, F> {
    title: &'a str,
    status: u16,
    detail: &'a str,
    findings: &'a [F],
    /// How many more there are.
    left_out: usize,
}

/// Rounded up: who waits so long has waited long enough.
pub(crate) fn millis(span: Duration) -> u64 {
    // In words of 64 bits: to divide longer ones is most of the work.
    let part = span.subsec_nanos().div_ceil(1_000_000);
    span.as_secs().saturating_mul(1_000).saturating_add(part.into())
}

pub(crate) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Shadow => "shadow",
        Mode::Off => "off",
    }
}
