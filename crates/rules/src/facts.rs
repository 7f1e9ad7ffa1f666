//! What is known of one request, found out when it is first asked for.

use std::cell::Cell;
use std::fmt;
use std::net::IpAddr;

use crate::attribute::Attribute;
use crate::client_ip::ClientIp;
use crate::condition::Condition;
use crate::geo::{Country, Geo};
use crate::matching::Matching;
use crate::outcome::Outcome;
use crate::request::Request;
use crate::rule::Rule;
use crate::rule_set::RuleSet;

/// What rules want to know of one request.
///
/// ```
/// use tollgate_rules::{Facts, Request, RuleSet};
/// let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
/// let request = Request::new("GET", "/").peer("192.0.2.7".parse().expect("an address"));
/// let facts = Facts::new(&set, &request, None);
/// assert_eq!(facts.client_ip().expect("there is a peer").to_string(), "192.0.2.7");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Debug)]
pub struct Facts<'a> {
    set: &'a RuleSet,
    request: &'a Request<'a>,
    geo: Option<&'a Geo>,
    ip: Cell<Option<Option<IpAddr>>>,
    tier: Cell<Option<usize>>,
    failures: Cell<u32>,
}

/// A value that a request is counted by.
///
/// ```
/// use tollgate_rules::Value;
/// assert_eq!(Value::Text("alice").to_string(), "alice");
/// assert_eq!(Value::Number(64496).to_string(), "64496");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// What the request or its caller says.
    Text(&'a str),
    /// An address or a network.
    Ip(IpAddr),
    /// The number of a network operator.
    Number(u32),
    /// A country.
    Country(Country),
    /// What stands for a part that the request lacks.
    Fallback(&'a str),
}

impl<'a> Value<'a> {
    /// What is written for the value of an attribute, in a list of overrides for instance; `None`
    /// if the attribute cannot have that value. A network must be as long as those that are
    /// counted: another is not one of them.
    ///
    /// ```
    /// use tollgate_rules::{Attribute, Value};
    /// assert_eq!(Value::written(&Attribute::Asn, "64496"), Some(Value::Number(64496)));
    /// assert_eq!(Value::written(&Attribute::Ip, "not an address"), None);
    /// assert!(Value::written(&Attribute::IpPrefix(24), "192.0.2.0/24").is_some());
    /// assert!(Value::written(&Attribute::IpPrefix(24), "2001:db8::/48").is_some());
    /// assert_eq!(Value::written(&Attribute::IpPrefix(24), "192.0.0.0/16"), None);
    /// ```
    pub fn written(attribute: &Attribute, text: &'a str) -> Option<Self> {
        match attribute {
            Attribute::Ip => text.parse().ok().map(Self::Ip),
            Attribute::IpPrefix(bits) => {
                let (address, length) = match text.split_once('/') {
                    Some((address, length)) => (address, Some(length)),
                    None => (text, None),
                };
                let ip = address.parse().ok()?;
                let fits = |length: &str| length.parse() == Ok(prefix_length(ip, *bits));
                length.is_none_or(fits).then(|| Self::Ip(ClientIp::prefix(ip, *bits)))
            }
            Attribute::Asn => text.parse().ok().map(Self::Number),
            Attribute::Country => text.parse().ok().map(Self::Country),
            _ => Some(Self::Text(text)).filter(|_| !text.is_empty()),
        }
    }
}

/// How many bits of an address are those of its [network](ClientIp::prefix).
pub(crate) fn prefix_length(ip: IpAddr, bits: u8) -> u8 {
    match ip.to_canonical() {
        IpAddr::V4(_) => bits.min(32),
        IpAddr::V6(_) if bits <= 32 => bits * 2,
        IpAddr::V6(_) => bits,
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Country(country) => write!(f, "{country}"),
            Self::Fallback(text) => write!(f, "({text})"),
        }
    }
}

impl<'a> Facts<'a> {
    /// The facts about a request, as the rules of `set` see it.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: []")?;
    /// assert_eq!(Facts::new(&set, &Request::new("GET", "/"), None).client_ip(), None);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn new(set: &'a RuleSet, request: &'a Request<'a>, geo: Option<&'a Geo>) -> Self {
        Self {
            set,
            request,
            geo,
            ip: Cell::new(None),
            tier: Cell::new(None),
            failures: Cell::new(0),
        }
    }

    /// The request.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: []")?;
    /// # let request = Request::new("GET", "/");
    /// assert_eq!(Facts::new(&set, &request, None).request().path(), "/");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn request(&self) -> &'a Request<'a> {
        self.request
    }

    /// The rules that want to know them.
    pub(crate) const fn set(&self) -> &'a RuleSet {
        self.set
    }

    /// Whose request it is, behind the proxies that are trusted.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: []")?;
    /// let request = Request::new("GET", "/").peer("::1".parse().expect("an address"));
    /// assert!(Facts::new(&set, &request, None).client_ip().is_some());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn client_ip(&self) -> Option<IpAddr> {
        if let Some(known) = self.ip.get() {
            return known;
        }
        let ip = self.set.client_ip().of(self.request);
        self.ip.set(Some(ip));
        ip
    }

    /// The part of that address that is [counted by](ClientIp::counted).
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: []")?;
    /// let request = Request::new("GET", "/").peer("2001:db8::1".parse().expect("an address"));
    /// let counted = Facts::new(&set, &request, None).counted_ip().expect("there is a peer");
    /// assert_eq!(counted.to_string(), "2001:db8::");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn counted_ip(&self) -> Option<IpAddr> {
        // That is found faster than what was found before.
        if let Some(ip) = self.set.client_ip().at_a_glance(self.request) {
            return Some(IpAddr::V4(ip));
        }
        self.client_ip().map(|ip| self.set.client_ip().counted(ip))
    }

    /// What the caller says under this name, if it is not empty: nothing is counted by an empty
    /// name, which is what is sent when there is none.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: []")?;
    /// let request = Request::new("GET", "/").attributes(&[("user", "alice"), ("account", "")]);
    /// let facts = Facts::new(&set, &request, None);
    /// assert_eq!((facts.given("user"), facts.given("account")), (Some("alice"), None));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn given(&self, name: &str) -> Option<&'a str> {
        self.request.attribute(name).filter(|text| !text.is_empty())
    }

    /// The tier of the request: its place in the list of tiers, 0 if there are none.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse("tiers: { from: claims.plan, known: [a, b], else: a }\nrules: []")?;
    /// let request = Request::new("GET", "/").attributes(&[("claims.plan", "b")]);
    /// assert_eq!(Facts::new(&set, &request, None).tier(), 1);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn tier(&self) -> usize {
        if let Some(known) = self.tier.get() {
            return known;
        }
        let tier = self.find_tier();
        self.tier.set(Some(tier));
        tier
    }

    /// How often something about this request could not be found out: an expression that asks for
    /// what it does not have, or a cost that is no number.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, match: { when: claims.plan == 'pro' }, key: [], limit: 5/s }]",
    /// )?;
    /// let request = Request::new("GET", "/");
    /// let facts = Facts::new(&set, &request, None);
    /// assert_eq!(set.applying(&facts).len(), 1, "a rule applies unless it is known not to");
    /// assert_eq!(facts.failures(), 1);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn failures(&self) -> u32 {
        self.failures.get()
    }

    /// What the request spends from the limit of a rule: `missing`, and 1 at least, if that cannot
    /// be told, which is counted among the [failures](Self::failures). A GraphQL query that [is
    /// refused](crate::CostError::refuses) costs [`u64::MAX`], more than any limit can have: it is
    /// denied for ever.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 9/s, cost: { attribute: header.x-cost } }]",
    /// )?;
    /// let request = Request::new("GET", "/").headers(&[("x-cost", "a lot")]);
    /// let facts = Facts::new(&set, &request, None);
    /// assert_eq!((facts.cost(&set.rules()[0]), facts.failures()), (1, 1));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn cost(&self, rule: &Rule) -> u64 {
        let cost = match rule.cost().largest() {
            Some(fixed) => fixed,
            None => self.cost_of_request(rule),
        };
        cost.saturating_mul(self.request.counts())
    }

    #[inline(never)]
    fn cost_of_request(&self, rule: &Rule) -> u64 {
        match rule.cost().of(self) {
            Ok(cost) => cost,
            Err(error) if error.refuses() => u64::MAX,
            Err(_) => {
                self.fail();
                rule.cost().unknown()
            }
        }
    }

    /// The tier of the request by name, if there are tiers.
    pub(crate) fn tier_name(&self) -> Option<&'a str> {
        let tiers = self.set.tiers()?;
        Some(tiers.name(self.tier()))
    }

    /// Whether a condition holds; `None` if that cannot be told.
    pub(crate) fn holds(
        &self,
        condition: &Condition,
        outcome: Option<&Outcome<'_>>,
    ) -> Option<bool> {
        let holds = condition.holds(self.request, self.tier_name(), self.client_ip(), outcome);
        holds.inspect_err(|_| self.fail()).ok()
    }

    pub(crate) fn fail(&self) {
        self.failures.set(self.failures.get().saturating_add(1));
    }

    fn find_tier(&self) -> usize {
        let Some(tiers) = self.set.tiers() else { return 0 };
        match self.plain_value(tiers.from()) {
            Some(Value::Text(name)) => tiers.find(name),
            Some(Value::Country(country)) => tiers.find(country.as_str()),
            _ => tiers.find(""),
        }
    }

    /// The value of an attribute, for a rule with this `matching`: its patterns name parts of the
    /// path.
    #[inline]
    pub(crate) fn value(&self, matching: &'a Matching, attribute: &Attribute) -> Option<Value<'a>> {
        match attribute {
            Attribute::PathParameter(name) => {
                let path = self.request.path();
                matching.path(path)?.parameter(name, path).map(Value::Text)
            }
            _ => self.plain_value(attribute),
        }
    }

    #[inline]
    pub(crate) fn plain_value(&self, attribute: &Attribute) -> Option<Value<'a>> {
        let request = self.request;
        let text = match attribute {
            Attribute::Given(name) => return self.given(name).map(Value::Text),
            Attribute::Header(name) => request.header(name),
            Attribute::Query(name) => request.query_parameter(name),
            Attribute::Method => Some(request.method()),
            Attribute::Host => Some(request.host_name()),
            Attribute::Path => Some(request.path()),
            Attribute::ClientCert => Some(request.client_cert_name()),
            Attribute::Tier => self.tier_name(),
            Attribute::Ip => return self.counted_ip().map(Value::Ip),
            Attribute::IpPrefix(bits) => {
                return self.client_ip().map(|ip| Value::Ip(ClientIp::prefix(ip, *bits)));
            }
            Attribute::Asn => return self.geo?.asn(self.client_ip()?).map(Value::Number),
            Attribute::Country => return self.geo?.country(self.client_ip()?).map(Value::Country),
            Attribute::PathParameter(_) => None,
        };
        text.filter(|text| !text.is_empty()).map(Value::Text)
    }
}
