//! One rule: which requests, counted by what, against which limit.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Limit, LimitError, Period, Quota};

use crate::attribute::Attribute;
use crate::budget::{self, Budget};
use crate::client_ip::ClientIp;
use crate::condition::Condition;
use crate::cost::Cost;
use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::facts::{Facts, Value};
use crate::files::Files;
use crate::key::KeyParts;
use crate::matching::Matching;
use crate::outcome::Outcome;
use crate::overrides::{Overrides, Written};
use crate::read::Reader;
use crate::settings::{Consistency, Deny, HeaderStyle, Mode, OnStoreFailure, Priority, Settings};
use crate::tiers::Tiers;

/// A checked rule.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse("rules: [{ name: per-user, key: [user], limit: 100/min }]")?;
/// let rule = &set.rules()[0];
/// assert_eq!(rule.name(), "per-user");
/// assert_eq!(rule.limits()[0].quota().to_string(), "100/min");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) name: Box<str>,
    pub(crate) matching: Matching,
    pub(crate) key: KeyParts,
    pub(crate) budget: Budget,
    pub(crate) cost: Cost,
    pub(crate) count_if: Option<Condition>,
    pub(crate) block: Option<(Period, Limit)>,
    /// Shared between sets that differ in other things: there may be millions.
    pub(crate) overrides: Option<Arc<Overrides>>,
    pub(crate) settings: Settings,
    /// The group whose rules are alternatives, and how early this one is asked among them.
    pub(crate) alternative: Option<Alternative>,
}

/// A place among alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    pub(crate) group: u32,
    /// The lowest is asked first.
    pub(crate) rank: u32,
}

impl Rule {
    /// What it is called: in metrics, headers and answers.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].name(), "a");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it counts by; nothing: everybody together.
    ///
    /// ```
    /// # use tollgate_rules::{Attribute, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].key(), [Attribute::Ip]);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn key(&self) -> &[Attribute] {
        &self.key.parts
    }

    /// The value of a part of the key in a request; `None` if the request lacks it.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet, Value};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [user], limit: 5/s }]")?;
    /// let request = Request::new("GET", "/").attributes(&[("user", "alice")]);
    /// let (rule, facts) = (&set.rules()[0], Facts::new(&set, &request, None));
    /// assert_eq!(rule.key_value(&rule.key()[0], &facts), Some(Value::Text("alice")));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn key_value<'a>(&'a self, part: &Attribute, facts: &Facts<'a>) -> Option<Value<'a>> {
        facts.value(&self.matching, part)
    }

    /// What stands for a part of the key that the request lacks; `None` if the rule does not apply
    /// then. Whoever counts by it must keep it apart from the part itself, or those without a name
    /// could take that of another.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet, Value};
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [user], key_missing: header.x-client, limit: 5/s }]",
    /// )?;
    /// let request = Request::new("GET", "/").headers(&[("x-client", "alice")]);
    /// let (rule, facts) = (&set.rules()[0], Facts::new(&set, &request, None));
    /// assert_eq!(rule.key_value(&rule.key()[0], &facts), None);
    /// assert_eq!(rule.value_instead(&facts), Some(Value::Text("alice")));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn value_instead<'a>(&'a self, facts: &Facts<'a>) -> Option<Value<'a>> {
        self.key.instead(facts, &self.matching)
    }

    /// All its limits: [`limit_of`](Self::limit_of) says which is whose. None if it limits what is
    /// under way at once.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].limits().len(), 1);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn limits(&self) -> &[Limit] {
        match &self.budget {
            Budget::Rate(rates) => &rates.limits,
            Budget::Concurrent { .. } => &[],
        }
    }

    /// Which of [`limits`](Self::limits) a request meets: by its tier, and the day its months begin.
    /// With `overridden`, the number of an [override](Self::overrides), which of
    /// [`override_limits`](Self::override_limits).
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// let request = Request::new("GET", "/");
    /// assert_eq!(set.rules()[0].limit_of(&Facts::new(&set, &request, None), None), 0);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn limit_of(&self, facts: &Facts<'_>, overridden: Option<usize>) -> usize {
        let Budget::Rate(rates) = &self.budget else { return 0 };
        let first = match (overridden, rates.quotas.0.len()) {
            (Some(number), _) => number,
            (None, 1) => 0,
            (None, _) => facts.tier(),
        };
        match rates.shape.window.anchor() {
            None => first,
            Some(anchor) => {
                let day = match facts.plain_value(anchor) {
                    Some(Value::Text(day)) => day.parse().ok().filter(|day| (1..=31).contains(day)),
                    _ => None,
                };
                // Whoever has no day, or none that there is, begins on the first.
                first * rates.shape.limits_per_quota() + day.unwrap_or(1) - 1
            }
        }
    }

    /// The limits of keys that have one of their own.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [user], limit: 5/s, overrides: { acme: 9/s, bolt: 9/s } }]",
    /// )?;
    /// assert_eq!(set.rules()[0].override_limits().len(), 1, "they have the same");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn override_limits(&self) -> &[Limit] {
        self.overrides.as_ref().map_or(&[], |overrides| &overrides.limits)
    }

    /// How many limits stand beside each other for one tier, or for one override: one, or one for each
    /// day that a month can begin on.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [user], limit: 5/month,
    ///       window: { calendar: month, timezone: UTC, anchor: account.billing_day } }]",
    /// )?;
    /// assert_eq!((set.rules()[0].limits().len(), set.rules()[0].limits_per_tier()), (31, 31));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn limits_per_tier(&self) -> usize {
        match &self.budget {
            Budget::Rate(rates) => rates.shape.limits_per_quota(),
            Budget::Concurrent { .. } => 1,
        }
    }

    /// Keys that have a limit of their own, in the form in which they are counted, and the number of
    /// that limit.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse(
    /// #     "rules: [{ name: a, key: [user], limit: 5/s, overrides: { acme: 9/s, bolt: 9/s } }]",
    /// # )?;
    /// let overrides: Vec<_> = set.rules()[0].overrides().collect();
    /// assert_eq!(overrides, [("acme", 0), ("bolt", 0)]);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn overrides(&self) -> impl Iterator<Item = (&str, usize)> {
        self.overrides.iter().flat_map(|overrides| overrides.iter())
    }

    /// The parts of a key as it is written in a list of overrides: with commas between them. `None`
    /// for a part that its attribute cannot be.
    ///
    /// ```
    /// # use tollgate_rules::{RuleSet, Value};
    /// let set = RuleSet::parse("rules: [{ name: a, key: [user, ip], limit: 5/s }]")?;
    /// let parts: Vec<_> = set.rules()[0].written_key("alice, 192.0.2.7").collect();
    /// let ip = "192.0.2.7".parse().expect("an address");
    /// assert_eq!(parts, [Some(Value::Text("alice")), Some(Value::Ip(ip))]);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn written_key<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Option<Value<'a>>> {
        self.key.written(text)
    }

    /// How many may be under way at once for each tier, and after what time a slot comes back
    /// whose holder died; `None` if the rule limits a rate.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], concurrent: 5 }]")?;
    /// assert_eq!(set.rules()[0].concurrent(), Some((&[5][..], None)));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn concurrent(&self) -> Option<(&[u32], Option<Duration>)> {
        match &self.budget {
            Budget::Rate(_) => None,
            Budget::Concurrent { most, expires } => Some((&most.0, *expires)),
        }
    }

    /// What a request spends.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s, cost: 2 }]")?;
    /// assert_eq!(set.rules()[0].cost().to_string(), "2");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Whether only some outcomes count: a request is then reserved what it costs, and gets it back
    /// if its outcome does [not count](Self::counts).
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert!(!set.rules()[0].counts_outcomes());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn counts_outcomes(&self) -> bool {
        self.count_if.is_some()
    }

    /// Whether this outcome counts. One of which that cannot be told does.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Outcome, Request, RuleSet};
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 5/s, count_if: 'response.status == 401' }]",
    /// )?;
    /// let request = Request::new("POST", "/login");
    /// let facts = Facts::new(&set, &request, None);
    /// let counts = |status| {
    ///     let outcome = Outcome { status, headers: &[] };
    ///     set.rules()[0].counts(&facts, &outcome)
    /// };
    /// assert_eq!((counts(Some(401)), counts(Some(200)), counts(None)), (true, false, true));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn counts(&self, facts: &Facts<'_>, outcome: &Outcome<'_>) -> bool {
        let Some(condition) = &self.count_if else { return true };
        facts.holds(condition, Some(outcome)).unwrap_or(true)
    }

    /// How long a key is denied everything once it has been denied.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s, block_for: 1min }]")?;
    /// assert_eq!(set.rules()[0].block_for(), Some(std::time::Duration::from_secs(60)));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn block_for(&self) -> Option<Duration> {
        self.block.as_ref().map(|(period, _)| period.as_duration())
    }

    /// The same as a limit: one token, which a denial spends, and which is back when the block
    /// ends.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s, block_for: 1min }]")?;
    /// let limit = set.rules()[0].block_limit().expect("there are blocks");
    /// assert_eq!(limit.quota().to_string(), "1/min");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn block_limit(&self) -> Option<&Limit> {
        self.block.as_ref().map(|(_, limit)| limit)
    }

    /// See [`Mode`].
    ///
    /// ```
    /// # use tollgate_rules::{Mode, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].mode(), Mode::Enforce);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// See [`Consistency`].
    ///
    /// ```
    /// # use tollgate_rules::{Consistency, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].consistency(), Consistency::Shared);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn consistency(&self) -> Consistency {
        self.settings.consistency
    }

    /// See [`OnStoreFailure`].
    ///
    /// ```
    /// # use tollgate_rules::{OnStoreFailure, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].on_store_failure(), OnStoreFailure::Local { share: None });
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn on_store_failure(&self) -> OnStoreFailure {
        self.settings.on_store_failure
    }

    /// See [`Priority`].
    ///
    /// ```
    /// # use tollgate_rules::{Priority, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].priority(), Priority::Normal);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn priority(&self) -> Priority {
        self.settings.priority
    }

    /// See [`HeaderStyle`].
    ///
    /// ```
    /// # use tollgate_rules::{HeaderStyle, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].headers(), HeaderStyle::Both);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn headers(&self) -> HeaderStyle {
        self.settings.headers
    }

    /// See [`Deny`].
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s }]")?;
    /// assert_eq!(set.rules()[0].deny().status, 429);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn deny(&self) -> &Deny {
        &self.settings.deny
    }

    /// The percentages of the limit at which a client is warned, ascending.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 5/s, warn_at: [95%, 80%] }]")?;
    /// assert_eq!(set.rules()[0].warn_at(), [80, 95]);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn warn_at(&self) -> &[u8] {
        &self.settings.warn_at
    }
}

fn block(text: &str) -> Result<(Period, Limit), LimitError> {
    let period: Period = text.parse()?;
    Ok((period, Limit::token_bucket(Quota::new(1, period)?)?))
}

/// The fields of a rule.
pub(crate) fn known_fields() -> Vec<&'static str> {
    let own = ["name", "match", "key", "key_missing", "cost", "count_if", "block_for", "overrides"];
    own.into_iter().chain(budget::FIELDS).chain(Settings::FIELDS).collect()
}

/// What reading a rule needs to know of its file.
pub(crate) struct Around<'a> {
    pub(crate) tiers: Option<&'a Tiers>,
    pub(crate) usual: &'a Settings,
    pub(crate) files: &'a dyn Files,
    pub(crate) client_ip: &'a ClientIp,
}

impl Rule {
    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, around: &Around<'_>) -> Option<Self> {
        let fields = reader.fields(node, "a rule", &known_fields())?;
        let remedy = "give it a name: it is what metrics, headers and denials call it";
        let name = reader.required(&fields, "a rule", "name", remedy);
        let name = name.and_then(|node| reader.name(node, "a rule"));
        let matching = match fields.get("match") {
            Some(node) => Matching::read(reader, node, around.tiers),
            None => Some(Matching::default()),
        };
        let empty = Matching::default();
        let key = KeyParts::read(reader, &fields, matching.as_ref().unwrap_or(&empty));
        let budget = Budget::read(reader, &fields, around.tiers);
        let cost = match fields.get("cost") {
            Some(node) => Cost::read(reader, node),
            None => Some(Cost::ONE),
        };
        let count_if = match fields.get("count_if") {
            Some(node) => reader.expression(node, "`count_if`", Condition::parse_outcome).map(Some),
            None => Some(None),
        };
        let block = match fields.get("block_for") {
            Some(node) => {
                reader.parsed(node, "`block_for`", "15min", block).map(|it| Some(it.value))
            }
            None => Some(None),
        };
        let overrides = match (fields.get("overrides"), &budget, &key) {
            (Some(node), Some(budget), Some(key)) => {
                let parts = Written { key, client_ip: around.client_ip };
                Overrides::read(reader, node, budget, parts, around.files).map(Some)
            }
            _ => Some(None),
        };
        let settings = Settings::read(reader, &fields, around.usual);
        let rule = Self {
            name: name?.into(),
            matching: matching?,
            key: key?,
            budget: budget?,
            cost: cost?,
            count_if: count_if?,
            block: block?,
            overrides: overrides?.map(Arc::new),
            settings,
            alternative: None,
        };
        rule.check_cost(reader, &fields);
        Some(rule)
    }

    /// A request that costs more than there can ever be would never pass.
    fn check_cost(&self, reader: &mut Reader<'_>, fields: &crate::read::Fields<'_>) {
        let (Some(cost), Some(most)) = (self.cost.largest(), self.budget.largest_cost()) else {
            return;
        };
        if cost > most {
            let message =
                format!("a request costs up to {cost}, and at most {most} can be there at once");
            let at = if fields.has("burst") { "burst" } else { "cost" };
            let span = fields.name_span(at);
            let remedy = format!("set `burst` to {cost} or more, or the cost to {most} or less");
            reader.add(Diagnostic::error(
                "burst-below-cost",
                span,
                message,
                "never enough",
                remedy,
            ));
        }
    }
}
