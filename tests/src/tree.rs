//! The files of the repository, as text.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Every text file of the repository.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    files: Vec<File>,
}

impl Tree {
    /// Reads the repository this crate belongs to.
    ///
    /// # Errors
    ///
    /// When a folder or a file cannot be read.
    pub fn of_this_repository() -> io::Result<Self> {
        Self::read(&repository())
    }

    /// Reads all text files under `root`, in order of their paths.
    ///
    /// Left out are what git keeps, what cargo builds (folders with a `CACHEDIR.TAG`, wherever
    /// `CARGO_TARGET_DIR` puts them), symbolic links, and files that are not UTF-8.
    ///
    /// # Errors
    ///
    /// When a folder or a file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self { root: root.to_owned(), files: Vec::new() };
        tree.read_folder(root)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// All files.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Files whose name ends in `.extension`.
    pub fn with_extension(&self, extension: &str) -> impl Iterator<Item = &File> {
        self.files
            .iter()
            .filter(move |file| Path::new(&file.path).extension().is_some_and(|e| e == extension))
    }

    /// Whether something exists at `path`, relative to the root.
    pub fn holds(&self, path: &Path) -> bool {
        self.root.join(path).exists()
    }

    fn read_folder(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_symlink() || is_foreign(&path) {
                continue;
            }
            if path.is_dir() {
                self.read_folder(&path)?;
            } else if let Some(text) = read_text(&path)? {
                let path = path.strip_prefix(&self.root).unwrap_or(&path);
                let path = path.to_string_lossy().replace('\\', "/");
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }
}

/// One text file.
#[derive(Debug, Clone)]
pub struct File {
    /// Path relative to the root, with forward slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// The root of the repository this crate belongs to.
///
/// Cargo names it when it starts a test. What it named when the test was compiled may be another
/// checkout that builds into the same folder, and judging that one would say nothing about this.
#[expect(clippy::disallowed_methods, reason = "cargo tells tests where they are this way")]
pub fn repository() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_owned)
}

fn is_foreign(path: &Path) -> bool {
    // In a worktree of git, it is a file. Cargo only tags a folder that it created itself, so the
    // usual one goes by its name as well.
    path.ends_with(".git")
        || path.join("CACHEDIR.TAG").exists()
        || path == repository().join("target")
}

fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        // A file another process removed while we were walking is not there to be judged.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_repository_and_not_what_cargo_built() {
        let tree = Tree::of_this_repository().expect("the tree is readable");
        let paths: Vec<_> = tree.files().iter().map(|file| file.path.as_str()).collect();
        assert!(paths.contains(&"Cargo.toml"), "{paths:?}");
        assert!(paths.contains(&"tests/src/tree.rs"), "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with("target/")), "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with(".git/")), "{paths:?}");
        assert!(!paths.contains(&".git"), "{paths:?}");
    }

    #[test]
    fn tells_files_by_extension() {
        let tree = Tree::of_this_repository().expect("the tree is readable");
        assert!(tree.with_extension("rs").any(|file| file.path == "tests/src/tree.rs"));
        assert!(tree.with_extension("rs").all(|file| file.path.ends_with(".rs")));
    }
}
