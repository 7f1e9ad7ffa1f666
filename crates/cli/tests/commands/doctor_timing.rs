//! `tollgate doctor`, with a store that is far away.

use std::time::Duration;

use crate::process::Redis;
use crate::relay::Relay;
use crate::{Run, tollgate};

/// How far away it is: more than half of the 50 ms that nodes wait unless told otherwise.
const WAY: Duration = Duration::from_millis(30);

#[test]
fn a_store_that_nodes_would_leave_alone_is_a_problem() {
    let redis = Redis::start(&[]);
    let relay = Relay::to(redis.port);
    relay.answers_take(WAY);
    let url = relay.url();
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
