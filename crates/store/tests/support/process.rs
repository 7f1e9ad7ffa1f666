//! Real servers of Redis and Valkey, each a process that ends with its test.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A Redis server on a port of its own, with nothing on disk.
pub(crate) struct Redis {
    pub(crate) port: u16,
    kind: Kind,
    options: Vec<String>,
    child: Child,
    folder: PathBuf,
}

/// Whose server it is. The Valkey that `scripts/test.sh` installs is built without TLS: it takes the options, and
/// ends with "Failed finding TLS support". So all tests of TLS are with Redis.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Redis,
    /// The oldest Redis that can be had as a package: scripts say otherwise what they meet there.
    Former,
    Valkey,
}

impl Kind {
    /// Its program: the one that `scripts/test.sh` has installed, or else that of the machine.
    fn program(self) -> PathBuf {
        let name = match self {
            Self::Redis => "redis-server",
            Self::Former => "redis-server-6.2",
            Self::Valkey => "valkey-server",
        };
        let test = std::env::current_exe().expect("a test knows where it is");
        let tools =
            test.ancestors().nth(3).map(|target| target.join("tools/python/bin").join(name));
        tools.filter(|path| path.exists()).unwrap_or_else(|| name.into())
    }
}

impl Redis {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_on(free_port(), options)
    }

    pub(crate) fn start_on(port: u16, options: &[&str]) -> Self {
        Self::start_as(Kind::Redis, port, options)
    }

    /// Starts it. Software that is missing is an error, not a reason to skip a test.
    pub(crate) fn start_as(kind: Kind, port: u16, options: &[&str]) -> Self {
        let folder = new_folder();
        let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = spawn(kind, port, &options, &folder);
        let mut redis = Self { port, kind, options, child, folder };
        redis.wait_until_it_listens();
        redis
    }

    /// The same, for somebody who never drops it: it ends when its standard input does, which is
    /// when this process ends.
    pub(crate) fn start_for_process(kind: Kind) -> Self {
        let (port, folder) = (free_port(), new_folder());
        let script = "\"$0\" \"$@\" & server=$!; cat; kill $server; rm -r \"$DIR\"";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(kind.program());
        command.args(["--bind", "127.0.0.1", "--save", "", "--port"]);
        command.arg(port.to_string()).arg("--dir").arg(&folder).env("DIR", &folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("sh runs");
        let mut redis = Self { port, kind, options: Vec::new(), child, folder };
        redis.wait_until_it_listens();
        redis
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Kills it and starts it again, empty.
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        self.child = spawn(self.kind, self.port, &self.options, &self.folder);
        self.wait_until_it_listens();
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// What redis-cli prints.
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        cli(self.port, arguments)
    }

    fn wait_until_it_listens(&mut self) {
        let port = self.port;
        until("the server answers", || {
            let ended = self.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "the server on {port} ended");
            TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()
        });
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A Sentinel that watches a primary as `main`, of the same kind.
pub(crate) struct Sentinel {
    pub(crate) port: u16,
    child: Child,
}

impl Sentinel {
    pub(crate) fn of(primary: &Redis) -> Self {
        let port = free_port();
        Self::with(primary, port, &format!("port {port}\n"))
    }

    /// With more lines in its file, which name its port.
    pub(crate) fn with(primary: &Redis, port: u16, settings: &str) -> Self {
        let path = primary.folder().join("sentinel.conf");
        let text = format!(
            "bind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n\
             {settings}",
            primary.port
        );
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new(primary.kind.program());
        command.arg(&path).arg("--sentinel").stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the Sentinel listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { port, child }
    }

    /// Waits until it knows who can take the place of the primary, and that one has what the primary has.
    pub(crate) fn wait_until_it_knows(&self, replica: &Redis) {
        until("the Sentinel knows the replica", || {
            let replicas = cli(self.port, &["SENTINEL", "REPLICAS", "main"]);
            replicas.contains(&replica.port.to_string()).then_some(())
        });
        until("the replica has caught up", || {
            let replication = replica.cli(&["INFO", "replication"]);
            replication.contains("master_link_status:up").then_some(())
        });
    }

    /// Whether it says that this server is the primary.
    pub(crate) fn names(&self, server: &Redis) -> bool {
        let named = cli(self.port, &["--raw", "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"]);
        named.lines().nth(1) == Some(&server.port.to_string())
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Cluster of three primaries, and then a replica for each.
pub(crate) fn start_cluster(kind: Kind) -> Vec<Redis> {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500"];
    let servers: Vec<_> = (0..6).map(|_| Redis::start_as(kind, cluster_port(), &options)).collect();
    form_cluster(&servers, 3, cli);
    until("the Cluster is whole", || {
        let is_ready = |one: &Redis| {
            let is_whole = one.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            let nodes = one.cli(&["CLUSTER", "NODES"]);
            let replication = one.cli(&["INFO", "replication"]);
            let is_linked =
                replication.contains("role:master") || replication.contains("link_status:up");
            is_whole && is_linked && nodes.matches(" connected").count() == 6
        };
        servers.iter().all(is_ready).then_some(())
    });
    servers
}

/// Has so many servers share the slots of a Cluster, and those after them be their replicas. `redis-cli --cluster
/// create` introduces them once: a server that has no time to answer then is never known, and it waits for ever.
pub(crate) fn form_cluster(
    servers: &[Redis],
    primaries: usize,
    ask: impl Fn(u16, &[&str]) -> String,
) {
    let begin = |at: usize| at * 16_384 / primaries;
    for (at, server) in servers.iter().enumerate() {
        let (epoch, from, to) = (at + 1, begin(at), begin(at + 1) - 1);
        ask(server.port, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch.to_string()]);
        if at < primaries {
            // By number: ranges are known from version 7 on.
            let slots: Vec<_> = (from..=to).map(|slot| slot.to_string()).collect();
            let slots = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
            assert_eq!(ask(server.port, &slots.collect::<Vec<_>>()), "OK");
        }
    }
    let nodes = |port: u16| ask(port, &["CLUSTER", "NODES"]);
    let introduce = |to: u16, port: u16| {
        if !nodes(to).contains(&format!(":{port}@")) {
            ask(to, &["CLUSTER", "MEET", "127.0.0.1", &port.to_string()]);
        }
    };
    until("they know each other", || {
        for other in &servers[1..] {
            introduce(servers[0].port, other.port);
            introduce(other.port, servers[0].port);
        }
        let knows_all = |one: &Redis| {
            let nodes = nodes(one.port);
            !nodes.contains("handshake") && nodes.matches(" connected").count() == servers.len()
        };
        servers.iter().all(knows_all).then_some(())
    });
    for (primary, replica) in servers.iter().zip(&servers[primaries..]) {
        let primary = ask(primary.port, &["CLUSTER", "MYID"]);
        let replicate = ["CLUSTER", "REPLICATE", &primary];
        until("it is a replica", || (ask(replica.port, &replicate) == "OK").then_some(()));
    }
}

pub(crate) fn cli(port: u16, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .output()
        .expect("redis-cli runs; scripts/test.sh installs what tests need");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn spawn(kind: Kind, port: u16, options: &[String], folder: &Path) -> Child {
    let program = kind.program();
    let mut command = Command::new(&program);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(folder);
    // A server that speaks TLS alone names its port itself.
    if !options.iter().any(|option| option == "--port") {
        command.args(["--port", &port.to_string()]);
    }
    command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| {
        let program = program.display();
        panic!("{program} cannot be started: {error}; scripts/test.sh installs what tests need")
    })
}

fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-store-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("there is room for a folder");
    folder
}

/// A port that nobody listens on now, and that nobody is given who asks for any: a server that was killed
/// finds it free when it is started again, however many connect to others or to it meanwhile.
pub(crate) fn free_port() -> u16 {
    until("a port is free", || Some(next_port()).filter(|port| is_free(*port)))
}

/// The same for a server of a Cluster: those talk among themselves on one that is higher by ten thousand,
/// which is not given to others either.
pub(crate) fn cluster_port() -> u16 {
    until("two ports are free", || {
        Some(next_port()).filter(|port| is_free(*port) && is_free(port + 10_000))
    })
}

/// One after the other, from a place on that is another for each process.
fn next_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(61);
    let number = begin.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed)) % 10_000;
    12_000 + u16::try_from(number).expect("it is small")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
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
