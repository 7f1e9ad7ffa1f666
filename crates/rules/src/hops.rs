//! The hops that proxies write into headers, from the nearest to the farthest.
//!
//! All is read from the right. What stands there was written by the proxy next to us, and what a
//! client has made up stands to the left of it: read from the left, a quotation mark that the
//! client never closes would swallow what the proxies wrote behind it.

use std::net::IpAddr;

/// The elements of a line, from the last to the first. Quoted separators do not separate.
///
/// A line has at least one element, which may be empty.
pub(crate) fn elements(line: &str, separator: u8) -> Elements<'_> {
    Elements { rest: Some(line), separator }
}

/// See [`elements`].
pub(crate) struct Elements<'a> {
    rest: Option<&'a str>,
    separator: u8,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let (before, element) = match last_outside_quotes(rest.as_bytes(), self.separator) {
            // The separator is ASCII, so both sides of it are whole characters.
            Some(at) => (rest.get(..at), rest.get(at + 1..).unwrap_or_default()),
            None => (None, rest),
        };
        self.rest = before;
        Some(element.trim_matches([' ', '\t']))
    }
}

/// Where the last separator stands that is in no quoted string.
fn last_outside_quotes(text: &[u8], separator: u8) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match *byte {
            b'"' if !quoted => quoted = true,
            // An escaped quotation mark has an odd number of backslashes before it.
            b'"' => {
                let before = text.iter().take(at).rev();
                quoted = before.take_while(|byte| **byte == b'\\').count() % 2 == 1;
            }
            byte if byte == separator && !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// The address in an element of `X-Forwarded-For`, which may have a port.
///
/// `None` for everything else: `unknown`, `_hidden`, names of hosts, nothing at all.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    let address = text.parse().ok().or_else(|| {
        let (host, port) = match text.strip_prefix('[') {
            Some(text) => text.split_once(']')?,
            // A bare IPv6 address was read above: what is left can only be IPv4 with a port.
            None => text.split_at_checked(text.find(':')?)?,
        };
        let host: IpAddr = host.parse().ok()?;
        (host.is_ipv6() == text.starts_with('[') && is_port(port)).then_some(host)
    });
    address.map(|address: IpAddr| address.to_canonical())
}

/// Whether this is what may follow an address: nothing, or a colon and a port. RFC 7239 lets
/// proxies hide the port behind a word with an underscore.
fn is_port(text: &str) -> bool {
    let Some(port) = text.strip_prefix(':') else { return text.is_empty() };
    let hidden = port.strip_prefix('_').is_some_and(|word| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        !word.is_empty() && word.bytes().all(fits)
    });
    hidden || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
}

/// The address that the `for` of an element of `Forwarded` names (RFC 7239).
///
/// `None` if there is no `for`, more than one, or if the element is not well formed. Quoted
/// strings with backslashes are taken for malformed: no address needs one.
pub(crate) fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut found = None;
    for pair in elements(element, b';').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        if name.eq_ignore_ascii_case("for") {
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let address = address(quoted.unwrap_or(value))?;
            if found.replace(address).is_some() {
                return None;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn split(line: &str, expected: &[&str]) {
        assert_eq!(elements(line, b',').collect::<Vec<_>>(), expected);
    }

    #[test]
    fn elements_come_from_the_right() {
        split("a, b ,\tc", &["c", "b", "a"]);
        split("", &[""]);
        split(",", &["", ""]);
    }

    #[test]
    fn quoted_separators_do_not_separate() {
        split(r#"a="1,2", b"#, &["b", r#"a="1,2""#]);
        split(r#"a="1\",2", b"#, &["b", r#"a="1\",2""#]);
        split(r#"x, a="1,\\", b"#, &["b", r#"a="1,\\""#, "x"]);
    }

    #[test]
    fn what_is_left_open_takes_nothing_from_what_follows() {
        split(r#"for="x, for=b"#, &["for=b", r#"for="x"#]);
        split(r#"for="x\, for="b,c""#, &[r#"for="b,c""#, r#"for="x\"#]);
    }

    #[test]
    fn addresses_may_have_ports() {
        let texts = [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:80", "192.0.2.1"),
            ("192.0.2.1:_web", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
        ];
        for (text, expected) in texts {
            assert_eq!(address(text), expected.parse().ok(), "{text}");
        }
    }

    #[test]
    fn everything_else_is_no_address() {
        let texts = [
            "",
            "unknown",
            "_hidden",
            "example.com",
            "192.0.2",
            "192.0.2.01",
            "192.0.2.1:",
            "192.0.2.1:x",
            "192.0.2.1:+80",
            "192.0.2.1:65536",
            "192.0.2.1:_",
            "192.0.2.1/32",
            "[192.0.2.1]",
            "[192.0.2.1]:80",
            "[::1",
            "::1]",
            "[::1]80",
            "[]",
            "[",
            ":",
            ":80",
            "fe80::1%eth0",
            "\"192.0.2.1\"",
            "192.0.2.1 192.0.2.2",
            "\u{661}.2.3.4",
        ];
        for text in texts {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn forwarded_elements_name_who_they_are_for() {
        let elements = [
            ("for=192.0.2.43", "192.0.2.43"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("proto=http;by=203.0.113.43; FOR=192.0.2.60", "192.0.2.60"),
            ("for=192.0.2.43;host=\"a;for=192.0.2.1\";", "192.0.2.43"),
        ];
        for (element, expected) in elements {
            assert_eq!(forwarded_for(element), expected.parse().ok(), "{element}");
        }
    }

    #[test]
    fn forwarded_elements_without_an_address_name_nobody() {
        let elements = [
            "",
            "for",
            "for=",
            "for=unknown",
            "for=_mdf",
            "for=\"_gazonk\"",
            "proto=https",
            "for=192.0.2.1;for=192.0.2.2",
            "for=\"192.0.2.1",
            "for=192.0.2.1\"",
            "192.0.2.1",
            "for=\"\\192.0.2.1\"",
            "for=192.0.2.1;x",
            "for = 192.0.2.1",
            "for=192.0.2.1;x=\"",
        ];
        for element in elements {
            assert_eq!(forwarded_for(element), None, "{element}");
        }
    }
}
