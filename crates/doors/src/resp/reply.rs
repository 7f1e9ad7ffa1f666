//! Answers to bytes, in the words of RESP2 or RESP3.

/// Which of the two a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

impl Protocol {
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Writes answers behind each other.
#[derive(Debug)]
pub(crate) struct Replies<'a> {
    pub(crate) bytes: &'a mut Vec<u8>,
    pub(crate) protocol: Protocol,
}

impl Replies<'_> {
    pub(crate) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// A word of ours: it has no line ends.
    pub(crate) fn simple(&mut self, word: &'static str) {
        self.bytes.push(b'+');
        self.line(word.as_bytes());
    }

    /// An error. What would end its line does not get into it, whatever a client has sent.
    pub(crate) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        self.bytes.extend(text.bytes().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            byte => byte,
        }));
        self.end();
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.line(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// Text for people, of several lines.
    pub(crate) fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.text(text),
            Protocol::Resp3 => {
                self.length(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.line(text.as_bytes());
            }
        }
    }

    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// So many answers follow, as one.
    pub(crate) fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// So many answers follow that are all different, in no order.
    pub(crate) fn set(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', length),
            Protocol::Resp3 => self.length(b'~', length),
        }
    }

    /// So many pairs of answers follow, as one.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', pairs * 2),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// Five numbers, which is what is asked for most: written on the side first, so that the room
    /// for them is looked for once.
    #[inline]
    pub(crate) fn five(&mut self, numbers: [i64; 5]) {
        // Each takes 23 bytes at most.
        let mut line = [0; 128];
        line[..4].copy_from_slice(b"*5\r\n");
        let mut at = 4;
        for number in numbers {
            line[at] = b':';
            at += 1;
            match number {
                0..=9 => {
                    line[at] = b'0' + number as u8;
                    at += 1;
                }
                _ => {
                    let mut digits = itoa::Buffer::new();
                    let digits = digits.format(number).as_bytes();
                    line[at..at + digits.len()].copy_from_slice(digits);
                    at += digits.len();
                }
            }
            line[at..at + 2].copy_from_slice(b"\r\n");
            at += 2;
        }
        self.bytes.extend_from_slice(&line[..at]);
    }

    /// 1 or 0: the shortest answer there is.
    #[inline]
    pub(crate) fn yes_or_no(&mut self, yes: bool) {
        self.bytes.extend_from_slice(if yes { b":1\r\n" } else { b":0\r\n" });
    }

    fn length(&mut self, kind: u8, length: usize) {
        // Nothing in memory is longer.
        self.number(kind, length as i64);
    }

    fn number(&mut self, kind: u8, number: i64) {
        self.bytes.push(kind);
        self.line(itoa::Buffer::new().format(number).as_bytes());
    }

    fn line(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.end();
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Replies<'_>)) -> String {
        let mut bytes = Vec::new();
        write(&mut Replies { bytes: &mut bytes, protocol });
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_protocol_has_its_words() {
        let all = |replies: &mut Replies<'_>| {
            replies.map(1);
            replies.simple("a");
            replies.null();
            replies.set(1);
            replies.text("b");
            replies.verbatim("c");
        };
        assert_eq!(
            written(Protocol::Resp2, all),
            "*2\r\n+a\r\n$-1\r\n*1\r\n$1\r\nb\r\n$1\r\nc\r\n"
        );
        assert_eq!(
            written(Protocol::Resp3, all),
            "%1\r\n+a\r\n_\r\n~1\r\n$1\r\nb\r\n=5\r\ntxt:c\r\n"
        );
    }

    #[test]
    fn five_numbers_are_an_array() {
        for numbers in [[0, 3, 2, -1, 10], [i64::MIN; 5], [i64::MAX; 5], [9, 10, -9, 99, 100]] {
            let one_by_one = written(Protocol::Resp2, |replies| {
                replies.array(5);
                numbers.into_iter().for_each(|number| replies.integer(number));
            });
            assert_eq!(written(Protocol::Resp2, |replies| replies.five(numbers)), one_by_one);
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let error = written(Protocol::Resp2, |replies| replies.error("ERR a\r\n+OK\r\nb"));
        assert_eq!(error, "-ERR a  +OK  b\r\n");
    }
}
