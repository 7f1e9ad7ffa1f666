//! Unsafe code: where it is, and whether it says why it is sound.

use crate::Violation;
use crate::source::Source;
use crate::tree::File;

/// The lines that use the keyword `unsafe`.
pub fn unsafe_lines(file: &File) -> Vec<usize> {
    let source = Source::parse(&file.path, &file.text);
    source.find("unsafe").into_iter().map(|at| source.line_of(at)).collect()
}

/// Unsafe blocks and impls without a `SAFETY:` comment right before them.
///
/// The comment may stand on the same line, or above the statement or the attributes the keyword
/// belongs to.
pub fn unexplained(file: &File) -> Vec<Violation> {
    let source = Source::parse(&file.path, &file.text);
    let code = source.code_lines();
    let comments = source.comment_lines();
    let mut found = Vec::new();
    for at in source.find("unsafe") {
        let rest: String = source.code()[at + "unsafe".len()..].iter().take(64).collect();
        let rest = rest.trim_start();
        let needs_reason = rest.starts_with('{') || rest.starts_with("impl");
        let line = source.line_of(at);
        if needs_reason && !is_explained(&code, &comments, line - 1) {
            let what = "unsafe without a `SAFETY:` comment above it";
            found.push(Violation::new(&file.path, line, what));
        }
    }
    found
}

/// Whether the file starts with the attribute `#![level(unsafe_code)]`.
pub fn has_level(file: &File, level: &str) -> bool {
    let source = Source::parse(&file.path, &file.text);
    !source.find(&format!("#![{level}(unsafe_code)]")).is_empty()
}

/// Walks up from `line` through comments, attributes and the beginning of the same statement.
fn is_explained(code: &[String], comments: &[String], line: usize) -> bool {
    if comments[line].contains(REASON) {
        return true;
    }
    for above in (0..line).rev() {
        let code = code[above].trim();
        if comments[above].contains(REASON) {
            return code.is_empty();
        }
        let is_comment = code.is_empty() && !comments[above].trim().is_empty();
        let is_attribute = code.starts_with('#');
        let is_blank = code.is_empty() && !is_comment;
        let ends_here = code.ends_with([';', '{', '}', ',']);
        if is_blank || (ends_here && !is_comment && !is_attribute) {
            return false;
        }
    }
    false
}

const REASON: &str = "SAFETY:";

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        File { path: "a.rs".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn explained_code_passes() {
        for text in [
            "// SAFETY: b.\nunsafe { a() }",
            "// SAFETY: b\n// and c.\nunsafe { a() }",
            "// SAFETY: b.\n#[inline]\nunsafe impl Send for A {}",
            "// SAFETY: b.\nlet a =\n    unsafe { a() };",
            "// SAFETY: b.\nlet a = b(unsafe { a() });",
            "let a = /* SAFETY: b. */ unsafe { a() };",
        ] {
            assert_eq!(unexplained(&file(text)), [], "{text}");
        }
    }

    #[test]
    fn unexplained_code_is_found() {
        for text in [
            "unsafe { a() }",
            "// Because.\nunsafe { a() }",
            "// SAFETY: b.\n\nunsafe { a() }",
            "// SAFETY: b.\na();\nunsafe { a() }",
            "// SAFETY: b.\nunsafe impl Send for A {}\nunsafe impl Sync for A {}",
            "a(); // SAFETY: b.\nunsafe { a() }",
            "let a = \"SAFETY:\";\nunsafe\n{\n    a()\n}",
        ] {
            assert_eq!(unexplained(&file(text)).len(), 1, "{text}");
        }
    }

    #[test]
    fn only_the_keyword_counts_as_unsafe() {
        let text = "#![deny(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";\n";
        assert_eq!(unsafe_lines(&file(text)), [0; 0]);
        assert_eq!(unsafe_lines(&file("\nunsafe fn a() {}")), [2]);
    }

    #[test]
    fn the_level_is_read_from_code_alone() {
        assert!(has_level(&file("//! A.\n\n#![forbid(unsafe_code)]\n"), "forbid"));
        assert!(!has_level(&file("//! #![forbid(unsafe_code)]\n"), "forbid"));
        assert!(!has_level(&file("#![deny(unsafe_code)]\n"), "forbid"));
    }
}
