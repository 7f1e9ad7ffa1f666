//! A proxy that asks the server, set up as the documents say.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use crate::support::{Answer, Client, Process, Server, free_port, tool, until};

/// A server, and a proxy between clients and an origin, which asks it.
pub(crate) struct Gateway {
    // In this order: the proxy ends first.
    proxy: Proxy,
    /// Whom it asks.
    pub(crate) server: Server,
}

/// A proxy between clients and an origin, which asks a server.
pub(crate) struct Proxy {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

/// The proxy itself is trusted, and nobody else.
const RULES: &str = "
client_ip: { trusted_proxies: [127.0.0.1] }
rules:
  - { name: per-client, match: { path: /page }, key: [ip], limit: 2/h }
  - { name: logins, match: { method: POST, path: /login, host: a.example }, key: [], limit: 1/h }
";

impl Gateway {
    /// Starts a command in a folder with all files of a document.
    pub(crate) fn start(document: &str, command: &[&str]) -> Self {
        Self::start_edited(document, command, |text| text)
    }

    /// The same, after a change to each file that makes it fit for a test.
    pub(crate) fn start_edited(
        document: &str,
        command: &[&str],
        edit: impl Fn(String) -> String,
    ) -> Self {
        Self::serving(RULES, document, command, edit)
    }

    /// The same with other rules.
    pub(crate) fn serving(
        rules: &str,
        document: &str,
        command: &[&str],
        edit: impl Fn(String) -> String,
    ) -> Self {
        let server = Server::start(rules);
        Self { proxy: Proxy::start(&server, document, command, edit), server }
    }

    pub(crate) fn client(&self, n: u8) -> Client {
        self.proxy.client(n)
    }

    /// Clients pass up to their limit, whatever they say about themselves, and are told so.
    pub(crate) fn limits_clients(&self, tells_who_passes: bool) {
        let client = self.client(2);
        for left in [1, 0] {
            let answer = client.get(&format!("/page?user={left}"), &[]);
            assert_eq!((answer.status, &*answer.body), (200, "GET /page"), "{answer:?}");
            if tells_who_passes {
                let told = answer.header("ratelimit").unwrap_or_default();
                assert!(told.starts_with(&format!("\"per-client\";r={left};t=")), "{answer:?}");
                let policy = answer.header("ratelimit-policy");
                assert_eq!(policy, Some("\"per-client\";q=2;w=3600"), "{answer:?}");
            }
        }
        assert_denied(&client.get("/page", &[]));
        for lie in [
            ("x-forwarded-for", "192.0.2.7"),
            ("x-forwarded-for", "192.0.2.7, 127.0.0.1"),
            ("forwarded", "for=192.0.2.7"),
            ("x-real-ip", "192.0.2.7"),
        ] {
            assert_denied(&client.get("/page?user=other&ip=192.0.2.7", &[lie]));
        }
        assert_eq!(self.client(3).get("/page", &[]).status, 200, "others have their own");
    }

    /// Clients cannot say that they want something else than they do.
    pub(crate) fn knows_what_is_asked_for(&self) {
        let client = self.client(2);
        let lies = ["x-original", "x-forwarded"].into_iter().flat_map(|family| {
            let header = |what, value: &str| (format!("{family}-{what}"), value.to_owned());
            [header("method", "GET"), header("uri", "/"), header("host", "other.example")]
        });
        let lies: Vec<_> = lies.collect();
        let lies: Vec<_> = lies.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(client.send("POST", "/login", &lies).status, 200);
        assert_denied(&client.send("POST", "/login?path=/", &lies));
        assert_denied(&client.send("POST", "/x/..//%6Cogin", &lies));
        assert_eq!(client.get("/login", &lies).status, 200, "that is no login");
        assert_eq!(client.get("/free", &[]).header("ratelimit"), None, "there is no rule");
    }
}

impl Proxy {
    /// Starts a command in a folder with all files of a document, after a change to each.
    pub(crate) fn start(
        server: &Server,
        document: &str,
        command: &[&str],
        edit: impl Fn(String) -> String,
    ) -> Self {
        // In this order: nobody else gets the port of the proxy from here.
        let origin = origin();
        let port = free_port();
        let [http, grpc] = ["forward_auth", "grpc"].map(|door| server.address(door).port());
        let folder = TempDir::new().unwrap();
        for (name, text) in files(document) {
            let ports = [(8080, port), (4291, http), (4293, grpc), (8000, origin)];
            fs::write(folder.path().join(name), edit(with_ports(&text, &ports))).unwrap();
        }
        let [program, arguments @ ..] = command else { panic!("no command") };
        let mut command = tool(program);
        // Whatever a proxy keeps for itself stays in the folder.
        command.args(arguments).current_dir(&folder).env("HOME", folder.path());
        let mut process = Process::start(&mut command);
        process.wait_for_port(port);
        // Some listen before they know where to.
        let ready = || Some(Client::new(9, port).get("/ready", &[])).filter(|it| it.status == 200);
        until("the proxy lets requests pass", ready);
        Self { port, _process: process, _folder: folder }
    }

    pub(crate) fn client(&self, n: u8) -> Client {
        Client::new(n, self.port)
    }
}

/// A denial, with all that belongs to one.
pub(crate) fn assert_denied(answer: &Answer) {
    assert_eq!(answer.status, 429, "{answer:?}");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3_600).contains(&wait), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    for (name, parameter) in [("ratelimit", ";r=0;t="), ("ratelimit-policy", ";q=")] {
        assert!(answer.header(name).unwrap_or_default().contains(parameter), "{answer:?}");
    }
    let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(problem["status"], 429);
}

/// The files in a document about a proxy: what stands in fences with a name.
pub(crate) fn files(document: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateways").join(document);
    let text = fs::read_to_string(path).unwrap();
    let (mut files, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().take_while(|line| *line != "```");
        let inside: String = inside.map(|line| format!("{line}\n")).collect();
        if let Some((_, name)) = fence.split_once(' ') {
            files.push((name.to_owned(), inside));
        }
    }
    assert!(!files.is_empty(), "{document} has no files");
    files
}

/// A server that answers with what it was asked for, until the test ends.
fn origin() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    lines.find(|line| line.as_ref().is_ok_and(String::is_empty))?.ok()?;
    let (method, target) = first.split_once(' ')?;
    let path = target.split([' ', '?']).next()?;
    let body = format!("{method} {path}");
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close", body.len());
    write!(stream, "{head}\r\n\r\n{body}").ok()
}

/// The text with other ports. All at once: one of the new ports may have an old one in it.
fn with_ports(text: &str, ports: &[(u16, u16)]) -> String {
    let is_digit = |one: char| one.is_ascii_digit();
    let mut changed = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_digit) {
        let (before, number) = rest.split_at(begin);
        let end = number.find(|one| !is_digit(one)).unwrap_or(number.len());
        let (number, behind) = number.split_at(end);
        changed.push_str(before);
        match ports.iter().find(|(old, _)| number == old.to_string()) {
            Some((_, new)) => changed.push_str(&new.to_string()),
            None => changed.push_str(number),
        }
        rest = behind;
    }
    changed + rest
}
