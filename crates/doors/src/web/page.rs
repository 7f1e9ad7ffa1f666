//! Requests that a page in a browser has made.
//!
//! Any page can have a browser send something to an address that the browser can reach, also to one
//! of its own machine, without being asked and without hearing the answer. Browsers say where such a
//! request comes from: in `Sec-Fetch-Site`, to addresses that they trust, which loopback is, and in
//! `Origin` with every POST to somewhere else.

use http::Request;
use http::header::{HOST, HeaderName, ORIGIN};

/// Whether a page made it that is not of the host that was asked. Another port or name of the same
/// site is not the same host: what listens there on a machine of developers is anybody's.
pub(crate) fn is_of_another<B>(request: &Request<B>) -> bool {
    let site = request.headers().get(FETCH_SITE).map(|site| site.as_bytes());
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        return true;
    }
    let origin = request.headers().get(ORIGIN);
    origin.is_some_and(|origin| match origin.to_str().ok().and_then(|it| it.split_once("://")) {
        Some((_, from)) => Some(from) != host(request),
        // Of a page that has none to show.
        None => true,
    })
}

/// The host that was asked, with its port if that was said.
pub(crate) fn host<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(HOST)?.to_str().ok(),
    }
}

/// What is said to it.
pub(crate) const REFUSAL: &str = "a page in a browser asks, and not one of this host: \
                                  ask from a program, without Origin and Sec-Fetch-Site";

/// From where a browser says that a request was made.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of_another_with(headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri("/v1/check").header("host", "localhost:4290");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_of_another(&request.body(()).unwrap())
    }

    #[test]
    fn pages_of_others_are_told_from_programs_and_our_own() {
        for good in [
            &[][..],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:4290")],
        ] {
            assert!(!is_of_another_with(good), "{good:?}");
        }
        for bad in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "")],
            &[("sec-fetch-site", "none"), ("origin", "http://evil.example")],
            &[("origin", "http://localhost:8080")],
            &[("origin", "null")],
            &[("origin", "")],
        ] {
            assert!(is_of_another_with(bad), "{bad:?}");
        }
    }
}
