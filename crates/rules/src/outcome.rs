//! How a request ended, for limits that count only some endings.

/// What is known of the response when it is over.
///
/// ```
/// use tollgate_rules::Outcome;
/// let outcome = Outcome { status: Some(401), headers: &[("www-authenticate", "Basic")] };
/// assert_eq!(outcome.status, Some(401));
/// assert_eq!(Outcome::default().status, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Its headers, in order. Their names are compared without regard to case.
    pub headers: &'a [(&'a str, &'a str)],
}
