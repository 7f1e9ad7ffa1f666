//! What Redis and its client complain about, in our words.

use std::time::Duration;

use redis::{RedisError, ServerError};

use crate::error::StoreError;

/// What went wrong on the way to a server, or what it said.
pub(super) fn of_client(error: &RedisError, address: &str, timeout: Duration) -> StoreError {
    if let Some(code) = error.code() {
        return of_server(code, error.detail().unwrap_or_default(), address, "");
    }
    if error.is_timeout() {
        return StoreError::Timeout { after: timeout };
    }
    match error.kind() {
        redis::ErrorKind::AuthenticationFailed => {
            StoreError::Credentials { address: address.into(), reason: error.to_string() }
        }
        _ => StoreError::Unreachable { address: address.into(), reason: error.to_string() },
    }
}

/// The same for a connection that did not come about. Servers turn a node away by a word about its
/// certificate, and that depends on whether it has shown one.
pub(super) fn of_connecting(
    error: &RedisError,
    address: &str,
    timeout: Duration,
    has_shown: bool,
) -> StoreError {
    let said = error.to_string();
    let alert = said.split_once(ALERT).map(|(_, alert)| alert.trim());
    let address = || address.to_owned();
    match alert {
        Some("CertificateRequired") if !has_shown => {
            StoreError::NoCertificate { address: address(), reason: "CertificateRequired".into() }
        }
        // Before TLS 1.3 there is no word of its own for it.
        Some("HandshakeFailure") if !has_shown => {
            let reason = "HandshakeFailure, or else no cipher suits both".into();
            StoreError::NoCertificate { address: address(), reason }
        }
        Some(alert) if has_shown && ABOUT_CERTIFICATES.contains(&alert) => {
            let why = match alert {
                "UnknownCA" => "it does not know who has signed it (UnknownCA)".into(),
                "DecryptError" => "the signature on it is wrong (DecryptError)".into(),
                "CertificateExpired" => "its time is over (CertificateExpired)".into(),
                "CertificateRevoked" => "it was revoked (CertificateRevoked)".into(),
                _ => alert.to_owned(),
            };
            StoreError::BadCertificate { address: address(), reason: why }
        }
        _ => of_client(error, &address(), timeout),
    }
}

/// What the server at an address has said, to a question about the key of that name.
pub(super) fn of_reply(error: &ServerError, address: &str, name: &str) -> StoreError {
    of_server(error.code(), error.details().unwrap_or_default(), address, name)
}

/// Whether the server has said that it is not, or is not any more, one that takes what we write.
pub(super) fn is_about_role(error: &ServerError) -> bool {
    let (code, _) = met(error.code(), error.details().unwrap_or_default());
    matches!(code, "READONLY" | "MASTERDOWN")
}

/// What a script met, as far as the server says so. Before version 7 that stands at the end of what it says of
/// the script: `ERR Error running script (call to f_0b4e): @user_script:5: -READONLY You can't write ...`.
fn met<'a>(code: &'a str, detail: &'a str) -> (&'a str, &'a str) {
    let is_about_script = code == "ERR" && detail.starts_with("Error running script");
    let inner = detail.rsplit_once(": -").filter(|_| is_about_script).map(|(_, inner)| inner);
    let Some((word, rest)) = inner.and_then(|inner| inner.split_once(' ')) else {
        return (code, detail);
    };
    match !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
        true => (word, rest),
        false => (code, detail),
    }
}

fn of_server(code: &str, detail: &str, address: &str, name: &str) -> StoreError {
    let (code, detail) = met(code, detail);
    let reason = || format!("{code} {detail}");
    let credentials = || StoreError::Credentials { address: address.into(), reason: reason() };
    let not_allowed = || StoreError::NotAllowed { address: address.into(), reason: reason() };
    match code {
        "LOADING" => StoreError::Loading,
        "READONLY" | "MISCONF" | "NOREPLICAS" | "MASTERDOWN" => {
            StoreError::ReadOnly { reason: reason() }
        }
        "OOM" => StoreError::OutOfMemory { reason: reason() },
        "WRONGTYPE" => StoreError::WrongType { name: name.into() },
        "NOAUTH" | "WRONGPASS" => credentials(),
        "NOPERM" => not_allowed(),
        "CLUSTERDOWN" | "MOVED" | "ASK" | "TRYAGAIN" | "CROSSSLOT" => {
            StoreError::ClusterDown { reason: reason() }
        }
        _ if detail.contains("OOM command") => StoreError::OutOfMemory { reason: reason() },
        _ if detail.contains("invalid password") || detail.contains("invalid username") => {
            credentials()
        }
        _ if ["unknown command", "can't run this", "can't access"]
            .iter()
            .any(|it| detail.contains(it)) =>
        {
            not_allowed()
        }
        _ => StoreError::Refused { reason: reason() },
    }
}

/// What the client says before the word that a server has ended TLS with.
const ALERT: &str = "received fatal alert: ";

/// Words of a server about a certificate that it was shown.
const ABOUT_CERTIFICATES: [&str; 9] = [
    "CertificateRequired",
    "BadCertificate",
    "UnsupportedCertificate",
    "CertificateRevoked",
    "CertificateExpired",
    "CertificateUnknown",
    "UnknownCA",
    "AccessDenied",
    "DecryptError",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_met_is_found_behind_what_is_said_of_the_script() {
        let of = |detail: &str| of_server("ERR", detail, "here", "key");
        let before = "Error running script (call to f_0b4e): @user_script:5: @user_script: 5: ";
        let with = |what: &str| of(&format!("{before}{what}"));
        for word in ["READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN"] {
            let StoreError::ReadOnly { reason } = with(&format!("-{word} it takes no writes"))
            else {
                panic!("{word} is not seen");
            };
            assert_eq!(reason, format!("{word} it takes no writes"));
        }
        assert!(matches!(with("-OOM command not allowed"), StoreError::OutOfMemory { .. }));
        // What is no word of a server, or not of a script, is told as it is.
        for other in ["a number - which", "- nothing", "-Readonly it is"] {
            let StoreError::Refused { reason } = with(other) else {
                panic!("{other} is something")
            };
            assert_eq!(reason, format!("ERR {before}{other}"));
        }
        assert!(matches!(of("something: -READONLY is said"), StoreError::Refused { .. }));
    }
}
