//! The files that a rule file names.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where the files are that a rule file names: lists of overrides, databases of networks.
///
/// ```
/// use tollgate_rules::{Files, NoFiles};
/// assert!(NoFiles.read("overrides.csv").is_err());
/// ```
pub trait Files {
    /// The text of a file.
    ///
    /// ```
    /// # use tollgate_rules::{Files, Folder};
    /// assert!(Folder::new(".").read("there is no such file").is_err());
    /// ```
    fn read(&self, name: &str) -> io::Result<String>;

    /// Where a file is that is not text, and is read by somebody else. `None` if there are no
    /// files on this machine to go with the rules.
    ///
    /// ```
    /// # use std::path::Path;
    /// # use tollgate_rules::{Files, Folder, NoFiles};
    /// let found = Folder::new("/etc").path_of("asn.mmdb");
    /// assert_eq!(found.as_deref(), Some(Path::new("/etc/asn.mmdb")));
    /// assert_eq!(NoFiles.path_of("asn.mmdb"), None);
    /// ```
    fn path_of(&self, name: &str) -> Option<PathBuf> {
        let _ = name;
        None
    }
}

/// There are none: for rules that come as text alone.
///
/// ```
/// use tollgate_rules::{NoFiles, RuleSet, Source};
/// let source = Source::new("inline", "rules: [{ name: a, key: [], limit: 5/s }]");
/// assert!(RuleSet::read(&source, &NoFiles).is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "these rules did not come from a file"))
    }
}

/// Files in a folder: names that are not absolute are looked for there.
///
/// ```
/// use tollgate_rules::Folder;
/// let folder = Folder::of("limits/rules.yaml");
/// assert_eq!(folder.path().to_str(), Some("limits"));
/// ```
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The longest file that is read, in bytes.
    pub const MAX_BYTES: u64 = 1 << 30;

    /// The files of this folder.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Folder::new("/etc").path().to_str(), Some("/etc"));
    /// ```
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The files beside this one.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Folder::of("rules.yaml").path().to_str(), Some(""));
    /// ```
    pub fn of(file: impl AsRef<Path>) -> Self {
        Self(file.as_ref().parent().unwrap_or_else(|| Path::new("")).to_owned())
    }

    /// The folder.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Folder::new("a").path().to_str(), Some("a"));
    /// ```
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Files for Folder {
    fn path_of(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.join(name))
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        let file = std::fs::File::open(self.0.join(name))?;
        let read = file.take(Self::MAX_BYTES + 1).read_to_string(&mut text)?;
        if read as u64 > Self::MAX_BYTES {
            let most = Self::MAX_BYTES >> 20;
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("more than {most} MB"),
            ));
        }
        Ok(text)
    }
}
