//! The request that a proxy asks about.

use std::borrow::Cow;

use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Uri};

use crate::forward_auth::text;

/// The request that a proxy asks about, as far as the proxy itself says it.
///
/// Proxies pass on the headers of the client, too. Some of them say the target in one header, some
/// in another, and each of them replaces only the one it uses: a client that sends the other would
/// choose its own rules if both were believed. So each proxy has only one believed, which it must
/// send exactly once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Original<'a> {
    pub(super) method: Cow<'a, str>,
    pub(super) target: Cow<'a, str>,
    pub(super) host: Cow<'a, str>,
}

/// What is believed about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Believed {
    /// `X-Original-Method`, `X-Original-URI`, `X-Original-Host`: who asks is told to set them.
    Original,
    /// `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host`: who asks sets them by itself.
    Forwarded,
    /// The very request, with something before its path.
    Itself { prefix: &'static str },
}

/// A proxy does not say what it is asking about. The way it is set up is at fault, and nothing was
/// counted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OriginalError {
    #[error("the header {0} is missing: the proxy must set it")]
    Missing(HeaderName),
    #[error("the header {0} comes more than once: the proxy must replace that of the client")]
    Repeated(HeaderName),
    #[error("the header {0} is no method of HTTP: the proxy must send the one of the request")]
    NoMethod(HeaderName),
    #[error("the header {0} is no text: the proxy must send the host of the request")]
    NoHost(HeaderName),
}

impl<'a> Original<'a> {
    pub(super) fn read(request: &'a Parts, believed: Believed) -> Result<Self, OriginalError> {
        match believed {
            Believed::Original => Self::named(&request.headers, ORIGINAL),
            Believed::Forwarded => Self::named(&request.headers, FORWARDED),
            Believed::Itself { prefix } => Self::itself(request, prefix),
        }
    }

    fn named(
        headers: &'a HeaderMap,
        [method, target, host]: [HeaderName; 3],
    ) -> Result<Self, OriginalError> {
        let said = text::of(only(headers, &method)?);
        if Method::from_bytes(said.as_bytes()).is_err() {
            return Err(OriginalError::NoMethod(method));
        }
        Ok(Self {
            method: said,
            target: text::target(only(headers, &target)?),
            host: host_of(only(headers, &host)?, host)?,
        })
    }

    fn itself(request: &'a Parts, prefix: &str) -> Result<Self, OriginalError> {
        let host = match (request.uri.authority(), request.headers.contains_key(HOST)) {
            (Some(authority), _) => Cow::Borrowed(authority.as_str()),
            (None, true) => host_of(only(&request.headers, &HOST)?, HOST)?,
            (None, false) => Cow::Borrowed(""),
        };
        let method = Cow::Borrowed(request.method.as_str());
        Ok(Self { method, target: Cow::Borrowed(behind(&request.uri, prefix)), host })
    }
}

/// The path and query behind a prefix of the path.
fn behind<'a>(uri: &'a Uri, prefix: &str) -> &'a str {
    let whole = uri.path_and_query().map_or("", |whole| whole.as_str());
    whole.strip_prefix(prefix).unwrap_or(whole)
}

/// The one header of this name.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a HeaderValue, OriginalError> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(OriginalError::Missing(name.clone())),
        (Some(_), Some(_)) => Err(OriginalError::Repeated(name.clone())),
    }
}

fn host_of(value: &HeaderValue, name: HeaderName) -> Result<Cow<'_, str>, OriginalError> {
    value.to_str().map(Cow::Borrowed).map_err(|_| OriginalError::NoHost(name))
}

const ORIGINAL: [HeaderName; 3] = [
    HeaderName::from_static("x-original-method"),
    HeaderName::from_static("x-original-uri"),
    HeaderName::from_static("x-original-host"),
];

const FORWARDED: [HeaderName; 3] = [
    HeaderName::from_static("x-forwarded-method"),
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-forwarded-host"),
];
