//! What is said when everything is open.

use std::fmt::Write as _;

use tollgate_doors::{Address, Config, Doors, Service};

use crate::error::Error;
use crate::print;
use crate::serve::example::Example;
use crate::serve::store;

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
        let tls = if door.tls { "  (TLS)" } else { "" };
        let _ = writeln!(text, "  {:<13} {}{tls}", door.name, door.address);
    }
    if let Some(store) = &config.store {
        let _ = writeln!(text, "  {:<13} {}", "store", store::shown(store));
    }
    let tries = tries(doors, config.rules.is_none(), Example::of(&rules).as_ref());
    if !tries.is_empty() {
        text += &format!("\nTry it:\n{tries}");
    }
    print::text(&text)?;
    tracing::info!(doors = doors.started().len(), "serving");
    Ok(())
}

/// Commands that show it at work.
fn tries(doors: &Doors, examples: bool, example: Option<&Example>) -> String {
    let mut text = String::new();
    for door in doors.started() {
        let Address::Tcp(address) = &door.address else { continue };
        // Whoever has a certificate knows the name in it, and who has signed it.
        if door.tls {
            continue;
        }
        let port = address.port();
        let line = match door.name {
            "http" => {
                let (body, note) = question(examples, example);
                format!("curl -i http://{address}/v1/check -d '{body}'   # {note}")
            }
            "resp" => format!("redis-cli -p {port} CL.THROTTLE alice 15 30 60"),
            "status" => format!("curl http://{address}/metrics"),
            "admin" => match example.map(Example::words).filter(|words| !words.is_empty()) {
                Some(words) => format!("tollgate keys inspect {words} --server {address}"),
                None => format!("tollgate keys top --server {address}"),
            },
            _ => continue,
        };
        // A text takes whatever is written to it.
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// What to ask, and what comes of it: no more than is certain.
fn question(examples: bool, example: Option<&Example>) -> (String, String) {
    match example {
        Some(example) if examples => {
            (example.json(), "100 at once pass, the next is 429".to_owned())
        }
        Some(example) => (example.json(), format!("counted by `{}`", example.rule)),
        None => {
            let body = r#"{"method":"GET","path":"/"}"#.to_owned();
            (body, "say what your rules ask for: a method, a path, a user".to_owned())
        }
    }
}
