//! What Redis and its client complain about, in our words.

use std::time::Duration;

use redis::{RedisError, ServerError};

use crate::error::StoreError;

/// What went wrong on the way to a server, or what it said.
pub(super) fn of_client(error: &RedisError, address: &str, timeout: Duration) -> StoreError {
    if let Some(code) = error.code() {
        return of_server(code, error.detail().unwrap_or_default(), "");
    }
    if error.is_timeout() {
        return StoreError::Timeout { after: timeout };
    }
    match error.kind() {
        redis::ErrorKind::AuthenticationFailed => {
            StoreError::Credentials { reason: error.to_string() }
        }
        _ => StoreError::Unreachable { address: address.into(), reason: error.to_string() },
    }
}

pub(super) fn of_reply(error: &ServerError, name: &str) -> StoreError {
    of_server(error.code(), error.details().unwrap_or_default(), name)
}

fn of_server(code: &str, detail: &str, name: &str) -> StoreError {
    let reason = || format!("{code} {detail}");
    match code {
        "LOADING" => StoreError::Loading,
        "READONLY" | "MISCONF" | "NOREPLICAS" | "MASTERDOWN" => {
            StoreError::ReadOnly { reason: reason() }
        }
        "OOM" => StoreError::OutOfMemory { reason: reason() },
        "WRONGTYPE" => StoreError::WrongType { name: name.into() },
        "NOAUTH" | "WRONGPASS" => StoreError::Credentials { reason: reason() },
        "NOPERM" => StoreError::NotAllowed { reason: reason() },
        "CLUSTERDOWN" | "MOVED" | "ASK" | "TRYAGAIN" | "CROSSSLOT" => {
            StoreError::ClusterDown { reason: reason() }
        }
        _ if detail.contains("-OOM") || detail.contains("OOM command") => {
            StoreError::OutOfMemory { reason: reason() }
        }
        _ if detail.contains("invalid password") || detail.contains("invalid username") => {
            StoreError::Credentials { reason: reason() }
        }
        _ if ["unknown command", "can't run this", "can't access"]
            .iter()
            .any(|it| detail.contains(it)) =>
        {
            StoreError::NotAllowed { reason: reason() }
        }
        _ => StoreError::Refused { reason: reason() },
    }
}
