//! A client of HTTP that has an address of its own, and sends what it is told to.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

/// A client at an address of this machine.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    from: Ipv4Addr,
    to: SocketAddr,
}

/// An answer of HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Their names are in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    /// Whoever is at `127.0.0.N`.
    pub(crate) fn new(n: u8, port: u16) -> Self {
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { from: Ipv4Addr::new(127, 0, 0, n), to }
    }

    pub(crate) fn get(&self, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", target, headers)
    }

    pub(crate) fn send(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((self.from, 0)).into()).unwrap();
        socket.connect(&self.to.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        let mut request = format!("{method} {target} HTTP/1.1\r\nhost: a.example\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "content-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        Answer::read(&String::from_utf8(answer).unwrap())
    }
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {text}"));
        let (first, lines) = head.split_once("\r\n").unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Self {
            status: first.split(' ').nth(1).unwrap().parse().unwrap(),
            headers: lines.split("\r\n").map(header).collect(),
            body: body.to_owned(),
        }
    }

    /// The header of this name; there must not be two.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let first = found.next().map(|(_, value)| &**value);
        assert!(found.next().is_none(), "{name} comes twice: {self:?}");
        first
    }
}
