//! `tollgate lab`: for those who work on Tollgate, what takes longer than a test may.

mod lending;

use crate::error::{Ending, Error};
use crate::flags::LabCommand;

pub(crate) fn run(command: &LabCommand) -> Result<Ending, Error> {
    match command {
        LabCommand::Lending(flags) => lending::run(flags),
    }
}
