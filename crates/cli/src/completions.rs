//! `tollgate completions`: what shells need to know of the flags.

use clap::CommandFactory as _;

use crate::error::{Ending, Error};
use crate::flags::{Completions, Flags};
use crate::print;

pub(crate) fn run(flags: &Completions) -> Result<Ending, Error> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Flags::command(), "tollgate", &mut script);
    print::text(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Good)
}
