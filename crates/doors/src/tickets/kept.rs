//! One request under way.

use std::net::IpAddr;

use smallvec::SmallVec;
use tollgate::{Clock, Engine, Outcome, Request, UnderWay};

/// What a request under way holds, with all that rules may ask about it when it ends.
#[derive(Debug)]
pub(crate) struct Kept {
    under_way: UnderWay,
    request: Owned,
}

/// A request in one piece.
#[derive(Debug)]
struct Owned {
    /// The method, the target, the host, who has shown a certificate, then names and values of headers and attributes.
    text: Box<str>,
    /// Where each of these ends.
    ends: Box<[u32]>,
    headers: usize,
    peer: Option<IpAddr>,
    cost: u64,
}

impl Kept {
    pub(super) fn new(under_way: UnderWay, request: &Request<'_>) -> Self {
        Self { under_way, request: Owned::new(request) }
    }

    /// What it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let Owned { text, ends, .. } = &self.request;
        size_of::<Self>() + text.len() + size_of_val(&**ends)
    }

    /// Says how the request ended.
    pub(crate) fn report<C: Clock>(self, engine: &Engine<C>, outcome: &Outcome<'_>) {
        let Self { under_way, request } = self;
        request.with(|request| engine.report(under_way, request, outcome));
    }
}

impl Owned {
    fn new(request: &Request<'_>) -> Self {
        let (headers, attributes) = (request.every_header(), request.every_attribute());
        let mut text = String::new();
        let mut ends = Vec::with_capacity(4 + 2 * (headers.len() + attributes.len()));
        let mut end = |text: &str| ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        text.push_str(request.method());
        end(&text);
        text.push_str(request.path());
        if !request.query().is_empty() {
            text.push('?');
            text.push_str(request.query());
        }
        end(&text);
        text.push_str(request.host_name());
        end(&text);
        text.push_str(request.client_cert_name());
        end(&text);
        for (name, value) in headers.iter().chain(attributes) {
            for part in [name, value] {
                text.push_str(part);
                end(&text);
            }
        }
        Self {
            text: text.into(),
            ends: ends.into(),
            headers: headers.len(),
            peer: request.peer_address(),
            cost: request.counts(),
        }
    }

    fn with<R>(&self, ask: impl FnOnce(&Request<'_>) -> R) -> R {
        let mut begin = 0;
        let mut parts = self.ends.iter().map(|end| {
            let end = *end as usize;
            let part = self.text.get(begin..end).unwrap_or_default();
            begin = end;
            part
        });
        let mut part = || parts.next().unwrap_or_default();
        let (method, target, host, client) = (part(), part(), part(), part());
        let pairs = self.ends.len().saturating_sub(4) / 2;
        let pairs: SmallVec<[(&str, &str); 8]> = (0..pairs).map(|_| (part(), part())).collect();
        let (headers, attributes) = pairs.split_at(self.headers.min(pairs.len()));
        let request = Request::new(method, target).host(host).client_cert(client).cost(self.cost);
        let request = request.headers(headers).attributes(attributes);
        match self.peer {
            Some(peer) => ask(&request.peer(peer)),
            None => ask(&request),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(of: &[(String, String)]) -> Vec<(&str, &str)> {
        of.iter().map(|(name, value)| (&**name, &**value)).collect()
    }

    proptest! {
        #[test]
        fn a_request_comes_back_as_it_was(
            method in "[A-Z]{0,6}",
            target in "(http://h)?[/a-zé?#&=]{0,20}",
            host in "[a-z.:]{0,9}",
            headers in prop::collection::vec(("[a-z]{0,3}", ".{0,5}"), 0..4),
            attributes in prop::collection::vec((".{0,5}", ".{0,5}"), 0..12),
            peer in any::<Option<IpAddr>>(),
            cost in any::<u64>(),
        ) {
            let (headers, attributes) = (pairs(&headers), pairs(&attributes));
            let request = Request::new(&method, &target).host(&host).headers(&headers);
            let request = request.attributes(&attributes).cost(cost);
            let request = peer.map_or(request, |peer| request.peer(peer));
            Owned::new(&request).with(|again| {
                assert_eq!((again.method(), again.path()), (request.method(), request.path()));
                assert_eq!(again.host_name(), request.host_name());
                assert_eq!(again.query(), request.query());
                assert_eq!(again.every_header(), request.every_header());
                assert_eq!(again.every_attribute(), request.every_attribute());
                assert_eq!(again.peer_address(), request.peer_address());
                assert_eq!(again.counts(), cost);
            });
        }
    }
}
