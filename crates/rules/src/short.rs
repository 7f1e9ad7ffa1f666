//! Short texts: names, values and segments of paths, of which most have a few bytes. To compare or to
//! hash them in words takes less time than to call for a function that is made for long ones.

/// Whether two texts are the same.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && match (one.last_chunk::<8>(), other.last_chunk::<8>()) {
            // Words that begin together, but for the last, which overlaps the one before.
            (Some(last), Some(other_last)) => {
                let (words, other_words) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
                last == other_last && words.iter().zip(other_words).all(|(a, b)| a == b)
            }
            _ => word(one) == word(other),
        }
}

/// A text of up to seven bytes, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    word: u64,
    length: u32,
}

impl Short {
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        (bytes.len() < 8).then(|| Self { word: word(bytes), length: bytes.len() as u32 })
    }
}

/// A quick hash. The rules choose what is in the table, not the requests, so there is nothing to
/// be aimed at.
#[inline]
pub(crate) fn hash(parent: u32, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let start = u64::from(parent) << 32 ^ bytes.len() as u64;
    let sum = match bytes.last_chunk::<8>() {
        Some(last) => {
            let words = bytes.as_chunks::<8>().0.iter();
            let sum = words.fold(start, |sum, word| mix(sum, u64::from_le_bytes(*word)));
            mix(sum, u64::from_le_bytes(*last))
        }
        None => mix(start.wrapping_mul(FACTOR), word(bytes)),
    };
    // Tables look at the uppermost and the lowest bits.
    sum ^ sum >> 32
}

/// Up to seven bytes, which with their number are all of this word.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(first), Some(last), _) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        (_, _, [first, .., last]) => {
            u64::from(*first) << 16 | u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(*last)
        }
        (_, _, [only]) => u64::from(*only),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_byte_counts() {
        for len in 0..40 {
            let text = vec![b'a'; len];
            assert!(same(&text, &text.clone()) && hash(7, &text) == hash(7, &text.clone()));
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'b';
                assert!(!same(&text, &other), "byte {at} of {len}");
                assert_ne!(hash(7, &text), hash(7, &other), "byte {at} of {len}");
            }
            assert!(!same(&text, &vec![b'a'; len + 1]));
            assert_ne!(hash(7, &text), hash(8, &text));
        }
    }

    proptest! {
        #[test]
        fn texts_are_the_same_if_they_are_equal(one in "[ab]{0,20}", other in "[ab]{0,20}") {
            prop_assert_eq!(same(one.as_bytes(), other.as_bytes()), one == other);
        }
    }
}
