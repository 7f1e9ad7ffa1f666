//! Which requests a rule is about.

use std::fmt;

use crate::attribute::Attribute;
use crate::condition::Condition;
use crate::diagnostic::Diagnostic;
use crate::document::{Field, Node, Value};
use crate::facts::{Facts, Value as Fact};
use crate::networks::Networks;
use crate::normal::bare_host;
use crate::path::PathPattern;
use crate::read::{Reader, did_you_mean, shortened};
use crate::tiers::Tiers;

/// What a request must be for a rule to apply: everything that is said here at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matching {
    pub(crate) methods: Box<[Box<str>]>,
    pub(crate) hosts: Box<[Pattern]>,
    pub(crate) paths: Box<[PathPattern]>,
    pub(crate) tiers: Box<[usize]>,
    pub(crate) networks: Networks,
    /// Other attributes, and what they may be.
    pub(crate) others: Box<[(Attribute, Box<[Pattern]>)]>,
    /// What the rest cannot say.
    pub(crate) when: Option<Condition>,
    /// Whether more is asked for than the path and the method, which most rules do not.
    asks_more: bool,
}

/// Text, or how it begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Exactly(Box<str>),
    /// `abc*`; a star alone is anything that is there.
    Prefix(Box<str>),
    /// `*.example.com`
    Suffix(Box<str>),
}

/// Why a rule is not about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch<'r> {
    Method(&'r [Box<str>]),
    Host(&'r [Pattern]),
    Path(&'r [PathPattern]),
    Tier,
    Network,
    Other(&'r Attribute, &'r [Pattern]),
    When(&'r Condition),
}

impl Matching {
    /// Whether the request fits. Of rules that were found by their path that is known already.
    #[inline]
    pub(crate) fn fits(&self, facts: &Facts<'_>, by_path: bool) -> bool {
        match self.asks_more || !(by_path || self.paths.is_empty()) {
            true => self.mismatch(facts).is_none(),
            false => self.fits_method(facts.request().method()),
        }
    }

    /// Without regard to case: some servers take `post` for `POST`.
    #[inline]
    fn fits_method(&self, method: &str) -> bool {
        self.methods.is_empty()
            || self.methods.iter().any(|known| known.eq_ignore_ascii_case(method))
    }

    /// The first thing about the request that does not fit.
    pub(crate) fn mismatch<'r>(&'r self, facts: &Facts<'_>) -> Option<Mismatch<'r>> {
        let request = facts.request();
        let any = |fits: bool| !fits;
        if !self.fits_method(request.method()) {
            return Some(Mismatch::Method(&self.methods));
        }
        if !self.paths.is_empty() && any(self.path(request.path()).is_some()) {
            return Some(Mismatch::Path(&self.paths));
        }
        let host = request.host_name();
        if !self.hosts.is_empty() && any(self.hosts.iter().any(|pattern| pattern.fits_host(host))) {
            return Some(Mismatch::Host(&self.hosts));
        }
        if !self.tiers.is_empty() && any(self.tiers.contains(&facts.tier())) {
            return Some(Mismatch::Tier);
        }
        if !self.networks.is_empty() && any(self.is_within(facts)) {
            return Some(Mismatch::Network);
        }
        let other = self.others.iter().find(|(attribute, patterns)| {
            !facts.value(self, attribute).is_some_and(|fact| fits_any(patterns, fact))
        });
        if let Some((attribute, patterns)) = other {
            return Some(Mismatch::Other(attribute, patterns));
        }
        let when = self.when.as_ref()?;
        // Whoever cannot tell whether a rule applies applies it: nobody passes for an error.
        let holds = facts.holds(when, None).unwrap_or(true);
        (!holds).then_some(Mismatch::When(when))
    }

    /// The pattern that the path fits.
    pub(crate) fn path(&self, path: &str) -> Option<&PathPattern> {
        self.paths.iter().find(|pattern| pattern.matches(path))
    }

    fn is_within(&self, facts: &Facts<'_>) -> bool {
        facts.client_ip().is_some_and(|ip| self.networks.contains(ip))
    }

    /// How much this says: of rules that are alternatives, the one that says most is asked first.
    /// The most exact path counts first, then how many other things are asked for.
    pub(crate) fn specificity(&self) -> (usize, usize) {
        let path = self.paths.iter().map(PathPattern::specificity).min().unwrap_or(0);
        let asked = [
            self.when.is_none(),
            self.methods.is_empty(),
            self.hosts.is_empty(),
            self.tiers.is_empty(),
            self.networks.is_empty(),
        ];
        let asked = asked.iter().filter(|empty| !**empty).count() * 2;
        let exact =
            |patterns: &[Pattern]| patterns.iter().all(|p| matches!(p, Pattern::Exactly(_)));
        let others = self.others.iter().map(|(_, patterns)| 1 + usize::from(exact(patterns)));
        (path, asked + others.sum::<usize>())
    }
}

/// Whether what is known of a request fits one of the patterns.
fn fits_any(patterns: &[Pattern], fact: Fact<'_>) -> bool {
    match fact {
        Fact::Text(text) => patterns.iter().any(|pattern| pattern.fits(text)),
        // Numbers, countries and addresses are short, and compared without allocating.
        _ => {
            let mut buffer = Short::default();
            let written = fmt::Write::write_fmt(&mut buffer, format_args!("{fact}")).is_ok();
            written && patterns.iter().any(|pattern| pattern.fits(buffer.as_str()))
        }
    }
}

/// Text of at most as many bytes as an IPv6 address has.
struct Short {
    bytes: [u8; 48],
    len: usize,
}

impl Default for Short {
    fn default() -> Self {
        Self { bytes: [0; 48], len: 0 }
    }
}

impl Short {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl Pattern {
    fn new(text: &str) -> Self {
        match (text.strip_suffix('*'), text.strip_prefix('*')) {
            (Some(start), _) => Self::Prefix(start.into()),
            (None, Some(end)) => Self::Suffix(end.into()),
            (None, None) => Self::Exactly(text.into()),
        }
    }

    /// The text, if there is only one that fits.
    pub(crate) const fn exact(&self) -> Option<&str> {
        match self {
            Self::Exactly(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        match self {
            Self::Exactly(exact) => **exact == *text,
            Self::Prefix(start) => text.starts_with(&**start),
            Self::Suffix(end) => text.ends_with(&**end),
        }
    }

    /// The same, without regard to case, as names of hosts are compared. Requests in their usual
    /// form have neither a port nor a dot at the end, and so those of a pattern say nothing.
    fn fits_host(&self, host: &str) -> bool {
        let (host, end) = (host.as_bytes(), |len: usize| host.len().saturating_sub(len));
        match self {
            Self::Exactly(exact) => host.eq_ignore_ascii_case(bare_host(exact).as_bytes()),
            Self::Prefix(start) => {
                host.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start.as_bytes()))
            }
            Self::Suffix(tail) => {
                let tail = bare_host(tail);
                host.len() >= tail.len()
                    && host[end(tail.len())..].eq_ignore_ascii_case(tail.as_bytes())
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(text) => write!(f, "{text}"),
            Self::Prefix(start) => write!(f, "{start}*"),
            Self::Suffix(end) => write!(f, "*{end}"),
        }
    }
}

/// The fields of `match` that are not attributes with text values.
pub(crate) const SPECIAL: [&str; 6] = ["method", "host", "path", "tier", "ip", "when"];

/// Methods that are not standard must be asked for by a descriptor: most are slips.
pub(crate) const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

impl Matching {
    /// The most values that one field lists.
    pub(crate) const MAX_VALUES: usize = 10_000;

    /// The most fields: what all of them ask is asked of every request.
    pub(crate) const MAX_FIELDS: usize = 64;

    pub(crate) fn read(
        reader: &mut Reader<'_>,
        node: &Node,
        tiers: Option<&Tiers>,
    ) -> Option<Self> {
        let Value::Map(fields) = &node.value else {
            reader.wrong_type(node, "`match`", "a map of what must be so: `{ path: /v1/** }`");
            return None;
        };
        if fields.len() > Self::MAX_FIELDS {
            let (is, most) = (fields.len(), Self::MAX_FIELDS);
            let message = format!("`match` has {is} fields, and at most {most} are read");
            let span = node.span.start..node.span.start;
            let remedy = "ask for less, or ask for it in `when`";
            reader.add(Diagnostic::error("bad-value", span, message, "in here", remedy));
            return None;
        }
        let (mut matching, mut others) = (Self::default(), Vec::new());
        for field in fields {
            matching.read_field(reader, field, tiers, &mut others);
        }
        matching.others = others.into();
        let simple = |field: &Field| matches!(field.name.as_str(), "path" | "method");
        matching.asks_more = !fields.iter().all(simple);
        Some(matching)
    }

    fn read_field(
        &mut self,
        reader: &mut Reader<'_>,
        field: &Field,
        tiers: Option<&Tiers>,
        others: &mut Vec<(Attribute, Box<[Pattern]>)>,
    ) {
        let nodes = reader.items(&field.value);
        if nodes.len() > Self::MAX_VALUES || nodes.is_empty() {
            let most = Self::MAX_VALUES;
            let (name, is) = (shortened(&field.name), nodes.len());
            let message = format!("`{name}` lists {is} values, not 1 to {most}");
            let span = field.span.clone();
            let remedy = "split the rule, or leave the field out to match everything";
            reader.add(Diagnostic::error("bad-value", span, message, "this list", remedy));
            return;
        }
        match field.name.as_str() {
            "method" => self.methods = nodes.iter().filter_map(|n| method(reader, n)).collect(),
            "host" => self.hosts = nodes.iter().filter_map(|n| pattern(reader, n)).collect(),
            "path" => self.paths = nodes.iter().filter_map(|n| path(reader, n)).collect(),
            "ip" => self.networks = networks(reader, nodes),
            "tier" => self.tiers = nodes.iter().filter_map(|n| tier(reader, n, tiers)).collect(),
            "when" => self.when = reader.expression(&field.value, "`when`", Condition::parse),
            name => {
                let Some(attribute) = other(reader, field, name) else { return };
                let patterns = nodes.iter().filter_map(|n| pattern(reader, n)).collect();
                others.push((attribute, patterns));
            }
        }
    }
}

fn other(reader: &mut Reader<'_>, field: &Field, name: &str) -> Option<Attribute> {
    match name.parse() {
        Ok(attribute) => Some(attribute),
        Err(error) => {
            let remedy = did_you_mean(name, &SPECIAL);
            let message = format!("`match` has no field `{}`", shortened(name));
            let remedy = remedy.unwrap_or_else(|| format!("{error}; {}", error.remedy()));
            let span = field.span.clone();
            reader.add(Diagnostic::error("unknown-field", span, message, "not a field", remedy));
            None
        }
    }
}

fn pattern(reader: &mut Reader<'_>, node: &Node) -> Option<Pattern> {
    let text = reader.text(node, "a value to match")?;
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains('*') || (text.len() > 1 && text.starts_with('*') && text.ends_with('*')) {
        let message = format!("`{}` has a star in the middle or two of them", shortened(text));
        let remedy = "a star stands at the end or at the beginning; use `when` for the rest";
        let span = node.span.clone();
        reader.add(Diagnostic::error("bad-value", span, message, "this value", remedy));
        return None;
    }
    Some(Pattern::new(text))
}

fn method(reader: &mut Reader<'_>, node: &Node) -> Option<Box<str>> {
    let choices = METHODS.map(|method| (method, method));
    reader.choice(node, "method", &choices).map(|method| method.value.into())
}

fn path(reader: &mut Reader<'_>, node: &Node) -> Option<PathPattern> {
    Some(reader.parsed(node, "a path", "/v1/users/{id}/**", str::parse)?.value)
}

/// Networks, and single addresses.
pub(crate) fn networks(reader: &mut Reader<'_>, nodes: &[Node]) -> Networks {
    let mut networks = Vec::new();
    for node in nodes {
        let parsed = reader.parsed(node, "a network", "10.0.0.0/8", Networks::network);
        networks.extend(parsed.map(|network| network.value));
    }
    match (Networks::try_new(networks), nodes) {
        (Ok(networks), _) => networks,
        (Err(error), nodes) => {
            let span = nodes.first().map_or(0..0, |node| node.span.clone());
            let remedy = "name larger networks";
            reader.add(Diagnostic::error(
                "bad-value",
                span,
                error.to_string(),
                "from here",
                remedy,
            ));
            Networks::default()
        }
    }
}

fn tier(reader: &mut Reader<'_>, node: &Node, tiers: Option<&Tiers>) -> Option<usize> {
    let name = reader.text(node, "a tier")?;
    let Some(tiers) = tiers else {
        let message = "this file has no tiers";
        let remedy = "say where the tier comes from: `tiers: { from: claims.plan, known: [free], else: free }`";
        let span = node.span.clone();
        reader.add(Diagnostic::error("no-tiers", span, message, "needs tiers", remedy));
        return None;
    };
    let found = tiers.named(name);
    if found.is_none() {
        reader.unknown_tier(node, name, tiers.known());
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::{Facts, Request, RuleSet};

    fn fits(matching: &str, request: &Request<'_>) -> bool {
        let rule = format!("rules: [{{ name: a, match: {{ {matching} }}, key: [], limit: 5/s }}]");
        let set = RuleSet::parse(&rule).unwrap();
        !set.applying(&Facts::new(&set, request, None)).is_empty()
    }

    #[test]
    fn methods_fit_in_any_case() {
        for method in ["POST", "post", "Post"] {
            let request = Request::new(method, "/login");
            assert!(fits("method: POST", &request), "{method}");
            assert!(fits("method: [GET, POST], path: /login", &request), "{method}");
            assert!(!fits("method: PUT", &request), "{method}");
        }
    }

    #[test]
    fn ports_and_dots_of_hosts_say_nothing() {
        let patterns =
            ["api.example.com.", "API.example.com:443", "'*.example.com.'", "'*.example.com:80'"];
        for pattern in patterns {
            let host = format!("host: {pattern}");
            let fits = |name: &str| {
                let mut room = String::new();
                fits(&host, &Request::new("GET", "/").host(name).normal(&mut room))
            };
            assert!(fits("api.example.com") && fits("api.example.com.:443"), "{pattern}");
            assert!(!fits("api.example.org") && !fits("example.com"), "{pattern}");
        }
    }
}
