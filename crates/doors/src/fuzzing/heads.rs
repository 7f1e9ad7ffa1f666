//! One request of HTTP/1.1, read in both ways that the doors have.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;

use crate::connection::Limits;
use crate::web;

/// A request as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Such as `POST`.
    pub method: String,
    /// As it stands in the first line.
    pub target: String,
    /// All of it.
    pub body: Vec<u8>,
    /// How many headers say how long it is.
    pub lengths: usize,
    /// Whether it comes in chunks, or in some other way that has no length.
    pub is_coded: bool,
}

/// What the short way takes for a plain request that is all here: its target, and its body.
pub fn plain(bytes: &[u8]) -> Option<(&str, &[u8])> {
    web::plain_post(bytes)
}

/// What hyper takes the first request for, if it is all here.
pub fn by_hyper(bytes: &[u8]) -> Option<Read> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let read = Arc::new(Mutex::new(None));
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(bytes.len() + (64 << 10));
        client.write_all(bytes).await.ok()?;
        client.shutdown().await.ok()?;
        let service = service_fn(|request| {
            let read = Arc::clone(&read);
            async move {
                let first = whole(request).await;
                read.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(first);
                let mut answer = Response::new(Full::<Bytes>::default());
                crate::respond::end(&mut answer, false);
                Ok::<_, Infallible>(answer)
            }
        });
        let builder = web::http1(&Limits::default());
        // How it ends is told by what was read.
        let _ = builder.serve_connection(TokioIo::new(server), service).await;
        Some(())
    })?;
    read.lock().unwrap_or_else(PoisonError::into_inner).take().flatten()
}

async fn whole(request: Request<Incoming>) -> Option<Read> {
    let (head, body) = request.into_parts();
    Some(Read {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        body: body.collect().await.ok()?.to_bytes().to_vec(),
        lengths: head.headers.get_all(CONTENT_LENGTH).iter().count(),
        is_coded: head.headers.contains_key(TRANSFER_ENCODING),
    })
}
