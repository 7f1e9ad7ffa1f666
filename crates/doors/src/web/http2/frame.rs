//! Frames: what HTTP/2 consists of.

/// What stands before a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

/// A frame that is here as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) head: Head,
    pub(super) payload: &'a [u8],
    /// The head and the payload.
    pub(super) bytes: &'a [u8],
}

/// Why a stream or a connection ends, as HTTP/2 numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    None = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    FrameSize = 6,
    RefusedStream = 7,
    Compression = 9,
    EnhanceYourCalm = 11,
}

pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

impl Head {
    pub(super) const BYTES: usize = 9;

    #[inline]
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3, ..] = *bytes else { return None };
        Some(Self {
            length: u32::from_be_bytes([0, l0, l1, l2]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM,
        })
    }

    #[inline]
    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl<'a> Frame<'a> {
    /// The first frame, if it is here as a whole.
    #[inline]
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let head = Head::read(bytes)?;
        let bytes = bytes.get(..Head::BYTES + head.length)?;
        Some(Self { head, payload: &bytes[Head::BYTES..], bytes })
    }

    /// What is left of the payload without padding.
    #[inline]
    pub(super) fn unpadded(&self) -> Result<&'a [u8], Reason> {
        if !self.head.has(flag::PADDED) {
            return Ok(self.payload);
        }
        let (padding, rest) = self.payload.split_first().ok_or(Reason::FrameSize)?;
        let length = rest.len().checked_sub(usize::from(*padding)).ok_or(Reason::Protocol)?;
        Ok(&rest[..length])
    }

    /// The part of a block of headers that is in it.
    #[inline]
    pub(super) fn block(&self) -> Result<&'a [u8], Reason> {
        let payload = self.unpadded()?;
        match self.head.has(flag::PRIORITY) {
            true => payload.get(5..).ok_or(Reason::FrameSize),
            false => Ok(payload),
        }
    }

    /// The only number that it consists of.
    #[inline]
    pub(super) fn number(&self) -> Result<u32, Reason> {
        let four = self.payload.try_into().map_err(|_| Reason::FrameSize)?;
        Ok(u32::from_be_bytes(four))
    }

    /// By how much a window grows.
    #[inline]
    pub(super) fn increment(&self) -> Result<i64, Reason> {
        Ok(i64::from(self.number()? & STREAM))
    }
}

/// Writes what stands before a frame.
#[inline]
pub(super) fn put_head(to: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    // No frame is longer than the longest.
    let [_, l0, l1, l2] = (length as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    to.extend_from_slice(&[l0, l1, l2, kind, flags, s0, s1, s2, s3]);
}

/// Writes a frame.
#[inline]
pub(super) fn put(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    put_head(to, payload.len(), kind, flags, stream);
    to.extend_from_slice(payload);
}

/// Says that a window has grown.
pub(super) fn put_increment(to: &mut Vec<u8>, stream: u32, by: u32) {
    put(to, kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
}

/// Ends a stream.
pub(super) fn put_reset(to: &mut Vec<u8>, stream: u32, reason: Reason) {
    put(to, kind::RST_STREAM, 0, stream, &(reason as u32).to_be_bytes());
}

/// Says that nothing beyond this stream is answered, and why, as HTTP/2 numbers it.
pub(super) fn put_goaway(to: &mut Vec<u8>, last: u32, reason: u32) {
    put_head(to, 8, kind::GOAWAY, 0, 0);
    to.extend_from_slice(&last.to_be_bytes());
    to.extend_from_slice(&reason.to_be_bytes());
}

/// Writes a block of headers, in as many frames as it takes.
pub(super) fn put_block(to: &mut Vec<u8>, stream: u32, flags: u8, block: &[u8]) {
    let mut pieces = block.chunks(LONGEST);
    let first = pieces.next().unwrap_or_default();
    let end = |is_last: bool| if is_last { flag::END_HEADERS } else { 0 };
    put(to, kind::HEADERS, flags | end(pieces.len() == 0), stream, first);
    while let Some(piece) = pieces.next() {
        put(to, kind::CONTINUATION, end(pieces.len() == 0), stream, piece);
    }
}

/// The bits of a number that name a stream.
pub(super) const STREAM: u32 = 0x7fff_ffff;

/// The longest payload of a frame, unless somebody says that he takes more. We do not.
pub(super) const LONGEST: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        put(&mut bytes, kind::PING, flag::ACK, 7, b"12345678");
        let frame = Frame::read(&bytes).unwrap();
        let head = Head { length: 8, kind: kind::PING, flags: flag::ACK, stream: 7 };
        assert_eq!((frame.head, frame.payload, frame.bytes), (head, &b"12345678"[..], &*bytes));
        (0..bytes.len()).for_each(|length| assert!(Frame::read(&bytes[..length]).is_none()));
    }

    #[test]
    fn padding_is_taken_off_and_cannot_be_more_than_there_is() {
        let unpadded = |payload: &[u8]| {
            let mut bytes = Vec::new();
            put(&mut bytes, kind::DATA, flag::PADDED, 1, payload);
            Frame::read(&bytes).unwrap().unpadded().map(<[u8]>::to_vec)
        };
        assert_eq!(unpadded(b"\x02ab\0\0"), Ok(b"ab".to_vec()));
        assert_eq!(unpadded(b"\x02\0\0"), Ok(Vec::new()));
        assert_eq!(unpadded(b"\x02a"), Err(Reason::Protocol));
        assert_eq!(unpadded(b""), Err(Reason::FrameSize));
    }

    #[test]
    fn a_long_block_takes_several_frames() {
        let block = vec![7; 2 * LONGEST + 5];
        let mut bytes = Vec::new();
        put_block(&mut bytes, 3, flag::END_STREAM, &block);
        let (mut rest, mut heads, mut again) = (&*bytes, Vec::new(), Vec::new());
        while let Some(frame) = Frame::read(rest) {
            rest = &rest[frame.bytes.len()..];
            heads.push((frame.head.kind, frame.head.flags));
            again.extend_from_slice(frame.payload);
        }
        assert_eq!(again, block);
        let both = flag::END_STREAM;
        assert_eq!(heads, [(1, both), (9, 0), (9, flag::END_HEADERS)]);
        bytes.clear();
        put_block(&mut bytes, 3, flag::END_STREAM, &[1, 2]);
        assert_eq!(Head::read(&bytes).unwrap().flags, flag::END_STREAM | flag::END_HEADERS);
    }
}
