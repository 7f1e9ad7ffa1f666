use tollgate_proto::envoy::config::core::v3::{self as core, HeaderMap, SocketAddress};
use tollgate_proto::envoy::service::auth::v3::attribute_context;

use super::*;
use crate::grpc::tests::asking;

fn context(path: &str, headers: &[(&str, &str)]) -> AttributeContext {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let socket = SocketAddress { address: "192.0.2.7".to_owned(), port_specifier: None };
    let address = core::Address { address: Some(Address::SocketAddress(socket)) };
    let http = HttpRequest {
        method: "POST".to_owned(),
        path: path.to_owned(),
        host: "a.example".to_owned(),
        headers: headers.iter().map(text).collect(),
        header_map: None,
    };
    AttributeContext {
        source: Some(Peer { address: Some(address), principal: String::new() }),
        request: Some(attribute_context::Request { http: Some(http) }),
        ..Default::default()
    }
}

fn ask(asking: &Asking, context: AttributeContext) -> CheckResponse {
    asking.authorize(CheckRequest { attributes: Some(context) }).unwrap().0
}

fn passes(asking: &Asking, context: AttributeContext) -> bool {
    ask(asking, context).status.unwrap().code == 0
}

#[test]
fn a_denial_is_told_in_full() {
    let rules = "rules: [{ name: logins, match: { method: POST, path: /login, host: a.example },
        key: [ip], limit: 1/h, deny: { status: 403, body: no } }]";
    let asking = asking(rules);
    let allowed = ask(&asking, context("/login?a=b", &[]));
    let Some(HttpResponse::OkResponse(ok)) = allowed.http_response else { panic!("it may pass") };
    let header = |options: &[HeaderValueOption], name: &str| {
        let headers = options.iter().filter_map(|option| option.header.as_ref());
        headers.filter(|header| header.key == name).map(|header| header.value.clone()).next()
    };
    let told = header(&ok.response_headers_to_add, "ratelimit").unwrap();
    assert!(told.starts_with("\"logins\";r=0;t="), "{told}");
    assert_eq!(header(&ok.response_headers_to_add, "content-type"), None, "there is no body");
    let denied = ask(&asking, context("/login", &[]));
    assert_eq!(denied.status.unwrap().code, 8);
    let Some(HttpResponse::DeniedResponse(denied)) = denied.http_response else { panic!("denied") };
    assert_eq!((denied.status.unwrap().code, &*denied.body), (403, "no"));
    assert!(header(&denied.headers, "retry-after").is_some());
    assert_eq!(
        header(&denied.headers, "content-type").as_deref(),
        Some("text/plain; charset=utf-8")
    );
}

#[test]
fn rules_see_what_envoy_says() {
    let rules = "rules:
  - { name: h, match: { path: /h }, key: [header.x-plan], limit: 1/h }
  - { name: u, match: { path: /u }, key: [user], limit: 1/h }
  - { name: d, match: { path: /d }, key: [descriptor.shard], limit: 1/h }
  - { name: p, match: { path: /p }, key: [descriptor.principal], limit: 1/h }";
    let asking = asking(rules);
    let header = |plan| context("/h", &[("x-plan", plan), (":path", "/u")]);
    assert!(passes(&asking, header("a")) && passes(&asking, header("b")));
    assert!(!passes(&asking, header("a")));
    let mut raw = context("/h", &[]);
    let value = HeaderValue { key: "x-plan".into(), raw_value: b"b".into(), ..Default::default() };
    let http = raw.request.as_mut().unwrap().http.as_mut().unwrap();
    http.header_map = Some(HeaderMap { headers: vec![value] });
    assert!(!passes(&asking, raw), "headers may come as bytes");
    let extended = |path, name: &str, value: &str| AttributeContext {
        context_extensions: [(name.to_owned(), value.to_owned())].into(),
        ..context(path, &[])
    };
    for (path, name) in [("/u", "user"), ("/d", "shard")] {
        assert!(
            passes(&asking, extended(path, name, "a"))
                && passes(&asking, extended(path, name, "b"))
        );
        assert!(!passes(&asking, extended(path, name, "a")), "{path}");
    }
    let certified = |principal: &str| {
        let mut context = extended("/p", "principal", "chosen");
        context.source.as_mut().unwrap().principal = principal.to_owned();
        context
    };
    assert!(passes(&asking, certified("a")) && !passes(&asking, certified("a")));
    assert!(passes(&asking, certified("b")));
}

#[test]
fn what_is_no_request_of_http_is_refused() {
    let asking = asking("rules: []");
    for attributes in [None, Some(AttributeContext::default())] {
        assert!(asking.authorize(CheckRequest { attributes }).is_err());
    }
    let many: Vec<_> = (0..600).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (&**name, "a")).collect();
    assert!(asking.authorize(CheckRequest { attributes: Some(context("/", &many)) }).is_err());
}
