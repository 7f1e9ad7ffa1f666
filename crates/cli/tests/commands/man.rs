use std::process::Command;

use crate::{Folder, tollgate};

/// What a real reader of manual pages shows, or complains about.
fn mandoc(arguments: &[&str]) -> String {
    let ran = Command::new("mandoc").args(arguments).output().unwrap_or_else(|error| {
        panic!("mandoc cannot be started: {error}; scripts/test.sh installs what tests need")
    });
    let (out, notes) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{notes}");
    out.into_owned()
}

#[test]
fn every_command_has_a_page() {
    let folder = Folder::new();
    let pages = folder.path("man1");
    let pages = pages.to_str().unwrap();
    tollgate(&["man", pages]).ends(0);
    let names = std::fs::read_dir(pages).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    for name in ["tollgate.1", "tollgate-serve.1", "tollgate-rules-check.1", "tollgate-man.1"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing in {names:?}");
    }
    for name in &names {
        let page = format!("{pages}/{name}");
        mandoc(&["-Tlint", "-W", "error", &page]);
        let shown = mandoc(&["-Tascii", "-O", "width=200", &page]);
        // Without the way in which letters are made bold.
        let shown = shown.split('\u{8}').fold(String::new(), |mut text, part| {
            text.pop();
            text + part
        });
        let words: Vec<_> = name.trim_end_matches(".1").split('-').collect();
        let arguments: Vec<_> = words[1..].iter().copied().chain(["--help"]).collect();
        let arguments = match &*arguments {
            // Its name has a hyphen of its own.
            ["log", "level", ..] => vec!["log-level", "--help"],
            _ => arguments,
        };
        let help = tollgate(&arguments).ends(0).out;
        let about = help.lines().next().unwrap();
        assert!(shown.contains(about), "{name} does not say `{about}`:\n{shown}");
        for flag in help.split_whitespace().filter(|word| word.starts_with("--")) {
            let flag = flag.trim_end_matches(|char: char| !char.is_ascii_alphanumeric());
            assert!(shown.contains(flag), "{name} does not know `{flag}`:\n{shown}");
        }
    }
}

#[test]
fn the_first_page_is_printed() {
    tollgate(&["man"]).ends(0).prints(&[".TH tollgate 1", ".SH SUBCOMMANDS"]);
}

#[test]
fn pages_that_cannot_be_written_are_said() {
    let folder = Folder::new();
    let file = folder.write("file", "");
    let run = tollgate(&["man", &file]).ends(2);
    assert!(run.notes.contains(&format!("{file} cannot be written")), "{}", run.notes);
}
