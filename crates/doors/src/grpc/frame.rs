//! Messages of gRPC as HTTP/2 carries them, and what is said to those that cannot be answered.

use std::sync::Arc;

use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ::http::{Response, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use prost::Message;
use tollgate::Wait;

use crate::connection::Limits;
use crate::grpc::reply::{CONTENT, Reply};
use crate::held::Budget;
use crate::respond;
use crate::web::{self, BodyError, Called};

/// What calls end with that are not answered, as gRPC numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Cancelled = 1,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
}

/// A call is not answered. Nothing was decided, and nothing was spent.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    Call {
        code: Code,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A store has to be asked first: it is not answered yet.
    Wait(Later),
    /// It is no call at all.
    NoCall,
}

/// What is to be waited for.
#[derive(Debug)]
pub(super) struct Later(pub(super) Wait);

/// No two are the same.
impl PartialEq for Later {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

impl From<Wait> for Refusal {
    fn from(wait: Wait) -> Self {
        Self::Wait(Later(wait))
    }
}

impl Refusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self::Call { code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// All of the answer: there is no message.
    pub(super) fn answer(&self) -> Response<Reply> {
        let Self::Call { code, message } = self else {
            let detail = "calls of gRPC are POSTs with content-type: application/grpc";
            return respond::problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).map(Reply::Plain);
        };
        let mut answer = Response::new(Reply::Nothing);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, CONTENT);
        headers.insert(STATUS, HeaderValue::from(*code as u16));
        if let Ok(message) = HeaderValue::try_from(escaped(message)) {
            headers.insert(MESSAGE, message);
        }
        answer
    }

    /// The same for a call that was answered at once.
    pub(super) fn called(&self) -> Called {
        match self {
            Self::Call { code, message } => Called::Refusal(*code as u16, escaped(message)),
            // It was a call, or it would not have been answered at once.
            Self::NoCall | Self::Wait(_) => Called::Refusal(Code::Internal as u16, String::new()),
        }
    }

    /// The same as tonic says it.
    pub(super) fn status(self) -> tonic::Status {
        match self {
            Self::Call { code, message } => {
                let message: String = message.chars().take(LONGEST).collect();
                tonic::Status::new(tonic::Code::from(code as i32), message)
            }
            Self::NoCall | Self::Wait(_) => tonic::Status::internal("this is no call"),
        }
    }
}

/// The message of a call that has only one.
pub(super) async fn read(
    body: Incoming,
    limits: &Limits,
    budget: &Arc<Budget>,
) -> Result<Bytes, Refusal> {
    let body = web::body(body, limits, budget).await;
    let body = body.map_err(|error| no_body(&error, limits.body_bytes))?;
    Ok(body.slice_ref(message(&body)?))
}

/// A message as calls carry it.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let mut bytes = Vec::with_capacity(PREFIX + message.encoded_len());
    begin(&mut bytes);
    message.encode_raw(&mut bytes);
    end(bytes)
}

/// Leaves room for what stands before a message, which is then written behind it.
pub(super) fn begin(to: &mut Vec<u8>) {
    to.extend_from_slice(&[0; PREFIX]);
}

/// A message that was begun and written.
pub(super) fn end(mut bytes: Vec<u8>) -> Bytes {
    // Nothing is answered that comes near to 4 GiB: requests have a longest length.
    let length = (bytes.len().saturating_sub(PREFIX) as u32).to_be_bytes();
    if let Some(place) = bytes.get_mut(1..PREFIX) {
        place.copy_from_slice(&length);
    }
    bytes.into()
}

/// Whether gRPC is spoken, in protocol buffers.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    match content.strip_prefix(b"application/grpc") {
        Some([] | [b';', ..]) => true,
        Some(more) => {
            more.strip_prefix(b"+proto").is_some_and(|more| matches!(more, [] | [b';', ..]))
        }
        None => false,
    }
}

/// The only message of a body.
pub(super) fn message(body: &[u8]) -> Result<&[u8], Refusal> {
    let [packed, l0, l1, l2, l3, message @ ..] = body else {
        return Err(Refusal::invalid("there is no message: a call has one"));
    };
    let length = u32::from_be_bytes([*l0, *l1, *l2, *l3]);
    match (*packed, u64::from(length) == message.len() as u64) {
        (0, true) => Ok(message),
        (0, false) => Err(Refusal::invalid("the length of the message is not that of the call")),
        (1, _) => Err(Refusal::new(Code::Unimplemented, "the message is packed: send it as it is")),
        _ => Err(Refusal::invalid("the message has a flag that is none of gRPC")),
    }
}

fn no_body(error: &BodyError, most: usize) -> Refusal {
    match error {
        BodyError::TooLong => {
            let message = format!("the message has more than {most} bytes: send less at once");
            Refusal::new(Code::ResourceExhausted, message)
        }
        BodyError::TooSlow => {
            Refusal::new(Code::DeadlineExceeded, "the message did not come in time: send it faster")
        }
        BodyError::NoRoom => {
            let message = "too many long messages come at once: try again";
            Refusal::new(Code::ResourceExhausted, message)
        }
        BodyError::Broken => Refusal::new(Code::Cancelled, "the message broke off"),
    }
}

/// A text as trailers have it: what does not print, and what is not ASCII, is escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes().take(LONGEST) {
        match byte {
            b' '..=b'~' if byte != b'%' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");

const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// What stands before a message: whether it is packed, and its length.
pub(super) const PREFIX: usize = 5;

/// The longest that is said about a call, in bytes.
const LONGEST: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_one_message_as_it_is() {
        let code = |bytes: &'static [u8]| match message(bytes) {
            Ok(message) => Ok(message.to_vec()),
            Err(Refusal::Call { code, .. }) => Err(code),
            Err(refusal) => unreachable!("it is a call: {refusal:?}"),
        };
        assert_eq!(code(b"\0\0\0\0\x02ab"), Ok(b"ab".to_vec()));
        assert_eq!(code(b"\0\0\0\0\0"), Ok(Vec::new()));
        assert_eq!(code(b""), Err(Code::InvalidArgument));
        assert_eq!(code(b"\0\0\0\0\x03ab"), Err(Code::InvalidArgument));
        assert_eq!(code(b"\0\0\0\0\x01ab"), Err(Code::InvalidArgument));
        assert_eq!(code(b"\0\xff\xff\xff\xffab"), Err(Code::InvalidArgument));
        assert_eq!(code(b"\x01\0\0\0\x02ab"), Err(Code::Unimplemented));
        assert_eq!(code(b"\x07\0\0\0\x02ab"), Err(Code::InvalidArgument));
    }

    #[test]
    fn grpc_is_known_by_its_type() {
        let is = |content: &'static str| {
            is_grpc(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content))]))
        };
        assert!(
            is("application/grpc") && is("application/grpc+proto; a=b") && is("application/grpc;a")
        );
        assert!(!is("application/grpc-web") && !is("application/grpc+json") && !is("text/plain"));
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn what_is_said_is_fit_for_a_header() {
        let long = format!("100 % \r\né{}", "x".repeat(9_000));
        let answer = Refusal::invalid(long).answer();
        assert_eq!(answer.headers()["grpc-status"], "3");
        let message = answer.headers()["grpc-message"].to_str().unwrap();
        assert!(message.starts_with("100 %25 %0D%0A%C3%A9xx") && message.len() < 500, "{message}");
    }
}
