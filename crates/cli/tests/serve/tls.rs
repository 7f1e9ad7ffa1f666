//! Doors that speak TLS, to OpenSSL as Python has it, and to our own commands.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType, SerialNumber,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Server, python, run, until};

const RULES: &str = "rules:
  - { name: per-service, key: [client_cert], limit: 5/h }";

/// Somebody who signs certificates.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "who signs");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let authority = Self { folder: TempDir::new().unwrap(), issuer: Issuer::new(params, key) };
        fs::write(authority.path("ca.pem"), certificate.pem()).unwrap();
        authority
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes a certificate of this serial number for somebody, and its key.
    fn sign(&self, file: &str, name: SanType, serial: u64, usage: ExtendedKeyUsagePurpose) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, file);
        params.subject_alt_names = vec![name];
        params.serial_number = Some(SerialNumber::from(serial));
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        // The key first: whoever looks in between finds two that do not go together, and waits.
        fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
        fs::write(self.path(&format!("{file}.pem")), certificate.pem()).unwrap();
    }

    fn server(&self, serial: u64) {
        let name = SanType::DnsName("localhost".try_into().unwrap());
        self.sign("server", name, serial, ExtendedKeyUsagePurpose::ServerAuth);
    }

    fn client(&self, name: &str) {
        let uri = SanType::URI(format!("spiffe://example.org/{name}").as_str().try_into().unwrap());
        self.sign(name, uri, 7, ExtendedKeyUsagePurpose::ClientAuth);
    }

    fn serve(&self, more: &[&str]) -> Server {
        let (certificate, key) = (self.path("server.pem"), self.path("server.key"));
        let flags = ["--tls-certificate", &certificate, "--tls-key", &key];
        Server::with(RULES, &[&flags[..], more].concat())
    }
}

/// What a client that shows this certificate is answered at each door.
fn speak(server: &Server, folder: &Path, who: &str) -> Value {
    let port = |door| server.address(door).port().to_string();
    let (http, resp, grpc) = (port("http"), port("resp"), port("grpc"));
    let folder = folder.display().to_string();
    let told = python("tls_speaks.py", &[&folder, &http, &resp, &grpc, who]);
    serde_json::from_str(&told).unwrap()
}

#[test]
fn clients_with_certificates_are_let_in_and_counted_by_them() {
    let authority = Authority::new();
    authority.server(1);
    let ca = authority.path("ca.pem");
    let server = authority.serve(&["--tls-client-ca", &ca]);
    let folder = authority.folder.path();
    for name in ["billing", "search"] {
        authority.client(name);
        let told = speak(&server, folder, name);
        assert_eq!(told["http"]["remaining"], 5, "{told}");
        assert_eq!(told["resp"]["remaining"], 4, "each has its own: {told}");
        assert_eq!(told["grpc"]["health"], serde_json::json!([8, 1]), "{told}");
        let answers: [Vec<u8>; 2] =
            serde_json::from_value(told["grpc"]["answers"].clone()).unwrap();
        for (answer, left) in answers.iter().zip([3, 2]) {
            // The limit is field 3, and what is left of it field 4.
            let known = answer.windows(4).any(|bytes| *bytes == [24, 5, 32, left]);
            assert!(known, "{left} are left at every door: {answer:?}");
        }
        assert_eq!(speak(&server, folder, name)["http"]["remaining"], 2);
    }
    let told = speak(&server, folder, "nobody");
    for door in ["http", "resp", "grpc"] {
        assert!(told[door]["error"].is_string(), "{told}");
    }
    // Of another authority, under the same name.
    let other = Authority::new();
    other.client("stranger");
    for file in ["stranger.pem", "stranger.key"] {
        fs::copy(other.path(file), authority.path(file)).unwrap();
    }
    let told = speak(&server, folder, "stranger");
    assert!(told["http"]["error"].is_string() && told["resp"]["error"].is_string(), "{told}");
}

#[test]
fn certificates_follow_their_files_and_bad_ones_change_nothing() {
    let authority = Authority::new();
    authority.server(1);
    let mut server = authority.serve(&[]);
    let folder = authority.folder.path();
    let serial = |server: &Server| speak(server, folder, "nobody")["http"]["serial"].clone();
    assert_eq!(serial(&server), "01");
    fs::write(authority.path("server.pem"), "no certificate").unwrap();
    server.process.wait_for_line("certificates are refused, and the old ones stay");
    assert_eq!(serial(&server), "01");
    authority.server(2);
    until("the new certificate is shown", || (serial(&server) == "02").then_some(()));
}

#[test]
fn commands_speak_tls_and_say_what_is_wrong() {
    let authority = Authority::new();
    authority.server(1);
    authority.client("operator");
    let ca = authority.path("ca.pem");
    let server = authority.serve(&["--tls-client-ca", &ca]);
    let admin = format!("localhost:{}", server.address("admin").port());
    let (cert, key) = (authority.path("operator.pem"), authority.path("operator.key"));
    let top = ["keys", "top", "--server", &admin];
    let ran = run(&[&top[..], &["--ca", &ca, "--cert", &cert, "--key", &key]].concat());
    assert_eq!(ran.code, 0, "{}", ran.notes);
    let without = run(&[&top[..], &["--ca", &ca]].concat());
    assert_ne!(without.code, 0);
    let plain = run(&top);
    assert!(plain.code != 0 && plain.notes.contains("is no admin door"), "{}", plain.notes);
    let wrong = run(&[&top[..], &["--ca", &key]].concat());
    assert!(wrong.notes.contains("has no certificate in PEM"), "{}", wrong.notes);
}

#[test]
fn a_server_does_not_start_with_files_that_do_not_go_together() {
    let authority = Authority::new();
    authority.server(1);
    authority.client("other");
    let (certificate, key) = (authority.path("server.pem"), authority.path("other.key"));
    let off = ["--http", "off", "--resp", "off", "--grpc", "off", "--forward-auth", "off"];
    let flags = ["serve", "--tls-certificate", &certificate, "--tls-key", &key];
    let ran = run(&[&flags[..], &off].concat());
    assert_eq!(ran.code, 2, "{}", ran.notes);
    assert!(ran.notes.contains("cannot be used together"), "{}", ran.notes);
    let ran = run(&["serve", "--tls-certificate", "/nowhere.pem", "--tls-key", &key]);
    assert!(ran.notes.contains("/nowhere.pem cannot be used"), "{}", ran.notes);
}

#[test]
fn who_reads_late_gets_everything_and_who_does_not_read_is_cut_off() {
    let authority = Authority::new();
    authority.server(1);
    let config = authority.path("tollgate.toml");
    fs::write(&config, "[limits]\npatience = '8s'").unwrap();
    let server = authority.serve(&["--config", &config]);
    let port = |door| server.address(door).port().to_string();
    let folder = authority.folder.path().display().to_string();
    for (what, said) in [("reads", "read\n"), ("does not", "cut\n")] {
        let told = python("tls_slow.py", &[&folder, &port("resp"), &port("status"), what]);
        assert_eq!(told, said);
    }
}
