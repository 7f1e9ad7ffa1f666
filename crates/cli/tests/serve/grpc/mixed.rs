//! Short calls, long ones and streams on one connection: some are answered at once, and some go
//! through more hands.

use std::fs;

use bytes::Bytes;
use prost::Message;
use tollgate_proto::tollgate::v1::{CheckBatchRequest, CheckBatchResponse, CheckRequest};

use super::RULES;
use super::connection::{Connection, HEALTH, LIMIT, STREAM, end, framed, limits};
use crate::support::Server;

const BATCH: &str = "/tollgate.v1.Tollgate/CheckBatch";

fn run<F: Future<Output = ()>>(flags: &[&str], test: impl FnOnce(Connection) -> F) {
    let server = Server::with(RULES, flags);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { test(Connection::open(server.address("grpc")).await).await });
}

/// A long message in two halves.
fn long(value: &str) -> (Bytes, Bytes) {
    let mut message = limits(1, &value.repeat(40_000));
    let rest = message.split_off(30_000);
    (message, rest)
}

#[test]
fn long_messages_come_in_turns() {
    run(&[], async |mut connection| {
        let mut begun = Vec::new();
        for value in ["a", "b", "c"] {
            let (response, send) = connection.begin(LIMIT).await;
            begun.push((response, send, long(value)));
        }
        // The last begins, so that none is left to others in the order in which it came.
        for (_, send, (first, _)) in begun.iter_mut().rev() {
            send.send_data(first.clone(), false).unwrap();
        }
        assert_eq!(connection.call(LIMIT, limits(1, "short")).await.0, 0);
        for (response, mut send, (_, rest)) in begun {
            send.send_data(rest, true).unwrap();
            assert_eq!(end(response).await.0, 0);
        }
    });
}

#[test]
fn an_older_call_may_take_longer_than_a_younger_one() {
    run(&[], async |mut connection| {
        let (response, mut send) = connection.begin(LIMIT).await;
        assert_eq!(connection.call(HEALTH, Bytes::from_static(&[0; 5])).await.0, 0);
        assert_eq!(connection.call(STREAM, Bytes::new()).await.0, 0);
        let (first, rest) = long("a");
        send.send_data(first, false).unwrap();
        assert_eq!(connection.call(HEALTH, Bytes::from_static(&[0; 5])).await.0, 0);
        send.send_data(rest, true).unwrap();
        assert_eq!(end(response).await.0, 0);
    });
}

#[test]
fn answers_that_are_not_taken_keep_the_others_in_order() {
    run(&[], async |mut connection| {
        let checks = |user: &str| {
            let attributes = [("user".to_owned(), user.to_owned())].into();
            let check = CheckRequest {
                method: "GET".to_owned(),
                path: "/v1/items".to_owned(),
                attributes,
                ..Default::default()
            };
            framed(&CheckBatchRequest { checks: vec![check; 900] })
        };
        // More than a connection takes that nobody reads from.
        let mut answers = Vec::new();
        for user in ["a", "b", "c", "d"] {
            let (response, mut send) = connection.begin(BATCH).await;
            send.send_data(checks(user), true).unwrap();
            answers.push(response);
        }
        let (health, mut send) = connection.begin(HEALTH).await;
        send.send_data(Bytes::from_static(&[0; 5]), true).unwrap();
        let mut messages = Vec::new();
        for response in answers {
            let (status, data) = end(response).await;
            assert_eq!(status, 0);
            messages.push(CheckBatchResponse::decode(&data[5..]).unwrap());
        }
        assert_eq!(end(health).await.0, 0);
        let allowed =
            |answer: &CheckBatchResponse| answer.answers.iter().filter(|one| one.allowed).count();
        assert!(messages.iter().all(|answer| answer.answers.len() == 900 && allowed(answer) == 2));
        let bytes: usize = messages.iter().map(Message::encoded_len).sum();
        assert!(bytes > 65_535, "{bytes} bytes fit into a window");
    });
}

#[test]
fn a_call_has_no_more_bytes_than_the_settings_say() {
    let config = tempfile::NamedTempFile::new().unwrap();
    fs::write(config.path(), "[limits]\nbody_bytes = 4096\n").unwrap();
    run(&["--config", config.path().to_str().unwrap()], async |mut connection| {
        assert_eq!(connection.call(LIMIT, limits(1, &"v".repeat(4000))).await.0, 0);
        assert_eq!(connection.call(LIMIT, limits(1, &"v".repeat(5000))).await.0, 8);
    });
}
