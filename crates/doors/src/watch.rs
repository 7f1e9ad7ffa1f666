//! Files that are read again when they change: first of all the rule file.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tollgate_rules::{Files, Folder, Report, RuleSet, Source};

/// A rule file, with the files that it names, read again when one of them changes.
#[derive(Debug)]
pub struct Watched {
    path: PathBuf,
    /// Everything that was read, as it was then.
    stamps: Stamps,
}

/// Files as they were at one time.
///
/// ```
/// use tollgate_doors::Stamps;
/// let file = std::env::temp_dir().join("tollgate-no-such-file");
/// let stamps: Stamps = [file].into_iter().collect();
/// assert!(!stamps.have_changed(), "it is not there, as before");
/// ```
#[derive(Debug, Default)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Whether one of them is another one now.
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, known)| stamp(path) != *known)
    }
}

impl FromIterator<PathBuf> for Stamps {
    /// These files as they are now.
    fn from_iter<T: IntoIterator<Item = PathBuf>>(paths: T) -> Self {
        Self(paths.into_iter().map(stamped).collect())
    }
}

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// What it says is wrong.
    #[error("the rules in {} cannot be used", text.name())]
    Rules {
        /// What it says.
        text: Box<Source>,
        /// What is wrong with it.
        report: Report,
    },
}

impl LoadError {
    /// For people, with the places in the file.
    pub fn to_text(&self) -> String {
        match self {
            Self::Read { .. } => self.to_string(),
            Self::Rules { text, report } => report.to_text(text),
        }
    }
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds. The change time, which nobody can set.
    changed: (i64, i64),
}

impl Watched {
    /// The file of this name.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), stamps: Stamps::default() }
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the rules. From now on, changes are changes of what was read, also if it was wrong.
    pub fn load(&mut self) -> Result<(Source, RuleSet), LoadError> {
        // Stamps first: what is written while we read is a change.
        self.stamps = Stamps::from_iter([self.path.clone()]);
        let source = read(&self.path)?;
        let files = Noting { folder: Folder::of(&self.path), stamps: RefCell::default() };
        let rules = RuleSet::read(&source, &files);
        self.stamps.0.extend(files.stamps.into_inner());
        match rules {
            Ok(rules) => Ok((source, rules)),
            Err(report) => Err(LoadError::Rules { text: Box::new(source), report }),
        }
    }

    /// Whether something is different from what was read.
    pub fn has_changed(&self) -> bool {
        self.stamps.have_changed()
    }
}

fn read(path: &Path) -> Result<Source, LoadError> {
    let failed = |error| LoadError::Read { path: path.to_owned(), error };
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // One byte more than is allowed: whoever reads the text then says that it is too much.
    let most = Source::MAX_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    let text = match bytes.len() > Source::MAX_BYTES {
        true => String::from_utf8_lossy(&bytes).into_owned(),
        false => tollgate_rules::text(bytes).map_err(failed)?,
    };
    Ok(Source::new(path.display().to_string(), text))
}

fn stamp(path: &Path) -> Option<Stamp> {
    let known = fs::metadata(path).ok()?;
    Some(Stamp {
        device: known.dev(),
        inode: known.ino(),
        length: known.len(),
        changed: (known.ctime(), known.ctime_nsec()),
    })
}

fn stamped(path: PathBuf) -> (PathBuf, Option<Stamp>) {
    let stamp = stamp(&path);
    (path, stamp)
}

/// The files of a folder, and which of them were read.
struct Noting {
    folder: Folder,
    stamps: RefCell<Vec<(PathBuf, Option<Stamp>)>>,
}

impl Files for Noting {
    fn read(&self, name: &str) -> io::Result<String> {
        self.stamps.borrow_mut().push(stamped(self.folder.path().join(name)));
        self.folder.read(name)
    }

    fn path_of(&self, name: &str) -> Option<PathBuf> {
        let path = self.folder.path_of(name)?;
        self.stamps.borrow_mut().push(stamped(path.clone()));
        Some(path)
    }
}
