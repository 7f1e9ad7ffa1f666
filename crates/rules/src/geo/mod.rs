//! Where an address is, and whose network it is in: databases in MaxMind's format.

mod country;
mod database;
mod read;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maxminddb::MaxMindDbError;

pub use self::country::{Country, CountryError};
use self::database::{ASN, COUNTRY, Database, Kind};

/// What databases say about addresses: the number of the network operator, and the country.
///
/// It holds the files in memory. A clone shares them, so that one part of a program can
/// [reload](Self::reload_if_changed) while others go on with what they have.
///
/// ```
/// use tollgate_rules::Geo;
/// let geo = Geo::open(None, None)?;
/// assert_eq!(geo.asn("192.0.2.1".parse().unwrap()), None);
/// # Ok::<(), tollgate_rules::GeoError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Geo {
    asn: Option<Arc<Database<u32>>>,
    country: Option<Arc<Database<Country>>>,
}

/// Why a database cannot be used. The file is at fault; whoever has another one keeps it.
///
/// ```
/// use std::path::Path;
/// use tollgate_rules::{Geo, GeoError};
/// let error = Geo::open(Some(Path::new("missing.mmdb")), None).unwrap_err();
/// assert!(matches!(error, GeoError::Read { .. }));
/// assert!(error.to_string().starts_with("cannot read `missing.mmdb`: "));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeoError {
    /// The file is missing, or may not be read.
    #[error("cannot read `{}`: {source}; check that the file is there and readable", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is larger than [`Geo::MAX_FILE_BYTES`].
    #[error("`{}` has more than {max} bytes: is it a database of networks?", .file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// How many bytes it may have.
        max: u64,
    },
    /// The file is not in MaxMind's format, or is damaged.
    #[error("`{}` is no sound MaxMind database: {source}; fetch it again", .file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: MaxMindDbError,
    },
    /// The database is about something else.
    #[error(
        "`{}`, a database of the type `{database_type}`, holds no {wanted}: \
         name one that does, such as {example}",
        .file.display()
    )]
    Unrelated {
        /// The file.
        file: PathBuf,
        /// What the database calls itself.
        database_type: String,
        /// What it was to hold.
        wanted: &'static str,
        /// A database that holds it.
        example: &'static str,
    },
}

impl Geo {
    /// The largest file that is read: 512 MiB, several times what such databases have.
    pub const MAX_FILE_BYTES: u64 = 512 << 20;

    /// Reads a database of network operators (such as GeoLite2-ASN), one of countries (such as
    /// GeoLite2-Country or GeoLite2-City), or both.
    ///
    /// ```
    /// use std::path::Path;
    /// use tollgate_rules::Geo;
    /// assert!(Geo::open(None, Some(Path::new("missing.mmdb"))).is_err());
    /// ```
    pub fn open(asn: Option<&Path>, country: Option<&Path>) -> Result<Self, GeoError> {
        let asn = asn.map(|file| Database::open(file, &ASN)).transpose()?;
        let country = country.map(|file| Database::open(file, &COUNTRY)).transpose()?;
        Ok(Self { asn: asn.map(Arc::new), country: country.map(Arc::new) })
    }

    /// The number of the operator in whose network the address is. `None` if that is not known,
    /// be it that there is no such database, or that its record is damaged.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Geo::default().asn("192.0.2.1".parse().unwrap()), None);
    /// ```
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        self.asn.as_ref()?.look_up(ip)
    }

    /// The country that the address is in. `None` if that is not known, as with
    /// [`asn`](Self::asn).
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Geo::default().country("192.0.2.1".parse().unwrap()), None);
    /// ```
    pub fn country(&self, ip: IpAddr) -> Option<Country> {
        self.country.as_ref()?.look_up(ip)
    }

    /// Whether both hold the same files in memory, as clones do until one of them reloads.
    ///
    /// ```
    /// use tollgate_rules::Geo;
    /// let geo = Geo::default();
    /// assert!(geo.shares_with(&geo.clone()));
    /// ```
    pub fn shares_with(&self, other: &Self) -> bool {
        same(self.asn.as_ref(), other.asn.as_ref())
            && same(self.country.as_ref(), other.country.as_ref())
    }

    /// Whether there is a database of network operators, and one of countries.
    pub(crate) const fn knows(&self) -> (bool, bool) {
        (self.asn.is_some(), self.country.is_some())
    }

    /// Reads those files again whose time of modification or length is another than when they
    /// were read. Says whether there were any.
    ///
    /// After an error everything is as it was, also if another file was good, and the next call
    /// tries again. While a file is read, the old one is still in memory.
    ///
    /// ```
    /// use tollgate_rules::Geo;
    /// let mut geo = Geo::default();
    /// assert!(!geo.reload_if_changed()?);
    /// # Ok::<(), tollgate_rules::GeoError>(())
    /// ```
    pub fn reload_if_changed(&mut self) -> Result<bool, GeoError> {
        let asn = newer(self.asn.as_deref(), &ASN)?;
        let country = newer(self.country.as_deref(), &COUNTRY)?;
        let changed = asn.is_some() || country.is_some();
        self.asn = asn.or_else(|| self.asn.take());
        self.country = country.or_else(|| self.country.take());
        Ok(changed)
    }
}

fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

/// The database anew, if its file has changed.
fn newer<T>(
    old: Option<&Database<T>>,
    kind: &'static Kind<T>,
) -> Result<Option<Arc<Database<T>>>, GeoError> {
    match old {
        Some(old) if old.has_changed()? => Ok(Some(Arc::new(Database::open(old.file(), kind)?))),
        _ => Ok(None),
    }
}
