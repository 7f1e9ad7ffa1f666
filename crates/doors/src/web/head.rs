//! What HTTP/1.1 puts around bodies, as far as it is plain.

use std::ops::Range;

use httparse::{EMPTY_HEADER, Header, Status};

/// What stands at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head<'b> {
    /// A POST with a body of known length, and nothing that needs a second look.
    Post {
        path: &'b str,
        /// Where the body is, or will be.
        body: Range<usize>,
    },
    /// Perhaps one, when there is more.
    Partial,
    /// Something else, perhaps something that is wrong.
    Other,
}

impl<'b> Head<'b> {
    pub(super) fn read(bytes: &'b [u8]) -> Self {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let end = match request.parse(bytes) {
            Ok(Status::Complete(end)) => end,
            Ok(Status::Partial) => return Self::Partial,
            Err(_) => return Self::Other,
        };
        let is_plain = request.version == Some(1) && request.method == Some("POST");
        match (request.path, length(request.headers)) {
            (Some(path), Some(length)) if is_plain => Self::Post { path, body: end..end + length },
            _ => Self::Other,
        }
    }
}

/// How long the body is, if that is all that headers say about the body, the connection, and who
/// asks.
fn length(headers: &[Header<'_>]) -> Option<usize> {
    let mut length = None;
    for Header { name, value } in headers {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            14 if is("content-length") => {
                let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let text =
                    std::str::from_utf8(value).ok().filter(|_| digits && length.is_none())?;
                length = Some(text.parse().ok().filter(|length| *length <= LONGEST)?);
            }
            10 if is("connection") && !value.eq_ignore_ascii_case(b"keep-alive") => return None,
            17 if is("transfer-encoding") => return None,
            16 if is("content-encoding") => return None,
            6 if is("expect") => return None,
            // Somebody has to look whose page it is.
            6 if is("origin") => return None,
            14 if is("sec-fetch-site") => return None,
            7 if is("upgrade") => return None,
            _ => {}
        }
    }
    length
}

/// With more, hyper says what there is to say about it.
const HEADERS: usize = 32;

/// The longest body that is plain.
const LONGEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where the path and the body of a plain POST are.
    fn post(bytes: &[u8]) -> Option<(&str, &[u8])> {
        match Head::read(bytes) {
            Head::Post { path, body } => Some((path, &bytes[body])),
            Head::Partial | Head::Other => None,
        }
    }

    #[test]
    fn a_plain_post_is_read() {
        let text = b"POST /v1/check HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}POST";
        assert_eq!(post(text), Some(("/v1/check", &b"{}"[..])));
        for end in 0..text.len() - 6 {
            assert_eq!(Head::read(&text[..end]), Head::Partial, "{end}");
        }
    }

    #[test]
    fn whatever_needs_a_second_look_is_not_plain() {
        for header in [
            "Transfer-Encoding: chunked",
            "transfer-encoding: identity",
            "Expect: 100-continue",
            "Connection: close",
            "Connection: upgrade",
            "Upgrade: h2c",
            "Content-Encoding: gzip",
            "Origin: http://a",
            "Sec-Fetch-Site: cross-site",
            "Content-Length: 2",
            "content-length: 3",
        ] {
            let text = format!("POST / HTTP/1.1\r\ncontent-length: 2\r\n{header}\r\n\r\n{{}}");
            assert_eq!(Head::read(text.as_bytes()), Head::Other, "{header}");
        }
        for text in [
            "GET / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}",
            "POST / HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}",
            "POST / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: \r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: +2\r\n\r\n{}",
            "POST / HTTP/1.1\r\ncontent-length: 2, 2\r\n\r\n{}",
            "POST / HTTP/1.1\r\ncontent-length: 0x2\r\n\r\n{}",
            "POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
            "POST / HTTP/1.1\r\ncontent-length : 2\r\n\r\n{}",
            "\0\0",
        ] {
            assert_eq!(Head::read(text.as_bytes()), Head::Other, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Head::read(&bytes);
        }
    }
}
