//! Those who mean harm get a status, and nobody else notices.

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use prost::Message;
use tollgate_proto::envoy::service::ratelimit::v3::RateLimitResponse;
use tollgate_proto::tollgate::v1::{CheckBatchRequest, CheckRequest};

use super::RULES;
use super::connection::{Connection, HEALTH, LIMIT, STREAM, end, framed, limits};
use crate::support::Server;

const QUOTAS: &str =
    "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

const DEADLINE_EXCEEDED: u16 = 4;

const DEADLINE: Duration = Duration::from_secs(60);

fn run<F: Future<Output = ()>>(test: impl FnOnce(Server, Connection) -> F) {
    let server = Server::start(RULES);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Connection::open(server.address("grpc")).await;
        test(server, connection).await;
    });
}

#[test]
fn bad_messages_get_a_status_and_the_connection_lives() {
    run(async |_server, mut connection| {
        let raw = |bytes: &'static [u8]| Bytes::from_static(bytes);
        let batch = CheckBatchRequest { checks: vec![CheckRequest::default(); 1_001] };
        let unknown = "/tollgate.v1.Tollgate/Chekc";
        for (path, body, status) in [
            (LIMIT, raw(b""), 3),
            (LIMIT, raw(b"\0\0\0\0\x05abc"), 3),
            (LIMIT, raw(b"\0\0\0\0\x03\xff\xff\xff"), 3),
            (LIMIT, raw(b"\x01\0\0\0\x01a"), 12),
            (LIMIT, limits(0, ""), 3),
            (LIMIT, limits(5_000, "v"), 8),
            (LIMIT, limits(1, &"v".repeat(2 << 20)), 8),
            (LIMIT, limits(3, &"v".repeat(1 << 20)), 8),
            ("/tollgate.v1.Tollgate/CheckBatch", framed(&batch), 8),
            (unknown, raw(b"\0\0\0\0\0"), 12),
            ("/nobody/Nothing", raw(b"\0\0\0\0\0"), 12),
            (STREAM, raw(b"\0\0\0\0\x03\xff\xff\xff"), 13),
            (STREAM, raw(b"\0\xff\xff\xff\xff"), 11),
        ] {
            let (told, data) = connection.call(path, body.clone()).await;
            assert!(data.is_empty(), "{data:?}");
            assert_eq!(told, status, "{path} {:?}", &body[..body.len().min(20)]);
        }
        let (status, data) = connection.call(LIMIT, limits(1, &"v".repeat(900 << 10))).await;
        assert_eq!(status, 0, "that is long, and no more");
        let answer = RateLimitResponse::decode(&data[5..]).unwrap();
        assert_eq!((answer.overall_code, answer.statuses.len()), (1, 1));
    });
}

#[test]
fn calls_that_are_broken_off_disturb_nobody() {
    run(async |_server, mut connection| {
        for round in 0..100 {
            let (response, mut send) =
                connection.begin(if round % 8 == 0 { LIMIT } else { STREAM }).await;
            send.send_data(Bytes::from_static(b"\0\0\0\x01\0half"), false).unwrap();
            if round % 8 == 0 {
                // It is waited for the rest of the message.
                assert_eq!(connection.call(LIMIT, limits(1, &format!("v{round}"))).await.0, 0);
            } else {
                assert_eq!(response.await.unwrap().status(), 200);
            }
            send.send_reset(Reason::CANCEL);
        }
        assert_eq!(connection.call(LIMIT, limits(1, "other")).await.0, 0);
    });
}

#[test]
fn a_stream_that_takes_no_answers_is_not_read() {
    run(async |server, mut connection| {
        // The first of them have the memory for keys made.
        let mut other = Connection::open(server.address("grpc")).await;
        let mut others_are_answered = async || {
            for round in 0..100 {
                assert_eq!(other.call(LIMIT, limits(1, &format!("v{round}"))).await.0, 0);
            }
        };
        others_are_answered().await;
        let before = resident(&server);
        let check = CheckRequest { path: "/v1/items".to_owned(), ..Default::default() };
        let many: Bytes = [(); 1_000].map(|()| framed(&check)).concat().into();
        let mut held = Vec::new();
        for _ in 0..20 {
            let (response, mut send) = connection.begin(STREAM).await;
            // Much more than anybody is ready to take.
            send.send_data(vec![&many[..]; 400].concat().into(), false).unwrap();
            held.push((response.await.unwrap(), send));
        }
        // Others, on other connections, are answered.
        others_are_answered().await;
        let grown = resident(&server).saturating_sub(before);
        assert!(grown < 8 << 20, "it holds {grown} bytes more");
    });
}

/// Those that wait between messages may wait, and those that stop within one may not.
#[test]
fn a_message_of_a_stream_that_does_not_go_on_ends_it() {
    let config = tempfile::NamedTempFile::new().unwrap();
    fs::write(config.path(), "[limits]\npatience = '200ms'\n").unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test = async {
        let mut connection = Connection::open(server.address("grpc")).await;
        let check = framed(&CheckRequest { path: "/v1/items".to_owned(), ..Default::default() });
        let (silent, mut between) = connection.begin(STREAM).await;
        between.send_data(check.clone(), false).unwrap();
        let mut silent = silent.await.unwrap().into_body();
        let first = silent.data().await.unwrap().unwrap();

        // A whole message, and the beginning of another.
        let (half, mut within) = connection.begin(STREAM).await;
        within.send_data([&check[..], &check[..7]].concat().into(), false).unwrap();
        let (status, answered) = end(half).await;
        assert_eq!((status, answered.len()), (DEADLINE_EXCEEDED, first.len()));
        for (path, sent) in [
            (STREAM, &b"\0"[..]),
            (QUOTAS, b"\0\0\0\0\x09abc"),
            (HEALTH, b"\0\0"),
            // This one has to send a message, and has not begun.
            (HEALTH, b""),
        ] {
            let (response, mut send) = connection.begin(path).await;
            send.send_data(Bytes::from_static(sent), false).unwrap();
            assert_eq!(end(response).await.0, DEADLINE_EXCEEDED, "{path} {sent:?}");
        }

        between.send_data(check, true).unwrap();
        let second = silent.data().await.expect("it has waited much longer, and lives").unwrap();
        assert_eq!(second.len(), first.len());
    };
    let in_time = runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await });
    in_time.expect("somebody is kept for ever");
}

/// The memory of the server, in bytes.
fn resident(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}
