//! Where lines of the log go: to standard error.

use tollgate_doors::{Log, LogFormat};
use tracing_subscriber::EnvFilter;

use crate::error::Error;

/// From now on, lines are written.
pub(super) fn start(log: &Log) -> Result<(), Error> {
    let filter = EnvFilter::try_new(&log.level).map_err(|_| Error::Usage {
        message: "the log level is not understood",
        remedy: "write error, warn, info, debug or trace, or parts of them: warn,tollgate=debug",
    })?;
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    // Only a second start could fail, and there is none.
    let _ = match log.format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}
