//! What goes through tonic: streams, and what is rare.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use ::http::{Request, Response};
use hyper::body::Incoming;
use tollgate_proto::DESCRIPTORS;
use tonic::codegen::Service;
use tonic_reflection::server::Builder;

use crate::grpc::Asking;
use crate::grpc::health::Health;
use crate::grpc::native::Native;
use crate::grpc::patient::{First, Patient};
use crate::grpc::rlqs::Quotas;

/// A service of tonic. It is never busy.
pub(super) type Call = Box<dyn Fn(Request<Incoming>) -> Answering + Send + Sync>;

type Answering = Pin<Box<dyn Future<Output = Response<tonic::body::Body>> + Send>>;

/// The services that go through tonic, by their names.
pub(super) struct Streamed(Vec<(&'static str, Call)>);

impl Streamed {
    pub(super) fn new(asking: &Arc<Asking>) -> Self {
        let most = asking.limits.body_bytes.min(MOST_BYTES);
        let native = Native::serving(asking);
        let health = Health::serving(Arc::clone(&asking.service), most);
        let quotas = Quotas::serving(asking);
        let mut all = vec![
            ("/tollgate.v1.Tollgate/", calling(native, First::Whenever, asking)),
            (
                "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/",
                calling(quotas, First::Whenever, asking),
            ),
            ("/grpc.health.v1.Health/", calling(health, First::Expected, asking)),
        ];
        // What we have made ourselves can be read. If not, nobody can look it up, and that is all.
        let builder = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        if let (Ok(new), Ok(old)) = (builder().build_v1(), builder().build_v1alpha()) {
            let new = calling(new.max_decoding_message_size(most), First::Whenever, asking);
            let old = calling(old.max_decoding_message_size(most), First::Whenever, asking);
            all.push(("/grpc.reflection.v1.ServerReflection/", new));
            all.push(("/grpc.reflection.v1alpha.ServerReflection/", old));
        }
        Self(all)
    }

    /// Who answers at this path.
    pub(super) fn serving(&self, path: &str) -> Option<&Call> {
        self.0.iter().find_map(|(service, call)| path.starts_with(service).then_some(call))
    }
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(service, _)| service)).finish()
    }
}

fn calling<S>(server: S, first: First, asking: &Arc<Asking>) -> Call
where
    S: Service<
            Request<Patient<Incoming>>,
            Response = Response<tonic::body::Body>,
            Error = Infallible,
        >,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let (clock, patience) = (asking.service.clock().clone(), asking.limits.patience);
    Box::new(move |request| {
        let clock = clock.clone();
        let request = request.map(|body| Patient::new(body, first, clock, patience));
        let answering = server.clone().call(request);
        Box::pin(async move {
            match answering.await {
                Ok(answer) => answer,
                Err(never) => match never {},
            }
        })
    })
}

/// The longest message of a stream, of which there are many at once: nobody accounts for what has
/// come of one.
pub(super) const MOST_BYTES: usize = 64 << 10;
