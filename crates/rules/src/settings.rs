//! How a rule is kept and answered: what `defaults` can say for all rules.

use std::fmt;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::read::{Fields, Reader};

/// What a rule does with requests that it does not allow.
///
/// ```
/// use tollgate_rules::{Mode, RuleSet};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, mode: shadow }]")?;
/// assert_eq!(set.rules()[0].mode(), Mode::Shadow);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Denies them.
    #[default]
    Enforce,
    /// Counts and reports, and never denies.
    Shadow,
    /// Nothing, as if it were not there.
    Off,
}

/// Where the truth about a rule's counters is.
///
/// ```
/// use tollgate_rules::{Consistency, RuleSet};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, consistency: strict }]")?;
/// assert_eq!(set.rules()[0].consistency(), Consistency::Strict);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// On each node alone.
    Local,
    /// In the store: keys seen now and then are asked for there, hot ones are lent.
    #[default]
    Shared,
    /// In the store, which is asked for every request.
    Strict,
    /// In a ledger that survives any crash.
    Durable,
}

/// What a rule says while its store cannot be reached.
///
/// ```
/// use tollgate_rules::{OnStoreFailure, RuleSet};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, on_store_failure: deny }]")?;
/// assert_eq!(set.rules()[0].on_store_failure(), OnStoreFailure::Deny);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Lets everything pass.
    Allow,
    /// Lets nothing pass.
    Deny,
    /// Goes on with what this node knows, and its share of the limit.
    Local {
        /// How much that is, 1 to 100 per cent, if the rule says so: `local 20%`. Otherwise what all
        /// rules of the node have.
        share: Option<u8>,
    },
}

impl Default for OnStoreFailure {
    fn default() -> Self {
        Self::Local { share: None }
    }
}

/// As it is written in a rule.
impl fmt::Display for OnStoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { share: Some(share) } => write!(f, "local {share}%"),
            known => f.write_str(name_of(&ON_STORE_FAILURE, known)),
        }
    }
}

/// Who is turned away first when there is too much for everybody.
///
/// ```
/// use tollgate_rules::{Priority, RuleSet};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, priority: critical }]")?;
/// assert_eq!(set.rules()[0].priority(), Priority::Critical);
/// assert!(Priority::Critical > Priority::Low);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// First of all.
    Low,
    /// After those.
    #[default]
    Normal,
    /// Only if nothing else helps.
    High,
    /// Last.
    Critical,
}

/// Which headers tell a client about the limit.
///
/// ```
/// use tollgate_rules::{HeaderStyle, RuleSet};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, headers: standard }]")?;
/// assert_eq!(set.rules()[0].headers(), HeaderStyle::Standard);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderStyle {
    /// `RateLimit` and `RateLimit-Policy`, as the IETF drafts them.
    Standard,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    Legacy,
    /// These and those.
    #[default]
    Both,
    /// The latter with `X-RateLimit-Used`, as GitHub sends them.
    Github,
    /// None.
    None,
}

/// The answer to a request that a rule denies.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse(
///     "rules: [{ name: a, key: [], limit: 5/s, deny: { message: 'Wait {retry_after}.' } }]",
/// )?;
/// let deny = set.rules()[0].deny();
/// assert_eq!((deny.status, deny.message.as_deref()), (429, Some("Wait {retry_after}.")));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deny {
    /// The status.
    pub status: u16,
    /// What it says, with `{retry_after}`, `{limit}` and `{rule}` filled in.
    pub message: Option<Arc<str>>,
    /// A whole body in place of the usual one, with the same filled in; `{retry_after}` is a number of
    /// seconds.
    pub body: Option<Arc<str>>,
}

impl Default for Deny {
    fn default() -> Self {
        Self { status: 429, message: None, body: None }
    }
}

/// All of these together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) consistency: Consistency,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) priority: Priority,
    pub(crate) headers: HeaderStyle,
    pub(crate) deny: Deny,
    /// Percentages at which a client is warned.
    pub(crate) warn_at: Box<[u8]>,
}

pub(crate) const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];

pub(crate) const CONSISTENCIES: [(&str, Consistency); 4] = [
    ("local", Consistency::Local),
    ("shared", Consistency::Shared),
    ("strict", Consistency::Strict),
    ("durable", Consistency::Durable),
];

pub(crate) const ON_STORE_FAILURE: [(&str, OnStoreFailure); 3] = [
    ("allow", OnStoreFailure::Allow),
    ("deny", OnStoreFailure::Deny),
    ("local", OnStoreFailure::Local { share: None }),
];

pub(crate) const PRIORITIES: [(&str, Priority); 4] = [
    ("low", Priority::Low),
    ("normal", Priority::Normal),
    ("high", Priority::High),
    ("critical", Priority::Critical),
];

pub(crate) const HEADERS: [(&str, HeaderStyle); 5] = [
    ("standard", HeaderStyle::Standard),
    ("legacy", HeaderStyle::Legacy),
    ("both", HeaderStyle::Both),
    ("github", HeaderStyle::Github),
    ("none", HeaderStyle::None),
];

/// The name of a value among its choices.
pub(crate) fn name_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> &'static str {
    choices.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

impl Settings {
    pub(crate) const FIELDS: [&str; 7] =
        ["mode", "consistency", "on_store_failure", "priority", "headers", "deny", "warn_at"];

    /// What the fields say, and for the rest what is so anyway.
    pub(crate) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>, usual: &Self) -> Self {
        Self {
            mode: chosen(reader, fields, "mode", &MODES, usual.mode),
            consistency: chosen(reader, fields, "consistency", &CONSISTENCIES, usual.consistency),
            on_store_failure: OnStoreFailure::read(reader, fields, usual.on_store_failure),
            priority: chosen(reader, fields, "priority", &PRIORITIES, usual.priority),
            headers: chosen(reader, fields, "headers", &HEADERS, usual.headers),
            deny: match fields.get("deny") {
                Some(node) => Deny::read(reader, node, &usual.deny),
                None => usual.deny.clone(),
            },
            warn_at: match fields.get("warn_at") {
                Some(node) => levels(reader, fields, node),
                None => usual.warn_at.clone(),
            },
        }
    }
}

fn chosen<T: Copy>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    name: &str,
    choices: &[(&str, T)],
    usual: T,
) -> T {
    let Some(node) = fields.get(name) else { return usual };
    reader.choice(node, name, choices).map_or(usual, |chosen| chosen.value)
}

impl OnStoreFailure {
    fn read(reader: &mut Reader<'_>, fields: &Fields<'_>, usual: Self) -> Self {
        let name = "on_store_failure";
        let Some(node) = fields.get(name) else { return usual };
        let is_digit = |letter: char| letter.is_ascii_digit() || letter == '%';
        match &node.value {
            Value::Text(text) if text.starts_with("local") && text.contains(is_digit) => {
                let parse = |text: &str| match text.strip_prefix("local ").map(percent_of) {
                    Some(Some(share)) => Ok(Self::Local { share: Some(share) }),
                    Some(None) => Err("the share must be 1% to 100%"),
                    None => Err("the share stands behind `local` and a blank"),
                };
                let given = reader.parsed(node, &format!("`{name}`"), "local 20%", parse);
                given.map_or(usual, |given| given.value)
            }
            _ => chosen(reader, fields, name, &ON_STORE_FAILURE, usual),
        }
    }
}

/// When clients are warned.
fn levels(reader: &mut Reader<'_>, fields: &Fields<'_>, node: &Node) -> Box<[u8]> {
    const MAX: usize = 100;
    let nodes = reader.items(node);
    if nodes.len() > MAX {
        let message = format!("`warn_at` has {} percentages, not 1 to {MAX}", nodes.len());
        let (span, remedy) = (fields.name_span("warn_at"), "keep a few of them");
        reader.add(Diagnostic::error("bad-value", span, message, "this list", remedy));
        return Box::default();
    }
    let mut levels: Vec<u8> = nodes.iter().filter_map(|node| percentage(reader, node)).collect();
    levels.sort_unstable();
    levels.into()
}

fn percentage(reader: &mut Reader<'_>, node: &Node) -> Option<u8> {
    let parse = |text: &str| percent_of(text).ok_or("it must be 1% to 100%");
    Some(reader.parsed(node, "a percentage", "80%", parse)?.value)
}

fn percent_of(text: &str) -> Option<u8> {
    // A number that begins with a sign or a zero is one to `parse`, and none to the schema.
    let digits = text.strip_suffix('%').filter(|digits| !digits.starts_with(['+', '0']))?;
    digits.parse().ok().filter(|percent| (1..=100).contains(percent))
}

/// What clients and proxies take for "not now" or "not you".
const USUAL_STATUSES: [u16; 4] = [402, 403, 429, 503];

/// What a message can be filled in with.
const PLACEHOLDERS: [&str; 3] = ["{retry_after}", "{limit}", "{rule}"];

impl Deny {
    pub(crate) const FIELDS: [&str; 3] = ["status", "message", "body"];

    /// The longest message or body, in bytes.
    const MAX_TEXT: usize = 16 << 10;

    fn read(reader: &mut Reader<'_>, node: &Node, usual: &Self) -> Self {
        let Some(fields) = reader.fields(node, "`deny`", &Self::FIELDS) else {
            return usual.clone();
        };
        let parse = |text: &str| match text.parse() {
            Ok(status @ 400..=599) => Ok(status),
            _ => Err("a denial has a status from 400 to 599"),
        };
        let mut status = usual.status;
        if let Some(node) = fields.get("status")
            && let Some(given) = reader.parsed(node, "a status", "429", parse)
        {
            status = given.value;
            if !USUAL_STATUSES.contains(&status) {
                let message = format!("{status} is an unusual status for a denial");
                let remedy = "use 429, or 402, 403 or 503: clients know what they mean";
                let span = node.span.clone();
                let found = Diagnostic::error("unusual-status", span, message, "here", remedy);
                reader.add(found.warning());
            }
        }
        let mut text = |name| match fields.get(name) {
            Some(node) => read_text(reader, node),
            None => None,
        };
        let (message, body) = (text("message"), text("body"));
        Self {
            status,
            message: message.or_else(|| usual.message.clone()),
            body: body.or_else(|| usual.body.clone()),
        }
    }
}

fn read_text(reader: &mut Reader<'_>, node: &Node) -> Option<Arc<str>> {
    let text = reader.text(node, "a text")?;
    let most = Deny::MAX_TEXT;
    let control = text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    if text.len() > most || control {
        let message = format!("the text is longer than {most} bytes or has control characters");
        let span = node.span.start..node.span.start;
        reader.add(Diagnostic::error("bad-value", span, message, "this text", "shorten it"));
        return None;
    }
    let rest = PLACEHOLDERS.iter().fold(text.to_owned(), |text, known| text.replace(known, ""));
    let word =
        rest.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(word, _)| word);
    let is_name =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if let Some(word) = word.filter(|word| is_name(word)) {
        let message = format!("nothing can be filled in for `{{{word}}}`");
        let remedy = format!("there are `{}`", PLACEHOLDERS.join("`, `"));
        let span = node.span.clone();
        reader.add(Diagnostic::error("unknown-placeholder", span, message, "this text", remedy));
    }
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use crate::{OnStoreFailure, RuleSet};

    fn read(defaults: &str, policy: &str) -> Result<OnStoreFailure, String> {
        let rule = format!("{{ name: a, key: [], limit: 5/s{policy} }}");
        let set = RuleSet::parse(&format!("defaults: {{ {defaults} }}\nrules: [{rule}]"));
        let set = set.map_err(|error| error.to_string())?;
        Ok(set.rules()[0].on_store_failure())
    }

    #[test]
    fn a_share_is_said_behind_local() {
        for (text, share) in [("local 1%", 1), ("local 20%", 20), ("local 100%", 100)] {
            let said = read("", &format!(", on_store_failure: {text}")).unwrap();
            assert_eq!(said, OnStoreFailure::Local { share: Some(share) });
            assert_eq!(said.to_string(), text);
        }
        assert_eq!(read("", ""), Ok(OnStoreFailure::Local { share: None }));
        assert_eq!(OnStoreFailure::default().to_string(), "local");
    }

    #[test]
    fn a_rule_that_says_local_alone_takes_no_share_from_the_defaults() {
        let usual = "on_store_failure: local 20%";
        assert_eq!(read(usual, ""), Ok(OnStoreFailure::Local { share: Some(20) }));
        let said = read(usual, ", on_store_failure: local");
        assert_eq!(said, Ok(OnStoreFailure::Local { share: None }));
    }

    #[test]
    fn a_share_that_there_cannot_be_is_refused_with_its_place_and_a_remedy() {
        for (text, problem) in [
            ("local 0%", "the share must be 1% to 100%"),
            ("local 101%", "the share must be 1% to 100%"),
            ("local 20", "the share must be 1% to 100%"),
            ("local +5%", "the share must be 1% to 100%"),
            ("local 020%", "the share must be 1% to 100%"),
            ("local 20% more", "the share must be 1% to 100%"),
            ("local20%", "the share stands behind `local` and a blank"),
        ] {
            let error = read("", &format!(", on_store_failure: {text}")).unwrap_err();
            let message = format!("`{text}` is no good as `on_store_failure`: {problem}");
            assert!(error.contains(&message), "{error}");
            assert!(error.contains("write something like `local 20%`"), "{error}");
            assert!(error.contains(":2:"), "the line of the rule: {error}");
        }
        let error = read("", ", on_store_failure: locl").unwrap_err();
        assert!(error.contains("there is no on_store_failure `locl`"), "{error}");
    }
}
