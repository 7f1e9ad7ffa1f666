//! `tollgate doctor` with stores that want to know who asks.

use std::process::Command;

use crate::process::{Redis, Sentinel, free_port};
use crate::tollgate;

#[test]
fn sentinels_that_want_a_password_are_given_their_own() {
    let primary = Redis::start(&["--requirepass", "pr1mary"]);
    let port = free_port();
    let settings = format!("port {port}\nrequirepass s3ntinel\nsentinel auth-pass main pr1mary\n");
    let _sentinel = Sentinel::with(&primary, port, &settings);
    let url = |end: &str| format!("redis+sentinel://:pr1mary@127.0.0.1:{port}/main{end}");
    for (end, said) in [("", "NOAUTH"), ("?sentinel=:0ther", "Password authentication failed")] {
        let run = tollgate(&["doctor", "--store", &url(end)]).ends(1).prints(&[
            "problem  reachable   the Sentinels want another user or password, their own",
            &format!("127.0.0.1:{port} says {said}"),
            "help: name both at the end of the address",
        ]);
        for word in ["pr1mary", "s3ntinel", "0ther"] {
            assert!(!run.out.contains(word) && !run.notes.contains(word), "{}", run.out);
        }
    }
    let wrong = tollgate(&["doctor", "--store", &url("?password=s3ntinel")]).ends(2);
    assert!(
        !wrong.notes.contains("s3ntinel") && !wrong.notes.contains("pr1mary"),
        "{}",
        wrong.notes
    );
    wrong.notes(&["behind a `?` stands who asks the Sentinels", "/main?***` is no address"]);
    let found = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("doctor")
        .env("TOLLGATE_STORE", url("?sentinel=:s3ntinel"))
        .output()
        .unwrap();
    let out = String::from_utf8(found.stdout).unwrap();
    let primary = format!("127.0.0.1:{}: it is a primary", primary.port);
    assert!(found.status.success() && out.contains(&primary), "{out}");
}
