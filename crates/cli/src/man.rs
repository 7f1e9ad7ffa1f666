//! `tollgate man`: the manual pages, made from the flags.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory as _;

use crate::error::{Ending, Error};
use crate::flags::{Flags, Man};
use crate::print;

pub(crate) fn run(flags: &Man) -> Result<Ending, Error> {
    match &flags.folder {
        Some(folder) => {
            let failed = |error| Error::Write { file: folder.display().to_string(), error };
            write(folder).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Flags::command()).render(&mut page).map_err(Error::Print)?;
            print::text(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Ending::Good)
}

/// Writes one page for each command.
fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Flags::command(), folder)
}
