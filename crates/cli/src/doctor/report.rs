//! What was found, for people and for programs.

use serde::Serialize;

use super::diagnosis::{Diagnosis, Grade};
use crate::error::Error;
use crate::flags::Output;
use crate::print;

/// For programs: everything.
#[derive(Debug, Serialize)]
struct Report<'a> {
    problems: usize,
    warnings: usize,
    findings: &'a [Diagnosis],
}

pub(super) fn print(found: &[Diagnosis], output: Output) -> Result<(), Error> {
    let (problems, warnings) = (count(found, Grade::Problem), count(found, Grade::Warning));
    match output {
        Output::Json => print::json(&Report { problems, warnings, findings: found }),
        Output::Text => {
            let text = to_text(found, print::colours());
            print::text(&format!("{text}\n{}\n", summary(problems, warnings)))
        }
    }
}

/// For people: what is well with several servers stands there once.
fn to_text(found: &[Diagnosis], colours: bool) -> String {
    let mut text = String::new();
    let mut said = Vec::new();
    for one in found {
        let mut message = with_server(one);
        if one.grade == Grade::Ok {
            if said.contains(&one.code) {
                continue;
            }
            said.push(one.code);
            let same = found.iter().filter(|it| it.code == one.code && it.grade == Grade::Ok);
            let count = same.count();
            if count > 1 {
                message = format!("well with {count} servers; {message}");
            }
        }
        text += &line(one, &message, colours);
    }
    text
}

fn with_server(one: &Diagnosis) -> String {
    match &one.server {
        Some(server) => format!("{server}: {}", one.message),
        None => one.message.clone(),
    }
}

fn line(one: &Diagnosis, message: &str, colours: bool) -> String {
    let word = one.grade.word();
    let painted = match one.grade {
        Grade::Ok => print::good(word, colours),
        Grade::Problem => print::bad(word, colours),
        Grade::Warning | Grade::Unknown => print::mixed(word, colours),
    };
    // Codes of colours have no width.
    let blank = " ".repeat(WORD.saturating_sub(word.len()));
    let mut text = format!("{painted}{blank}{:CHECK$}{message}\n", one.code);
    if !one.remedy.is_empty() {
        let indent = WORD + CHECK;
        text += &format!("{:indent$}help: {}\n", "", one.remedy);
    }
    text
}

fn summary(problems: usize, warnings: usize) -> String {
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    match (problems, warnings) {
        (0, 0) => "nothing is wrong with it".to_owned(),
        (0, _) => format!("{}; no problem", many(warnings, "warning")),
        (_, 0) => many(problems, "problem"),
        _ => format!("{}, {}", many(problems, "problem"), many(warnings, "warning")),
    }
}

fn count(found: &[Diagnosis], grade: Grade) -> usize {
    found.iter().filter(|one| one.grade == grade).count()
}

/// How wide columns are.
const WORD: usize = 9;
const CHECK: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_well_everywhere_stands_there_once() {
        let found = [
            Diagnosis::ok("clock", "right").at("a:1"),
            Diagnosis::ok("clock", "right").at("b:1"),
            Diagnosis::warning("memory", "much", "less").at("a:1"),
            Diagnosis::warning("memory", "much", "less").at("b:1"),
        ];
        assert_eq!(
            to_text(&found, false),
            "ok       clock       well with 2 servers; a:1: right\n\
             warning  memory      a:1: much\n                     help: less\n\
             warning  memory      b:1: much\n                     help: less\n"
        );
        assert!(to_text(&found, true).contains("\u{1b}["));
    }

    #[test]
    fn the_last_line_says_it_all() {
        assert_eq!(summary(0, 0), "nothing is wrong with it");
        assert_eq!(summary(0, 2), "2 warnings; no problem");
        assert_eq!(summary(1, 0), "1 problem");
        assert_eq!(summary(2, 1), "2 problems, 1 warning");
    }
}
