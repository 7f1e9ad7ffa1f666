//! What TLS with a store takes, from files: who signs for it, and who this node is.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tollgate_store::{IdentityError, RedisIdentity};

use crate::error::Error;

/// The certificates of those who sign for a store, in PEM.
pub(crate) fn authority(file: &Path) -> Result<Vec<u8>, Error> {
    let wrong = |problem: &str| unusable(file, problem, AUTHORITY);
    let bytes = read(file, AUTHORITY)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if all.is_empty() => Err(wrong("there is no certificate in it")),
        Ok(_) => Ok(bytes),
        Err(error) => Err(wrong(&format!("it is no PEM: {error}"))),
    }
}

/// What this node shows to a store that asks for a certificate.
pub(crate) fn identity(cert: &Path, key: &Path) -> Result<RedisIdentity, Error> {
    let (certificate, private) = (read(cert, CERTIFICATE)?, read(key, KEY)?);
    RedisIdentity::from_pem(&certificate, &private).map_err(|error| match error {
        IdentityError::Certificate { problem } => unusable(cert, &problem, CERTIFICATE),
        IdentityError::Key { problem } => unusable(key, &problem, KEY),
        IdentityError::Mismatch => {
            let problem = format!("it is not the key of {}", cert.display());
            unusable(key, &problem, "name the key that the certificate was made for")
        }
    })
}

fn read(file: &Path, remedy: &'static str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|it| it.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => {
            let problem = format!("cannot be read: {error}");
            Err(Error::Certificate { file: file.display().to_string(), problem, remedy })
        }
        Ok(count) if count as u64 > MOST_BYTES => {
            Err(unusable(file, "it has more than a megabyte", remedy))
        }
        Ok(_) => Ok(bytes),
    }
}

fn unusable(file: &Path, problem: &str, remedy: &'static str) -> Error {
    let problem = format!("cannot be used: {problem}");
    Error::Certificate { file: file.display().to_string(), problem, remedy }
}

const AUTHORITY: &str =
    "name a file in PEM that you may read, with the certificate of who signs for the store";

const CERTIFICATE: &str = "name a file in PEM that you may read, with the certificate of this node \
    and those that lead to its authority";

const KEY: &str =
    "name a file in PEM that you may read, with the private key of the certificate, not encrypted";

/// No file of certificates is that long.
const MOST_BYTES: u64 = 1 << 20;
