//! The rules as they were given, and what was switched since.

use std::sync::Arc;

use tollgate_rules::{RuleSet, Source};

use crate::switches::Switches;

/// Rules, with the text that they were read from if somebody may want to see it.
///
/// ```
/// use tollgate_doors::Given;
/// use tollgate_rules::{NoFiles, RuleSet, Source};
/// let source = Source::new("rules.yaml", "rules: []");
/// let rules = RuleSet::read(&source, &NoFiles).expect("nothing is wrong with it");
/// let given: Given = (source, rules).into();
/// # let _ = given;
/// ```
#[derive(Clone, Debug)]
pub struct Given {
    pub(crate) rules: Arc<RuleSet>,
    pub(crate) source: Option<Arc<Source>>,
    pub(crate) origin: Origin,
}

/// Where rules came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Whoever started the server, or the file that it watches.
    #[default]
    Started,
    /// Somebody pushed them.
    Pushed,
}

impl From<RuleSet> for Given {
    fn from(rules: RuleSet) -> Self {
        Self { rules: Arc::new(rules), source: None, origin: Origin::Started }
    }
}

impl From<(Source, RuleSet)> for Given {
    fn from((source, rules): (Source, RuleSet)) -> Self {
        Self { source: Some(Arc::new(source)), ..rules.into() }
    }
}

/// What is in force: rules, and switches over them.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    pub(crate) given: Given,
    pub(crate) switches: Switches,
}
