//! What a certificate says.

use std::sync::Arc;

use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// Whom a certificate is for: its first URI, as SPIFFE has it, or else its first DNS name, its first
/// address of mail, or the common name of its subject. Its authority has checked that. One without
/// any of these, or with one that is too long, is known by its number: rules that count by it must
/// not miss anybody.
pub(super) fn name(certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map_or(&[][..], |names| &names.value.general_names);
    let first = |of: fn(&GeneralName<'_>) -> Option<Arc<str>>| names.iter().find_map(of);
    let uri = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => Some(Arc::from(*uri)),
        _ => None,
    };
    let dns = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(dns) => Some(Arc::from(*dns)),
        _ => None,
    };
    let mail = |name: &GeneralName<'_>| match name {
        GeneralName::RFC822Name(mail) => Some(Arc::from(*mail)),
        _ => None,
    };
    let common = || {
        let name = certificate.subject().iter_common_name().next()?;
        name.as_str().ok().map(Arc::from)
    };
    let name = first(uri).or_else(|| first(dns)).or_else(|| first(mail)).or_else(common);
    let name = name.filter(|name| !name.is_empty() && name.len() <= LONGEST);
    name.or_else(|| Some(format!("serial {}", certificate.raw_serial_as_string()).into()))
}

/// Seconds since 1970 until which it holds.
pub(super) fn not_after(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// The longest name: every key is made of them.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(common: &str, names: Vec<SanType>) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names = names;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn dns(name: &str) -> SanType {
        SanType::DnsName(name.try_into().unwrap())
    }

    fn uri(name: &str) -> SanType {
        SanType::URI(name.try_into().unwrap())
    }

    #[test]
    fn the_most_telling_name_is_taken() {
        let spiffe = || uri("spiffe://example.org/billing");
        let mail = || SanType::Rfc822Name("a@example.org".try_into().unwrap());
        for (names, expected) in [
            (vec![], "common"),
            (vec![mail()], "a@example.org"),
            (vec![mail(), dns("b.example.org"), dns("c.example.org")], "b.example.org"),
            (vec![dns("b.example.org"), spiffe()], "spiffe://example.org/billing"),
        ] {
            assert_eq!(name(&certificate("common", names)).as_deref(), Some(expected));
        }
    }

    #[test]
    fn who_has_no_name_has_a_number() {
        let long = format!("spiffe://{}", "a".repeat(LONGEST));
        for certificate in [certificate("", vec![]), certificate("common", vec![uri(&long)])] {
            let name = name(&certificate).unwrap();
            assert!(name.starts_with("serial ") && name.contains(':'), "{name}");
        }
        assert_eq!(name(&CertificateDer::from(&b"no certificate"[..])), None);
    }

    #[test]
    fn it_is_known_how_long_it_holds() {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2030, 1, 2);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(not_after(certificate.der()), Some(1_893_542_400));
    }
}
