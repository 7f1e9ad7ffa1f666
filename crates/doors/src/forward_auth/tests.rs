use super::*;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use tollgate::RuleSet;

use crate::config::Respond;
use crate::forward_auth::original::OriginalError;

fn door(rules: &str) -> ForwardAuth {
    let service = Arc::new(Service::new(RuleSet::parse(rules).unwrap(), 1000).unwrap());
    let answers = Arc::new(Answers::new(Arc::clone(&service), Respond::default()));
    ForwardAuth::new(service, answers)
}

fn request(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// The status of the answer to a proxy.
fn ask(door: &ForwardAuth, path: &str, headers: &[(&str, &str)]) -> u16 {
    let request = request(path, headers);
    let asking = Asking::at(request.uri.path()).unwrap();
    door.ask(asking, &request, &Peer::default()).0.status().as_u16()
}

const LOGIN: &str = "rules:
  - { name: logins, match: { method: POST, path: /login, host: a.com }, key: [], limit: 1/h }";

const AS_NGINX: [(&str, &str); 3] =
    [("x-original-method", "POST"), ("x-original-uri", "/login?a"), ("x-original-host", "a.com")];

const AS_CADDY: [(&str, &str); 3] = [
    ("x-forwarded-method", "POST"),
    ("x-forwarded-uri", "/login?a"),
    ("x-forwarded-host", "a.com"),
];

#[test]
fn every_proxy_is_understood_in_its_own_way() {
    for (path, headers, denied) in [
        ("/nginx", &AS_NGINX, 429),
        ("/haproxy", &AS_NGINX, 429),
        ("/nginx/403", &AS_NGINX, 403),
        ("/caddy", &AS_CADDY, 429),
        ("/traefik?b=c", &AS_CADDY, 429),
    ] {
        let door = door(LOGIN);
        assert_eq!([(); 2].map(|()| ask(&door, path, headers)), [200, denied], "{path}");
    }
}

#[test]
fn the_request_of_envoy_is_the_request() {
    let rules =
        "rules: [{ name: a, match: { path: /login, host: a.com }, key: [query.a], limit: 1/h }]";
    let (door, host) = (door(rules), [("host", "a.com")]);
    let paths = ["/envoy/login?a=1", "/envoy/login?a=1", "/envoy/login?a=2", "/envoy/other?a=1"];
    assert_eq!(paths.map(|path| ask(&door, path, &host)), [200, 429, 200, 200]);
    assert_eq!(ask(&door, "/envoy", &host), 200, "that is the path /");
    assert_eq!(Asking::at("/envoyed"), None);
}

#[test]
fn what_a_client_says_in_the_words_of_another_proxy_is_not_believed() {
    for (path, own, others) in [("/nginx", AS_NGINX, AS_CADDY), ("/caddy", AS_CADDY, AS_NGINX)] {
        let door = door(LOGIN);
        let smuggled = others.map(|(name, _)| (name, "/elsewhere"));
        let headers = [own, smuggled].concat();
        assert_eq!([(); 2].map(|()| ask(&door, path, &headers)), [200, 429], "{path}");
    }
}

#[test]
fn the_query_of_the_endpoint_chooses_nothing() {
    let door = door("rules: [{ name: a, key: [query.user], key_missing: ip, limit: 1/h }]");
    let answers = ["a", "b"].map(|user| ask(&door, &format!("/nginx?user={user}"), &AS_NGINX));
    assert_eq!(answers, [200, 429]);
}

#[test]
fn a_proxy_that_does_not_say_what_it_asks_about_is_told_so() {
    let read = |path: &str, headers: &[(&str, &str)]| {
        let believed = Asking::at(path).unwrap().believed;
        Original::read(&request(path, headers), believed).map(|_| ()).unwrap_err()
    };
    let uri = HeaderName::from_static("x-original-uri");
    let two = [AS_NGINX[0], AS_NGINX[2]];
    assert_eq!(read("/nginx", &two), OriginalError::Missing(uri.clone()));
    let twice = [&AS_NGINX[..], &[("x-original-uri", "/other")]].concat();
    assert_eq!(read("/nginx", &twice), OriginalError::Repeated(uri));
    let method = HeaderName::from_static("x-original-method");
    let odd = [("x-original-method", "GET /"), AS_NGINX[1], AS_NGINX[2]];
    assert_eq!(read("/nginx", &odd), OriginalError::NoMethod(method));
    let (door, headers) = (door(LOGIN), request("/caddy", &AS_NGINX));
    let (answer, _) = door.ask(Asking::at("/caddy").unwrap(), &headers, &Peer::default());
    assert_eq!(answer.status(), 400);
}

#[test]
fn clients_are_known_by_what_trusted_proxies_say() {
    let rules = "client_ip: { trusted_proxies: [127.0.0.1] }
rules: [{ name: a, key: [ip], limit: 1/h }]";
    let (door, asking) = (door(rules), Asking::at("/nginx").unwrap());
    let status = |peer: Option<&str>, forwarded: &str| {
        let headers = [&AS_NGINX[..], &[("x-forwarded-for", forwarded)]].concat();
        let peer = peer.map(|peer| peer.parse().unwrap());
        door.ask(asking, &request("/nginx", &headers), &Peer { ip: peer, name: None })
            .0
            .status()
            .as_u16()
    };
    assert_eq!(status(Some("127.0.0.1"), "192.0.2.7"), 200);
    assert_eq!(status(Some("127.0.0.1"), "192.0.2.7"), 429);
    assert_eq!(
        status(Some("127.0.0.1"), "198.51.100.1, 192.0.2.7"),
        429,
        "that is anybody's guess"
    );
    assert_eq!(status(None, "192.0.2.8"), 200, "a socket of this machine is this machine");
    assert_eq!(status(None, "192.0.2.8"), 429);
    assert_eq!(status(Some("203.0.113.1"), "192.0.2.9"), 200);
    assert_eq!(status(Some("203.0.113.1"), "192.0.2.10"), 429, "nobody trusts that one");
}

#[test]
fn slots_are_free_again_and_all_outcomes_count() {
    let slots = door("rules: [{ name: a, key: [], concurrent: 1 }]");
    assert_eq!([(); 3].map(|()| ask(&slots, "/nginx", &AS_NGINX)), [200; 3]);
    let failures =
        door("rules: [{ name: a, key: [], limit: 2/h, count_if: 'response.status == 401' }]");
    assert_eq!([(); 3].map(|()| ask(&failures, "/nginx", &AS_NGINX)), [200, 200, 429]);
}

#[test]
fn who_waits_in_line_is_kept_waiting() {
    let door = door("rules: [{ name: a, key: [], limit: 1/h, algorithm: leaky_bucket, queue: 1 }]");
    let (request, asking) = (request("/nginx", &AS_NGINX), Asking::at("/nginx").unwrap());
    let asked = [(); 3].map(|()| door.ask(asking, &request, &Peer::default()));
    assert_eq!(asked.each_ref().map(|(answer, _)| answer.status().as_u16()), [200, 200, 429]);
    let waits = asked.map(|(_, delay)| delay > Duration::from_secs(3_500));
    assert_eq!(waits, [false, true, false]);
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(
        values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 8),
        path in proptest::sample::select(vec!["/nginx", "/nginx/403", "/caddy", "/envoy/a"]),
    ) {
        let names = AS_NGINX.iter().chain(&AS_CADDY).map(|(name, _)| *name);
        let names = names.chain(["host", "x-forwarded-for"]);
        let mut headers = HeaderMap::new();
        for (name, value) in names.zip(&values) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let mut request = request(path, &[]);
        request.headers = headers;
        let rules = "client_ip: { trusted_proxies: [127.0.0.1] }
rules: [{ name: a, key: [ip, path, header.host], limit: 1/h }]";
        let (answer, _) = door(rules).ask(Asking::at(path).unwrap(), &request, &Peer::default());
        prop_assert!(matches!(answer.status().as_u16(), 200 | 400), "{}", answer.status());
    }
}
