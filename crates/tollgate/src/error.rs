//! Why a limiter could not be made.

use tollgate_core::{LimitError, QuotaError};
use tollgate_local::TableError;

/// Why a limiter could not be made. Being over the limit is not an error: that is a
/// [`Decision`](crate::Decision).
///
/// ```
/// use tollgate::{Error, Limiter};
/// let error = Limiter::new("0/s").unwrap_err();
/// assert!(matches!(error, Error::Limit(_)));
/// assert!(error.to_string().contains("at least 1"), "it says what is allowed");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The limit is wrong. The caller is at fault.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// There is no memory for the counters, or too little or too much was asked for.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A gate has no limits. The caller is at fault.
    #[error("a gate needs at least one limit; add one with `limit` before `build`")]
    NoLimits,
    /// An engine with a store was made outside of a Tokio runtime. The caller is at fault.
    #[error("an engine with a store needs a Tokio runtime to look after it; make it within one")]
    NoRuntime,
    /// Two limits of a gate have the same name. The caller is at fault.
    #[error("a gate has two limits named `{name}`; names must differ")]
    SameName {
        /// The name.
        name: String,
    },
}

impl From<QuotaError> for Error {
    fn from(error: QuotaError) -> Self {
        Self::Limit(error.into())
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
