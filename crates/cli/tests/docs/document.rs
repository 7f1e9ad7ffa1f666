//! Documents, and what stands in their fences.

use std::path::{Path, PathBuf};

/// A document of this repository.
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What stands between two fences.
pub(crate) struct Block<'d> {
    /// Where it begins, for messages.
    pub(crate) place: String,
    /// How it is written: the first word behind the fence.
    pub(crate) language: &'d str,
    /// What else is said there: the name of a file, or how the example ends.
    pub(crate) remark: &'d str,
    pub(crate) text: String,
}

impl Document {
    /// The documents whose examples are run: the README, the quick start, sharing, and all about
    /// rules but the errors, which have a test of their own.
    pub(crate) fn all() -> Vec<Self> {
        let others = ["README.md", "docs/quick-start.md", "docs/sharing.md"];
        let mut names = others.map(str::to_owned).to_vec();
        for entry in std::fs::read_dir(root().join("docs/rules")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "errors.md" {
                names.push(format!("docs/rules/{name}"));
            }
        }
        names.iter().map(|name| Self::named(name)).collect()
    }

    pub(crate) fn named(name: &str) -> Self {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        Self { name: name.to_owned(), text }
    }

    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else { continue };
            let (language, remark) = info.split_once(' ').unwrap_or((info, ""));
            let inside = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```");
            let text = inside.map(|line| format!("{line}\n")).collect();
            let place = format!("{}:{number}", self.name);
            blocks.push(Block { place, language, remark, text });
        }
        blocks
    }
}

impl Block<'_> {
    /// The name of the file that it is, if it is one.
    pub(crate) fn file(&self) -> Option<&str> {
        self.remark.contains('.').then_some(self.remark)
    }

    /// Whether it is a rule file, and not a part of one.
    pub(crate) fn is_rule_file(&self) -> bool {
        ["yaml", "toml", "json"].contains(&self.language) && self.remark != "part"
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
