//! Headers as HTTP/2 packs them.

mod huffman;
mod table;

use table::Table;

pub(super) use table::OVERHEAD;

/// Reads the headers of one connection, which refer to those that came before.
#[derive(Debug, Default)]
pub(super) struct Headers {
    table: Table,
    /// Room for a name and a value that are packed.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// They cannot be read, and so cannot any others of the same connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Headers {
    /// Reads a block, and hands over each header.
    #[inline]
    pub(super) fn read(
        &mut self,
        mut block: &[u8],
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        let mut is_begun = false;
        while let Some(first) = block.first() {
            match *first {
                0x80.. => {
                    let number = number(&mut block, 7)?;
                    let (name, value) = self.table.at(number)?;
                    each(name, value);
                }
                0x20..0x40 => {
                    let most = number(&mut block, 5)?;
                    // Between headers the room stays as it is.
                    if is_begun {
                        return Err(Malformed);
                    }
                    self.table.resize(most)?;
                    continue;
                }
                byte => self.literal(&mut block, byte & 0x40 != 0, &mut each)?,
            }
            is_begun = true;
        }
        Ok(())
    }

    /// A header whose value is given, and perhaps its name.
    fn literal(
        &mut self,
        block: &mut &[u8],
        is_kept: bool,
        each: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        let number = number(block, if is_kept { 6 } else { 4 })?;
        let named = match number {
            0 => Some(text(block, &mut self.name)?),
            _ => None,
        };
        let value = text(block, &mut self.value)?;
        match named {
            Some(name) => each(name, value),
            None => each(self.table.at(number)?.0, value),
        }
        match named {
            _ if !is_kept => {}
            Some(name) => self.table.add(name, value),
            None => self.table.add_named(number, value)?,
        }
        // One long header is not remembered for ever.
        if self.name.capacity() + self.value.capacity() > KEPT {
            (self.name, self.value) = (Vec::new(), Vec::new());
        }
        Ok(())
    }
}

/// Writes a header, of which the other end has to remember nothing.
#[inline]
pub(super) fn put(to: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    to.push(0);
    put_text(to, name);
    put_text(to, value);
}

/// Says how many bytes of headers are remembered from now on.
pub(super) fn put_room(to: &mut Vec<u8>, bytes: u32) {
    put_number(to, 0x20, 5, bytes as usize);
}

#[inline]
fn put_text(to: &mut Vec<u8>, text: &[u8]) {
    put_number(to, 0, 7, text.len());
    to.extend_from_slice(text);
}

/// Writes a number that begins in the low bits of a byte.
#[inline]
fn put_number(to: &mut Vec<u8>, high: u8, bits: u32, number: usize) {
    let most = (1 << bits) - 1;
    let Some(mut rest) = number.checked_sub(most) else { return to.push(high | number as u8) };
    to.push(high | most as u8);
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// A number that begins in the low bits of a byte.
#[inline]
fn number(block: &mut &[u8], bits: u32) -> Result<usize, Malformed> {
    let (first, rest) = block.split_first().ok_or(Malformed)?;
    *block = rest;
    let most = (1 << bits) - 1;
    let mut number = usize::from(*first) & most;
    if number < most {
        return Ok(number);
    }
    for place in 0..MOST_BYTES {
        let (byte, rest) = block.split_first().ok_or(Malformed)?;
        *block = rest;
        number += usize::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

/// A text, as it stands there or unpacked.
#[inline]
fn text<'a, 'b: 'a>(block: &mut &'b [u8], room: &'a mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    let is_packed = block.first().is_some_and(|first| *first >= 0x80);
    let length = number(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or(Malformed)?;
    *block = rest;
    if !is_packed {
        return Ok(text);
    }
    room.clear();
    huffman::unpack(text, room)?;
    Ok(room)
}

/// No number that means anything takes more than this.
const MOST_BYTES: usize = 4;

/// How much room for packed texts is kept.
const KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type List = Vec<(String, String)>;

    fn read(headers: &mut Headers, block: &[u8]) -> Result<List, Malformed> {
        let mut list = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        headers.read(block, |name, value| list.push((text(name), text(value))))?;
        Ok(list)
    }

    fn list(of: &[(&str, &str)]) -> List {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Three requests of one connection, from the standard: as they are, and packed.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        let plain: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x0fwww.example.com",
            b"\x82\x86\x84\xbe\x58\x08no-cache",
            b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
        ];
        let packed: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
            b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
        ];
        for blocks in [plain, packed] {
            let mut headers = Headers::default();
            let mut begin = vec![(":method", "GET"), (":scheme", "http"), (":path", "/")];
            begin.push((":authority", "www.example.com"));
            assert_eq!(read(&mut headers, blocks[0]).unwrap(), list(&begin));
            begin.push(("cache-control", "no-cache"));
            assert_eq!(read(&mut headers, blocks[1]).unwrap(), list(&begin));
            let third = [
                (":method", "GET"),
                (":scheme", "https"),
                (":path", "/index.html"),
                (":authority", "www.example.com"),
                ("custom-key", "custom-value"),
            ];
            assert_eq!(read(&mut headers, blocks[2]).unwrap(), list(&third));
        }
    }

    #[test]
    fn what_has_no_room_is_forgotten() {
        let mut headers = Headers::default();
        // Room for one short header, and then two of them.
        read(&mut headers, b"\x3f\x09\x40\x01a\x01b").unwrap();
        assert_eq!(read(&mut headers, b"\xbe").unwrap(), list(&[("a", "b")]));
        read(&mut headers, b"\x40\x01c\x01d").unwrap();
        assert_eq!(read(&mut headers, b"\xbe").unwrap(), list(&[("c", "d")]));
        assert_eq!(read(&mut headers, b"\xbf"), Err(Malformed));
        // One that is longer than all the room empties it.
        read(&mut headers, b"\x40\x14aaaaaaaaaaaaaaaaaaaa\x01d").unwrap();
        assert_eq!(read(&mut headers, b"\xbe"), Err(Malformed));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let wrong: [&[u8]; 9] = [
            b"\x80",
            b"\xbe",
            b"\x40\x05ab",
            b"\x3f\xe2\x1f",
            b"\x82\x20",
            b"\xff\xff\xff\xff\xff\xff\x01",
            b"\x40\x81\x00\x01a",
            b"\x0f",
            b"\x7e\x01a",
        ];
        for block in wrong {
            assert_eq!(read(&mut Headers::default(), block), Err(Malformed), "{block:x?}");
        }
    }

    #[test]
    fn room_is_told_as_it_is_heard() {
        for bytes in [0, 30, 31, 32, 4096] {
            let mut block = Vec::new();
            put_room(&mut block, bytes);
            assert_eq!(number(&mut &*block, 5), Ok(bytes as usize));
            assert_eq!(read(&mut Headers::default(), &block), Ok(Vec::new()));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(all in prop::collection::vec(("[a-z]{1,300}", ".{0,300}"), 0..9)) {
            let mut block = Vec::new();
            all.iter().for_each(|(name, value)| put(&mut block, name.as_bytes(), value.as_bytes()));
            prop_assert_eq!(read(&mut Headers::default(), &block).unwrap(), all);
        }

        #[test]
        fn anything_is_read_or_refused(blocks in prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..60), 0..9,
        )) {
            let mut headers = Headers::default();
            for block in blocks {
                let _ = headers.read(&block, |_, _| {});
            }
        }
    }
}
