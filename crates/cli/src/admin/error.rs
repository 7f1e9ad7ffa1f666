//! Why a server did not do what it was asked to.

use std::io;

use http::StatusCode;
use serde_json::Value;

use crate::error::Ending;

/// Why a server did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    /// Nobody is there.
    #[error("{server} cannot be reached: {error}")]
    Unreachable {
        server: String,
        #[source]
        error: io::Error,
    },
    /// Somebody else is.
    #[error("{server} is no admin door: {problem}")]
    NoDoor { server: String, problem: String },
    /// It does not say whether it is ready.
    #[error("{server} does not say whether it is ready: it answers {status}")]
    NoStatus { server: String, status: StatusCode },
    /// It says no.
    #[error("{detail}")]
    Refused { status: StatusCode, detail: String },
    /// TLS cannot be spoken with these files.
    #[error("no TLS with this server: {0}")]
    Tls(String),
    /// The token cannot be sent.
    #[error("the token has characters that none can have")]
    BadToken,
}

impl AdminError {
    /// What the server says is wrong.
    pub(super) fn refused(status: StatusCode, problem: &Value) -> Self {
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let mut detail = text(problem, "detail");
        if detail.is_empty() {
            detail = format!("the server answers {status}");
        }
        for finding in problem["findings"].as_array().into_iter().flatten() {
            let (message, remedy) = (text(finding, "message"), text(finding, "remedy"));
            let (line, column) = (&finding["line"], &finding["column"]);
            detail += &format!("\n  {line}:{column}: {message}\n    {remedy}");
        }
        // What a server says is shown to people.
        let is_text = |char: char| !char.is_control() || char == '\n';
        Self::Refused { status, detail: detail.chars().filter(|char| is_text(*char)).collect() }
    }

    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "no-server",
            Self::NoDoor { .. } => "no-admin-door",
            Self::NoStatus { .. } => "no-status-door",
            Self::Refused { .. } => "refused",
            Self::Tls(_) => "no-tls",
            Self::BadToken => "bad-token",
        }
    }

    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "see that `tollgate serve` runs, and say where with `--server ADDRESS`"
            }
            Self::NoDoor { .. } => {
                "name the address of the admin door: `tollgate serve` prints it when it starts"
            }
            Self::NoStatus { .. } => {
                "name the address of the status door: `tollgate serve` prints it when it starts"
            }
            Self::Refused { status: StatusCode::UNAUTHORIZED, .. } => {
                "name its token: `--token-file FILE`, or set TOLLGATE_ADMIN_TOKEN"
            }
            Self::Refused { status: StatusCode::PRECONDITION_FAILED, .. } => {
                "somebody else was quicker: look at `tollgate rules show`, and push again"
            }
            Self::Tls(_) => {
                "name files in PEM: `--ca` of who signs for the server, `--cert` and `--key`"
            }
            // The server has said it.
            Self::Refused { .. } => "",
            Self::BadToken => "see that the file, or TOLLGATE_ADMIN_TOKEN, has the token alone",
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        match self {
            Self::Refused { status: StatusCode::UNPROCESSABLE_ENTITY, .. } => Ending::Findings,
            _ => Ending::Failure,
        }
    }
}
