//! What a service manager hears: a real socket, as systemd has one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Process, exchange, free_port};

/// A server, and who hears how it is.
struct Managed {
    socket: UnixDatagram,
    process: Process,
    status: SocketAddr,
    doors: Vec<SocketAddr>,
    folder: TempDir,
}

impl Managed {
    /// Starts it on ports that are free, with more of the environment, and with more flags.
    fn start(environment: &[(&str, &str)], flags: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        std::fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.arg("serve").current_dir(&folder).args(["--rules", "rules.yaml"]);
        let mut doors = Vec::new();
        for door in ["--http", "--forward-auth", "--resp", "--admin", "--grpc", "--status"] {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            if !flags.contains(&door) {
                command.args([door, &address.to_string()]);
            }
            doors.push(address);
        }
        command.args(flags).envs(environment.iter().copied());
        let process = Process::start(command.env("NOTIFY_SOCKET", folder.path().join("notify")));
        Self { socket, process, status: doors[5], doors, folder }
    }

    /// The next message, but for those that only say that it is alive.
    fn hears(&self) -> String {
        loop {
            let message = self.hears_anything();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    fn hears_anything(&self) -> String {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).expect("it says something in time");
        String::from_utf8(message[..length].to_vec()).unwrap()
    }
}

const RULES: &str = "rules: [{ name: everybody, key: [], limit: 3/h }]";

#[test]
fn is_ready_when_all_doors_are_open_and_says_when_it_ends() {
    let mut server = Managed::start(&[], &[]);
    let ready = server.hears();
    // At once: nothing is waited for.
    for door in &server.doors {
        assert!(TcpStream::connect(door).is_ok(), "{door} is not open, and {ready}");
    }
    assert_eq!(exchange(server.status, "GET", "/readyz", &[], "").0, 200);
    assert!(ready.starts_with("READY=1\nSTATUS=serving 1 rules, version "), "{ready}");
    server.process.signal("TERM");
    let stopping = server.hears();
    // Ten seconds to drain by default, and a little more to end.
    assert!(stopping.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC=20000000\n"), "{stopping}");
    assert!(server.process.wait().success());
}

#[test]
fn is_not_ready_if_a_door_cannot_be_opened() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut server = Managed::start(&[], &["--admin", &address]);
    assert_eq!(server.process.wait().code(), Some(2));
    // It has ended, so whatever it said is there by now.
    server.socket.set_nonblocking(true).unwrap();
    assert!(server.socket.recv(&mut [0; 100]).is_err(), "it said something");
}

#[test]
fn says_that_it_reads_its_rules_again_and_is_ready_then() {
    let server = Managed::start(&[], &[]);
    let before = server.hears();
    for (rules, is_changed) in [
        ("rules: [{ name: everybody, key: [], limt: 5/h }]", false),
        ("rules: [{ name: everybody, key: [], limit: 5/h }]", true),
    ] {
        // A look at the file may come first; it changes nothing about what follows.
        std::fs::write(server.folder.path().join("rules.yaml"), rules).unwrap();
        server.process.signal("HUP");
        let mut heard = Vec::new();
        while heard.last().is_none_or(|last: &String| !last.starts_with("READY=1")) {
            heard.push(server.hears());
        }
        let reloading = heard.iter().position(|it| it.starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert!(reloading.is_some(), "{heard:?}");
        assert_eq!(*heard.last().unwrap() != before, is_changed, "{heard:?}");
    }
}

#[test]
fn says_that_it_is_alive_if_somebody_asks_for_it() {
    let server = Managed::start(&[("WATCHDOG_USEC", "20000")], &[]);
    assert!(server.hears_anything().starts_with("READY=1"));
    for _ in 0..3 {
        assert_eq!(server.hears_anything(), "WATCHDOG=1");
    }
}

#[test]
fn somebody_who_does_not_listen_stops_nobody() {
    let mut server = Managed::start(&[("WATCHDOG_USEC", "2")], &[]);
    server.process.wait_for_line("cannot be told how we are");
    assert_eq!(exchange(server.status, "GET", "/readyz", &[], "").0, 200);
}
