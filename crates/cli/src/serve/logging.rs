//! Where lines of the log go: to standard error.

use tollgate_doors::{Log, LogFormat, LogLevel};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, reload};

use crate::error::Error;
use crate::print;

/// From now on, lines are written. Their level can be changed.
pub(super) fn start(log: &Log) -> Result<LogLevel, Error> {
    let message = "the log level is not understood";
    let first = filter(&log.level).ok_or(Error::Usage { message, remedy: REMEDY })?;
    let (first, level) = reload::Layer::new(first);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(print::note_colours());
    let lines = match log.format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Only a second start could fail, and there is none.
    let _ = tracing_subscriber::registry().with(first).with(lines).try_init();
    Ok(LogLevel::new(log.level.clone(), move |text| {
        let filter = filter(text).ok_or_else(|| format!("{message}: {REMEDY}"))?;
        level.reload(filter).map_err(|error| error.to_string())
    }))
}

/// What passes. A single word is a level: the name of a part alone would silence all others, and is
/// mostly a level that is misspelt.
fn filter(text: &str) -> Option<EnvFilter> {
    // The filter would take a blank level for `error`.
    let level = |text: &str| !text.is_empty() && text.parse::<LevelFilter>().is_ok();
    let fits = |part: &str| match part.rsplit_once('=') {
        Some((name, of)) => !name.is_empty() && level(of),
        None => level(part),
    };
    match text.split(',').all(fits) {
        true => EnvFilter::try_new(text).ok(),
        false => None,
    }
}

const REMEDY: &str =
    "write off, error, warn, info, debug or trace, or parts of them: warn,tollgate=debug";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_no_level() {
        for good in ["info", "off", "TRACE", "warn,tollgate=debug", "warn,hyper=off"] {
            assert!(filter(good).is_some(), "{good}");
        }
        for bad in ["", "inof", "loud", "warn,tollgate", "warn,tollgate=loud", "=", "\n"] {
            assert!(filter(bad).is_none(), "{bad}");
        }
    }
}
