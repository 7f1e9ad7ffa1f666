//! From which level on lines are written to the log.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The level of the log, and who can change it.
///
/// ```
/// use tollgate_doors::LogLevel;
/// let level = LogLevel::new("info", |level| match level {
///     "info" | "debug" => Ok(()),
///     _ => Err("write info or debug".to_owned()),
/// });
/// assert_eq!(level.set("debug"), Ok(()));
/// assert!(level.set("loud").is_err());
/// assert_eq!(level.now(), "debug");
/// ```
pub struct LogLevel {
    now: Mutex<String>,
    set: Box<Set>,
}

type Set = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl LogLevel {
    /// It is this now, and `set` changes it, or says why not.
    ///
    /// ```
    /// # use tollgate_doors::LogLevel;
    /// assert_eq!(LogLevel::new("warn", |_| Ok(())).now(), "warn");
    /// ```
    pub fn new(
        now: impl Into<String>,
        set: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { now: Mutex::new(now.into()), set: Box::new(set) }
    }

    /// What it is.
    ///
    /// ```
    /// # use tollgate_doors::LogLevel;
    /// assert_eq!(LogLevel::default().now(), "info");
    /// ```
    pub fn now(&self) -> String {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes it.
    ///
    /// ```
    /// # use tollgate_doors::LogLevel;
    /// assert!(LogLevel::default().set("debug").is_err(), "nobody can");
    /// ```
    pub fn set(&self, level: &str) -> Result<(), String> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        (self.set)(level)?;
        level.clone_into(&mut now);
        Ok(())
    }
}

/// `info`, and nobody can change it.
impl Default for LogLevel {
    fn default() -> Self {
        Self::new("info", |_| Err("the level of this log cannot be changed".to_owned()))
    }
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogLevel").field(&self.now()).finish()
    }
}
