//! The tools and libraries of Redis, with their defaults.

use fred::prelude::{Builder, ClientLike as _, Config, Error, TransactionInterface as _};
use fred::types::RespVersion;
use redis::Commands as _;

use super::run;
use crate::support::Server;

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 5/h }]";

fn script(program: &str, name: &str) {
    let server = Server::start(RULES);
    let path = format!("{}/tests/serve/scripts/{name}", env!("CARGO_MANIFEST_DIR"));
    let said = run(program, &[&path, &server.address("resp").port().to_string()]);
    assert_eq!(said.trim(), "all is well");
}

#[test]
fn redis_py_works() {
    script("python3", "redis_py.py");
}

#[test]
fn node_redis_works() {
    script("node", "node_redis.js");
}

#[test]
fn ioredis_works() {
    script("node", "ioredis.js");
}

#[test]
fn redis_rs_works() {
    let server = Server::start(RULES);
    for (number, options) in ["", "?protocol=resp3"].into_iter().enumerate() {
        let url = format!("redis://{}/{options}", server.address("resp"));
        let mut client = redis::Client::open(url).unwrap().get_connection().unwrap();
        let throttle = || redis::cmd("CL.THROTTLE").arg(number).arg(2).arg(1).arg(10).take();
        let first: Vec<i64> = throttle().query(&mut client).unwrap();
        assert_eq!(first, [0, 3, 2, -1, 10]);
        let mut pipeline = redis::pipe();
        (0..3).for_each(|_| _ = pipeline.add_command(throttle()));
        let three: Vec<Vec<i64>> = pipeline.query(&mut client).unwrap();
        assert_eq!(three.iter().map(|answer| answer[0]).collect::<Vec<_>>(), [0, 0, 1]);
        let mut transaction = redis::pipe();
        transaction.atomic().add_command(throttle());
        let limited: Vec<Vec<i64>> = transaction.query(&mut client).unwrap();
        assert_eq!(limited[0][0], 1);
        type Check = (i64, i64, i64, i64, i64, Option<String>, i64, Option<String>);
        let check: Check =
            redis::cmd("TG.CHECK").arg("user").arg(number).query(&mut client).unwrap();
        assert_eq!(check, (0, 5, 4, -1, 720, Some("per-user".to_owned()), 0, None));
        let error = redis::cmd("CL.THROTTLE").arg("a").query::<()>(&mut client).unwrap_err();
        assert_eq!(error.code(), Some("ERR"), "{error}");
        assert_eq!(client.del::<_, i64>(number.to_string()).unwrap(), 1);
    }
}

#[test]
fn fred_works() {
    let server = Server::start(RULES);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for version in [RespVersion::RESP2, RespVersion::RESP3] {
        let url = format!("redis://{}", server.address("resp"));
        let config = Config { version: version.clone(), ..Config::from_url(&url).unwrap() };
        runtime.block_on(async {
            let client = Builder::from_config(config).build().unwrap();
            client.init().await.unwrap();
            let key = format!("fred-{version:?}");
            let throttle = || vec![&*key, "2", "1", "10"];
            let first: Vec<i64> =
                client.custom(fred::cmd!("CL.THROTTLE"), throttle()).await.unwrap();
            assert_eq!(first, [0, 3, 2, -1, 10]);
            let yes: i64 = client.custom(fred::cmd!("TOLLGATE.ALLOW"), throttle()).await.unwrap();
            assert_eq!(yes, 1);
            let pipeline = client.pipeline();
            for _ in 0..3 {
                // It is kept until all are sent.
                let _: () =
                    pipeline.custom(fred::cmd!("TOLLGATE.ALLOW"), throttle()).await.unwrap();
            }
            let three: Vec<i64> = pipeline.all().await.unwrap();
            assert_eq!(three, [1, 0, 0]);
            let transaction = client.multi();
            let _: () = transaction.custom(fred::cmd!("CL.THROTTLE"), throttle()).await.unwrap();
            let limited: Vec<Vec<i64>> = transaction.exec(true).await.unwrap();
            assert_eq!(limited[0][0], 1);
            type Check = (i64, i64, i64, i64, i64, Option<String>, i64, Option<String>);
            let check: Check =
                client.custom(fred::cmd!("TG.CHECK"), vec!["user", &key]).await.unwrap();
            assert_eq!(check, (0, 5, 4, -1, 720, Some("per-user".to_owned()), 0, None));
            let wrong: Result<(), Error> =
                client.custom(fred::cmd!("CL.THROTTLE"), vec!["a"]).await;
            let error = wrong.unwrap_err().to_string();
            assert!(error.contains("wrong number of arguments"), "{error}");
            client.quit().await.unwrap();
        });
    }
}

#[test]
fn redis_cli_works() {
    let server = Server::start(RULES);
    let port = server.address("resp").port().to_string();
    let cli = |words: &[&str]| run("redis-cli", &[&["-p", &port], words].concat());
    assert_eq!(cli(&["cl.throttle", "a", "2", "1", "10"]), "0\n3\n2\n-1\n10\n");
    assert_eq!(cli(&["-3", "cl.throttle", "b", "2", "1", "10"]), "0\n3\n2\n-1\n10\n");
    assert_eq!(cli(&["tg.check", "user", "a"]), "0\n5\n4\n-1\n720\nper-user\n0\n\n");
    assert_eq!(cli(&["-3", "tg.check", "user", "b"]), "0\n5\n4\n-1\n720\nper-user\n0\n\n");
    let error = cli(&["cl.throttle", "a", "2", "0", "10"]);
    assert!(error.starts_with("ERR CL.THROTTLE: count"), "{error}");
    assert!(cli(&["-3", "hello"]).contains("proto 3\n"));
}

#[test]
fn redis_benchmark_works() {
    let server = Server::start(RULES);
    let port = server.address("resp").port().to_string();
    let throttle = ["CL.THROTTLE", "key:__rand_int__", "100", "1000", "60"];
    for pipeline in ["1", "16"] {
        let flags = ["-p", &port, "-c", "16", "-P", pipeline, "-n", "20000", "-r", "1000", "-q"];
        let said = run("redis-benchmark", &[&flags[..], &throttle].concat());
        assert!(said.contains("requests per second"), "{said}");
        assert!(!said.to_lowercase().contains("err") && !said.contains("WARN"), "{said}");
    }
}
