//! Plans: which one a request is on.

use crate::attribute::Attribute;
use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::facts::Facts;
use crate::read::{Fields, Reader, did_you_mean, listed, shortened};

/// The plans that requests are on, and where a request says which.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse(
///     "tiers: { from: claims.plan, known: [free, pro], else: free }
/// rules: [{ name: all, key: [user], limit: { free: 1/s, pro: 9/s } }]",
/// )?;
/// let tiers = set.tiers().expect("there are tiers");
/// assert_eq!(tiers.names().collect::<Vec<_>>(), ["free", "pro"]);
/// assert_eq!(tiers.find("pro"), 1);
/// assert_eq!(tiers.find("gold"), 0, "the one for everybody else");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    from: Attribute,
    known: Box<[Box<str>]>,
    other: usize,
}

impl Tiers {
    /// The most tiers of a file.
    pub const MAX: usize = 256;

    /// What of a request names its tier.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("tiers: { from: claims.plan, known: [a], else: a }\nrules: []")?;
    /// assert_eq!(set.tiers().expect("tiers").from().to_string(), "claims.plan");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn from(&self) -> &Attribute {
        &self.from
    }

    /// All of them, in the order of the file.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("tiers: { from: claims.plan, known: [a, b], else: a }\nrules: []")?;
    /// assert_eq!(set.tiers().expect("tiers").names().count(), 2);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.known.iter().map(|name| &**name)
    }

    /// The name of one.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("tiers: { from: claims.plan, known: [a, b], else: a }\nrules: []")?;
    /// assert_eq!(set.tiers().expect("tiers").name(1), "b");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn name(&self, tier: usize) -> &str {
        self.known.get(tier).map_or("", |name| name)
    }

    /// Which tier this name means; the one for everybody else if it is not known.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("tiers: { from: claims.plan, known: [a, b], else: b }\nrules: []")?;
    /// assert_eq!(set.tiers().expect("tiers").find(""), 1);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn find(&self, name: &str) -> usize {
        self.known.iter().position(|known| **known == *name).unwrap_or(self.other)
    }

    /// Which tier has exactly this name.
    pub(crate) const fn known(&self) -> &[Box<str>] {
        &self.known
    }

    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.known.iter().position(|known| **known == *name)
    }

    pub(crate) const FIELDS: [&str; 3] = ["from", "known", "else"];

    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Self> {
        let fields = reader.fields(node, "`tiers`", &Self::FIELDS)?;
        let from = Self::read_from(reader, &fields);
        let known = Self::read_known(reader, &fields);
        // What is not among tiers that are no good may well be among those that are meant.
        let known = known?;
        let other = Self::read_else(reader, &fields, &known);
        Some(Self { from: from?, known, other: other? })
    }

    fn read_from(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Attribute> {
        let remedy = "say what of a request names its plan: `from: claims.plan`";
        let node = reader.required(fields, "`tiers`", "from", remedy)?;
        let from = reader.attribute(node)?;
        if matches!(from, Attribute::Tier | Attribute::PathParameter(_)) {
            let message = format!("a tier cannot be named by `{from}`");
            let remedy = "use what the caller says: `claims.plan`, `header.x-plan`";
            let span = node.span.clone();
            reader.add(Diagnostic::error("bad-attribute", span, message, "this", remedy));
            return None;
        }
        Some(from)
    }

    fn read_known(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Box<[Box<str>]>> {
        let remedy = "list the plans: `known: [free, pro]`";
        let node = reader.required(fields, "`tiers`", "known", remedy)?;
        let nodes = reader.list(node, "`known`")?;
        if nodes.is_empty() || nodes.len() > Self::MAX {
            let message =
                format!("there are {} tiers, and there must be 1 to {}", nodes.len(), Self::MAX);
            let span = fields.name_span("known");
            reader.add(Diagnostic::error("bad-value", span, message, "this list", remedy));
            return None;
        }
        let mut known: Vec<Box<str>> = Vec::new();
        for node in nodes {
            let name = reader.name(node, "a tier")?;
            if known.iter().any(|other| **other == *name) {
                let message = format!("the tier `{name}` is listed twice");
                let span = node.span.clone();
                let remedy = "keep one of them";
                reader.add(Diagnostic::error("duplicate", span, message, "again", remedy));
            }
            known.push(name.into());
        }
        Some(known.into())
    }

    fn read_else(
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        known: &[Box<str>],
    ) -> Option<usize> {
        let remedy = "name the tier of requests that name none: `else: free`";
        let node = reader.required(fields, "`tiers`", "else", remedy)?;
        let name = reader.text(node, "`else`")?;
        let found = known.iter().position(|known| **known == *name);
        if found.is_none() {
            reader.unknown_tier(node, name, known);
        }
        found
    }
}

impl Reader<'_> {
    pub(crate) fn unknown_tier(&mut self, node: &Node, name: &str, known: &[Box<str>]) {
        self.add_error(|| {
            let names: Vec<_> = known.iter().map(|name| &**name).collect();
            let message = format!("there is no tier `{}`", shortened(name));
            let remedy = did_you_mean(name, &names)
                .unwrap_or_else(|| format!("the tiers are {}", listed(&names)));
            let span = node.span.clone();
            Diagnostic::error("unknown-tier", span, message, "not a tier", remedy)
        });
    }
}

impl Facts<'_> {
    /// Whether the request itself names a tier, be it one that there is or not.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse("tiers: { from: claims.plan, known: [a, b], else: a }\nrules: []")?;
    /// let names = |request| Facts::new(&set, &request, None).names_tier();
    /// assert!(names(Request::new("GET", "/").attributes(&[("claims.plan", "b")])));
    /// assert!(!names(Request::new("GET", "/")));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn names_tier(&self) -> bool {
        self.set().tiers().is_some_and(|tiers| self.plain_value(tiers.from()).is_some())
    }
}
