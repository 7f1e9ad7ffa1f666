//! Reading and writing rule files.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;
use tollgate_rules::{Folder, RequestLine, RuleSet, Source};

use crate::error::Error;

/// What means standard input instead of a file.
pub(crate) const STDIN: &str = "-";

/// The text of a file.
pub(crate) fn read(file: &str) -> Result<Source, Error> {
    let text = match file {
        STDIN => read_text(io::stdin().lock()),
        _ => File::open(file).and_then(read_text),
    };
    let name = if file == STDIN { "standard input" } else { file };
    match text {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => Err(Error::Read { file: name.to_owned(), error }),
    }
}

fn read_text(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    // One byte more than is allowed: whoever reads the text then says that it is too much.
    from.take(Source::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > Source::MAX_BYTES {
        // The end may be half a character, which is not what is wrong with it.
        true => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        false => tollgate_rules::text(bytes),
    }
}

/// The rules of a file. Files that it names are looked for beside it.
pub(crate) fn load(file: &str) -> Result<(Source, RuleSet), Error> {
    let source = read(file)?;
    let folder = if file == STDIN { Folder::new("") } else { Folder::of(file) };
    match RuleSet::read(&source, &folder) {
        Ok(rules) => Ok((source, rules)),
        Err(report) => Err(Error::Rules { text: Box::new(source), report }),
    }
}

/// A request on the command line, as these rules see it.
pub(crate) fn request(line: &str, rules: &RuleSet) -> Result<RequestLine, Error> {
    let request = line.parse().and_then(|line: RequestLine| line.for_tiers(rules.tiers()));
    request.map_err(|error| Error::Request { line: line.to_owned(), error })
}

/// Replaces the text of a file: as a whole, or not at all.
pub(crate) fn replace(file: &str, text: &str) -> Result<(), Error> {
    let replaced = || -> io::Result<()> {
        // What a link leads to is replaced, not the link.
        let path = fs::canonicalize(file)?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut new = NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
        new.as_file().sync_all()?;
        new.persist(&path)?;
        Ok(())
    };
    replaced().map_err(|error| Error::Write { file: file.to_owned(), error })
}

/// Writes a new file; one that is there is replaced only by `force`.
pub(crate) fn create(file: &str, text: &str, force: bool) -> Result<(), Error> {
    match File::create_new(file) {
        Ok(mut new) => {
            let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all());
            written.map_err(|error| {
                // Half a rule file is worse than none. If it stays, the error says enough.
                let _ = fs::remove_file(file);
                Error::Write { file: file.to_owned(), error }
            })
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match force {
            true => replace(file, text),
            false => Err(Error::Exists { file: file.to_owned() }),
        },
        Err(error) => Err(Error::Write { file: file.to_owned(), error }),
    }
}
