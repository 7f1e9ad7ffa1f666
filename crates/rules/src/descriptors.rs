//! How several descriptors of one request are decided about.

use crate::document::Node;
use crate::read::Reader;

/// How the descriptors of one request of Envoy are decided about.
///
/// ```
/// use tollgate_rules::{Descriptors, RuleSet};
/// let set = RuleSet::parse("descriptors: each\nrules: []")?;
/// assert_eq!(set.descriptors(), Descriptors::Each);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Descriptors {
    /// All or nothing: a request that is denied for one of them spends nothing on the others.
    #[default]
    Together,
    /// Each on its own, whatever becomes of the others, as envoyproxy/ratelimit counts. One that is
    /// over its limit takes what was left of it.
    Each,
}

impl Descriptors {
    pub(crate) const CHOICES: [(&str, Self); 2] =
        [("together", Self::Together), ("each", Self::Each)];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Each => "each",
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Self> {
        let choice = reader.choice(node, "way to decide about descriptors", &Self::CHOICES);
        choice.map(|choice| choice.value)
    }
}
