//! `tollgate rules`: rule files, looked at.

mod check;
mod explain;
mod fmt;
mod test;
mod words;

use crate::error::{Ending, Error};
use crate::flags::RulesCommand;

pub(crate) fn run(command: &RulesCommand) -> Result<Ending, Error> {
    match command {
        RulesCommand::Check(flags) => check::run(flags),
        RulesCommand::Explain(flags) => explain::run(flags),
        RulesCommand::Test(flags) => test::run(flags),
        RulesCommand::Fmt(flags) => fmt::run(flags),
    }
}
