//! Output for machines: one JSON object per line, and nothing else.

use std::io::{self, BufRead};

use serde_json::{Map, Value};

/// How many objects `input` holds.
///
/// # Errors
///
/// When there is none, or a line is something else.
pub fn count(input: impl BufRead) -> Result<usize, Error> {
    let mut objects = 0;
    for (index, line) in input.lines().enumerate() {
        let parsed = serde_json::from_str::<Map<String, Value>>(&line?);
        parsed.map_err(|cause| Error::NotAnObject { line: index + 1, cause })?;
        objects += 1;
    }
    if objects == 0 { Err(Error::Empty) } else { Ok(objects) }
}

/// Why the output is not what it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input broke off.
    #[error("the input cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Whoever wrote it wrote nothing.
    #[error("no line at all")]
    Empty,
    /// A line is not a JSON object. Its writer is at fault.
    #[error("line {line} is not a JSON object: {cause}")]
    NotAnObject {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted() {
        assert_eq!(count(&b"{\"a\": 1}\n{}\n"[..]).expect("two objects"), 2);
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(matches!(count(&b""[..]), Err(Error::Empty)));
        for text in ["{}\n\n{}\n", "{}\nfaster\n", "{}\n[1]\n", "{}\n{\n}\n", "{}\n{} {}\n"] {
            let refused = matches!(count(text.as_bytes()), Err(Error::NotAnObject { line: 2, .. }));
            assert!(refused, "{text}");
        }
    }
}
