//! How a request ended, as somebody says it: `TG.REPORT ticket [status 200] [header.name value ...]`.

use smallvec::SmallVec;

use crate::resp::asked::{AskError, shown, text};
use crate::resp::frame::integer;

/// How a request ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended<'a> {
    pub(super) ticket: &'a str,
    /// The status of its response, if it had one.
    pub(super) status: Option<u16>,
    /// And the headers of that.
    pub(super) headers: SmallVec<[(&'a str, &'a str); 8]>,
}

impl<'a> Ended<'a> {
    pub(super) fn read(arguments: &[&'a [u8]]) -> Result<Self, AskError> {
        let not_text = |what: &str| AskError::NotText(what.to_owned());
        let ticket = arguments.get(1).copied().unwrap_or_default();
        let ticket = text(ticket).ok_or_else(|| not_text("the ticket"))?;
        let mut ended = Self { ticket, status: None, headers: SmallVec::new() };
        for pair in arguments.get(2..).unwrap_or_default().chunks(2) {
            let name = text(pair[0]).ok_or_else(|| not_text("a name"))?;
            let [_, value] = pair else { return Err(AskError::NoValue(shown(name))) };
            match (name, name.strip_prefix("header.")) {
                ("status", _) if ended.status.is_some() => {
                    return Err(AskError::Twice(name.to_owned()));
                }
                ("status", _) => ended.status = Some(status(value).ok_or(AskError::Status)?),
                (_, Some(header)) if !header.is_empty() => {
                    let value = text(value).ok_or_else(|| not_text("the value of a header"))?;
                    ended.headers.push((header, value));
                }
                _ => return Err(AskError::NotAnOutcome(shown(name))),
            }
        }
        Ok(ended)
    }
}

fn status(value: &[u8]) -> Option<u16> {
    let status = u16::try_from(integer(value)?).ok()?;
    (100..=999).contains(&status).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_an_outcome() {
        let ended = Ended::read(&[b"c", b"t", b"header.a", b"b", b"status", b"401"]).unwrap();
        assert_eq!((ended.ticket, ended.status), ("t", Some(401)));
        assert_eq!(ended.headers[..], [("a", "b")]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, part) in [
            (&[&b"\xff"[..]][..], "the ticket is not text"),
            (&[b"t", b"status"], "`status` has no value"),
            (&[b"t", b"status", b"ok"], "`status` is no status"),
            (&[b"t", b"status", b"99"], "`status` is no status"),
            (&[b"t", b"status", b"200", b"status", b"200"], "`status` is given twice"),
            (&[b"t", b"user", b"a"], "`user` says nothing about how a request ended"),
            (&[b"t", b"header.", b"a"], "`header.` says nothing about"),
            (&[b"t", b"header.a", b"\xff"], "the value of a header is not text"),
        ] {
            let arguments: Vec<&[u8]> =
                [&b"c"[..]].into_iter().chain(words.iter().copied()).collect();
            let error = Ended::read(&arguments).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
