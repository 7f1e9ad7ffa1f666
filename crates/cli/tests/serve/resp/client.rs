//! A client that sends whatever bytes it likes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::Server;

/// A client that sends whatever bytes it likes.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        Self::at(server.address("resp")).unwrap()
    }

    /// A client of whatever serves at this address.
    pub(crate) fn at(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends until the other end does not take it any more, and says how much it took.
    pub(crate) fn flood(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while let Ok(taken @ 1..) = self.0.get_mut().write(bytes) {
            sent += taken;
        }
        sent
    }

    /// Another hand to send with, while this one reads.
    pub(crate) fn sender(&self) -> Sender {
        Sender(self.0.get_ref().try_clone().unwrap())
    }

    /// Sends a command, and returns the answer as it stands there.
    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.send(encode(words));
        self.answer()
    }

    /// The next answer, as it stands there.
    pub(crate) fn answer(&mut self) -> String {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).unwrap();
        let mut text = String::from_utf8(line).unwrap();
        assert!(text.ends_with("\r\n"), "{text:?} breaks off");
        let length = || text[1..].trim_end().parse::<i64>().unwrap();
        let inner = match text.as_bytes()[0] {
            b'$' | b'=' if length() >= 0 => {
                let mut bulk = vec![0; length() as usize + 2];
                self.0.read_exact(&mut bulk).unwrap();
                return text + &String::from_utf8(bulk).unwrap();
            }
            b'*' | b'~' => length(),
            b'%' => 2 * length(),
            _ => 0,
        };
        (0..inner).for_each(|_| text += &self.answer());
        text
    }

    /// Everything until the other end closes. An abrupt end is one as well.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut bytes) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Sends nothing more.
    pub(crate) fn fall_silent(&self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }
}

/// The half of a client that sends.
pub(crate) struct Sender(TcpStream);

impl Sender {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// The answers to these commands, sent in one go: they are decided at one moment.
pub(super) fn answers(client: &mut Client, commands: &[&str]) -> Vec<String> {
    let each = commands.iter().map(|line| encode(&line.split(' ').collect::<Vec<_>>()));
    client.send(each.collect::<String>());
    commands.iter().map(|_| client.answer()).collect()
}

/// A command in the bytes of the protocol.
pub(crate) fn encode(words: &[&str]) -> String {
    let each = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n", words.len()) + &each.collect::<String>()
}

const DEADLINE: Duration = Duration::from_secs(60);
