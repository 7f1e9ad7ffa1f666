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
    let tries = tries(doors, config.rules.is_none());
    if !tries.is_empty() {
        text += &format!("\nTry it:\n{tries}");
    }
    print::text(&text)?;
    tracing::info!(doors = doors.started().len(), "serving");
    Ok(())
}

/// Commands that show it at work.
fn tries(doors: &Doors, examples: bool) -> String {
    let mut text = String::new();
    for door in doors.started() {
        let Address::Tcp(address) = &door.address else { continue };
        let port = address.port();
        let line = match door.name {
            "http" if examples => format!(
                "curl -i http://{address}/v1/check -d '{{\"user\":\"alice\"}}'   # the 101st in a minute: 429"
            ),
            "http" => format!("curl -i http://{address}/v1/check -d '{{\"user\":\"alice\"}}'"),
            "resp" => format!("redis-cli -p {port} CL.THROTTLE alice 15 30 60"),
            "status" => format!("curl http://{address}/metrics"),
            "admin" => format!("tollgate keys inspect user=alice --server {address}"),
            _ => continue,
        };
        // A text takes whatever is written to it.
        let _ = writeln!(text, "  {line}");
    }
    text
}
