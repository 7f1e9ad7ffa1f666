//! Looking addresses up in databases, good and bad, and noticing new ones.
//!
//! Reading order: [`mmdb`] (how test databases are made), then the tests.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod mmdb;

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use mmdb::Value::{List, Map, Text, U32};
use mmdb::{Value, database};
use proptest::prelude::*;
use tempfile::TempDir;
use tollgate_rules::{Facts, Geo, GeoError, Report, Request, RuleSet, Source};

#[test]
fn operators_and_countries_are_found() {
    for ip_version in [4, 6] {
        let folder = Folder::new();
        let asn = folder.write("asn.mmdb", &asns(ip_version));
        let country = folder.write("country.mmdb", &countries(ip_version));
        let geo = Geo::open(Some(&asn), Some(&country)).unwrap();
        assert_eq!(geo.asn(ip("192.0.2.1")), Some(64_496));
        assert_eq!(geo.asn(ip("::ffff:192.0.2.1")), Some(64_496));
        assert_eq!(geo.asn(ip("198.51.100.1")), Some(4_200_000_000));
        assert_eq!(geo.asn(ip("203.0.113.1")), None);
        assert_eq!(country_of(&geo, "192.0.2.1"), "DE");
        assert_eq!(country_of(&geo, "198.51.100.1"), "-");
        assert_eq!(country_of(&geo, "203.0.113.1"), "-");
        let v6 = if ip_version == 6 { ("FR", Some(64_511)) } else { ("-", None) };
        assert_eq!((country_of(&geo, "2001:db8::1").as_str(), geo.asn(ip("2001:db8::1"))), v6);
        assert_eq!(country_of(&geo, "2001:db9::1"), "-");
    }
}

#[test]
fn a_rule_file_names_its_databases() {
    let folder = Folder::new();
    folder.write("asn.mmdb", &asns(6));
    folder.write("country.mmdb", &countries(6));
    let files = tollgate_rules::Folder::new(folder.path(""));
    let read = |geo: &str| {
        let rules = "rules: [{ name: a, match: { country: DE }, key: [asn], limit: 5/s }]";
        RuleSet::read(&Source::new("rules.yaml", format!("geo: {geo}\n{rules}")), &files)
    };
    let codes = |report: Report| -> Vec<_> {
        report.diagnostics().iter().map(|diagnostic| diagnostic.code()).collect()
    };
    let set = read("{ asn: asn.mmdb, country: country.mmdb }").unwrap();
    let applying = |address: &str| {
        let request = Request::new("GET", "/").peer(ip(address));
        set.applying(&Facts::new(&set, &request, set.geo())).len()
    };
    assert_eq!((applying("192.0.2.1"), applying("198.51.100.1")), (1, 0));
    assert_eq!(set.needs().geo_asn.as_deref(), Some("a"));
    assert_eq!(codes(read("{ asn: asn.mmdb }").unwrap_err()), ["no-geo"]);
    let wrong = read("{ asn: country.mmdb, country: missing.mmdb }").unwrap_err();
    assert_eq!(codes(wrong), ["unreadable-file", "unreadable-file"]);
}

#[test]
fn one_database_is_enough() {
    let folder = Folder::new();
    let asn = folder.write("asn.mmdb", &asns(6));
    let geo = Geo::open(Some(&asn), None).unwrap();
    assert_eq!(geo.asn(ip("192.0.2.1")), Some(64_496));
    assert_eq!(country_of(&geo, "192.0.2.1"), "-");
}

#[test]
fn other_layouts_are_read_as_well() {
    let folder = Folder::new();
    let record = |value| database(6, &[("192.0.2.0/24", Map(value))]);
    let flat = [
        ("a", vec![("country", Text("Germany")), ("country_code", Text("DE"))]),
        ("b", vec![("city", Text("Berlin")), ("country", Text("DE"))]),
    ];
    for (name, record_of) in flat {
        let geo = Geo::open(None, Some(&folder.write(name, &record(record_of)))).unwrap();
        assert_eq!(country_of(&geo, "192.0.2.1"), "DE", "{name}");
    }
    for (name, asn) in [("c", Text("AS64496")), ("d", U32(64_496))] {
        let geo = Geo::open(Some(&folder.write(name, &record(vec![("asn", asn)]))), None).unwrap();
        assert_eq!(geo.asn(ip("192.0.2.1")), Some(64_496), "{name}");
    }
}

#[test]
fn a_database_about_something_else_is_refused() {
    let folder = Folder::new();
    let asn = folder.write("asn.mmdb", &asns(6));
    let error = Geo::open(None, Some(&asn)).unwrap_err();
    let expected = format!(
        "`{}`, a database of the type `Tollgate-Test`, holds no countries: name one that does, \
         such as GeoLite2-Country",
        asn.display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(
        Geo::open(Some(&folder.write("country.mmdb", &countries(6))), None),
        Err(GeoError::Unrelated { .. })
    ));
}

#[test]
fn what_is_no_database_is_refused() {
    let folder = Folder::new();
    for (name, bytes) in [("empty", &b""[..]), ("text", b"hello"), ("half", &asns(6)[..99])] {
        let error = Geo::open(Some(&folder.write(name, bytes)), None).unwrap_err();
        assert!(matches!(error, GeoError::Invalid { .. }), "{error}");
    }
    let missing = Geo::open(Some(&folder.path("missing")), None).unwrap_err();
    assert!(matches!(missing, GeoError::Read { .. }), "{missing}");
    let folder = Geo::open(Some(folder.0.path()), None).unwrap_err();
    assert!(matches!(folder, GeoError::Read { .. }), "{folder}");
}

#[test]
fn too_large_files_are_not_read() {
    let folder = Folder::new();
    let path = folder.path("large.mmdb");
    File::create(&path).unwrap().set_len(Geo::MAX_FILE_BYTES + 1).unwrap();
    let error = Geo::open(None, Some(&path)).unwrap_err();
    assert!(matches!(error, GeoError::TooLarge { .. }), "{error}");
}

#[test]
fn a_tree_without_an_end_is_refused_in_finite_time() {
    let folder = Folder::new();
    // Every record of every node leads to the next node, and those of the last to nothing: two to
    // the power of 100 ways, and data on none of them.
    let mut bytes = database(6, &[("2001:db8::/100", Text("x"))]);
    for node in 0..100_u32 {
        let start = node as usize * 6;
        let next = (node + 1).to_be_bytes();
        bytes[start..start + 3].copy_from_slice(&next[1..]);
        bytes[start + 3..start + 6].copy_from_slice(&next[1..]);
    }
    let error = Geo::open(None, Some(&folder.write("endless.mmdb", &bytes))).unwrap_err();
    assert!(matches!(error, GeoError::Unrelated { .. }), "{error}");
}

#[test]
fn a_changed_file_is_read_again() {
    let folder = Folder::new();
    let country = folder.write("country.mmdb", &countries(6));
    let asn = folder.write("asn.mmdb", &asns(6));
    let mut geo = Geo::open(Some(&asn), Some(&country)).unwrap();
    let before = geo.clone();
    assert!(!geo.reload_if_changed().unwrap());

    folder.write("country.mmdb", &database(6, &[("192.0.2.0/24", located("CH"))]));
    assert!(geo.reload_if_changed().unwrap());
    assert!(!geo.reload_if_changed().unwrap());
    assert_eq!(country_of(&geo, "192.0.2.1"), "CH");
    assert_eq!(geo.asn(ip("192.0.2.1")), Some(64_496));
    assert_eq!(country_of(&before, "192.0.2.1"), "DE");
}

#[test]
fn clones_hold_the_same_files_until_one_reads_others() {
    let folder = Folder::new();
    let (asn, country) = (folder.write("a.mmdb", &asns(4)), folder.write("c.mmdb", &countries(4)));
    let geo = Geo::open(Some(&asn), Some(&country)).unwrap();
    let mut clone = geo.clone();
    assert!(clone.shares_with(&geo));
    folder.write("a.mmdb", &asns(6));
    assert!(clone.reload_if_changed().unwrap());
    assert!(!clone.shares_with(&geo), "the other half is still the same");
    assert!(!geo.shares_with(&Geo::open(Some(&asn), Some(&country)).unwrap()), "read again");
}

#[test]
fn a_file_of_the_same_length_is_told_by_its_time() {
    let folder = Folder::new();
    let one = |country| database(6, &[("192.0.2.0/24", located(country))]);
    let path = folder.write("country.mmdb", &one("DE"));
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::options().write(true).open(&path).unwrap().set_modified(at(1)).unwrap();
    let mut geo = Geo::open(None, Some(&path)).unwrap();

    folder.write("country.mmdb", &one("CH"));
    File::options().write(true).open(&path).unwrap().set_modified(at(2)).unwrap();
    assert!(geo.reload_if_changed().unwrap());
    assert_eq!(country_of(&geo, "192.0.2.1"), "CH");
}

#[test]
fn a_bad_file_changes_nothing_until_it_is_mended() {
    let folder = Folder::new();
    let country = folder.write("country.mmdb", &countries(6));
    let asn = folder.write("asn.mmdb", &asns(6));
    let mut geo = Geo::open(Some(&asn), Some(&country)).unwrap();

    folder.write("asn.mmdb", &database(6, &[("192.0.2.0/24", operated(1))]));
    folder.write("country.mmdb", &countries(6)[..200]);
    for _ in 0..2 {
        assert!(matches!(geo.reload_if_changed(), Err(GeoError::Invalid { .. })));
        assert_eq!(country_of(&geo, "192.0.2.1"), "DE");
        assert_eq!(geo.asn(ip("192.0.2.1")), Some(64_496));
    }
    fs::remove_file(&country).unwrap();
    assert!(matches!(geo.reload_if_changed(), Err(GeoError::Read { .. })));
    assert_eq!(country_of(&geo, "192.0.2.1"), "DE");

    folder.write("country.mmdb", &database(6, &[("192.0.2.0/24", located("CH"))]));
    assert!(geo.reload_if_changed().unwrap());
    assert_eq!(country_of(&geo, "192.0.2.1"), "CH");
    assert_eq!(geo.asn(ip("192.0.2.1")), Some(1));
}

proptest! {
    #[test]
    fn damaged_databases_never_panic(
        ip_version in prop::sample::select(vec![4_u16, 6]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in prop::option::weighted(0.1, any::<prop::sample::Index>()),
        addresses in prop::collection::vec(any::<IpAddr>(), 8),
    ) {
        let folder = Folder::new();
        let damaged = |mut bytes: Vec<u8>| {
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            bytes.truncate(end.map_or(bytes.len(), |end| end.index(bytes.len())));
            bytes
        };
        let asn = folder.write("asn.mmdb", &damaged(asns(ip_version)));
        let country = folder.write("country.mmdb", &damaged(countries(ip_version)));
        let known = ["192.0.2.1", "198.51.100.1", "2001:db8::1"].map(ip);
        for (asn, country) in [(Some(&*asn), None), (None, Some(&*country))] {
            let Ok(geo) = Geo::open(asn, country) else { continue };
            for address in known.iter().chain(&addresses) {
                let _ = (geo.asn(*address), geo.country(*address));
            }
        }
    }
}

/// A folder that is removed in the end.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

fn asns(ip_version: u16) -> Vec<u8> {
    let v4 = [("192.0.2.0/24", operated(64_496)), ("198.51.100.0/25", operated(4_200_000_000))];
    let v6 = [("2001:db8::/32", operated(64_511))];
    database(ip_version, &of_version(ip_version, v4, v6))
}

fn countries(ip_version: u16) -> Vec<u8> {
    let nowhere = Map(vec![("continent", Map(vec![("code", Text("EU"))]))]);
    let v4 = [("192.0.2.0/24", located("DE")), ("198.51.100.0/25", nowhere)];
    let v6 = [("2001:db8::/32", located("FR"))];
    database(ip_version, &of_version(ip_version, v4, v6))
}

fn of_version(
    ip_version: u16,
    v4: [(&'static str, Value); 2],
    v6: [(&'static str, Value); 1],
) -> Vec<(&'static str, Value)> {
    v4.into_iter().chain(v6.into_iter().filter(|_| ip_version == 6)).collect()
}

/// A record as GeoLite2-ASN has it.
fn operated(number: u32) -> Value {
    let name = ("autonomous_system_organization", Text("Example"));
    Map(vec![name, ("autonomous_system_number", U32(number))])
}

/// A record as GeoLite2-Country has it.
fn located(code: &'static str) -> Value {
    let continent = Map(vec![("code", Text("EU")), ("names", List(vec![Text("Europe")]))]);
    let country = Map(vec![("geoname_id", U32(1)), ("iso_code", Text(code))]);
    Map(vec![("continent", continent), ("country", country)])
}

fn country_of(geo: &Geo, address: &str) -> String {
    geo.country(ip(address)).map_or_else(|| "-".to_owned(), |country| country.to_string())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
