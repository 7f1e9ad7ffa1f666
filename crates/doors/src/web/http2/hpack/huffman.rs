//! The code in which texts of headers are packed: frequent characters are short.
//!
//! It is a canonical one: codes of one length follow each other in the order of what they stand
//! for, and longer ones follow shorter ones. So their lengths say it all.

use super::Malformed;

/// Appends what is packed in `bytes`.
pub(super) fn unpack(bytes: &[u8], to: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut rest = bytes.iter();
    // Bits that were read and not used stand at the top; below them is nothing.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        // What follows the end are ones, which are the beginning of no character.
        let next = (bits | u64::MAX.checked_shr(count).unwrap_or(0)) >> 32;
        let length = (SHORTEST..LONGEST).find(|length| next < CODE.ends[*length]);
        let length = length.unwrap_or(LONGEST);
        if length as u32 > count {
            // What is left fills up a byte, and is all ones.
            let is_filling = count < 8 && bits.count_ones() == count;
            return if is_filling { Ok(()) } else { Err(Malformed) };
        }
        let place = (next >> (32 - length)) as usize - CODE.first[length];
        let symbol = CODE.symbols[CODE.place[length] + place];
        to.push(u8::try_from(symbol).map_err(|_| Malformed)?);
        bits <<= length;
        count -= length as u32;
    }
}

/// All codes, by their lengths.
struct Code {
    /// The first code of a length.
    first: [usize; LONGEST + 1],
    /// The first that is longer, in 32 bits.
    ends: [u64; LONGEST + 1],
    /// Where what they stand for begins in `symbols`.
    place: [usize; LONGEST + 1],
    symbols: [u16; LENGTHS.len()],
}

const CODE: Code = {
    let mut code = Code {
        first: [0; LONGEST + 1],
        ends: [0; LONGEST + 1],
        place: [0; LONGEST + 1],
        symbols: [0; LENGTHS.len()],
    };
    let (mut next, mut place, mut length) = (0, 0, 1);
    while length <= LONGEST {
        next *= 2;
        code.first[length] = next;
        code.place[length] = place;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.symbols[place] = symbol as u16;
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        code.ends[length] = (next as u64) << (32 - length);
        length += 1;
    }
    code
};

const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// How many bits stand for each byte, and for the end, which nobody may send.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11,
    10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8,
    15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5,
    6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
    23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21,
    23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25,
    26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26,
    28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packs bytes, one bit at a time.
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        for byte in bytes {
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let symbols = &CODE.symbols[CODE.place[length]..];
            let place = symbols.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
            let code = CODE.first[length] + place;
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), true);
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut to = Vec::new();
        unpack(bytes, &mut to).map(|()| to)
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        let example = b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(unpacked(example).unwrap(), b"www.example.com");
        assert_eq!(unpacked(b"\xa8\xeb\x10\x64\x9c\xbf").unwrap(), b"no-cache");
        assert_eq!(unpacked(b"\x64\x02").unwrap(), b"302");
        assert_eq!(unpacked(b"").unwrap(), b"");
    }

    #[test]
    fn what_fills_up_is_short_and_all_ones() {
        // The first byte is an `a` (00011) and three bits.
        assert_eq!(unpacked(&[0b0001_1111]).unwrap(), b"a");
        assert!(unpacked(&[0b0001_1110]).is_err());
        assert!(unpacked(&[0b0001_1111, 0xff]).is_err());
        assert!(unpacked(&[0xff, 0xff, 0xff, 0xff]).is_err(), "the end is not to be sent");
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(unpacked(&packed(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(text) = unpacked(&bytes) {
                prop_assert_eq!(packed(&text), bytes);
            }
        }
    }
}
