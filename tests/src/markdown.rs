//! Documents: whether their links lead anywhere.

use std::path::{Component, Path, PathBuf};

use crate::Violation;
use crate::tree::{File, Tree};

/// Relative links that lead to nothing in the tree.
pub fn broken_links(file: &File, tree: &Tree) -> Vec<Violation> {
    let folder = Path::new(&file.path).parent().unwrap_or_else(|| Path::new(""));
    let mut found = Vec::new();
    for (line, target) in links(&file.text) {
        let Some(path) = relative(&target) else {
            continue;
        };
        let exists = resolve(folder, path).is_some_and(|path| tree.holds(&path));
        if !exists {
            let what = format!("link to `{target}` leads nowhere");
            found.push(Violation::new(&file.path, line, what));
        }
    }
    found
}

/// The targets of all links, each with its line; `[a](b)` and `[a]: b`, not inside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_fence = !in_fence;
        } else if !in_fence {
            let line = without_code(line);
            found.extend(inline_targets(&line).map(|target| (index + 1, target)));
            found.extend(defined_target(&line).map(|target| (index + 1, target)));
        }
    }
    found
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn inline_targets(line: &str) -> impl Iterator<Item = String> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter_map(first_word)
}

fn defined_target(line: &str) -> Option<String> {
    let (_, rest) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    first_word(rest)
}

/// The target without the title that may follow it.
fn first_word(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    Some(word.trim_matches(['<', '>']).to_owned())
}

/// The path of a link, if it is one into the tree: no scheme, no item of a Rust crate, and more
/// than a heading of the same document.
fn relative(target: &str) -> Option<&str> {
    let path = target.split(['#', '?']).next()?;
    (!path.is_empty() && !path.contains(':')).then_some(path)
}

/// `path` as seen from `folder`, without `.` and `..`. Nothing when it leaves the tree.
fn resolve(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::Normal(part) => resolved.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop().then_some(())?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::of_this_repository().expect("the tree is readable");
        let file = File { path: path.to_owned(), text: text.to_owned() };
        broken_links(&file, &tree).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn links_into_the_tree_resolve() {
        let text = "[a](Cargo.toml) and [b](tests/src/lib.rs \"title\")\n[c]: ./tests\n";
        assert_eq!(broken("a.md", text), [0; 0]);
        assert_eq!(broken("tests/a.md", "[a](../Cargo.toml#L1) [b](src/)"), [0; 0]);
    }

    #[test]
    fn links_to_nothing_are_found() {
        assert_eq!(broken("a.md", "\n[a](missing.md)"), [2]);
        assert_eq!(broken("a.md", "[a]: <missing.md>"), [1]);
        assert_eq!(broken("tests/a.md", "[a](Cargo.lock)"), [1]);
        assert_eq!(broken("a.md", "[a](../Cargo.toml)"), [1], "leaves the tree");
        assert_eq!(broken("a.md", "[a](/Cargo.toml)"), [1], "is absolute");
    }

    #[test]
    fn other_links_are_left_alone() {
        let text = "[a](https://example.org/b) [c](#d) [e](mailto:f@example.org) [g](crate::H)";
        assert_eq!(broken("a.md", text), [0; 0]);
    }

    #[test]
    fn code_holds_no_links() {
        assert_eq!(broken("a.md", "`[a](b)` c\n```rust\na[b](c);\n```\n"), [0; 0]);
        assert_eq!(broken("a.md", "```\n```\n[a](b)"), [3]);
    }
}
