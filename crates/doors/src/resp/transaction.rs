//! Commands between `MULTI` and `EXEC`: they are kept as they were sent, and then answered as a
//! pipeline is.
//!
//! That is all there is to it. Nothing here can be changed half, so there is nothing to be undone,
//! and no key to be watched: `WATCH` says yes and does nothing.

use crate::connection::Limits;

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// In the bytes of the protocol, one behind the other.
    bytes: Vec<u8>,
    commands: usize,
    broken: bool,
}

impl Transaction {
    /// Takes in one more. `false` if there is no room for it, and then none of them is carried out.
    pub(crate) fn add(&mut self, arguments: &[&[u8]], limits: &Limits) -> bool {
        if self.broken {
            // It is not needed any more: `EXEC` will say that nothing was done.
            return true;
        }
        let length: usize = arguments.iter().map(|argument| argument.len() + FRAME).sum();
        let fits = self.commands < limits.batch
            && (self.bytes.len() + length).saturating_add(FRAME) <= limits.body_bytes;
        if !fits {
            self.spoil();
            return false;
        }
        self.put(b'*', arguments.len());
        for argument in arguments {
            self.put(b'$', argument.len());
            self.bytes.extend_from_slice(argument);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.commands += 1;
        true
    }

    fn put(&mut self, kind: u8, length: usize) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A command was wrong: none of them is carried out.
    pub(crate) fn spoil(&mut self) {
        *self = Self { broken: true, ..Self::default() };
    }

    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.commands
    }

    /// What it takes.
    pub(crate) const fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// All of them, in the bytes of the protocol.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What stands around an argument takes no more than this: a sign, a length, two line ends.
const FRAME: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::frame::{Arguments, Bounds, Decoded, decode};

    fn limits(batch: usize, body_bytes: usize) -> Limits {
        Limits { batch, body_bytes, ..crate::Config::defaults(1).limits }
    }

    #[test]
    fn what_is_taken_in_is_read_as_it_was_sent() {
        let mut transaction = Transaction::default();
        let sent: [&[&[u8]]; 3] = [&[b"ping"], &[b"echo", b"a\r\n$1\xff"], &[b"x", b"", b"y"]];
        for arguments in sent {
            assert!(transaction.add(arguments, &limits(9, 999)));
        }
        let bounds = Bounds { arguments: 9, bytes: 999, unauthenticated: false };
        let (mut at, mut arguments) = (0, Arguments::new());
        for expected in sent {
            let rest = &transaction.bytes()[at..];
            let Ok(Decoded::Command { length }) = decode(rest, bounds, &mut arguments) else {
                panic!("no command at {at}");
            };
            assert_eq!(&arguments[..], expected);
            at += length;
        }
        assert_eq!((at, transaction.len()), (transaction.bytes().len(), 3));
    }

    #[test]
    fn both_bounds_hold_and_nothing_is_kept_beyond_them() {
        let mut few = Transaction::default();
        assert!(few.add(&[b"ping"], &limits(2, 999)) && few.add(&[b"ping"], &limits(2, 999)));
        assert!(!few.add(&[b"ping"], &limits(2, 999)));
        assert!(few.is_broken() && few.bytes().is_empty());
        let mut short = Transaction::default();
        assert!(short.add(&[b"echo", &[b'x'; 700]], &limits(9, 1024)));
        assert!(!short.add(&[b"echo", &[b'x'; 300]], &limits(9, 1024)));
        assert!(short.is_broken() && short.bytes().is_empty());
        assert!(short.add(&[b"ping"], &limits(9, 1024)), "the client has been told");
        assert!(short.bytes().is_empty());
    }
}
