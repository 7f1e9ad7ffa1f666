//! A server that speaks TLS.

use std::time::Duration;

use tollgate_store::{RedisConfig, StoreError};

use crate::process::{Redis, free_port};
use crate::view::View;

#[tokio::test]
async fn a_server_is_trusted_by_the_certificate_that_was_given() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile_folder();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, signed.cert.pem()).unwrap();
    std::fs::write(&key, signed.signing_key.serialize_pem()).unwrap();
    let port = free_port();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let number = port.to_string();
    let redis = Redis::start_on(
        port,
        &[
            "--port",
            "0",
            "--tls-port",
            &number,
            "--tls-cert-file",
            cert,
            "--tls-key-file",
            key,
            "--tls-auth-clients",
            "no",
        ],
    );
    let url = format!("rediss://localhost:{}", redis.port);
    let view = View::of(&url);
    let error = view.spend(&view.bucket("5/day"), "k").await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let root_certificate = Some(signed.cert.pem().into_bytes());
    let timeout = Duration::from_secs(20);
    let view =
        View::with(&url, RedisConfig { timeout, root_certificate, ..RedisConfig::default() });
    assert_eq!(view.spend(&view.bucket("5/day"), "k").await, Ok(true));
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile_folder() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("tollgate-store-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
