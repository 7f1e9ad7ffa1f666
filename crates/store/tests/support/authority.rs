//! Somebody who signs the certificates of servers, and of those who ask them.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};

/// It has a folder, gone with the test: its own certificate is `ca.pem`.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// With a certificate for the servers of this machine, `server.pem` and `server.key`.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-authority-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).expect("there is room for a folder");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let authority = Self { folder, issuer: Issuer::new(params, key) };
        authority.write("ca.pem", &certificate.pem());
        authority.sign("server");
        authority
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("it is text").to_owned()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes a certificate for somebody on this machine, and its key: `NAME.pem` and `NAME.key`.
    pub(crate) fn sign(&self, name: &str) {
        self.sign_until(name, 4096);
    }

    /// The same for one that ends with a year.
    pub(crate) fn sign_until(&self, name: &str, year: i32) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(year, 12, 31);
        let localhost = SanType::DnsName("localhost".try_into().unwrap());
        params.subject_alt_names = vec![localhost, SanType::IpAddress([127, 0, 0, 1].into())];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        // The key first: whoever looks in between finds two that do not go together, and waits.
        self.write(&format!("{name}.key"), &key.serialize_pem());
        self.write(&format!("{name}.pem"), &certificate.pem());
    }

    /// What makes a server speak TLS alone, on this port, and to nobody whose certificate is not signed
    /// here.
    pub(crate) fn options(&self, port: u16) -> Vec<String> {
        let (ca, certificate, key) =
            (self.path("ca.pem"), self.path("server.pem"), self.path("server.key"));
        let all = [
            ["--port", "0"],
            ["--tls-port", &port.to_string()],
            ["--tls-ca-cert-file", &ca],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-auth-clients", "yes"],
            ["--tls-replication", "yes"],
        ];
        all.concat().into_iter().map(str::to_owned).collect()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
