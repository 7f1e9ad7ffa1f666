//! Who may run the server: whoever knows the token, or, if there is none, programs of this machine.
//!
//! Pages in a browser of this machine are no such programs, although they can reach loopback. They
//! are told by what a browser says about them (see [`page`]), and, against names that somebody lets
//! point here, by a `Host` that is a name.

use std::net::IpAddr;

use ::http::Request;
use ::http::header::AUTHORIZATION;

use crate::connection::Peer;
use crate::secret::Secret;
use crate::web::page;

/// Why a request may not go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NoToken,
    WrongToken,
    /// A page may have made it, and what gives it away.
    Page(&'static str),
}

/// Whether a request may go on.
pub(super) fn check<B>(
    request: &Request<B>,
    peer: &Peer,
    token: Option<&Secret>,
) -> Result<(), Refusal> {
    match token {
        Some(_) if !request.headers().contains_key(AUTHORIZATION) => Err(Refusal::NoToken),
        Some(token) => match bearer(request).is_some_and(|given| token.is(given)) {
            true => Ok(()),
            false => Err(Refusal::WrongToken),
        },
        None => is_of_a_page(request, peer).map_or(Ok(()), |detail| Err(Refusal::Page(detail))),
    }
}

/// The token that a request brings.
fn bearer<B>(request: &Request<B>) -> Option<&str> {
    let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Why a request may come from a page in a browser.
fn is_of_a_page<B>(request: &Request<B>, peer: &Peer) -> Option<&'static str> {
    // Browsers cannot reach Unix sockets.
    if peer.ip.is_some() && !page::host(request).is_some_and(is_here) {
        return Some("without a token, Host must be localhost or an address: not a name");
    }
    match page::is_of_another(request) {
        true => Some("without a token, no page of another site is served"),
        false => None,
    }
}

/// Whether a host, with or without a port, is this machine or an address.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(
        headers: &[(&str, &str)],
        ip: Option<IpAddr>,
        token: Option<&str>,
    ) -> Option<Refusal> {
        let mut request = Request::builder().uri("/v1/rules");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let token = token.map(Secret::new);
        let peer = Peer { ip, name: None };
        check(&request.body(()).unwrap(), &peer, token.as_ref()).err()
    }

    #[test]
    fn a_token_is_all_that_counts_if_there_is_one() {
        let peer = "192.0.2.7".parse().ok();
        let with = |value| refusal(&[("authorization", value)], peer, Some("s3cret"));
        assert_eq!(with("Bearer s3cret"), None);
        assert_eq!(with("bearer  s3cret"), None);
        for wrong in ["Bearer s3cre", "Bearer", "s3cret", "Basic s3cret", "Bearer s3cret s3cret"] {
            assert_eq!(with(wrong), Some(Refusal::WrongToken), "{wrong}");
        }
        let nothing = refusal(&[("host", "localhost")], peer, Some("s3cret"));
        assert_eq!(nothing, Some(Refusal::NoToken));
    }

    #[test]
    fn pages_are_told_from_programs() {
        let here = "127.0.0.1".parse().ok();
        for good in [
            &[("host", "localhost:4299")][..],
            &[("host", "127.0.0.1:4299")],
            &[("host", "[::1]:4299")],
            &[("host", "localhost:4299"), ("origin", "http://localhost:4299")],
            &[("host", "localhost:4299"), ("sec-fetch-site", "none")],
        ] {
            assert_eq!(refusal(good, here, None), None, "{good:?}");
        }
        for bad in [
            &[][..],
            &[("host", "evil.example:4299")],
            &[("host", "127.0.0.1.evil.example")],
            &[("host", "")],
            &[("host", "localhost:4299"), ("origin", "http://evil.example")],
            &[("host", "localhost:4299"), ("origin", "null")],
            &[("host", "localhost:4299"), ("origin", "http://localhost:8080")],
            &[("host", "localhost:4299"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(matches!(refusal(bad, here, None), Some(Refusal::Page(_))), "{bad:?}");
        }
        assert_eq!(refusal(&[("host", "whatever")], None, None), None, "a Unix socket");
    }
}
