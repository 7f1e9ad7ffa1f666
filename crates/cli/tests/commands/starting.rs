//! What somebody meets who starts with it.

use super::{Folder, tollgate};

#[test]
fn a_new_file_says_what_to_do_with_it() {
    let folder = Folder::new();
    let file = folder.path("mine.yaml");
    let file = file.to_str().unwrap();
    let written = tollgate(&["init", file]).ends(0);
    assert_eq!(
        written.out,
        format!(
            "{file} is written.\n\
             What it means:  tollgate rules check {file}\n\
             Serve it:       tollgate serve --rules {file}\n"
        )
    );
    tollgate(&["init", file]).ends(2).notes(&["is there already", "help: add `--force`"]);
}

#[test]
fn rules_that_are_not_there_are_missed_as_other_files_are() {
    for command in [&["serve", "--rules", "gone.yaml"][..], &["rules", "check", "gone.yaml"]] {
        let missed = tollgate(command).ends(2);
        assert!(missed.notes.starts_with("tollgate: gone.yaml cannot be read"), "{}", missed.notes);
    }
}

#[test]
fn threads_that_are_no_number_are_refused_in_plain_words() {
    let remedy = "write a whole number from 1 to 1024";
    for wrong in ["x", "0", "1025", "1.5"] {
        tollgate(&["serve", "--threads", wrong]).ends(2).notes(&[remedy]);
        tollgate(&["bench", "--threads", wrong]).ends(2).notes(&[remedy]);
        tollgate(&["lab", "lending", "--threads", wrong]).ends(2).notes(&[remedy]);
    }
}

#[test]
fn the_help_fits_into_eighty_columns() {
    let help = tollgate(&["help"]).ends(0);
    let foot = help.out.split_once("Exit codes:").unwrap().1;
    assert!(foot.lines().all(|line| line.len() <= 80), "{foot}");
}
