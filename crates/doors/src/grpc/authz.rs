//! Envoy's external authorization: the filter `ext_authz` with a `grpc_service`.
//!
//! Envoy says whose request it is, in its own words and not in those of the client: the address is
//! that of the other end of its connection, or what its configuration has it believe.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate_proto::envoy::config::core::v3::address::Address;
use tollgate_proto::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use tollgate_proto::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use tollgate_proto::envoy::service::auth::v3::attribute_context::{HttpRequest, Peer};
use tollgate_proto::envoy::service::auth::v3::check_response::HttpResponse;
use tollgate_proto::envoy::service::auth::v3::{
    AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse,
};
use tollgate_proto::envoy::r#type::v3::HttpStatus;
use tollgate_proto::google::rpc::Status;
use tollgate_rules::Attribute;

use crate::grpc::frame::{Code, Refusal};
use crate::grpc::{Asking, Told};
use crate::respond::Message;

/// Text pairs, as a request wants them.
type Pairs<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 16]>;

impl Asking {
    /// Whether the request that Envoy asks about may pass.
    pub(super) fn authorize(&self, asked: CheckRequest) -> Told<CheckResponse> {
        let context = asked.attributes.unwrap_or_default();
        let Some(http) = context.request.as_ref().and_then(|request| request.http.as_ref()) else {
            return Err(Refusal::invalid(
                "there is no request of HTTP: only the filter for HTTP can ask",
            ));
        };
        let (headers, attributes) = (headers(http), attributes(&context));
        if headers.len() > MOST || attributes.len() > MOST {
            return Err(Refusal::invalid(format!("there are more than {MOST} headers")));
        }
        let headers: SmallVec<[_; 32]> = headers.iter().map(|(n, v)| (&**n, &**v)).collect();
        let attributes: SmallVec<[_; 8]> = attributes.iter().map(|(n, v)| (&**n, &**v)).collect();
        let path = if http.path.is_empty() { "/" } else { &*http.path };
        let request = tollgate::Request::new(&http.method, path)
            .host(&http.host)
            .client_cert(self.client_cert())
            .headers(&headers)
            .attributes(&attributes);
        let request = match address(context.source.as_ref()) {
            Some(ip) => request.peer(ip),
            None => request,
        };
        let ruling = self.ruling(&request)?;
        let message = self.answers.words(&ruling).message();
        match ruling.is_allowed() {
            true => Ok((allowed(&message), ruling.decision().delay())),
            false => Ok((denied(&message), Duration::ZERO)),
        }
    }
}

fn headers(http: &HttpRequest) -> Pairs<'_> {
    let plain = http.headers.iter().map(|(name, value)| (name, Cow::Borrowed(&**value)));
    let raw = http.header_map.iter().flat_map(|map| &map.headers).map(|header| {
        let value = match header.raw_value.is_empty() {
            true => Cow::Borrowed(&*header.value),
            false => String::from_utf8_lossy(&header.raw_value),
        };
        (&header.key, value)
    });
    // What begins with a colon stands in fields of its own.
    let all = plain.chain(raw).filter(|(name, _)| !name.starts_with(':'));
    all.map(|(name, value)| (Cow::Borrowed(&**name), value)).collect()
}

/// What the configuration of Envoy says, under the names that rules use; other names are
/// descriptors.
fn attributes(context: &AttributeContext) -> Pairs<'_> {
    let said = context.context_extensions.iter().map(|(name, value)| {
        let name = match Attribute::is_given(name) {
            true => Cow::Borrowed(&**name),
            false => Cow::Owned(format!("descriptor.{name}")),
        };
        (name, Cow::Borrowed(&**value))
    });
    let principal = context.source.iter().map(|source| &*source.principal);
    let principal = principal.filter(|principal| !principal.is_empty());
    let principal = principal.map(|it| ("descriptor.principal".into(), it.into()));
    // What a certificate says comes first, and so is what is found.
    principal.chain(said).collect()
}

fn address(source: Option<&Peer>) -> Option<IpAddr> {
    match source?.address.as_ref()?.address.as_ref()? {
        Address::SocketAddress(socket) => {
            socket.address.parse().ok().map(|ip: IpAddr| ip.to_canonical())
        }
        Address::Pipe(_) => None,
    }
}

fn allowed(message: &Message) -> CheckResponse {
    let response_headers_to_add = message.headers().map(header).collect();
    CheckResponse {
        status: Some(Status { code: 0, message: String::new() }),
        http_response: Some(HttpResponse::OkResponse(OkHttpResponse { response_headers_to_add })),
    }
}

fn denied(message: &Message) -> CheckResponse {
    let denied = DeniedHttpResponse {
        status: Some(HttpStatus { code: message.status.as_u16().into() }),
        headers: message.headers().map(header).collect(),
        body: message.text().unwrap_or_default().to_owned(),
    };
    CheckResponse {
        status: Some(Status { code: Code::ResourceExhausted as i32, message: String::new() }),
        http_response: Some(HttpResponse::DeniedResponse(denied)),
    }
}

fn header((name, value): (&str, &[u8])) -> HeaderValueOption {
    let value = String::from_utf8_lossy(value).into_owned();
    HeaderValueOption {
        header: Some(HeaderValue { key: name.to_owned(), value, raw_value: Vec::new() }),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
    }
}

/// The most headers, and attributes, of a request: rules look through all of them.
const MOST: usize = 512;

#[cfg(test)]
mod tests;
