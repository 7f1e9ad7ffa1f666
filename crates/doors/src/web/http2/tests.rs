mod deadlines;

use std::sync::Arc;

use proptest::prelude::*;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

use super::frame::{flag, kind};
use super::*;
use crate::held::{Budget, Held};

/// Says back what it is told, some of it a little later.
struct Echo;

impl Calls for Echo {
    fn method(&self, path: &[u8]) -> Option<u8> {
        (path == b"/echo").then_some(7)
    }

    fn path(&self, _: u8) -> &'static str {
        "/echo"
    }

    fn call(&self, method: u8, body: &[u8], _: &Peer, _: Turn) -> Called {
        assert_eq!(method, 7);
        match body {
            b"" => Called::Refusal(3, "nothing was said".to_owned()),
            b"late" => Called::Message(Bytes::from_static(b"late"), Duration::from_millis(5)),
            _ => Called::Message(Bytes::copy_from_slice(body), Duration::ZERO),
        }
    }
}

/// Nothing is left to hyper that would have to be answered.
fn nobody() -> Start {
    Box::new(|far| {
        Box::pin(async move {
            let _far = far;
            std::future::pending::<()>().await;
        })
    })
}

/// What is said to a client that says this, in these pieces, and then nothing more; unless it is
/// told to go meanwhile.
fn told(pieces: &[&[u8]], is_ending: bool) -> Vec<(Head, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut client, server) = UnixStream::pair().unwrap();
        let (requests, clock) = (Requests::default(), SystemClock::new());
        let (peer, limits) = (Peer::default(), Limits::default());
        let held = Held::nothing(Arc::new(Budget::new(1 << 20)));
        let mut begun = Begun::new(server, requests.clone(), held);
        client.write_all(PREFACE).await.unwrap();
        assert!(begun.is_http2().await.unwrap());
        if is_ending {
            requests.end();
        }
        let serving = Serving {
            calls: &Echo,
            requests: &requests,
            clock: &clock,
            peer: &peer,
            limits: &limits,
            start: nobody(),
        };
        let serves = Http2::new(begun, serving).run();
        let (mut read, mut write) = client.into_split();
        let asking = async {
            for piece in pieces {
                // It may have heard enough.
                let _ = write.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            drop(write);
        };
        let mut all = Vec::new();
        let hearing = async { _ = read.read_to_end(&mut all).await };
        tokio::join!(asking, serves, hearing);
        let (mut rest, mut frames) = (&*all, Vec::new());
        while let Some(frame) = Frame::read(rest) {
            frames.push((frame.head, frame.payload.to_vec()));
            rest = &rest[frame.bytes.len()..];
        }
        assert!(rest.is_empty(), "half a frame: {rest:?}");
        frames
    })
}

/// The same for one piece that begins as it should. What a connection begins with is left out.
fn told_after_greeting(frames: &[Vec<u8>]) -> Vec<(Head, Vec<u8>)> {
    let bytes = [greeting(&[]), frames.concat()].concat();
    told(&[&bytes], false).split_off(3)
}

fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put(&mut bytes, kind, flags, stream, payload);
    bytes
}

fn greeting(settings: &[(u16, u32)]) -> Vec<u8> {
    let settings = settings
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()[..]].concat());
    frame_of(kind::SETTINGS, 0, 0, &settings.collect::<Vec<_>>())
}

fn block() -> Vec<u8> {
    let mut block = Vec::new();
    request::put(&mut block, "/echo", None);
    block
}

fn opened(stream: u32) -> Vec<u8> {
    frame_of(kind::HEADERS, flag::END_HEADERS, stream, &block())
}

fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame_of(kind::DATA, flag::END_STREAM, stream, bytes)
}

fn call(stream: u32, bytes: &[u8]) -> Vec<u8> {
    [opened(stream), data(stream, bytes)].concat()
}

/// What was said on a stream: the pieces of its message, and whether it ended well.
fn answer(frames: &[(Head, Vec<u8>)], stream: u32) -> (Vec<String>, bool) {
    let own = frames.iter().filter(|(head, _)| head.stream == stream);
    let (mut pieces, mut ends) = (Vec::new(), false);
    for (head, payload) in own {
        assert!(!ends, "something comes after the end");
        match head.kind {
            kind::DATA => pieces.push(String::from_utf8(payload.clone()).unwrap()),
            kind::HEADERS if head.has(flag::END_STREAM) => {
                assert!(payload.ends_with(b"\x0bgrpc-status\x010"), "{payload:?}");
                ends = true;
            }
            kind::HEADERS => assert!(payload.ends_with(b"application/grpc")),
            other => panic!("a frame of kind {other}"),
        }
    }
    (pieces, ends)
}

fn well(text: &str) -> (Vec<String>, bool) {
    (vec![text.to_owned()], true)
}

/// The code with which a connection ends, or a stream.
fn code(frames: &[(Head, Vec<u8>)], of: u8) -> Option<u8> {
    let (_, payload) = frames.iter().rfind(|(head, _)| head.kind == of)?;
    payload.last().copied()
}

#[test]
fn calls_are_answered_and_late_ones_later() {
    let frames = told_after_greeting(&[call(1, b"a"), call(3, b"late"), call(5, b"b")]);
    assert_eq!(
        [1, 3, 5].map(|stream| answer(&frames, stream)),
        [well("a"), well("late"), well("b")]
    );
    assert_eq!(frames.last().unwrap().0.stream, 3);
}

#[test]
fn a_call_without_a_message_is_refused() {
    let empty = frame_of(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block());
    let frames = told_after_greeting(&[empty]);
    let text = String::from_utf8_lossy(&frames[0].1).into_owned();
    assert!(text.contains("grpc-status\u{1}3") && text.ends_with("nothing was said"), "{text:?}");
    assert!(frames[0].0.has(flag::END_STREAM) && frames.len() == 1);
}

#[test]
fn answers_wait_for_room() {
    let room = |stream, more: u32| frame_of(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    let bytes =
        [greeting(&[(4, 3)]), call(1, b"12345678"), room(1, 2), greeting(&[(4, 100)])].concat();
    let frames = told(&[&bytes], false);
    let pieces = ["123", "45", "678"].map(str::to_owned).to_vec();
    assert_eq!(answer(&frames, 1), (pieces, true));
    // On all streams together.
    let long = "x".repeat(16_000);
    let mut asked: Vec<_> = (0..5).map(|n| call(2 * n + 1, long.as_bytes())).collect();
    let (pieces, ends) = answer(&told_after_greeting(&asked), 9);
    assert_eq!((pieces, ends), (vec!["x".repeat(65_535 - 64_000)], false));
    asked.push(room(0, 20_000));
    let (pieces, ends) = answer(&told_after_greeting(&asked), 9);
    assert_eq!((pieces.concat(), ends), (long, true));
    // Room that comes before the answer counts as well.
    let early = [greeting(&[(4, 1)]), opened(1), room(1, 7), data(1, b"12345678")].concat();
    assert_eq!(answer(&told(&[&early], false), 1), well("12345678"));
}

#[test]
fn whoever_breaks_the_protocol_is_told_and_left() {
    let settings = |name: u16, value: u32| greeting(&[(name, value)]);
    let room = |stream, more: u32| frame_of(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    let half = || frame_of(kind::HEADERS, 0, 1, b"");
    for (bytes, reason) in [
        (data(1, b"never opened"), Reason::Protocol),
        (opened(2), Reason::Protocol),
        (opened(0), Reason::Protocol),
        (frame_of(kind::CONTINUATION, flag::END_HEADERS, 1, b""), Reason::Protocol),
        ([half(), call(3, b"between")].concat(), Reason::Protocol),
        ([half(), frame_of(kind::CONTINUATION, 0, 1, b"")].concat(), Reason::EnhanceYourCalm),
        (frame_of(kind::HEADERS, flag::END_HEADERS, 1, b"\x80"), Reason::Compression),
        (frame_of(kind::PUSH_PROMISE, 0, 1, b""), Reason::Protocol),
        (frame_of(kind::PING, 0, 0, b"short"), Reason::FrameSize),
        (frame_of(kind::PING, 0, 1, b"12345678"), Reason::Protocol),
        (frame_of(kind::RST_STREAM, 0, 1, b"\0\0\0\0"), Reason::Protocol),
        (frame_of(kind::PRIORITY, 0, 1, b""), Reason::FrameSize),
        (frame_of(kind::SETTINGS, 0, 0, b"short"), Reason::FrameSize),
        (frame_of(kind::SETTINGS, 0, 1, b""), Reason::Protocol),
        (settings(2, 2), Reason::Protocol),
        (settings(4, 1 << 31), Reason::FlowControl),
        (settings(5, 100), Reason::Protocol),
        (room(0, 0), Reason::Protocol),
        (room(0, frame::STREAM), Reason::FlowControl),
        (room(1, 1), Reason::Protocol),
        (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], Reason::FrameSize),
    ] {
        let frames = told_after_greeting(std::slice::from_ref(&bytes));
        assert_eq!(code(&frames, kind::GOAWAY), Some(reason as u8), "{bytes:?}");
    }
    assert_eq!(code(&told(&[&call(1, b"no greeting")], false), kind::GOAWAY), Some(1));
}

#[test]
fn long_headers_in_many_pieces_are_not_collected_for_ever() {
    let mut frames = vec![frame_of(kind::HEADERS, 0, 1, b"")];
    frames.extend((0..3).map(|_| frame_of(kind::CONTINUATION, 0, 1, &[0; 16_000])));
    let reason = code(&told_after_greeting(&frames), kind::GOAWAY);
    assert_eq!(reason, Some(Reason::EnhanceYourCalm as u8));
    // Short on the wire, and long when they are unpacked.
    let mut block = block();
    block.extend_from_slice(b"\x40\x01a\x7f\xa1\x1e");
    block.extend_from_slice(&[b'x'; 4000]);
    block.extend_from_slice(&[0xbe; 10]);
    let frames = told_after_greeting(&[frame_of(kind::HEADERS, flag::END_HEADERS, 1, &block)]);
    assert_eq!(frames[0].1, b"\x08\x03431");
    assert_eq!(frames[1].0.kind, kind::RST_STREAM);
}

#[test]
fn what_is_taken_back_is_not_answered() {
    let cancel = |stream| frame_of(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes());
    let frames = told_after_greeting(&[opened(1), cancel(1), data(1, b"too late"), call(3, b"b")]);
    assert_eq!((answer(&frames, 1), answer(&frames, 3)), ((vec![], false), well("b")));
    let frames = told_after_greeting(&[call(1, b"late"), cancel(1)]);
    assert_eq!(answer(&frames, 1), (vec![], false));
}

#[test]
fn there_is_a_most_of_what_is_under_way() {
    let most = crate::web::STREAMS;
    let mut asked: Vec<_> = (0..=most).map(|n| opened(2 * n + 1)).collect();
    asked.push(data(1, b"first"));
    let frames = told_after_greeting(&asked);
    let refused: Vec<_> = frames.iter().filter(|(head, _)| head.kind == kind::RST_STREAM).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].0.stream, refused[0].1[3]), (2 * most + 1, Reason::RefusedStream as u8));
    assert_eq!(answer(&frames, 1), well("first"));
}

#[test]
fn a_client_that_remembers_less_is_told_that_it_is_less() {
    let bytes = [greeting(&[(1, 100)]), call(1, b"a"), call(3, b"b")].concat();
    let frames = told(&[&bytes], false);
    let blocks: Vec<_> = frames.iter().filter(|(head, _)| head.kind == kind::HEADERS).collect();
    let mut begin = Vec::new();
    hpack::put_room(&mut begin, 100);
    assert!(blocks[0].1.starts_with(&begin));
    assert!(blocks[1..].iter().all(|(_, block)| !block.starts_with(&begin)));
}

#[test]
fn whoever_is_to_go_has_its_answers_first() {
    let hears = frame_of(kind::PING, flag::ACK, 0, &FAREWELL);
    let first = [greeting(&[]), call(1, b"a"), call(3, b"late")].concat();
    let frames = told(&[&first, &hears, &call(5, b"c")], true);
    assert_eq!([1, 3].map(|stream| answer(&frames, stream)), [well("a"), well("late")]);
    let farewells: Vec<_> = frames.iter().filter(|(head, _)| head.kind == kind::GOAWAY).collect();
    assert_eq!(farewells[0].1[..4], frame::STREAM.to_be_bytes());
    assert_eq!(farewells[1].1[..4], 3_u32.to_be_bytes());
    assert!(frames.iter().any(|(head, _)| head.stream == 5 && head.kind == kind::RST_STREAM));
}

proptest! {
    #[test]
    fn calls_are_answered_in_whatever_pieces_they_come(
        cuts in prop::collection::vec(0_usize..500, 0..12),
        padding in 0_u8..9,
    ) {
        let block = block();
        let (begin, end) = block.split_at(block.len() / 2);
        let mut padded = vec![padding];
        padded.extend_from_slice(b"\0\0\0\0\x10");
        padded.extend_from_slice(begin);
        padded.resize(padded.len() + usize::from(padding), 0);
        let half = frame_of(kind::DATA, 0, 3, b"on");
        let bytes = [
            greeting(&[]),
            call(1, b"one"),
            frame_of(kind::HEADERS, flag::PADDED | flag::PRIORITY, 3, &padded),
            frame_of(kind::CONTINUATION, flag::END_HEADERS, 3, end),
            opened(5),
            half,
            data(5, b"two"),
            frame_of(0x33, 0xff, 9, b"nobody knows this"),
            frame_of(kind::PING, 0, 0, b"12345678"),
            data(3, b" and on"),
        ]
        .concat();
        let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut < bytes.len()).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let frames = told(&pieces, false);
        let answers = [1, 3, 5].map(|stream| answer(&frames, stream));
        prop_assert_eq!(answers, [well("one"), well("on and on"), well("two")]);
        let pong = frames.iter().find(|(head, _)| head.kind == kind::PING).unwrap();
        prop_assert_eq!(&pong.1, b"12345678");
    }

    #[test]
    fn anything_may_come(frames in prop::collection::vec(
        (0_u8..11, any::<u8>(), 0_u32..8, prop::collection::vec(any::<u8>(), 0..40)), 0..20,
    )) {
        let bytes: Vec<_> = frames
            .into_iter()
            .flat_map(|(kind, flags, stream, payload)| frame_of(kind, flags, stream, &payload))
            .collect();
        let bytes = [greeting(&[]), call(1, b"first"), bytes].concat();
        let frames = told(&[&bytes], false);
        prop_assert_eq!(answer(&frames, 1), well("first"));
    }
}
