//! Servers that speak TLS, and want to know who asks.

use std::time::Duration;

use tollgate_store::{RedisConfig, RedisIdentity, StoreError};

use crate::authority::Authority;
use crate::process::{Redis, Sentinel, cli, cluster_port, form_cluster, free_port, until};
use crate::view::View;

/// A server that lets in nobody whom this authority does not know.
fn start(authority: &Authority, port: u16, more: &[&str]) -> Redis {
    let options = authority.options(port);
    let options: Vec<_> = options.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Redis::start_on(port, &options)
}

fn identity(authority: &Authority, name: &str) -> RedisIdentity {
    let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
    RedisIdentity::from_pem(&authority.read(&certificate), &authority.read(&key)).unwrap()
}

/// A client that trusts the servers of this authority, and shows this.
fn view(url: &str, authority: &Authority, identity: Option<RedisIdentity>) -> View {
    let root_certificate = Some(authority.read("ca.pem"));
    let timeout = Duration::from_secs(20);
    View::with(url, RedisConfig { timeout, root_certificate, identity, ..RedisConfig::default() })
}

async fn spend(view: &View) -> Result<bool, StoreError> {
    view.spend(&view.bucket("5/day"), "k").await
}

#[tokio::test]
async fn a_server_is_trusted_by_the_certificate_that_was_given() {
    let authority = Authority::new();
    let redis = start(&authority, free_port(), &["--tls-auth-clients", "no"]);
    let url = format!("rediss://localhost:{}", redis.port);
    let error = spend(&View::of(&url)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert_eq!(spend(&view(&url, &authority, None)).await, Ok(true));
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_takes_one_that_it_can_trust() {
    let (authority, another) = (Authority::new(), Authority::new());
    authority.sign("node");
    another.sign("node");
    authority.sign_until("former", 2020);
    for version in ["TLSv1.2", "TLSv1.3"] {
        let redis = start(&authority, free_port(), &["--tls-protocols", version]);
        let url = format!("rediss://localhost:{}", redis.port);
        let error = spend(&view(&url, &authority, None)).await.unwrap_err();
        assert!(matches!(error, StoreError::NoCertificate { .. }), "{version}: {error}");
        for (wrong, why) in [
            (identity(&another, "node"), "it does not know who has signed it"),
            (identity(&authority, "former"), "its time is over"),
        ] {
            let error = spend(&view(&url, &authority, Some(wrong))).await.unwrap_err();
            assert!(matches!(error, StoreError::BadCertificate { .. }), "{version}: {error}");
            assert!(error.to_string().contains(why), "{version}: {error}");
        }
        let node = identity(&authority, "node");
        assert_eq!(spend(&view(&url, &authority, Some(node))).await, Ok(true), "{version}");
    }
}

#[tokio::test]
async fn an_identity_that_is_renewed_is_shown_at_the_next_connection() {
    let authority = Authority::new();
    authority.sign_until("former", 2020);
    authority.sign("node");
    let redis = start(&authority, free_port(), &[]);
    let shown = identity(&authority, "former");
    let url = format!("rediss://localhost:{}", redis.port);
    let view = view(&url, &authority, Some(shown.clone()));
    assert!(spend(&view).await.is_err());
    shown.renew(&identity(&authority, "node"));
    assert_eq!(spend(&view).await, Ok(true));
}

#[tokio::test]
async fn every_server_of_a_cluster_is_shown_the_certificate() {
    let authority = Authority::new();
    authority.sign("node");
    let options = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let servers: Vec<_> = (0..3).map(|_| start(&authority, cluster_port(), &options)).collect();
    let files = ["ca.pem", "node.pem", "node.key"].map(|name| authority.path(name));
    let tls = ["--tls", "--cacert", &files[0], "--cert", &files[1], "--key", &files[2]];
    let ask = |port, words: &[&str]| cli(port, &[&tls[..], words].concat());
    form_cluster(&servers, 3, ask);
    until("the Cluster is whole", || {
        let is_whole = |one: &Redis| ask(one.port, &["CLUSTER", "INFO"]).contains("state:ok");
        servers.iter().all(is_whole).then_some(())
    });
    let url = format!("rediss+cluster://127.0.0.1:{}", servers[0].port);
    let error = spend(&view(&url, &authority, None)).await.unwrap_err();
    assert!(matches!(error, StoreError::NoCertificate { .. }), "{error}");
    let view = view(&url, &authority, Some(identity(&authority, "node")));
    let budget = view.bucket("5/day");
    for number in 0..30 {
        assert_eq!(view.spend(&budget, &format!("key{number}")).await, Ok(true), "{number}");
    }
    let sizes: Vec<_> = servers.iter().map(|one| ask(one.port, &["DBSIZE"])).collect();
    assert!(sizes.iter().all(|size| size != "0"), "{sizes:?}");
}

#[tokio::test]
async fn sentinels_and_the_primary_that_they_name_are_shown_the_certificate() {
    let authority = Authority::new();
    authority.sign("node");
    let primary = start(&authority, free_port(), &[]);
    let port = free_port();
    let options = authority.options(port);
    let line = |pair: &[String]| format!("{} {}\n", pair[0].trim_start_matches('-'), pair[1]);
    let settings: String = options.chunks(2).map(line).collect();
    let sentinel = Sentinel::with(&primary, port, &settings);
    let url = format!("rediss+sentinel://localhost:{}/main", sentinel.port);
    let error = spend(&view(&url, &authority, None)).await.unwrap_err();
    let StoreError::NoCertificate { address, .. } = &error else { panic!("{error}") };
    assert_eq!(address, &format!("localhost:{}", sentinel.port));
    let view = view(&url, &authority, Some(identity(&authority, "node")));
    assert_eq!(spend(&view).await, Ok(true));
}
