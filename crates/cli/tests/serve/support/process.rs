//! A process that ends with its test.

use std::io::{BufRead as _, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A process that ends with its test. What it writes is kept, for when something goes wrong.
pub(crate) struct Process {
    name: String,
    child: Child,
    output: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts it. Software that is missing is an error, not a reason to skip a test.
    pub(crate) fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawned.spawn().unwrap_or_else(|error| {
            panic!("{name} cannot be started: {error}; scripts/test.sh installs what tests need")
        });
        let output = Arc::default();
        follow(child.stdout.take(), &output);
        follow(child.stderr.take(), &output);
        Self { name, child, output }
    }

    /// Everything it has written so far, line by line.
    pub(crate) fn output(&self) -> Vec<String> {
        self.output.lock().unwrap().clone()
    }

    /// Waits until it has written a line with this in it, and returns the line.
    pub(crate) fn wait_for_line(&mut self, part: &str) -> String {
        until(&format!("{} says `{part}`", self.name), || {
            if let Some(line) = self.output().into_iter().find(|line| line.contains(part)) {
                return Some(line);
            }
            let ended = self.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "{} ended: {:#?}", self.name, self.output());
            None
        })
    }

    /// Waits until somebody listens on a port of this machine.
    pub(crate) fn wait_for_port(&mut self, port: u16) {
        until(&format!("{} listens on {port}", self.name), || {
            let ended = self.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "{} ended: {:#?}", self.name, self.output());
            TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()
        });
    }

    /// Sends it a signal: `TERM`, `HUP`.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        until(&format!("{} ends", self.name), || self.child.try_wait().expect("it can be asked"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("-- {} wrote:\n{}", self.name, self.output().join("\n"));
        }
    }
}

fn follow(from: Option<impl Read + Send + 'static>, output: &Arc<Mutex<Vec<String>>>) {
    let Some(from) = from else { return };
    let output = Arc::clone(output);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            output.lock().unwrap().push(line);
        }
    });
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

/// Waits for something, for as long as a slow machine needs.
#[expect(clippy::disallowed_methods, reason = "tests of real processes wait in real time")]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < DEADLINE, "in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

const DEADLINE: Duration = Duration::from_secs(60);
