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

/// The paths in the tree that a document links to.
pub fn linked(file: &File) -> Vec<PathBuf> {
    let folder = Path::new(&file.path).parent().unwrap_or_else(|| Path::new(""));
    let targets = links(&file.text).into_iter();
    targets.filter_map(|(_, target)| resolve(folder, relative(&target)?)).collect()
}

/// Links to headings that are not there: `[a](#b)` and `[a](c.md#b)`.
pub fn broken_headings(file: &File, tree: &Tree) -> Vec<Violation> {
    let folder = Path::new(&file.path).parent().unwrap_or_else(|| Path::new(""));
    let mut found = Vec::new();
    for (line, target) in links(&file.text) {
        let Some((path, heading)) = target.split_once('#').filter(|(path, _)| !path.contains(':'))
        else {
            continue;
        };
        let other = match path {
            "" => Some(file),
            _ => resolve(folder, path)
                .and_then(|path| tree.files().iter().find(|file| Path::new(&file.path) == path)),
        };
        // Lines of source files are no headings.
        let Some(other) = other.filter(|other| other.path.ends_with(".md")) else { continue };
        if !headings(&other.text).any(|known| known == heading) {
            let what = format!("`{}` has no heading `#{heading}`", other.path);
            found.push(Violation::new(&file.path, line, what));
        }
    }
    found
}

/// The names by which headings are linked to: in lower case, with hyphens for blanks, and without
/// other signs.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().scan(false, |in_fence, line| {
        *in_fence ^= line.trim_start().starts_with("```");
        Some((*in_fence, line))
    });
    let headings = lines.filter(|(in_fence, line)| !in_fence && line.starts_with('#'));
    headings.map(|(_, line)| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |char: char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
        heading.chars().filter(|char| kept(*char)).collect::<String>().replace(' ', "-")
    })
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
    fn headings_are_found_by_their_names() {
        let text = "# A `b`, c: d\n```\n# no heading\n```\n[x](#a-b-c-d) [y](#no-heading)\n[z](#e)";
        let tree = Tree::of_this_repository().expect("the tree is readable");
        let file = File { path: "a.md".to_owned(), text: text.to_owned() };
        let broken: Vec<_> = broken_headings(&file, &tree).iter().map(|it| it.line).collect();
        assert_eq!(broken, [5, 6]);
        assert_eq!(
            linked(&File { path: "tests/a.md".to_owned(), text: "[a](../b.md)".to_owned() }),
            [PathBuf::from("b.md")]
        );
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
