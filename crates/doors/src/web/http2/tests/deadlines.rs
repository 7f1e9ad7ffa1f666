//! Callers that give up before a store has answered.

use tokio::io::{DuplexStream, duplex};
use tokio::time::timeout;

use super::*;
use crate::config::Respond;
use crate::grpc::Grpc;
use crate::respond::Answers;
use crate::service::silent::Silent;
use crate::tickets::Tickets;
use crate::web::serve_http2;

/// A store that waits for longer than this test.
const STORE: Duration = Duration::from_secs(3600);

/// By then an answer has come, or none does.
const DEADLINE: Duration = Duration::from_secs(60);

const CHECK: &str = "/tollgate.v1.Tollgate/Check";

/// The other end of a connection to a server whose store never answers.
fn connected(policy: &str) -> DuplexStream {
    let rules = format!("rules: [{{ name: a, key: [], limit: 5/h, on_store_failure: {policy} }}]");
    let service = Silent::default().serves_within(&rules, STORE);
    let limits = Limits::default();
    let answers = Arc::new(Answers::new(Arc::clone(&service), Respond::default()));
    let grpc = Grpc::new(service, answers, Arc::new(Tickets::new(&limits)), limits);
    let (client, server) = duplex(1 << 16);
    tokio::spawn(serve_http2(Arc::new(grpc), server, limits));
    client
}

/// The headers of a call whose caller waits for 20 ms.
fn headers(content: &str) -> Vec<u8> {
    let mut block = Vec::new();
    let headers = [(":method", "POST"), (":scheme", "http"), (":path", CHECK), ("te", "trailers")];
    let headers = headers.into_iter().chain([("content-type", content), ("grpc-timeout", "20m")]);
    headers.for_each(|(name, value)| hpack::put(&mut block, name.as_bytes(), value.as_bytes()));
    frame_of(kind::HEADERS, flag::END_HEADERS, 1, &block)
}

/// A connection that begins with this call.
fn called(call: Vec<u8>) -> Vec<u8> {
    [PREFACE.to_vec(), greeting(&[]), call].concat()
}

/// The message of the answer that comes.
async fn answer(client: &mut DuplexStream) -> Vec<u8> {
    let (mut all, mut read) = (Vec::new(), 0);
    loop {
        while let Some(frame) = Frame::read(&all[read..]) {
            read += frame.bytes.len();
            if frame.head.stream == 1 && frame.head.kind == kind::DATA {
                return frame.payload.to_vec();
            }
        }
        let more = timeout(DEADLINE, client.read_buf(&mut all)).await;
        assert!(more.expect("it comes in time").unwrap() > 0, "there is none");
    }
}

/// A request without anything, and a message that says whether it may pass first.
const ASKED: &[u8] = &[0; 5];
const ALLOWED: &[u8] = &[8, 1];

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn their_rules_answer_them_before_the_store_does() {
    run(async {
        // Of the second hyper reads the headers.
        for content in ["application/grpc", "application/grpc;charset=utf-8"] {
            for policy in ["allow", "deny"] {
                let mut client = connected(policy);
                let call = [headers(content), data(1, ASKED)].concat();
                client.write_all(&called(call)).await.unwrap();
                let message = answer(&mut client).await.split_off(5);
                assert_eq!(message.starts_with(ALLOWED), policy == "allow", "{content}");
            }
        }
    });
}

/// A long message begins here, and is left to hyper.
#[test]
fn what_is_left_to_hyper_is_in_the_same_haste() {
    run(async {
        let mut client = connected("allow");
        // A field that nobody knows, longer than what is kept here.
        let unknown = [&[122, 0x80, 0xc0, 1][..], &[0; 24 << 10]].concat();
        let length = u32::try_from(unknown.len()).unwrap().to_be_bytes();
        let message = [&[0], &length[..], &unknown].concat();
        let mut pieces = message.chunks(10 << 10);
        let mut next = || pieces.next().unwrap();
        let begin = [next(), next()].map(|piece| frame_of(kind::DATA, 0, 1, piece));
        let call = [&headers("application/grpc"), &begin.concat(), &data(1, next())];
        client.write_all(&called(call.map(Vec::as_slice).concat())).await.unwrap();
        assert!(answer(&mut client).await[5..].starts_with(ALLOWED));
    });
}
