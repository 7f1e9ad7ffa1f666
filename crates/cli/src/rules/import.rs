//! `tollgate rules import`: limits of other software as a rule file.

use serde::Serialize;
use tollgate_rules::{ImportNote, Imported};

use crate::error::{Ending, Error};
use crate::files;
use crate::flags::{ImportFrom, Output, RulesImport};
use crate::print;

/// What came of it, for programs.
#[derive(Debug, Serialize)]
struct Import<'a> {
    file: &'a str,
    /// The rule file.
    yaml: &'a str,
    /// Where it was written, if it was.
    out: Option<&'a str>,
    notes: Vec<Note<'a>>,
    /// How many directives had nothing to do with limits.
    ignored: usize,
}

#[derive(Debug, Serialize)]
struct Note<'a> {
    /// From 1.
    line: usize,
    message: &'a str,
    remedy: &'a str,
}

impl<'a> Note<'a> {
    fn of(note: &'a ImportNote) -> Self {
        Self { line: note.line, message: &note.message, remedy: &note.remedy }
    }
}

pub(super) fn run(flags: &RulesImport) -> Result<Ending, Error> {
    if flags.namespace.is_some() && flags.from != ImportFrom::Limitador {
        return Err(Error::Usage {
            message: "only files of Limitador have several namespaces",
            remedy: "leave `--namespace` out, and change `namespace` in the rule file",
        });
    }
    let source = files::read(&flags.file)?;
    let kind = flags.from.kind(flags.namespace.clone());
    let imported = tollgate_rules::import(kind, source.name(), source.text())
        .map_err(|error| Error::Import { file: source.name().to_owned(), error })?;
    if let Some(out) = &flags.out {
        files::create(out, &imported.yaml, flags.force)?;
    }
    match flags.output {
        Output::Text => {
            print::note(&report(source.name(), &imported, print::note_colours()));
            match &flags.out {
                Some(out) => print::text(&format!("wrote {out}\n"))?,
                None => print::text(&imported.yaml)?,
            }
        }
        Output::Json => {
            print::json(&Import {
                file: source.name(),
                yaml: &imported.yaml,
                out: flags.out.as_deref(),
                notes: imported.notes.iter().map(Note::of).collect(),
                ignored: imported.ignored,
            })?;
        }
    }
    let bad = flags.strict && !imported.notes.is_empty();
    Ok(if bad { Ending::Findings } else { Ending::Good })
}

/// The notes for people, each with its line and what to do.
fn report(file: &str, imported: &Imported, colours: bool) -> String {
    let Imported { notes, ignored, .. } = imported;
    if notes.is_empty() {
        return String::new();
    }
    let things = if notes.len() == 1 { "thing" } else { "things" };
    let head = format!("{} {things} to look at", notes.len());
    let mut text = format!("{file}: {}\n", print::mixed(&head, colours));
    let width = notes.iter().map(|note| note.line.to_string().len()).max().unwrap_or_default();
    for note in notes {
        let blank = " ".repeat(width);
        text += &format!("\n  line {:>width$}  {}\n", note.line, note.message);
        text += &format!("       {blank}  help: {}\n", note.remedy);
    }
    match ignored {
        0 => {}
        1 => text += "\n  1 other directive has nothing to do with limits.\n",
        _ => text += &format!("\n  {ignored} other directives have nothing to do with limits.\n"),
    }
    text + "\n"
}
