//! Connections that nobody can read or forge: TLS, and who clients say they are.
//!
//! The certificate, its key and the authorities of clients are files, which change while the server
//! runs: whoever connects after that gets what they say then. Files that cannot be used are refused,
//! and the old ones stay, as with rules.

mod identity;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::{NoClientAuth, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::door::Name;
use crate::watch::Stamps;

/// Which files a server shows who it is with, and whom it lets in.
///
/// ```
/// use tollgate_doors::Config;
/// let text = "[tls]\ncertificate = 'cert.pem'\nkey = 'key.pem'\nclient_ca = 'clients.pem'";
/// let tls = Config::parse(text)?.tls.expect("it has a section about it");
/// assert!(tls.clients_must && tls.doors.len() == 6, "everybody needs a certificate, everywhere");
/// # Ok::<(), tollgate_doors::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those that lead to its authority behind it, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The authorities of clients, in PEM. Without them nobody is asked for a certificate.
    pub client_ca: Option<PathBuf>,
    /// Whether clients without a certificate are turned away.
    pub clients_must: bool,
    /// The doors that speak TLS, by name.
    pub doors: Vec<String>,
}

impl TlsFiles {
    /// At all doors, and for clients with a certificate alone if there is somebody who signs them.
    ///
    /// ```
    /// use tollgate_doors::TlsFiles;
    /// let files = TlsFiles::at_all_doors("cert.pem".into(), "key.pem".into(), None);
    /// assert!(!files.clients_must);
    /// ```
    pub fn at_all_doors(certificate: PathBuf, key: PathBuf, client_ca: Option<PathBuf>) -> Self {
        let doors = Name::ALL.map(|door| door.as_str().to_owned()).to_vec();
        Self { certificate, key, clients_must: client_ca.is_some(), client_ca, doors }
    }

    /// All of them.
    ///
    /// ```
    /// # use tollgate_doors::TlsFiles;
    /// let mut files = TlsFiles::at_all_doors("cert.pem".into(), "key.pem".into(), None);
    /// assert_eq!(files.all().count(), 2);
    /// ```
    pub fn all(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.certificate, &mut self.key].into_iter().chain(self.client_ca.as_mut())
    }
}

/// Files cannot be used for TLS. If others are in use, they stay.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not what it should be.
    #[error("{} cannot be used: {problem}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// They do not go together.
    #[error("{} and {} cannot be used together: {problem}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// What is wrong with them.
        problem: String,
    },
}

/// TLS for all doors that speak it, by the files as they are now.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    /// By protocol: what is spoken inside is agreed on with the rest.
    web: ArcSwap<ServerConfig>,
    plain: ArcSwap<ServerConfig>,
    /// Seconds since 1970 until which the certificate holds.
    not_after: AtomicI64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = Read::of(files)?;
        Ok(Self {
            files: files.clone(),
            web: ArcSwap::new(read.config(WEB)?),
            plain: ArcSwap::new(read.config(&[])?),
            not_after: AtomicI64::new(read.not_after()),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        })
    }

    /// Whether a door speaks it.
    pub(crate) fn is_for(&self, door: Name) -> bool {
        self.files.doors.iter().any(|name| name == door.as_str())
    }

    /// Begins a connection: whoever is at its other end has shown what it has to.
    pub(crate) async fn accept(
        &self,
        door: Name,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Arc<str>>)> {
        let config = match door {
            Name::Resp => &self.plain,
            _ => &self.web,
        };
        let stream = TlsAcceptor::from(config.load_full()).accept(stream).await?;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let name = certificate.and_then(identity::name);
        Ok((stream, name))
    }

    /// Reads the files again.
    fn reload(&self) -> Result<(), TlsError> {
        let read = Read::of(&self.files)?;
        let (web, plain) = (read.config(WEB)?, read.config(&[])?);
        self.web.store(web);
        self.plain.store(plain);
        self.not_after.store(read.not_after(), Ordering::Relaxed);
        Ok(())
    }

    /// Seconds since 1970 until which the certificate holds.
    pub(crate) fn not_after(&self) -> i64 {
        self.not_after.load(Ordering::Relaxed)
    }

    /// Another connection did not come about.
    pub(crate) fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// How many did not.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// How often files that changed could not be used.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Looks whether files have changed.
#[derive(Debug)]
pub(crate) struct Following {
    tls: Arc<Tls>,
    stamps: Stamps,
}

impl Following {
    pub(crate) fn new(tls: &Arc<Tls>) -> Self {
        let mut following = Self { tls: Arc::clone(tls), stamps: Stamps::default() };
        following.stamp();
        following
    }

    fn stamp(&mut self) {
        let TlsFiles { certificate, key, client_ca, .. } = &self.tls.files;
        let all = [Some(certificate), Some(key), client_ca.as_ref()];
        self.stamps = all.into_iter().flatten().cloned().collect();
    }

    /// Reads files again that have changed, and says in the log what came of it.
    pub(crate) fn look(&mut self) {
        if !self.stamps.have_changed() {
            return;
        }
        // Stamps first: what is written while we read is a change.
        self.stamp();
        match self.tls.reload() {
            Ok(()) => tracing::info!("certificates were read again"),
            Err(error) => {
                self.tls.refused.fetch_add(1, Ordering::Relaxed);
                tracing::error!("certificates are refused, and the old ones stay: {error}");
            }
        }
    }
}

/// The files, read.
struct Read<'f> {
    files: &'f TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Option<Arc<RootCertStore>>,
}

impl<'f> Read<'f> {
    fn of(files: &'f TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes(&files.key)?).map_err(|_| {
            wrong(&files.key, "there is no private key in it: write one in PEM, not encrypted")
        })?;
        let clients = files.client_ca.as_deref().map(roots).transpose()?;
        Ok(Self { files, chain, key, clients })
    }

    /// What is agreed on with clients, of whom one protocol of these is expected inside.
    fn config(&self, inside: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsError> {
        let mismatch = |error: &dyn std::fmt::Display| TlsError::Pair {
            certificate: self.files.certificate.clone(),
            key: self.files.key.clone(),
            problem: error.to_string(),
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let clients = match &self.clients {
            None => Arc::new(NoClientAuth),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::clone(roots),
                    Arc::clone(&provider),
                );
                let verifier = match self.files.clients_must {
                    true => verifier,
                    false => verifier.allow_unauthenticated(),
                };
                verifier.build().map_err(|error| mismatch(&error))?
            }
        };
        let versions = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| mismatch(&error))?;
        let mut config = versions
            .with_client_cert_verifier(clients)
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| mismatch(&error))?;
        config.alpn_protocols = inside.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Arc::new(config))
    }

    fn not_after(&self) -> i64 {
        self.chain.first().and_then(identity::not_after).unwrap_or(0)
    }
}

/// Who signs the certificates of clients.
fn roots(file: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| wrong(file, &error.to_string()))?;
    }
    Ok(Arc::new(roots))
}

/// All certificates of a file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = bytes(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(wrong(file, "there is no certificate in it: write one in PEM")),
        Err(error) => Err(wrong(file, &format!("it is no PEM: {error}"))),
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, TlsError> {
    let length = fs::metadata(file).map_err(|error| wrong(file, &error.to_string()))?.len();
    if length > MOST_BYTES {
        return Err(wrong(file, "it has more than a megabyte: name a file of certificates"));
    }
    fs::read(file).map_err(|error| wrong(file, &error.to_string()))
}

fn wrong(file: &Path, problem: &str) -> TlsError {
    TlsError::File { file: file.to_owned(), problem: problem.to_owned() }
}

/// What is spoken inside at doors of HTTP.
const WEB: &[&[u8]] = &[b"h2", b"http/1.1"];

/// No file of certificates is that long.
const MOST_BYTES: u64 = 1 << 20;
