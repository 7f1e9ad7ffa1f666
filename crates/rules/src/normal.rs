//! The usual form of what requests say: what servers take for the same is the same to rules.

/// The host of a whole address, and what is behind it; no host if it is no whole address.
pub(crate) fn split_host(target: &str) -> (&str, &str) {
    let is_scheme = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return ("", target);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    (authority.rsplit_once('@').map_or(authority, |(_, host)| host), rest)
}

/// A host without a port, and without the dot that may be at the end of a whole name.
#[inline]
pub(crate) fn bare_host(host: &str) -> &str {
    if !host.bytes().any(|byte| matches!(byte, b':' | b'.')) {
        return host;
    }
    // Colons are also in IPv6 addresses: those have several, or stand in brackets.
    let bare = match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    };
    bare.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(bare)
}

/// A path without slashes at its end.
#[inline]
pub(crate) fn bare_path(path: &str) -> &str {
    if path.as_bytes().last() != Some(&b'/') {
        return path;
    }
    match path.trim_end_matches('/') {
        "" if path.starts_with('/') => "/",
        bare => bare,
    }
}

/// Where the path of a target ends, at a query or a fragment, and whether it is in its usual form up
/// to there, as most are. Both are found in one go over the bytes. The star is what `OPTIONS *` asks
/// about: the server as a whole.
#[inline(never)]
pub(crate) fn scan_path(target: &str) -> (usize, bool) {
    // Whether there is an end is found out with the rest: to look for it at each byte would take as
    // long again.
    let seen = seen_in(target.as_bytes());
    let (end, seen) = match seen & ENDS {
        0 => (target.len(), seen),
        _ => {
            let is_end = |byte: u8| matches!(byte, b'?' | b'#');
            let end = target.bytes().position(is_end).unwrap_or(target.len());
            (end, seen_in(&target.as_bytes()[..end]))
        }
    };
    let begins =
        target.starts_with('/') || target.as_bytes().first_chunk() == Some(b"*") && end == 1;
    (end, seen & (ODD | ODD_BEHIND_SLASH) == 0 && begins)
}

/// What there is among these bytes of what matters.
#[inline(always)]
fn seen_in(bytes: &[u8]) -> u8 {
    let (mut seen, mut before) = (0, ODD | ENDS);
    for byte in bytes {
        let kind = KINDS[usize::from(*byte)];
        seen |= kind & before;
        before = (kind & SLASH) << 1 | ODD | ENDS;
    }
    seen
}

/// What is never in a path in its usual form.
const ODD: u8 = 1;
const SLASH: u8 = 2;
/// What may be odd behind a slash: `//`, `/.` and `/..`.
const ODD_BEHIND_SLASH: u8 = SLASH << 1;
const ENDS: u8 = 8;

const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'?' | b'#' => ENDS,
            b'/' => SLASH | ODD_BEHIND_SLASH,
            b'.' => ODD_BEHIND_SLASH,
            b'%' | b';' => ODD,
            byte if byte.is_ascii_graphic() => 0,
            _ => ODD,
        };
        byte += 1;
    }
    kinds
};

/// Appends the path to what is there.
pub(crate) fn write_normal(path: &str, normal: &mut String) {
    let begin = normal.len();
    for segment in path.split('/') {
        let start = normal.len();
        normal.push('/');
        // Parameters are not looked at by servers when they choose who answers.
        let name = segment.split_once(';').map_or(segment, |(name, _)| name);
        write_segment(name, normal);
        match &normal[start..] {
            "/" | "/." => normal.truncate(start),
            "/.." => {
                let parent = normal[begin..start].rfind('/').unwrap_or(0);
                normal.truncate(begin + parent);
            }
            _ => {}
        }
    }
    if normal.len() == begin {
        normal.push('/');
    }
}

/// Writes a segment of a path: signs stand for themselves, and all that must be escaped is.
pub(crate) fn write_segment(segment: &str, normal: &mut String) {
    let mut rest = segment.as_bytes();
    while let [byte, after @ ..] = rest {
        let code = if *byte == b'%' { escaped(after) } else { None };
        rest = if code.is_some() { &after[2..] } else { after };
        match code.unwrap_or(*byte) {
            byte @ (b'/' | b'?' | b'#' | b';' | b'%') => write_escaped(byte, normal),
            byte if byte.is_ascii_graphic() => normal.push(char::from(byte)),
            byte => write_escaped(byte, normal),
        }
    }
}

/// Writes a query of which every parameter is decoded, and still is one.
pub(crate) fn write_query(query: &str, normal: &mut String) {
    for (number, pair) in query.split('&').enumerate() {
        if number > 0 {
            normal.push('&');
        }
        match pair.split_once('=') {
            Some((name, value)) => {
                write_decoded(name, "&=", normal);
                normal.push('=');
                write_decoded(value, "&", normal);
            }
            None => write_decoded(pair, "&=", normal),
        }
    }
}

/// Writes what text stands for, but for these signs and what does not print.
fn write_decoded(text: &str, signs: &str, decoded: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'%' | b'+')) {
        decoded.push_str(&rest[..at]);
        let (sign, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = after;
        match (sign, escaped(after.as_bytes())) {
            (b'+', _) => decoded.push(' '),
            (_, None) => decoded.push('%'),
            (_, Some(byte)) => match escaped_character(byte, &after.as_bytes()[2..]) {
                Some(character) if !character.is_control() && !signs.contains(character) => {
                    decoded.push(character);
                    // Three for each byte, but for the first sign.
                    rest = &after[character.len_utf8() * 3 - 1..];
                }
                _ => {
                    write_escaped(byte, decoded);
                    rest = &after[2..];
                }
            },
        }
    }
    decoded.push_str(rest);
}

/// The character that begins with this byte and goes on with the bytes that are escaped next.
fn escaped_character(first: u8, mut rest: &[u8]) -> Option<char> {
    let length = match first {
        0..=0x7f => return Some(char::from(first)),
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return None,
    };
    let mut bytes = [first, 0, 0, 0];
    for byte in &mut bytes[1..length] {
        *byte = escaped(rest.strip_prefix(b"%")?)?;
        rest = &rest[3..];
    }
    std::str::from_utf8(&bytes[..length]).ok()?.chars().next()
}

/// The byte that two digits stand for, which are next.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    // Two digits make a byte.
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

fn write_escaped(byte: u8, text: &mut String) {
    let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
    text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}
