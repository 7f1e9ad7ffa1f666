//! A short way for what is asked most: POSTs with a short body, one after the other.
//!
//! Hyper can do everything that HTTP/1.1 has, and hands bodies over in pieces, from one task to
//! another. For a plain request that is here in full, that is more work than to answer it. Whatever
//! is not as plain as that is left to hyper, with the connection, once and for all.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::{Buf as _, Bytes};
use hyper::body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tollgate::{Clock as _, Wait, Wall};

use crate::service::{Together, Turn};
use crate::web::begun::{Begun, LEAST_ROOM};
use crate::web::head::Head;
use crate::web::silence::{Owed, Requests};
use crate::web::{Answer, Site};

/// How it goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Not at all.
    Over,
    /// There is something that is not plain.
    Hyper,
}

/// What is to be done next.
enum Step {
    /// Read more.
    More,
    /// Go on: there may be more here.
    Again,
    /// A store has to be asked before the next one can be answered.
    Wait(Wait),
    /// Leave it to hyper.
    Hyper,
}

/// A connection on which plain requests are answered.
pub(super) struct Quick<'c, S, T> {
    pub(super) site: &'c S,
    pub(super) begun: &'c mut Begun<T>,
    pub(super) requests: &'c Requests,
}

impl<S: Site, T: AsyncRead + AsyncWrite + Unpin> Quick<'_, S, T> {
    /// Answers as long as requests are plain.
    pub(super) async fn run(mut self) -> Next {
        let mut out = Vec::new();
        let (mut date, mut turn) = (Date::default(), Turn::First);
        let mut together = Together::default();
        loop {
            let step = self.answer_all(&mut out, &mut date, &mut turn);
            if !out.is_empty() {
                if self.begun.write_all(&out).await.is_err() {
                    return Next::Over;
                }
                out.clear();
                out.shrink_to(KEPT);
            }
            match step {
                Step::Hyper => return Next::Hyper,
                Step::Again => {}
                Step::Wait(wait) => {
                    let (one, service) = (self.requests.begin(), self.site.service());
                    // Those behind it wait for it as well.
                    if turn == Turn::First {
                        together.more(service);
                    }
                    let wait = together.wait(wait, service);
                    turn = Turn::after(&wait);
                    wait.fetch().await;
                    together.waited(service);
                    drop(one);
                }
                Step::More => match self.read(&mut together).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return Next::Over,
                },
            }
        }
    }

    /// Answers what is here in full, as much as can be sent at once. For the first of them it may be
    /// another turn.
    fn answer_all(&mut self, out: &mut Vec<u8>, date: &mut Date, turn: &mut Turn) -> Step {
        while out.len() < AT_ONCE {
            let bytes = self.begun.unread();
            if bytes.is_empty() {
                return Step::More;
            }
            let (path, body) = match Head::read(bytes) {
                Head::Post { path, body } => (path, body),
                Head::Partial if bytes.len() < AT_ONCE => return Step::More,
                Head::Partial | Head::Other => return Step::Hyper,
            };
            let end = body.end;
            // A body that is still to come is waited for by those who know for how long.
            let Some(body) = bytes.get(body) else { return Step::Hyper };
            let answer = match self.site.quick(path, body, *turn) {
                Some(Ok(answer)) => answer,
                Some(Err(wait)) => return Step::Wait(wait),
                None => return Step::Hyper,
            };
            *turn = Turn::First;
            // Nobody could look in between.
            self.requests.once();
            write(answer, date.at(self.site.service().clock().wall()), out);
            self.begun.unread_mut().advance(end);
        }
        Step::Again
    }

    /// Reads more; nothing at the end of the connection, and when it is to end.
    async fn read(&mut self, together: &mut Together) -> io::Result<usize> {
        // Not before: until now it may have had answers to take.
        if !self.begun.unread().is_empty() {
            self.requests.owes(Owed::Rest);
        }
        poll_fn(|context| match self.requests.is_ending() {
            true => Poll::Ready(Ok(0)),
            false => {
                let read = self.begun.poll_more(LEAST_ROOM, context);
                if read.is_pending() {
                    together.apart();
                }
                read
            }
        })
        .await
    }
}

/// Writes an answer as HTTP/1.1 has it.
fn write(answer: Answer, date: &str, to: &mut Vec<u8>) {
    let (head, body) = answer.into_parts();
    let body = at_once(body);
    to.reserve(HEAD_BYTES + body.len());
    to.extend_from_slice(b"HTTP/1.1 ");
    to.extend_from_slice(head.status.as_str().as_bytes());
    to.push(b' ');
    to.extend_from_slice(head.status.canonical_reason().unwrap_or("").as_bytes());
    for (name, value) in &head.headers {
        to.extend_from_slice(b"\r\n");
        to.extend_from_slice(name.as_str().as_bytes());
        to.extend_from_slice(b": ");
        to.extend_from_slice(value.as_bytes());
    }
    to.extend_from_slice(b"\r\ncontent-length: ");
    to.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    to.extend_from_slice(b"\r\ndate: ");
    to.extend_from_slice(date.as_bytes());
    to.extend_from_slice(b"\r\n\r\n");
    to.extend_from_slice(&body);
}

/// A body that is all here.
pub(crate) fn at_once(body: http_body_util::Full<Bytes>) -> Bytes {
    match pin!(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

/// The date of answers, which changes once a second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    fn at(&mut self, now: Wall) -> &str {
        let second = now.as_unix_nanos() / 1_000_000_000;
        if self.second != second || self.text.is_empty() {
            let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(second));
            self.text = httpdate::fmt_http_date(time.unwrap_or(SystemTime::UNIX_EPOCH));
            self.second = second;
        }
        &self.text
    }
}

/// Enough for the headers of one or two rules.
const HEAD_BYTES: usize = 512;

/// What is sent at once, and the longest head that is read here.
const AT_ONCE: usize = 16 << 10;

/// What a connection keeps for its answers.
const KEPT: usize = 2048;

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;

    use http::{Request, Response};
    use hyper::body::Incoming;
    use socket2::SockRef;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;
    use tollgate::RuleSet;

    use super::*;
    use crate::connection::Peer;
    use crate::door::Name;
    use crate::held::Held;
    use crate::service::Service;
    use crate::service::silent::Silent;
    use crate::web::Plain;

    /// Gives long answers, but not so long that what stands behind them is left for later.
    struct Long(Arc<Service>);

    impl Site for Long {
        const NAME: Name = Name::Http;
        type Body = Plain;

        fn service(&self) -> &Arc<Service> {
            &self.0
        }

        async fn answer(&self, _: Request<Incoming>, _: Peer) -> Answer {
            Response::default()
        }

        fn quick(&self, _: &str, _: &[u8], _: Turn) -> Option<Result<Answer, Wait>> {
            Some(Ok(Response::new(Bytes::from(vec![b'a'; LENGTH]).into())))
        }
    }

    const LENGTH: usize = AT_ONCE - 1024;

    /// Counts by path.
    struct Counts(Arc<Service>);

    impl Site for Counts {
        const NAME: Name = Name::Http;
        type Body = Plain;

        fn service(&self) -> &Arc<Service> {
            &self.0
        }

        async fn answer(&self, _: Request<Incoming>, _: Peer) -> Answer {
            Response::default()
        }

        fn quick(&self, path: &str, _: &[u8], turn: Turn) -> Option<Result<Answer, Wait>> {
            let request = tollgate::Request::new("POST", path);
            let ruling = self.0.try_check(Name::Http, &request, turn);
            Some(ruling.map(|_| Response::default()))
        }
    }

    /// What comes of something while a connection goes on.
    async fn beside<T>(
        run: Pin<&mut impl Future<Output = Next>>,
        other: impl Future<Output = T>,
    ) -> T {
        tokio::select! {
            biased;
            _ = run => panic!("it goes on"),
            it = other => it,
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn those_behind_one_that_waited_for_the_store_in_vain_do_not_wait() {
        let silent = Silent::default();
        let service = silent.serves("rules: [{ name: a, key: [path], limit: 5/h }]");
        let (mut client, server) = UnixStream::pair().unwrap();
        let requests = Requests::default();
        let held = Held::nothing(Arc::clone(service.held()));
        let mut begun = Begun::new(server, requests.clone(), held);
        let site = Counts(Arc::clone(&service));
        let mut run = pin!(Quick { site: &site, begun: &mut begun, requests: &requests }.run());
        for (round, many) in [(1, 20), (2, 20)] {
            let all = (0..many)
                .map(|it| format!("POST /{round}/{it} HTTP/1.1\r\ncontent-length: 0\r\n\r\n"));
            let all: String = all.collect();
            beside(run.as_mut(), client.write_all(all.as_bytes())).await.unwrap();
            let mut told = Vec::new();
            while told.windows(12).filter(|it| it == b"HTTP/1.1 200").count() < many {
                beside(run.as_mut(), client.read_buf(&mut told)).await.unwrap();
            }
            assert_eq!(silent.asked(), round, "what comes later has a time of its own");
            beside(run.as_mut(), tokio::task::yield_now()).await;
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn half_a_request_behind_an_answer_that_was_not_taken_is_owed() {
        let service = Arc::new(Service::new(RuleSet::parse("rules: []").unwrap(), 64).unwrap());
        let (mut client, server) = UnixStream::pair().unwrap();
        // The system takes less than an answer at once.
        SockRef::from(&server).set_send_buffer_size(4096).unwrap();
        let requests = Requests::default();
        let held = Held::nothing(Arc::clone(service.held()));
        let mut begun = Begun::new(server, requests.clone(), held);
        let site = Long(Arc::clone(&service));
        let quick = Quick { site: &site, begun: &mut begun, requests: &requests };
        let mut run = pin!(quick.run());
        let asked = b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\nPOST";
        beside(run.as_mut(), client.write_all(asked)).await.unwrap();
        let is_owed = async {
            while !requests.is_owed() {
                tokio::task::yield_now().await;
            }
        };
        beside(run.as_mut(), is_owed).await;
        let mut told = vec![0; LENGTH];
        beside(run.as_mut(), client.read_exact(&mut told)).await.unwrap();
        // As many bytes as stood before the body are left.
        let head = told.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        beside(run.as_mut(), client.read_exact(&mut told[..head])).await.unwrap();
        assert!(requests.is_owed(), "to send the rest");
        requests.taken();
        assert!(requests.is_owed(), "and nothing else");
    }
}
