//! `tollgate doctor`, with a store that is far away.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Redis, until};
use crate::{Run, tollgate};

/// How far away it is: more than half of the 50 ms that nodes wait unless told otherwise.
const WAY: Duration = Duration::from_millis(30);

/// The port of somebody who passes on what a server says, and takes so long for it. Their threads end with
/// the connections, and the last one with the test.
fn far_from(redis: &Redis) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (near, far) = (listener.local_addr().unwrap().port(), redis.port);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", far)).unwrap();
            let (client_in, server_in) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass_on(client_in, server, Duration::ZERO));
            thread::spawn(move || pass_on(server_in, client, WAY));
        }
    });
    near
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, way: Duration) {
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let heard = now();
        until("it is there", || (now() - heard >= way).then_some(()));
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // Whoever is at the other end has gone as well, or goes now.
    let _ = to.shutdown(Shutdown::Both);
}

#[expect(clippy::disallowed_methods, reason = "tests of real processes run in real time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_store_that_nodes_would_leave_alone_is_a_problem() {
    let redis = Redis::start(&[]);
    let url = format!("redis://127.0.0.1:{}", far_from(&redis));
    let doctor =
        |more: &[&str]| -> Run { tollgate(&[&["doctor", "--store", &url][..], more].concat()) };
    doctor(&[]).ends(1).prints(&[
        "problem  round-trip",
        "longer than 25 ms is late, half of `store.timeout`",
        "nodes leave it alone",
        "raise `store.timeout`",
        "and `store.round_trip` (5.00 ms)",
        "\n1 problem",
    ]);
    doctor(&["--timeout", "50ms"]).ends(1).prints(&["longer than 25 ms is late"]);
    // Whoever has told nodes to wait says so here.
    doctor(&["--timeout", "10s"]).ends(0).prints(&[
        "warning  round-trip",
        "longer than 5000 ms is late",
        "farther away than `store.round_trip` says, 5.00 ms",
        "help: set `store.round_trip`",
    ]);
    doctor(&["--timeout", "10s", "--round-trip", "10s"]).ends(0).prints(&["ok       round-trip"]);
}

#[test]
fn times_are_written_as_in_the_settings() {
    for flag in ["--timeout", "--round-trip"] {
        for text in ["", "fast", "50", "-1s", "1.5s"] {
            let words = ["doctor", "--store", "redis://127.0.0.1:1", &format!("{flag}={text}")];
            let said = format!("`{text}` is no length of time: write 500ms, 10s or 5min");
            tollgate(&words).ends(2).notes(&[&said]);
        }
    }
    for text in ["0", "0s"] {
        let words = ["doctor", "--store", "redis://127.0.0.1:1", "--timeout", text];
        tollgate(&words).ends(2).notes(&["no store answers in no time: write 50ms, for instance"]);
    }
}
