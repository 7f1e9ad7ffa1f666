//! Who a node is, to a server that lets in nobody without a certificate.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use redis::ClientTlsConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// A certificate and its key, to be shown to servers that speak TLS and ask for one
/// (`tls-auth-clients yes`). They are known to fit: whoever could not be shown cannot be made.
///
/// Clones are one and the same. Certificates end, and nodes go on: what one of them is
/// [renewed](Self::renew) with is shown at the next connection.
///
/// ```
/// use tollgate_store::{IdentityError, RedisIdentity};
/// let wrong = RedisIdentity::from_pem(b"no certificate", b"no key");
/// assert!(matches!(wrong, Err(IdentityError::Certificate { .. })));
/// ```
#[derive(Clone)]
pub struct RedisIdentity(Arc<RwLock<ClientTlsConfig>>);

impl RedisIdentity {
    /// Both in PEM: the certificate, with those that lead to its authority behind it, and its key.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        check(certificate, key)?;
        let pair = ClientTlsConfig { client_cert: certificate.into(), client_key: key.into() };
        Ok(Self(Arc::new(RwLock::new(pair))))
    }

    /// Becomes another, for all who have a clone of it. Connections that are there stay as they are.
    pub fn renew(&self, other: &Self) {
        let pair = other.pair();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = pair;
    }

    /// What is shown now.
    pub(super) fn pair(&self) -> ClientTlsConfig {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for RedisIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is for nobody to read.
        f.debug_struct("RedisIdentity").finish_non_exhaustive()
    }
}

/// Why something is no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The certificate is none.
    #[error("the certificate cannot be used: {problem}")]
    Certificate {
        /// What is wrong with it.
        problem: String,
    },
    /// The key is none.
    #[error("the key cannot be used: {problem}")]
    Key {
        /// What is wrong with it.
        problem: String,
    },
    /// Each is good, and they do not go together.
    #[error("the key is not that of the certificate")]
    Mismatch,
}

fn check(certificate: &[u8], key: &[u8]) -> Result<(), IdentityError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let bad_certificate = |problem: String| IdentityError::Certificate { problem };
    let chain = chain.map_err(|error| bad_certificate(format!("it is no PEM: {error}")))?;
    if chain.is_empty() {
        return Err(bad_certificate("there is no certificate in it".into()));
    }
    let bad_key = |problem: &str| IdentityError::Key { problem: problem.into() };
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| bad_key("there is no private key in it that is not encrypted"))?;
    let provider = aws_lc_rs::default_provider();
    // What it says about a key could be a part of it.
    let signing = provider.key_provider.load_private_key(key);
    let signing = signing.map_err(|_| bad_key("it is of no kind that is known"))?;
    match CertifiedKey::new(chain, signing).keys_match() {
        Ok(()) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => Err(IdentityError::Mismatch),
        Err(error) => Err(bad_certificate(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let signed = rcgen::generate_simple_self_signed(["node".to_owned()]).unwrap();
        (signed.cert.pem(), signed.signing_key.serialize_pem())
    }

    fn refused(certificate: &str, key: &str) -> IdentityError {
        RedisIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err()
    }

    #[test]
    fn what_cannot_be_shown_is_refused_with_its_reason() {
        let ((certificate, key), (_, other)) = (pair(), pair());
        assert!(RedisIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).is_ok());
        assert_eq!(refused(&certificate, &other), IdentityError::Mismatch);
        let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cut = &certificate[..certificate.len() / 2];
        for wrong in ["", "text", &key, cut, no_der] {
            let error = refused(wrong, &key);
            assert!(matches!(error, IdentityError::Certificate { .. }), "{wrong}: {error}");
        }
        let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        for wrong in ["", "text", &certificate, no_key, &encrypted] {
            let error = refused(&certificate, wrong);
            assert!(matches!(error, IdentityError::Key { .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn who_is_renewed_is_so_for_all_and_shows_nobody_its_key() {
        let ((certificate, key), (newer, its_key)) = (pair(), pair());
        let one = RedisIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let same = one.clone();
        one.renew(&RedisIdentity::from_pem(newer.as_bytes(), its_key.as_bytes()).unwrap());
        assert_eq!(same.pair().client_cert, newer.as_bytes());
        assert_eq!(format!("{same:?}"), "RedisIdentity { .. }");
    }
}
