//! What keys are called in Redis, such that an operator can read it and no two are the same.
//!
//! ```text
//!   tg:{alice}:api:5f3a9c01      key, rule, and a hash of the limit
//!   tg:{alice}:exports:permits   the same of permits, however many there are
//!   tg:epoch                     the mark of the memory
//!   tg:{123}:epoch               the same in a Cluster, for each slot
//! ```
//!
//! In a Cluster the part in braces says where a key lies, so all rules of one key lie together.

use aws_lc_rs::digest::{SHA256, digest};

use crate::budget::{Budget, PERMITS};

/// The parts of names that all keys of a budget share.
#[derive(Clone, Debug)]
pub(super) struct Names {
    after: String,
}

impl Names {
    pub(super) fn of(budget: &Budget) -> Self {
        let mut rule = String::new();
        push_plain(&mut rule, budget.rule().as_bytes(), b"");
        let limit = match budget.kept_as() {
            PERMITS => PERMITS.to_owned(),
            limit => hexadecimal(&digest(&SHA256, limit.as_bytes()).as_ref()[..4]),
        };
        Self { after: format!("}}:{rule}:{limit}") }
    }

    /// The name of a key, and the part of it that decides where it lies.
    pub(super) fn key(&self, key: &[u8]) -> Name {
        let mut text = String::with_capacity(BEFORE.len() + key.len() + self.after.len());
        text.push_str(BEFORE);
        push_plain(&mut text, key, b":");
        let slot = slot(&text.as_bytes()[BEFORE.len()..]);
        text.push_str(&self.after);
        Name { text, slot }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) slot: u16,
}

/// What all names of keys begin with.
const BEFORE: &str = "tg:{";

/// The mark of a memory that is not divided into slots.
pub(super) const MARK: &str = "tg:epoch";

/// The mark of the memory of one slot, which lies in that slot.
pub(super) fn mark_of(slot: u16) -> String {
    format!("tg:{{{}}}:epoch", tag_in(slot))
}

/// The first number that lies in a slot. There is one below a million for each: a test looks.
pub(super) fn tag_in(wanted: u16) -> u32 {
    use std::sync::OnceLock;
    static TAGS: OnceLock<Box<[u32]>> = OnceLock::new();
    let tags = TAGS.get_or_init(|| {
        let mut tags = vec![u32::MAX; usize::from(SLOTS)];
        let mut missing = tags.len();
        for number in 0..1_000_000 {
            let tag = &mut tags[usize::from(slot(number.to_string().as_bytes()))];
            if *tag == u32::MAX {
                *tag = number;
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        tags.into()
    });
    tags[usize::from(wanted % SLOTS)]
}

/// How many slots a Cluster has.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a tag, as all of Redis computes it: CRC-16 of the XMODEM kind.
pub(super) fn slot(tag: &[u8]) -> u16 {
    let step = |crc: u16, byte: &u8| (crc << 8) ^ CRC[usize::from((crc >> 8) as u8 ^ byte)];
    tag.iter().fold(0, step) % SLOTS
}

/// What each byte does to the sum.
const CRC: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Bytes as a text without spaces, braces and the like, another one for others. A long one is cut,
/// and ends with the hash of all of it.
fn push_plain(text: &mut String, bytes: &[u8], also: &[u8]) {
    // Braces without anything between them would mean something else to a Cluster.
    if bytes.is_empty() {
        return text.push_str("%-");
    }
    let begin = text.len();
    let is_plain = |byte: &u8| PLAIN[usize::from(*byte)] || also.contains(byte);
    // Nearly all are short, and nothing of them has to be written otherwise.
    if bytes.len() <= LONGEST
        && bytes.iter().all(is_plain)
        && let Ok(plain) = str::from_utf8(bytes)
    {
        return text.push_str(plain);
    }
    for byte in bytes {
        if text.len() - begin > LONGEST {
            // A percent sign is followed by two digits everywhere else.
            let hash = hexadecimal(digest(&SHA256, bytes).as_ref());
            text.truncate(begin + LONGEST / 2);
            text.push_str("%~");
            return text.push_str(&hash);
        }
        match is_plain(byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that stay as they are in any name.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < plain.len() {
        plain[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (others, mut at) = (b"-_.@/+=,", 0);
    while at < others.len() {
        plain[others[at] as usize] = true;
        at += 1;
    }
    plain
};

/// Longer texts are cut.
const LONGEST: usize = 120;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;
    use std::time::Duration;

    use proptest::prelude::*;
    use tollgate_core::{Limit, Wall};

    use super::*;

    fn names(rule: &str) -> Names {
        let limit = Limit::token_bucket("5/s").unwrap();
        Names::of(&Budget::new(rule, &limit, Duration::ZERO, Wall::default()))
    }

    #[test]
    fn names_can_be_read() {
        let name = names("api").key(b"alice@example.com");
        assert!(name.text.starts_with("tg:{alice@example.com}:api:"), "{name:?}");
        assert!(names("a:b").key(b"}{ \xFF%").text.starts_with("tg:{%7D%7B%20%FF%25}:a%3Ab:"));
        assert!(names("").key(b"").text.starts_with("tg:{%-}:%-:"));
        assert!(names("api").key(&[b'x'; 10_000]).text.len() < 200);
    }

    #[test]
    fn permits_are_called_the_same_however_many_there_are() {
        let name = |most| {
            let most = NonZeroU32::new(most).unwrap();
            let budget = Budget::of_permits("exports", most, Duration::ZERO, Wall::default());
            Names::of(&budget).key(b"alice").text
        };
        assert_eq!(name(2), "tg:{alice}:exports:permits");
        assert_eq!(name(2), name(3));
    }

    #[test]
    fn every_slot_has_a_mark_of_its_own_in_it() {
        assert_eq!(slot(b"123456789"), 0x31C3);
        for number in 0..SLOTS {
            let mark = mark_of(number);
            let tag = mark.split(['{', '}']).nth(1).unwrap();
            assert_eq!(slot(tag.as_bytes()), number);
        }
    }

    /// Bytes that are like each other, so that they would collide if any did.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(b'%'),
            Just(b'{'),
            Just(b'}'),
            Just(b':'),
            Just(b'2'),
            Just(b'5'),
            any::<u8>()
        ];
        let long = (0..3u8, 110..130usize).prop_map(|(byte, length)| {
            let mut bytes = vec![b'a'; length];
            bytes.push(byte);
            bytes
        });
        prop_oneof![3 => prop::collection::vec(byte, 0..6), 1 => long]
    }

    proptest! {
        #[test]
        fn different_keys_and_rules_have_different_names(
            all in prop::collection::vec((bytes(), "[a:%}25]{0,4}"), 2..60),
        ) {
            let mut seen = BTreeMap::new();
            for (key, rule) in all {
                let name = names(&rule).key(&key).text;
                prop_assert!(!name.contains(|c: char| c.is_whitespace() || c.is_control()));
                let other = seen.insert(name, (key.clone(), rule.clone()));
                if let Some(other) = other {
                    prop_assert_eq!(other, (key, rule));
                }
            }
        }

        /// Redis takes for the slot what stands in the first braces: all rules of a key lie together.
        #[test]
        fn one_key_lies_in_one_slot_whatever_the_rule(
            key in bytes(), rules in prop::collection::vec("[a:%}25]{0,4}", 2..5),
        ) {
            let names: Vec<_> = rules.iter().map(|rule| names(rule).key(&key)).collect();
            for name in &names {
                let tag = name.text.split_once('{').unwrap().1.split_once('}').unwrap().0;
                prop_assert!(!tag.is_empty(), "{name:?}");
                prop_assert_eq!(name.slot, slot(tag.as_bytes()));
                prop_assert_eq!(name.slot, names[0].slot);
            }
        }
    }
}
