//! The files that a rule file names.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

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

    /// Where a file is that is not text, and is read by somebody else: a database, which may be
    /// anywhere. `None` if there are no files on this machine to go with the rules.
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

/// Files in a folder, and in folders in it. Text is read from nowhere else: whoever may write rules
/// does not thereby read all that the process may. Links are followed, for rules cannot make any.
///
/// ```
/// use tollgate_rules::{Files, Folder};
/// let folder = Folder::of("limits/rules.yaml");
/// assert_eq!(folder.path().to_str(), Some("limits"));
/// assert!(folder.read("/etc/hostname").is_err() && folder.read("../secret").is_err());
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
        let below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(name).components().all(below) {
            let message = "only files in the folder of the rules are, named without `..` and \
                           without a slash at the beginning";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut bytes = Vec::new();
        open(&self.0.join(name))?.take(Self::MAX_BYTES + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > Self::MAX_BYTES {
            true => Err(too_large("it has", Self::MAX_BYTES)),
            false => text(bytes),
        }
    }
}

/// Opens what is a file. Anything else may have no end, or wait for somebody to write.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    let file = File::open(path)?;
    // It may be another by now.
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Bytes that must be text in UTF-8; the error says where they are not.
///
/// ```
/// let error = tollgate_rules::text(b"rules:\n\xff".to_vec()).unwrap_err();
/// assert_eq!(error.to_string(), "line 2 is not text in UTF-8");
/// ```
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let message = format!("line {line} is not text in UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn too_large(who: &str, most: u64) -> io::Error {
    let message = format!("{who} more than {} MB", most >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// Files of which only so much is read, all of them together: many rules can name one file.
pub(crate) struct Together<'f> {
    files: &'f dyn Files,
    left: Cell<u64>,
}

impl<'f> Together<'f> {
    pub(crate) const fn new(files: &'f dyn Files) -> Self {
        Self { files, left: Cell::new(Folder::MAX_BYTES) }
    }
}

impl Files for Together<'_> {
    fn read(&self, name: &str) -> io::Result<String> {
        let most = || too_large("all files that are named have together", Folder::MAX_BYTES);
        if self.left.get() == 0 {
            return Err(most());
        }
        let read = self.files.read(name);
        let length = match &read {
            Ok(text) => text.len() as u64,
            // All of it was read before that was known.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Folder::MAX_BYTES,
            Err(_) => 0,
        };
        match self.left.get().checked_sub(length) {
            Some(left) => self.left.set(left),
            None => {
                self.left.set(0);
                return read.and_then(|_| Err(most()));
            }
        }
        read
    }

    fn path_of(&self, name: &str) -> Option<PathBuf> {
        self.files.path_of(name)
    }
}
