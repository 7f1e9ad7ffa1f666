//! What is said when everything is open.

use std::fmt::Write as _;

use tollgate_doors::{Address, Config, Doors, Service};

use crate::error::Error;
use crate::print;

/// What is served where, and what to try.
pub(super) fn print(doors: &Doors, config: &Config, service: &Service) -> Result<(), Error> {
    let rules = service.rules();
    let from = match &config.rules {
        Some(file) => file.display().to_string(),
        None => "examples; `tollgate init` writes them to a file".to_owned(),
    };
    let mut text = format!(
        "tollgate {}: {} rules ({from}), version {}\n\n",
        env!("CARGO_PKG_VERSION"),
        rules.rules().len(),
        rules.version(),
    );
    for door in doors.started() {
        // A text takes whatever is written to it.
        let _ = writeln!(text, "  {:<13} {}", door.name, door.address);
    }
    let http = doors.started().iter().find(|door| door.name == "http");
    if let Some(Address::Tcp(address)) = http.map(|door| &door.address) {
        let _ = write!(
            text,
            "\nTry it:\n  \
             curl -i http://{address}/v1/check -d '{{\"method\":\"GET\",\"path\":\"/\",\"user\":\"alice\"}}'\n",
        );
    }
    print::text(&text)?;
    tracing::info!(doors = doors.started().len(), "serving");
    Ok(())
}
