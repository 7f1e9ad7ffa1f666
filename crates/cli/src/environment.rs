//! The environment, which nobody else reads.

use std::ffi::OsString;

/// The value of a variable.
#[expect(clippy::disallowed_methods, reason = "the binary reads its environment, here")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
