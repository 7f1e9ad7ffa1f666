//! `tollgate rules`: rule files, looked at.

mod check;
mod diff;
mod explain;
mod fmt;
mod import;
mod schema;
mod test;
mod words;

pub(crate) use diff::{Diff, text as changes_text};

use crate::admin;
use crate::error::{Ending, Error};
use crate::flags::RulesCommand;

pub(crate) fn run(command: &RulesCommand) -> Result<Ending, Error> {
    match command {
        RulesCommand::Check(flags) => check::run(flags),
        RulesCommand::Explain(flags) => explain::run(flags),
        RulesCommand::Test(flags) => test::run(flags),
        RulesCommand::Fmt(flags) => fmt::run(flags),
        RulesCommand::Diff(flags) => diff::run(flags),
        RulesCommand::Schema(flags) => schema::run(flags),
        RulesCommand::Import(flags) => import::run(flags),
        RulesCommand::Show(flags) => admin::show(flags),
        RulesCommand::Push(flags) => admin::push(flags),
    }
}
