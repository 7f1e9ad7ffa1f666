//! A server that is too old: a real one, which says of itself that it is.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate_store::{Store as _, StoreError};

use crate::process::{Kind, Redis, free_port};
use crate::view::View;

/// What stands before the version in whatever a server says about itself.
const VERSION: &[u8] = b"redis_version:";

/// A way to a server on which its version begins with another digit, as long as it is meant to.
struct Relay {
    port: u16,
    is_old: Arc<AtomicBool>,
}

impl Relay {
    fn to(server: &Redis) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_old = Arc::new(AtomicBool::new(true));
        let (is_still_old, target) = (Arc::clone(&is_old), server.port);
        // Each ends with its connection, and all with this process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { return };
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let is_old = Arc::clone(&is_still_old);
                thread::spawn(move || pass_on(client, server, |_| {}));
                thread::spawn(move || {
                    let mut matched = 0;
                    pass_on(ends.1, ends.0, |byte| {
                        if matched == VERSION.len() && is_old.load(Ordering::Relaxed) {
                            *byte = b'5';
                        }
                        matched = match VERSION.get(matched) {
                            Some(next) if next == byte => matched + 1,
                            _ => usize::from(*byte == VERSION[0]),
                        };
                    });
                });
            }
        });
        Self { port, is_old }
    }
}

/// Passes on what comes until there is an end of it, each byte as it is made.
fn pass_on(mut from: TcpStream, mut to: TcpStream, mut make: impl FnMut(&mut u8)) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        bytes[..count].iter_mut().for_each(&mut make);
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

async fn an_old_server_is_refused_by_its_version_until_there_is_another(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &[]);
    let info = redis.cli(&["INFO", "server"]);
    let says = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap();
    assert!(says.starts_with(['6', '7', '8', '9']), "{says}");
    let old = format!("Redis 5{}", says[1..].trim());
    let relay = Relay::to(&redis);
    let view = View::of(&format!("redis://127.0.0.1:{}", relay.port));
    let budget = view.bucket("5/day");
    let too_old = StoreError::Version { found: old.clone(), least: "6.0" };
    // Nobody takes it for one that may answer soon, or for a matter of one key.
    assert!(!too_old.is_transient() && !too_old.is_about_key());
    let said = too_old.to_string();
    assert!(
        said.contains(&old) && said.contains("Redis from 6.0 on or Valkey is needed"),
        "{said}"
    );
    for _ in 0..2 {
        assert_eq!(view.spend(&budget, "k").await, Err(too_old.clone()));
        assert_eq!(view.store.forget(&budget, b"k").await, Err(too_old.clone()));
        assert_eq!(view.store.ping().await, Err(too_old.clone()));
    }
    let done = redis.cli(&["INFO", "commandstats"]);
    assert!(!done.contains("cmdstat_script") && !done.contains("cmdstat_eval"), "{done}");
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
    relay.is_old.store(false, Ordering::Relaxed);
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    assert_eq!(view.left(&budget, "k").await, Ok(4), "what was refused has spent nothing");
}

with_either_kind!(an_old_server_is_refused_by_its_version_until_there_is_another);
