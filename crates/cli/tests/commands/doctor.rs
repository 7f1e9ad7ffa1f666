//! `tollgate doctor`, with real servers that are well, and others that are not.

use std::process::Command;

use crate::process::{Redis, Sentinel, cli, cluster_port, form_cluster, free_port, until};
use crate::{Folder, Run, tollgate};

/// What no busy machine can make worse.
const UNTIMED: [&str; 6] = ["reachable", "version", "role", "scripts", "eviction", "memory"];

/// What no busy machine is late for.
pub(crate) const PATIENT: [&str; 2] = ["--timeout", "10s"];

fn doctor(url: &str) -> Run {
    tollgate(&[&["doctor", "--store", url][..], &PATIENT].concat())
}

fn json(url: &str) -> Run {
    tollgate(&[&["doctor", "--store", url, "--output", "json"][..], &PATIENT].concat())
}

/// How bad it is, by check; the worst if there are several.
fn grades(url: &str, code: i32) -> impl Fn(&str) -> String + use<> {
    let report = json(url).ends(code).json();
    let rank =
        |word: &str| ["ok", "unknown", "warning", "problem"].iter().position(|it| *it == word);
    move |check: &str| {
        let findings = report["findings"].as_array().unwrap();
        let of_check = findings.iter().filter(|finding| finding["code"] == check);
        let worst =
            of_check.map(|it| it["severity"].as_str().unwrap()).max_by_key(|word| rank(word));
        worst.unwrap_or("absent").to_owned()
    }
}

#[test]
fn a_good_server_has_nothing_wrong_with_it_and_keeps_nothing_of_the_visit() {
    let redis = Redis::start(&["--maxmemory", "200mb"]);
    let run = doctor(&redis.url()).ends(0);
    let server = format!("127.0.0.1:{}: ", redis.port);
    for check in UNTIMED.iter().chain(&["disk", "keys"]) {
        let starts = |line: &&str| line.starts_with(&format!("ok       {check:<12}{server}"));
        assert_eq!(run.out.lines().filter(starts).count(), 1, "{check} is not ok in\n{}", run.out);
    }
    run.prints(&["of 209.7 MB (", "nothing is kept on disk", "longer than 5000 ms is late"])
        .prints(&["the store's clock is "]);
    assert_eq!(redis.cli(&["DBSIZE"]), "0");

    let report = json(&redis.url()).ends(0).json();
    assert_eq!(report["problems"], 0);
    let finding = &report["findings"][1];
    assert_eq!(finding["code"], "version");
    assert_eq!(finding["severity"], "ok");
    assert!(finding["message"].as_str().unwrap().starts_with("Redis "), "{finding}");
}

#[test]
fn every_check_is_explained() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    let redis = Redis::start(&[]);
    let report = json(&redis.url()).ends(0).json();
    let codes =
        report["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap());
    for code in codes.chain(["cut-off", "cluster", "slots", "nodes", "replicas"]) {
        assert!(page.contains(&format!("| `{code}` |")), "{code} is not explained");
    }
}

#[test]
fn a_server_that_drops_counters_is_a_problem() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let redis = Redis::start(&["--maxmemory", "100mb", "--maxmemory-policy", policy]);
        doctor(&redis.url()).ends(1).prints(&[
            &format!("problem  eviction    127.0.0.1:{}: maxmemory-policy is {policy}", redis.port),
            "has all of it again",
            "help: CONFIG SET maxmemory-policy noeviction",
            "\n1 problem",
        ]);
    }
    let unbounded = Redis::start(&["--maxmemory-policy", "allkeys-lru"]);
    doctor(&unbounded.url()).ends(0).prints(&["as long as maxmemory is 0"]);
}

#[test]
fn a_server_that_closes_idle_connections_is_warned_of_if_it_tells() {
    let redis = Redis::start(&["--timeout", "300"]);
    doctor(&redis.url()).ends(0).prints(&[
        &format!("warning  idle        127.0.0.1:{}: it closes connections", redis.port),
        "that nobody has used for 300 seconds (`timeout`)",
        "help: CONFIG SET timeout 0",
        "; no problem",
    ]);
    let rights = ["on", ">word", "~tg:*", "+@all", "-config"];
    assert_eq!(redis.cli(&[&["ACL", "SETUSER", "blind"][..], &rights].concat()), "OK");
    let blind = format!("redis://blind:word@127.0.0.1:{}", redis.port);
    assert_eq!(grades(&blind, 0)("idle"), "absent");
    assert_eq!(redis.cli(&["CONFIG", "SET", "timeout", "0"]), "OK");
    assert_eq!(grades(&redis.url(), 0)("idle"), "ok");
}

#[test]
fn memory_that_is_full_is_a_problem() {
    let redis = Redis::start(&["--maxmemory", "500kb"]);
    let grade = grades(&redis.url(), 1);
    assert_eq!((&*grade("memory"), &*grade("eviction")), ("problem", "ok"));
}

#[test]
fn a_replica_is_a_problem_that_names_the_primary() {
    let primary = Redis::start(&[]);
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    until("the replica follows", || {
        replica.cli(&["INFO", "replication"]).contains("master_link_status:up").then_some(())
    });
    doctor(&replica.url()).ends(1).prints(&[
        "it is a replica, and takes no writes",
        &format!("help: name the primary, 127.0.0.1:{}", primary.port),
    ]);
    doctor(&primary.url()).ends(0).prints(&["it is a primary; 1 replica follows it"]);
}

#[test]
fn a_server_that_is_loading_is_a_problem_that_passes() {
    let former = Redis::start(&[]);
    let fill = "for i = 1, 5000 do redis.call('SET', 'k' .. i, string.rep('x', 100)) end";
    former.cli(&["EVAL", fill, "0"]);
    assert_eq!(former.cli(&["SAVE"]), "OK");
    let folder = former.folder().to_str().unwrap();
    // It takes most of a minute, and answers meanwhile.
    let slowly = ["--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"];
    let redis = Redis::start(&[&["--dir", folder][..], &slowly].concat());
    until("it loads", || redis.cli(&["INFO"]).contains("loading:1").then_some(()));
    doctor(&redis.url()).ends(1).prints(&["it is reading its data set", "help: wait until it has"]);
}

#[test]
fn passwords_are_told_apart_and_never_printed() {
    const PASSWORD: &str = "5ecr3t-w0rd";
    let redis = Redis::start(&["--requirepass", PASSWORD]);
    let url = |user: &str| format!("redis://{user}127.0.0.1:{}", redis.port);
    let wrong = "0ther-w0rd";
    let cases = [
        (url(""), 1, "it wants a password"),
        (url(&format!(":{wrong}@")), 1, "user or password are wrong"),
        (url(&format!("somebody:{PASSWORD}@")), 1, "user or password are wrong"),
        (url(&format!(":{PASSWORD}@")), 0, "it is a primary"),
    ];
    for (url, code, part) in &cases {
        let run = doctor(url).ends(*code).prints(&[part]);
        let json = json(url).ends(*code);
        // Nor where the address itself is wrong.
        let bad = [url.replace("redis://", ""), url.replace("127.0.0.1:", "127.0.0.1:9")];
        let bad = bad.each_ref().map(|url| doctor(url));
        for run in [run, json].iter().chain(&bad) {
            for word in [PASSWORD, wrong] {
                assert!(
                    !run.out.contains(word) && !run.notes.contains(word),
                    "{}{}",
                    run.out,
                    run.notes
                );
            }
        }
    }
}

#[test]
fn a_password_can_come_from_the_environment() {
    let redis = Redis::start(&["--requirepass", "5ecr3t-w0rd"]);
    let run = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("doctor")
        .args(PATIENT)
        .env("TOLLGATE_STORE", format!("redis://:5ecr3t-w0rd@127.0.0.1:{}", redis.port))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
}

#[test]
fn a_user_without_scripts_is_a_problem() {
    let redis = Redis::start(&[]);
    let allowed = ["on", ">word", "~tg:*", "+@all"];
    // Who may run no script may look at no keys either, and SCAN is not what is missing.
    let keys = "allow `+evalsha +script|load`, without which nothing can be decided";
    for (user, without, part, of_keys) in [
        ("no-evalsha", "-evalsha", "EVALSHA is not allowed", keys),
        ("no-load", "-script|load", "SCRIPT LOAD is not allowed", keys),
        ("no-lists", "-rpush", "EVALSHA is not allowed", "ok       keys"),
    ] {
        let mut command = vec!["ACL", "SETUSER", user];
        command.extend(allowed);
        command.push(without);
        assert_eq!(redis.cli(&command), "OK");
        let url = format!("redis://{user}:word@127.0.0.1:{}", redis.port);
        doctor(&url).ends(1).prints(&[
            "problem  scripts",
            part,
            "+evalsha +script|load",
            of_keys,
            "1 problem",
        ]);
    }
}

#[test]
fn a_user_who_may_do_no_more_than_the_store_needs_is_well() {
    let redis = Redis::start(&[]);
    let needed = "~tg:* +@hash +@list +@string +exists +del +pexpire +time +info +evalsha \
                  +script|load +select +cluster|slots +asking";
    let command = ["ACL", "SETUSER", "limits", "on", ">word"].into_iter();
    let command: Vec<_> = command.chain(needed.split(' ')).collect();
    assert_eq!(redis.cli(&command), "OK");
    let url = format!("redis://limits:word@127.0.0.1:{}", redis.port);
    let grade = grades(&url, 0);
    for check in UNTIMED {
        assert_eq!(grade(check), "ok", "{check}");
    }
    assert_eq!((&*grade("disk"), &*grade("keys")), ("unknown", "unknown"));
    doctor(&url).ends(0).prints(&["cannot be looked at (NOPERM", "allow `+scan +type`"]);

    // And with what the documents say beside that, nothing is hidden.
    redis.cli(&["SET", "tg:{alice}:api:5f3a9c01", "window 17 18 0 0000000000000003 17"]);
    let more = ["+config|get", "+scan", "+type", "+cluster|info", "+cluster|nodes"];
    assert_eq!(redis.cli(&[&["ACL", "SETUSER", "limits"][..], &more].concat()), "OK");
    let grade = grades(&url, 0);
    assert_eq!((&*grade("disk"), &*grade("keys")), ("ok", "ok"));

    assert_eq!(redis.cli(&["ACL", "SETUSER", "limits", "-info"]), "OK");
    doctor(&url).ends(1).prints(&["may not even ask what the store asks first"]);
}

#[test]
fn what_is_not_ours_is_warned_of_under_our_names_alone() {
    let redis = Redis::start(&[]);
    // As the store writes them.
    redis.cli(&[
        "SET",
        "tg:epoch",
        "process 5f3a epoch 17 lost 0 kept 0 moved 0 beat 18 until - since 17 noted 0",
    ]);
    redis.cli(&["SET", "tg:{alice}:api:5f3a9c01", "window 17 18 0 0000000000000003 17"]);
    redis.cli(&["HSET", "tg:{bob}:api:5f3a9c01", "v", "2"]);
    redis.cli(&["RPUSH", "tg:{carol}:api:5f3a9c01", "log 1 17 18 1", "18 1"]);
    // Of others, where no counter ever stands.
    redis.cli(&["SET", "other", "1"]);
    redis.cli(&["SET", "tg:other", "1"]);
    doctor(&redis.url()).ends(0).prints(&["4 under names of ours, tg:*, and nothing else (all)"]);

    // As an older version did.
    let old = "tg:{dave}:api:5f3a9c01";
    redis.cli(&["HSET", old, "v", "1", "epoch", "17", "escrow", "5", "leases", "1"]);
    redis.cli(&["PEXPIRE", old, "86400000"]);
    doctor(&redis.url()).ends(0).prints(&[
        "warning  keys",
        "1 of 5 keys under names of ours, tg:* (all), were written by an older version of Tollgate",
        "`tg:{dave}:api:5f3a9c01`",
        "they go away by themselves then, the last of them in 1 d",
    ]);
    redis.cli(&["DEL", old]);

    redis.cli(&["SET", "tg:{alice}:api:5f3a9c02", "1"]);
    redis.cli(&["HSET", "tg:{bob}:api:5f3a9c02", "a", "1"]);
    redis.cli(&["RPUSH", "tg:{carol}:api:5f3a9c02", "1"]);
    doctor(&redis.url()).ends(0).prints(&[
        "warning  keys",
        "3 of 7 keys under names of ours, tg:* (all), hold something else",
        "`tg:{alice}:api:5f3a9c02` is a string",
        "`tg:{bob}:api:5f3a9c02` is a hash",
        "`tg:{carol}:api:5f3a9c02` is a list",
        "; no problem",
    ]);
    // No more are looked at than a visit should.
    let many = "for i = 1, 20000 do redis.call('HSET', 'tg:{' .. i .. '}', 'v', 1) end";
    redis.cli(&["EVAL", many, "0"]);
    doctor(&redis.url()).ends(0).prints(&["(those that were looked at, not all)"]);
}

#[test]
fn what_stands_in_the_place_of_the_mark_is_a_problem() {
    let redis = Redis::start(&[]);
    redis.cli(&["HSET", "tg:epoch", "epoch", "17"]);
    // However many others there are.
    let many = "for i = 1, 20000 do redis.call('HSET', 'tg:{' .. i .. '}', 'v', 1) end";
    redis.cli(&["EVAL", many, "0"]);
    doctor(&redis.url()).ends(1).prints(&[
        "problem  keys",
        "`tg:epoch` is a hash, and not the mark",
        "help: find out who writes it, and RENAME it",
    ]);
}

#[test]
fn whoever_cannot_be_reached_is_a_problem_with_its_reason() {
    let nobody = format!("redis://127.0.0.1:{}", free_port());
    doctor(&nobody).ends(1).prints(&["problem  reachable", "the connection is refused", "help: "]);
    let report = json(&nobody).ends(1).json();
    assert_eq!(report["problems"], 1);
    doctor("redis://no-such-host.invalid").ends(1).prints(&["name is not found"]);
    let sentinel = format!("redis+sentinel://127.0.0.1:{}/main", free_port());
    doctor(&sentinel).ends(1).prints(&["no Sentinel names a primary of `main`"]);

    let redis = Redis::start(&[]);
    let tls = redis.url().replace("redis://", "rediss://");
    doctor(&tls).ends(1).prints(&["help: see that the server speaks TLS on this port"]);
    redis.signal("STOP");
    let run = doctor(&redis.url());
    redis.signal("CONT");
    run.ends(1).prints(&["no answer within 2s"]);
}

#[test]
fn certificates_are_believed_if_who_signs_them_is() {
    let folder = Folder::new();
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let cert = folder.write("cert.pem", &signed.cert.pem());
    let key = folder.write("key.pem", &signed.signing_key.serialize_pem());
    let port = free_port();
    let number = port.to_string();
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let options = [&["--port", "0", "--tls-port", &number][..], &files].concat();
    let _redis = Redis::start_on(port, &options);
    let url = format!("rediss://localhost:{port}");
    doctor(&url).ends(1).prints(&["TLS failed: ", "help: name who signs its certificate"]);
    tollgate(&[&["doctor", "--store", &url, "--ca", &cert][..], &PATIENT].concat())
        .ends(0)
        .prints(&["it answers, through TLS"]);
    let plain = url.replace("rediss", "redis");
    doctor(&plain).ends(1).prints(&["problem  reachable"]);
}

#[test]
fn the_primary_that_sentinels_name_is_looked_at() {
    let primary = Redis::start(&[]);
    let sentinel = Sentinel::of(&primary);
    let port = sentinel.port;
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{port}/main");
    doctor(&url).ends(0).prints(&[&format!("127.0.0.1:{}: it is a primary", primary.port)]);
    doctor(&url.replace("main", "other")).ends(1).prints(&["names a primary of `other`"]);
    let straight = format!("redis://127.0.0.1:{port}");
    doctor(&straight).ends(1).prints(&["it is a Sentinel", "help: write redis+sentinel://"]);
}

#[test]
fn a_store_has_to_be_named() {
    tollgate(&["doctor"]).ends(2).notes(&["no store is named", "round trip", "--store redis://"]);
    let json = tollgate(&["doctor", "--output", "json"]).ends(2).json();
    assert_eq!(json["findings"][0]["code"], "bad-flags");
    doctor("http://localhost").ends(2).notes(&["is no address of a store", "help: "]);
    let missing = ["doctor", "--store", "rediss://localhost", "--ca", "no-such-file"];
    tollgate(&missing).ends(2).notes(&["no-such-file cannot be read"]);
}

/// Three primaries, with all slots and no replica.
fn cluster() -> Vec<Redis> {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500"];
    let servers: Vec<_> = (0..3).map(|_| Redis::start_on(cluster_port(), &options)).collect();
    form_cluster(&servers, 3, cli);
    until("the Cluster is whole", || {
        let is_ready = |one: &Redis| {
            let is_whole = one.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            is_whole && one.cli(&["CLUSTER", "NODES"]).matches(" connected").count() == 3
        };
        servers.iter().all(is_ready).then_some(())
    });
    servers
}

#[test]
fn a_cluster_is_looked_at_as_a_whole_and_at_each_of_its_servers() {
    let mut servers = cluster();
    let straight = servers[0].url();
    // A seed that is not there is no hindrance.
    let url = straight.replace("redis://", "redis+cluster://127.0.0.1:1,");
    doctor(&url).ends(0).prints(&[
        "ok       cluster     its state is ok; 3 of 3 servers have slots",
        "ok       slots       all 16384 are served",
        "ok       nodes       all 3 answer each other",
        "warning  replicas    3 of 3 primaries have no replica",
        "help: add a server for each",
        "ok       scripts     well with 3 servers; ",
        "; no problem",
    ]);
    for one in &servers {
        assert_eq!(one.cli(&["DBSIZE"]), "0");
    }
    doctor(&straight).ends(1).prints(&["it is one of a Cluster", "help: write redis+cluster://"]);

    for one in &servers {
        let user = ["ACL", "SETUSER", "blind", "on", ">word", "~tg:*", "+@all", "-cluster|nodes"];
        assert_eq!(one.cli(&user), "OK");
        let url = format!("redis+cluster://blind:word@127.0.0.1:{}", one.port);
        let grade = grades(&url, 0);
        assert_eq!((&*grade("cluster"), &*grade("scripts")), ("unknown", "ok"));
    }

    servers[2].kill();
    until("the others know", || {
        let sees = |one: &Redis| one.cli(&["CLUSTER", "INFO"]).contains("cluster_state:fail");
        servers[..2].iter().all(sees).then_some(())
    });
    let grade = grades(&url, 1);
    for check in ["cluster", "slots", "nodes", "scripts"] {
        assert_eq!(grade(check), "problem", "{check}");
    }
    doctor(&url).ends(1).prints(&[
        "its state is fail",
        "of 16384 are served by nobody",
        &format!(
            "1 of 3 do not answer the others: 127.0.0.1:{}; slots are theirs",
            servers[2].port
        ),
        "CLUSTERDOWN",
    ]);
}

#[test]
fn a_server_alone_is_no_cluster() {
    let redis = Redis::start(&[]);
    let url = redis.url().replace("redis://", "redis+cluster://");
    doctor(&url).ends(1).prints(&["knows of none", "help: write redis:// in place of"]);
}

#[test]
fn a_store_that_has_lost_its_memory_says_so_whatever_it_may_be_asked() {
    let redis = Redis::start(&[]);
    let of = |url: &str| grades(url, 0);
    assert_eq!(of(&redis.url())("epoch"), "ok", "nobody has asked it yet");
    let now = redis.cli(&["TIME"]).lines().next().unwrap().to_owned() + "000000";
    let mark = |lost: &str, kept: u8| {
        let rest = format!("moved 0 beat 1 until - since {now} noted 0");
        let text = format!("process p epoch {now} lost {lost} kept {kept} {rest}");
        redis.cli(&["SET", "tg:epoch", &text]);
    };
    mark("0", 0);
    assert_eq!(of(&redis.url())("epoch"), "ok", "the store was new");
    mark(&now, 0);
    doctor(&redis.url()).ends(0).prints(&[
        &format!("warning  epoch       127.0.0.1:{}: it lost its whole memory ", redis.port),
        "that of a month for the rest of it",
        "`tollgate keys reset`",
        "docs/sharing.md#after-the-memory-was-lost",
    ]);
    // A user with no more rights than the store needs.
    let rights = "on >secret ~tg:* +@hash +@list +@string +exists +del +pexpire +time +info +evalsha \
                  +script|load +select";
    redis.cli(&[&["ACL", "SETUSER", "store"][..], &rights.split(' ').collect::<Vec<_>>()].concat());
    let url = format!("redis://store:secret@127.0.0.1:{}", redis.port);
    let grades = of(&url);
    assert_eq!((grades("keys").as_str(), grades("epoch").as_str()), ("unknown", "warning"));
    mark(&now, 1);
    doctor(&url).ends(0).prints(&["it was started again, or has taken over, "]);
}

#[test]
fn a_primary_that_would_go_on_beside_another_is_a_warning() {
    let (primary, replica) = (Redis::start(&[]), Redis::start(&[]));
    assert_eq!(grades(&primary.url(), 0)("cut-off"), "absent", "nobody can take over");
    let sentinel = Sentinel::of(&primary);
    let watched = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    assert_eq!(grades(&watched, 0)("cut-off"), "warning");
    replica.cli(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    until("it is followed", || {
        primary.cli(&["INFO", "replication"]).contains("state=online").then_some(())
    });
    doctor(&primary.url()).ends(0).prints(&[
        "warning  cut-off",
        "CONFIG SET min-replicas-to-write 1",
        "`on_store_failure` decides, so have two",
    ]);
    primary.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    for url in [&primary.url(), &watched] {
        doctor(url)
            .ends(0)
            .prints(&["ok       cut-off", "it takes no writes 10 s after fewer than 1"]);
    }
}
