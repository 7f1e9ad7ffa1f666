//! `tollgate rules fmt`: rule files in their canonical form.

use serde::Serialize;

use crate::error::{Ending, Error};
use crate::files::{self, STDIN};
use crate::finding::Finding;
use crate::flags::{Output, RulesFmt};
use crate::print;

/// What came of all files.
#[derive(Debug, Serialize)]
struct Formatted {
    files: Vec<FormattedFile>,
}

#[derive(Debug, Serialize)]
struct FormattedFile {
    file: String,
    /// Whether its canonical form is another one.
    changed: bool,
    /// What the file says in that form, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Why there is no such form.
    findings: Vec<Finding>,
}

pub(super) fn run(flags: &RulesFmt) -> Result<Ending, Error> {
    let mut ending = Ending::Good;
    let mut formatted = Formatted { files: Vec::new() };
    for file in &flags.files {
        let one = format(flags, file).unwrap_or_else(|error| {
            ending = ending.max(error.ending());
            if flags.output == Output::Text {
                print::note(&error.to_text(print::note_colours()));
            }
            let (file, findings) = (file.clone(), error.findings());
            FormattedFile { file, changed: false, text: None, findings }
        });
        if flags.check && one.changed {
            ending = ending.max(Ending::Findings);
        }
        if flags.output == Output::Text {
            print::text(&one.to_text(flags.check))?;
        }
        formatted.files.push(one);
    }
    if flags.output == Output::Json {
        print::json(&formatted)?;
    }
    Ok(ending)
}

/// Formats a file, and replaces it if it should be.
fn format(flags: &RulesFmt, file: &str) -> Result<FormattedFile, Error> {
    let source = files::read(file)?;
    let text = match tollgate_rules::format(&source) {
        Ok(text) => text,
        Err(report) => return Err(Error::Rules { text: Box::new(source), report }),
    };
    let changed = text != source.text();
    let shown = !flags.check && (flags.stdout || file == STDIN);
    if changed && !shown && !flags.check {
        files::replace(file, &text)?;
    }
    let text = shown.then_some(text);
    Ok(FormattedFile { file: source.name().to_owned(), changed, text, findings: Vec::new() })
}

impl FormattedFile {
    fn to_text(&self, check: bool) -> String {
        match &self.text {
            Some(text) => text.clone(),
            None if self.changed && check => format!("would change {}\n", self.file),
            None if self.changed => format!("formatted {}\n", self.file),
            None => String::new(),
        }
    }
}
