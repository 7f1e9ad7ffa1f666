//! What the tests of the repository as a whole stand on: reading the tree, telling code from
//! comments and strings, and turning the written style into checks.
//!
//! The scanner knows just enough of Rust to measure it. It does not parse: it blanks out what is
//! not code and counts braces. `rustfmt` and the compiler have seen every file before, so code
//! that would confuse it does not get this far; what it does have to get right is shown by the
//! unit tests of each module, on good and on bad samples.
//!
//! Reading order: [`tree`] reads files, [`source`] separates code, comments and tests,
//! [`style`] and [`safety`] judge one file, [`markdown`] judges documents, [`workspace`] judges
//! what the manifests say, [`json_lines`] judges what programs print.

#![forbid(unsafe_code)]

pub mod json_lines;
pub mod markdown;
pub mod safety;
pub mod source;
pub mod style;
pub mod tree;
pub mod workspace;

use std::fmt;

/// A place in the tree that breaks a rule, and which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path relative to the root of the repository.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong, for the person who has to put it right.
    pub what: String,
}

impl Violation {
    /// A violation at `path:line`.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
