//! Callers that give up while the store stands still, as Envoy does.

use std::fs;
use std::time::Duration;

use prost::Message as _;
use tempfile::NamedTempFile;
use tokio::time::timeout;
use tollgate_proto::envoy::service::ratelimit::v3::RateLimitResponse;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::connection::{Connection, LIMIT, limits};
use crate::redis::Redis;
use crate::support::Server;

const RULES: &str = "rules:
  - { name: open, match: { domain: shop, descriptor.k: open }, key: [], limit: 1000/h,
      consistency: strict, on_store_failure: allow }
  - { name: closed, match: { domain: shop, descriptor.k: closed }, key: [], limit: 1000/h,
      consistency: strict, on_store_failure: deny }
";

/// How long a caller waits: less than the store has, and long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(4);

/// What is said to a caller about a descriptor, or nothing as long as it waits.
async fn asked(connection: &mut Connection, value: &str) -> Option<Code> {
    let headers = [("grpc-timeout", "4S")];
    let call = connection.call_with(LIMIT, &headers, limits(1, value));
    let (status, answer) = timeout(PATIENCE, call).await.ok()?;
    assert_eq!(status, 0);
    Some(RateLimitResponse::decode(&answer[5..]).unwrap().overall_code())
}

#[test]
fn who_gives_up_before_the_store_has_answered_has_the_word_of_its_rule() {
    let redis = Redis::start(&[]);
    let config = NamedTempFile::new().unwrap();
    fs::write(&config, format!("[store]\nurl = '{}'\ntimeout = '60s'\n", redis.url())).unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = Connection::open(server.address("grpc")).await;
        for value in ["open", "closed"] {
            assert_eq!(asked(&mut connection, value).await, Some(Code::Ok), "Redis answers");
        }
        redis.signal("STOP");
        for (value, code) in [("open", Code::Ok), ("closed", Code::OverLimit)] {
            assert_eq!(asked(&mut connection, value).await, Some(code), "{value}");
        }
        redis.signal("CONT");
        for value in ["open", "closed"] {
            assert_eq!(asked(&mut connection, value).await, Some(Code::Ok), "it answers again");
        }
    });
}
