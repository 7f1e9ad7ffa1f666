//! A command line that says nothing, or asks for help.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Ending;
use crate::finding::{Finding, Findings};
use crate::print;

/// Prints help if that was asked for, and what is wrong otherwise: for programs, if as much of the
/// command line can be understood.
pub(crate) fn report(error: &clap::Error, arguments: impl IntoIterator<Item = OsString>) -> Ending {
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !asked_for && wants_json(arguments) {
        // If that cannot be printed, the exit code has to do, here and below.
        let _ = print::json(&Findings { findings: vec![finding(error)], left_out: 0 });
    } else {
        let _ = error.print();
    }
    if asked_for { Ending::Good } else { Ending::Failure }
}

fn finding(error: &clap::Error) -> Finding {
    let text = error.render().to_string();
    let lines: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let message = lines.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let remedy = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => "see `tollgate --help`".to_owned(),
    };
    Finding::error("bad-usage", None, None, message, remedy.trim())
}

fn wants_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let arguments: Vec<_> = arguments.into_iter().collect();
    arguments.iter().any(|it| it == "--output=json")
        || arguments.windows(2).any(|pair| pair[0] == "--output" && pair[1] == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_what_they_ask_for() {
        let wants = |line: &str| wants_json(line.split(' ').map(OsString::from));
        assert!(wants("tollgate rules check --output json"));
        assert!(wants("tollgate rules check --output=json --nonsense"));
        assert!(!wants("tollgate rules check json --output text"));
    }
}
