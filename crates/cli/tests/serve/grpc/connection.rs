//! A connection on which calls are made, as they are written.

use std::net::SocketAddr;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use tollgate_proto::envoy::service::ratelimit::v3::RateLimitRequest;

pub(super) const LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
pub(super) const STREAM: &str = "/tollgate.v1.Tollgate/CheckStream";
pub(super) const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// A connection of HTTP/2.
pub(super) struct Connection(SendRequest<Bytes>);

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        // It ends with the test.
        tokio::spawn(async move { _ = connection.await });
        Self(send)
    }

    /// A call whose messages are still to be sent.
    pub(super) async fn begin(
        &mut self,
        path: &str,
    ) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        self.begin_with(path, &[]).await
    }

    /// The same with more headers.
    async fn begin_with(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let request = Request::post(format!("http://localhost{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let all = headers.iter().copied();
        let request = all.fold(request, |request, (name, value)| request.header(name, value));
        self.0.clone().ready().await.unwrap();
        self.0.send_request(request.body(()).unwrap(), false).unwrap()
    }

    /// The status of a call with this body, and what it was answered.
    pub(super) async fn call(&mut self, path: &str, body: Bytes) -> (u16, Bytes) {
        self.call_with(path, &[], body).await
    }

    /// The same with more headers.
    pub(super) async fn call_with(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> (u16, Bytes) {
        let (response, mut send) = self.begin_with(path, headers).await;
        // Whoever has heard enough does not take the rest.
        let _ = send.send_data(body, true);
        end(response).await
    }
}

pub(super) async fn all(body: &mut RecvStream) -> Bytes {
    let mut all = BytesMut::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        all.extend_from_slice(&data);
    }
    all.freeze()
}

pub(super) fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut bytes).unwrap();
    bytes.freeze()
}

pub(super) fn limits(descriptors: usize, value: &str) -> Bytes {
    let entry = Entry { key: "k".to_owned(), value: value.to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..Default::default() };
    let descriptors = vec![descriptor; descriptors];
    framed(&RateLimitRequest { domain: "shop".to_owned(), descriptors, hits_addend: None })
}

/// What a call ends with: a status, and what was answered before.
pub(super) async fn end(response: h2::client::ResponseFuture) -> (u16, Bytes) {
    let response = response.await.unwrap();
    let status = response.headers().get("grpc-status").cloned();
    let mut body = response.into_body();
    let data = all(&mut body).await;
    let status = match status {
        Some(status) => status,
        None => body.trailers().await.unwrap().unwrap()["grpc-status"].clone(),
    };
    (status.to_str().unwrap().parse().unwrap(), data)
}
