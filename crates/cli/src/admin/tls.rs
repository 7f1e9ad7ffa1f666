//! Speaks TLS to a server: who it must be, and who asks.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::AdminError;
use crate::error::Error;
use crate::flags::{Server, TlsFlags};

/// How TLS is agreed on with a server.
pub(super) struct Tls {
    pub(super) connector: TlsConnector,
    /// Whom its certificate must be for.
    pub(super) name: ServerName<'static>,
}

impl Tls {
    /// As the flags say, if they say that TLS is spoken.
    pub(super) fn of(server: &Server, flags: &TlsFlags) -> Result<Option<Self>, Error> {
        let Some(ca) = &flags.ca else { return Ok(None) };
        let Server::Tcp(server) = server else {
            return Err(AdminError::Tls("no TLS is spoken at a Unix socket".to_owned()).into());
        };
        let host = server.rsplit_once(':').map_or(&**server, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(wrong)?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(ca)? {
            roots.add(certificate).map_err(wrong)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_root_certificates(roots);
        let mut config = match (&flags.cert, &flags.key) {
            (Some(cert), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(wrong)?;
                config.with_client_auth_cert(certificates(cert)?, key).map_err(wrong)?
            }
            _ => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Self { connector: TlsConnector::from(Arc::new(config)), name }))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(file)?).collect();
    match all.map_err(wrong)? {
        all if all.is_empty() => {
            Err(AdminError::Tls(format!("{} has no certificate in PEM", file.display())).into())
        }
        all => Ok(all),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| Error::Read { file: file.display().to_string(), error })
}

fn wrong(error: impl std::fmt::Display) -> Error {
    AdminError::Tls(error.to_string()).into()
}
