//! `tollgate doctor`, and what keeps `tollgate serve` from starting, with stores that want to know who
//! asks: by a certificate, or by a password of Sentinels.

use std::process::Command;

use crate::authority::Authority;
use crate::doctor::PATIENT;
use crate::process::{Redis, Sentinel, cluster_port, free_port};
use crate::{Folder, Run, tollgate};

/// A server that lets in nobody whom this authority does not know.
fn start(authority: &Authority) -> Redis {
    let port = free_port();
    let options = authority.options(port);
    Redis::start_on(port, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_server_that_wants_a_certificate_says_so_in_plain_words() {
    let (authority, another) = (Authority::new(), Authority::new());
    authority.sign("node");
    another.sign("node");
    let redis = start(&authority);
    let (url, ca) = (format!("rediss://localhost:{}", redis.port), authority.path("ca.pem"));
    let doctor = |more: &[&str]| {
        tollgate(&[&["doctor", "--store", &url, "--ca", &ca][..], &PATIENT, more].concat())
    };
    let server = format!("problem  reachable   localhost:{}: ", redis.port);
    doctor(&[]).ends(1).prints(&[
        &server,
        "it lets in nobody without a certificate, and was shown none",
        "help: name that of this node: `--cert FILE --key FILE`",
        "\n1 problem",
    ]);
    let (cert, key) = (another.path("node.pem"), another.path("node.key"));
    doctor(&["--cert", &cert, "--key", &key]).ends(1).prints(&[
        &server,
        "it does not take the certificate that it was shown: it does not know who has signed it",
        "help: show one that has not ended, and is signed by one in the server's",
    ]);
    let (cert, key) = (authority.path("node.pem"), authority.path("node.key"));
    doctor(&["--cert", &cert, "--key", &key]).ends(0).prints(&["it answers, through TLS"]);
    // The flags of the server are known as well.
    let flags = ["--store-ca", &ca, "--store-cert", &cert, "--store-key", &key];
    tollgate(&[&["doctor", "--store", &url][..], &PATIENT, &flags].concat()).ends(0);
}

/// What both commands say about these files, with a store that nobody gets to ask.
fn both(url: &str, files: &[(&str, &str)]) -> [Run; 2] {
    let of = |command: &str, prefix: &str| {
        let flags =
            files.iter().flat_map(|(flag, file)| [format!("{prefix}{flag}"), (*file).into()]);
        let mut words = vec![command.to_owned(), "--store".to_owned(), url.to_owned()];
        words.extend(flags);
        tollgate(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    [of("doctor", "--"), of("serve", "--store-")]
}

#[test]
fn files_that_are_of_no_use_are_named_with_what_to_do() {
    let authority = Authority::new();
    ["node", "other"].iter().for_each(|name| authority.sign(name));
    authority.write("text", "no certificate");
    let [cert, key, other, text, gone] =
        ["node.pem", "node.key", "other.key", "text", "gone.pem"].map(|name| authority.path(name));
    let url = "rediss://localhost:1";
    let in_pem = "help: name a file in PEM that you may read, with the ";
    for (files, said, help) in [
        (vec![("ca", &gone)], format!("{gone} cannot be read: No such file"), "who signs"),
        (vec![("ca", &text)], format!("{text} cannot be used: there is no cert"), "who signs"),
        (
            vec![("cert", &gone), ("key", &key)],
            format!("{gone} cannot be read"),
            "certificate of this",
        ),
        (vec![("cert", &cert), ("key", &gone)], format!("{gone} cannot be read"), "private key"),
        (
            vec![("cert", &text), ("key", &key)],
            format!("{text} cannot be used"),
            "certificate of this",
        ),
        (vec![("cert", &cert), ("key", &text)], format!("{text} cannot be used"), "private key"),
    ] {
        let files: Vec<_> = files.iter().map(|(flag, file)| (*flag, file.as_str())).collect();
        for run in both(url, &files) {
            run.ends(2).notes(&[&said, in_pem, help]);
        }
    }
    for run in both(url, &[("cert", &cert), ("key", &other)]) {
        let said = format!("{other} cannot be used: it is not the key of {cert}");
        run.ends(2).notes(&[&said, "help: name the key that the certificate was made for"]);
    }
    let words = ["doctor", "--store", url, "--ca", &text, "--output", "json"];
    let finding = &tollgate(&words).ends(2).json()["findings"][0];
    assert_eq!((&finding["code"], &finding["file"]), (&"bad-certificate".into(), &text.into()));
}

#[test]
fn certificates_need_their_key_a_store_and_tls() {
    let authority = Authority::new();
    authority.sign("node");
    let [ca, cert, key] = ["ca.pem", "node.pem", "node.key"].map(|name| authority.path(name));
    for run in both("rediss://localhost:1", &[("cert", &cert)]) {
        run.ends(2).notes(&["required", "key <FILE>"]);
    }
    for run in both("rediss://localhost:1", &[("key", &key)]) {
        run.ends(2).notes(&["required", "cert <FILE>"]);
    }
    for files in [&[("cert", &*cert), ("key", &*key)][..], &[("ca", &*ca)]] {
        for url in ["redis://:w0rd@localhost:1", "redis+cluster://:w0rd@localhost:1"] {
            for run in both(url, files) {
                let shown = url.replace(":w0rd@", "***@");
                let said = format!("certificates are for TLS, which is not spoken at `{shown}`");
                run.ends(2).notes(&[&said, "help: write rediss:// in place of redis://"]);
            }
        }
    }
    for flags in [&["--store-ca", &*ca][..], &["--store-cert", &cert, "--store-key", &key]] {
        let alone = tollgate(&[&["serve"][..], flags].concat()).ends(2);
        alone.notes(&["certificates for a store are named, and no store is", "help: name one"]);
    }
    let folder = Folder::new();
    let half =
        folder.write("half.toml", "[store]\nurl = 'rediss://localhost'\ncert = 'node.pem'\n");
    let said = ["half.toml", "`store.cert`: a certificate is shown with its key"];
    tollgate(&["serve", "--config", &half]).ends(2).notes(&said);
}

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
        .args(PATIENT)
        .env("TOLLGATE_STORE", url("?sentinel=:s3ntinel"))
        .output()
        .unwrap();
    let out = String::from_utf8(found.stdout).unwrap();
    let primary = format!("127.0.0.1:{}: it is a primary", primary.port);
    assert!(found.status.success() && out.contains(&primary), "{out}");
}

#[test]
fn a_server_that_refuses_a_password_is_named_however_it_was_found() {
    let redis = Redis::start(&["--requirepass", "pr1mary"]);
    let (port, watch) = (redis.port, free_port());
    let settings = format!("port {watch}\nsentinel auth-pass main pr1mary\n");
    let _sentinel = Sentinel::with(&redis, watch, &settings);
    for url in [
        format!("redis://:0ther@127.0.0.1:{port}"),
        format!("redis://somebody:0ther@127.0.0.1:{port}/0"),
        format!("redis+cluster://:0ther@127.0.0.1:1,127.0.0.1:{port}"),
        format!("redis+sentinel://:0ther@127.0.0.1:1,127.0.0.1:{watch}/main"),
    ] {
        let server = format!("127.0.0.1:{port}");
        let run = tollgate(&["doctor", "--store", &url]).ends(1).prints(&[
            &format!("problem  reachable   {server}: user or password are wrong"),
            "\n1 problem",
        ]);
        assert!(!run.out.contains("0ther"), "{}", run.out);
        let json = tollgate(&["doctor", "--store", &url, "--output", "json"]).ends(1).json();
        assert_eq!(json["findings"][0]["server"], server, "{url}");
    }
}

#[test]
fn a_number_of_a_database_that_the_server_does_not_have_is_said_to_be_too_high() {
    let redis = Redis::start(&["--databases", "4"]);
    let doctor =
        |number: u32| tollgate(&["doctor", "--store", &format!("{}/{number}", redis.url())]);
    doctor(3).ends(0);
    for number in [4, 99] {
        doctor(number).ends(1).prints(&[
            &format!("problem  reachable   127.0.0.1:{}: ", redis.port),
            "the number of the database in the address is too high (ERR DB index is out of range)",
            "help: the last part of the address is that number, from 0 on",
            "\n1 problem",
        ]);
    }
    let alone = Redis::start_on(cluster_port(), &["--cluster-enabled", "yes"]);
    tollgate(&["doctor", "--store", &format!("{}/1", alone.url())]).ends(1).prints(&[
        "problem  reachable",
        "it is one of a Cluster, which has no databases",
        "help: write redis+cluster:// in place of redis://, and nothing after the hosts",
    ]);
}
