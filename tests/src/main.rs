//! What the scripts of this repository need to know and a shell cannot read: JSON.
//!
//! `features` prints the ways to build the published crates, one `package [feature]` per line.
//! `json-lines` reads standard input and fails unless it is a series of JSON objects, one per line.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, BufRead};
use std::process::ExitCode;

use tollgate_tests::json_lines;
use tollgate_tests::workspace::Workspace;

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    let result = match command.as_deref() {
        Some("features") => features(),
        Some("json-lines") => count_json_lines(io::stdin().lock()),
        _ => Err("usage: tollgate-tests features | json-lines".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tollgate-tests: {error}");
            ExitCode::FAILURE
        }
    }
}

fn features() -> Result<(), Box<dyn Error>> {
    for (package, feature) in Workspace::of_this_repository()?.feature_builds() {
        println!("{package} {}", feature.unwrap_or_default());
    }
    Ok(())
}

fn count_json_lines(input: impl BufRead) -> Result<(), Box<dyn Error>> {
    let lines = json_lines::count(input)?;
    println!("{lines} lines of JSON, each a whole object");
    Ok(())
}
