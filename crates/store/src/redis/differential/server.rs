//! One server of each kind for all of these tests, with scripts that read the time from a key.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

use redis::{Connection, Script};

use super::process::{self, Kind};
use crate::redis::script::Algorithm;

thread_local! {
    /// Whose server the test of this thread is about.
    static ASKED: Cell<Kind> = const { Cell::new(Kind::Redis) };
}

/// From now on this thread is about a server of that kind.
pub(super) fn ask_of(kind: Kind) {
    ASKED.set(kind);
}

/// It ends with the process, which does not drop it.
fn server() -> &'static Mutex<Connection> {
    static SERVERS: [OnceLock<Mutex<Connection>>; 3] = [const { OnceLock::new() }; 3];
    let kind = ASKED.get();
    SERVERS[kind as usize].get_or_init(|| {
        let redis = process::Redis::start_for_process(kind);
        let client = redis::Client::open(redis.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        for algorithm in Algorithm::ALL {
            let script = redis::cmd("SCRIPT").arg("LOAD").arg(timed(algorithm)).to_owned();
            script.exec(&mut connection).unwrap();
        }
        Box::leak(Box::new(redis));
        Mutex::new(connection)
    })
}

/// Sends a command, and reads what it says.
pub(super) fn said<T: redis::FromRedisValue>(command: &redis::Cmd) -> T {
    let mut connection = server().lock().unwrap_or_else(PoisonError::into_inner);
    command.query(&mut *connection).unwrap()
}

/// The same at a time, in microseconds since 1970: others have clocks of their own.
pub(super) fn said_at(now: u64, command: &redis::Cmd) -> redis::Value {
    let mut connection = server().lock().unwrap_or_else(PoisonError::into_inner);
    let mut clock = redis::cmd("MSET");
    clock.arg("seconds").arg(now / 1_000_000).arg("micros").arg(now % 1_000_000);
    clock.exec(&mut *connection).unwrap();
    command.query(&mut *connection).unwrap()
}

/// The name of a script that reads that clock.
pub(super) fn hash(algorithm: Algorithm) -> &'static str {
    static HASHES: OnceLock<[String; 5]> = OnceLock::new();
    let hash = |algorithm| Script::new(&timed(algorithm)).get_hash().to_owned();
    &HASHES.get_or_init(|| Algorithm::ALL.map(hash))[algorithm as usize]
}

fn timed(algorithm: Algorithm) -> String {
    let source = algorithm.source();
    assert_eq!(source.matches("redis.call('TIME')").count(), 1);
    source.replace("redis.call('TIME')", "redis.call('MGET', 'seconds', 'micros')")
}
