//! `tollgate ready`: whether requests should be sent to a server.

use http::StatusCode;
use serde_json::json;

use super::AdminError;
use super::client::Client;
use crate::error::{Ending, Error};
use crate::flags::{Output, Ready};
use crate::print;

pub(crate) fn run(flags: &Ready) -> Result<Ending, Error> {
    let (text, ending) = match Client::open(&flags.server, &flags.tls)?.status("/readyz")? {
        StatusCode::OK => ("ready", Ending::Good),
        StatusCode::SERVICE_UNAVAILABLE => ("not ready", Ending::Findings),
        status => {
            return Err(AdminError::NoStatus { server: flags.server.to_string(), status }.into());
        }
    };
    match flags.output {
        Output::Json => print::json(&json!({ "ready": ending == Ending::Good }))?,
        Output::Text => print::text(&format!("{text}\n"))?,
    }
    Ok(ending)
}
