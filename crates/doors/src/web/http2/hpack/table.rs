//! Headers that are named by a number: those that everybody knows, and those that a client has sent
//! before.

use std::collections::VecDeque;

use super::Malformed;

/// What a client has sent before, the latest first, as far as there is room.
#[derive(Debug)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    /// As the standard counts.
    bytes: usize,
    most: usize,
}

/// A name and its value.
#[derive(Debug)]
struct Entry {
    text: Box<[u8]>,
    name: usize,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.text.len() + OVERHEAD
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0, most: MOST }
    }
}

impl Table {
    /// The header of this number.
    #[inline]
    pub(super) fn at(&self, number: usize) -> Result<(&[u8], &[u8]), Malformed> {
        let place = number.checked_sub(1).ok_or(Malformed)?;
        if let Some(known) = KNOWN.get(place) {
            return Ok(*known);
        }
        let entry = self.entries.get(place - KNOWN.len()).ok_or(Malformed)?;
        Ok(entry.text.split_at(entry.name))
    }

    /// Remembers a header, and forgets others if there is no room.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let bytes = name.len() + value.len() + OVERHEAD;
        self.shrink_to(self.most.saturating_sub(bytes));
        if bytes <= self.most {
            let text = [name, value].concat().into();
            self.entries.push_front(Entry { text, name: name.len() });
            self.bytes += bytes;
        }
    }

    /// Remembers a header by whose name another one is called.
    pub(super) fn add_named(&mut self, number: usize, value: &[u8]) -> Result<(), Malformed> {
        let (name, _) = self.at(number)?;
        let name = name.to_vec();
        self.add(&name, value);
        Ok(())
    }

    /// Has this much room from now on.
    pub(super) fn resize(&mut self, most: usize) -> Result<(), Malformed> {
        if most > MOST {
            return Err(Malformed);
        }
        self.most = most;
        self.shrink_to(most);
        Ok(())
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some(last) = self.entries.pop_back()
        {
            self.bytes -= last.bytes();
        }
    }
}

/// What every header counts for beside its bytes.
pub(in crate::web::http2) const OVERHEAD: usize = 32;

/// The most room for what was sent before: what clients take for granted.
const MOST: usize = 4096;

/// What everybody knows.
const KNOWN: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];
