//! One file, and the one thing that is looked up in it.

use std::fs;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use maxminddb::PathElement::{self, Key};
use maxminddb::{LookupResult, Reader, WithinOptions};

use super::{Country, Geo, GeoError};
use crate::files::open;

/// A database in memory.
#[derive(Debug)]
pub(super) struct Database<T: 'static> {
    file: PathBuf,
    stamp: Stamp,
    reader: Reader<Vec<u8>>,
    layout: &'static Layout<T>,
}

/// What databases are asked for.
pub(super) struct Kind<T: 'static> {
    what: &'static str,
    example: &'static str,
    layouts: &'static [Layout<T>],
}

/// Where in a record it stands, and how it is written.
#[derive(Debug)]
struct Layout<T> {
    path: &'static [PathElement<'static>],
    read: fn(&Record<'_>, &[PathElement<'_>]) -> Option<T>,
}

type Record<'a> = LookupResult<'a, Vec<u8>>;

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl<T> Database<T> {
    pub(super) fn open(file: &Path, kind: &'static Kind<T>) -> Result<Self, GeoError> {
        let (stamp, bytes) = read(file)?;
        let invalid = |source| GeoError::Invalid { file: file.to_owned(), source };
        let reader = Reader::from_source(bytes).map_err(invalid)?;
        // Networks without data and aliases are wanted as well: in a damaged tree, what is left
        // out can be so much that the search for something else never ends.
        let all = WithinOptions::default().include_networks_without_data();
        let all = all.include_aliased_networks();
        for record in reader.networks(all).map_err(invalid)?.take(SAMPLE) {
            let record = record.map_err(invalid)?;
            let fits = |layout: &&Layout<T>| layout.value(&record).is_some();
            if let Some(layout) = kind.layouts.iter().find(fits) {
                return Ok(Self { file: file.to_owned(), stamp, reader, layout });
            }
        }
        Err(GeoError::Unrelated {
            file: file.to_owned(),
            database_type: reader.metadata().database_type.clone(),
            wanted: kind.what,
            example: kind.example,
        })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn has_changed(&self) -> Result<bool, GeoError> {
        let metadata = fs::metadata(&self.file).map_err(unreadable(&self.file))?;
        Ok(Stamp::of(&metadata) != self.stamp)
    }

    /// Allocates nothing, unless the record is damaged: only the one field is decoded, and the
    /// reader's errors alone own memory.
    pub(super) fn look_up(&self, ip: IpAddr) -> Option<T> {
        let ip = ip.to_canonical();
        if ip.is_ipv6() && self.reader.metadata().ip_version == 4 {
            return None;
        }
        self.layout.value(&self.reader.lookup(ip).ok()?)
    }
}

impl<T> Layout<T> {
    fn value(&self, record: &Record<'_>) -> Option<T> {
        (self.read)(record, self.path)
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        // Where files have no time of modification, their length has to do.
        Self { modified: metadata.modified().ok(), length: metadata.len() }
    }
}

/// The bytes of a file, and its stamp from before they were read: if it changes meanwhile, it
/// will be seen to have changed.
fn read(file: &Path) -> Result<(Stamp, Vec<u8>), GeoError> {
    let max = Geo::MAX_FILE_BYTES;
    let too_large = || GeoError::TooLarge { file: file.to_owned(), max };
    let opened = open(file).map_err(unreadable(file))?;
    let stamp = Stamp::of(&opened.metadata().map_err(unreadable(file))?);
    if stamp.length > max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // One more than it has, so that reading finds the end without making room for more.
    bytes.reserve_exact(usize::try_from(stamp.length).unwrap_or(0).saturating_add(1));
    let length = opened.take(max + 1).read_to_end(&mut bytes).map_err(unreadable(file))?;
    match u64::try_from(length) {
        Ok(length) if length <= max => Ok((stamp, bytes)),
        _ => Err(too_large()),
    }
}

fn unreadable(file: &Path) -> impl FnOnce(io::Error) -> GeoError {
    |source| GeoError::Read { file: file.to_owned(), source }
}

/// Numbers of network operators.
pub(super) static ASN: Kind<u32> = Kind {
    what: "numbers of network operators",
    example: "GeoLite2-ASN",
    layouts: &[
        Layout { path: &[Key("autonomous_system_number")], read: number },
        Layout { path: &[Key("asn")], read: number },
        Layout { path: &[Key("asn")], read: number_behind_as },
    ],
};

/// Countries.
pub(super) static COUNTRY: Kind<Country> = Kind {
    what: "countries",
    example: "GeoLite2-Country",
    layouts: &[
        Layout { path: &[Key("country"), Key("iso_code")], read: country },
        Layout { path: &[Key("country_code")], read: country },
        Layout { path: &[Key("country")], read: country },
    ],
};

/// How many networks are looked at to learn how a database is laid out. Nearly always one of the
/// first few has what is wanted.
const SAMPLE: usize = 10_000;

fn number(record: &Record<'_>, path: &[PathElement<'_>]) -> Option<u32> {
    record.decode_path(path).ok()?
}

/// `AS64496`.
fn number_behind_as(record: &Record<'_>, path: &[PathElement<'_>]) -> Option<u32> {
    let text: &str = record.decode_path(path).ok()??;
    text.strip_prefix("AS")?.parse().ok()
}

fn country(record: &Record<'_>, path: &[PathElement<'_>]) -> Option<Country> {
    let text: &str = record.decode_path(path).ok()??;
    text.parse().ok()
}
