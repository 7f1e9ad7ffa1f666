//! What a rule says, said back in plain words: people misread rates.

use std::fmt::{self, Write};

use tollgate_core::{Period, Quota, Rate, Unit};

use crate::attribute::Attribute;
use crate::budget::{Algorithm, Budget, Rates, Shape};
use crate::cost::Cost;
use crate::key::{KeyParts, Missing};
use crate::rule::Rule;
use crate::settings::{Consistency, Mode, OnStoreFailure};
use crate::tiers::Tiers;
use crate::window::Window;

impl Rule {
    /// What the rule says, with exact numbers. `tiers` are those of its file.
    ///
    /// ```
    /// use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 100/min, cost: 5 }]")?;
    /// assert_eq!(
    ///     set.rules()[0].in_words(set.tiers()),
    ///     "100 per 60 s, at most 100 at one instant, one counter for everybody; \
    ///      a request costs 5"
    /// );
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn in_words(&self, tiers: Option<&Tiers>) -> String {
        let mut clauses = vec![self.limit_in_words(tiers)];
        clauses.extend(missing(&self.key));
        if self.cost != Cost::ONE {
            clauses.push(format!("a request costs {}", self.cost));
        }
        if let Some(condition) = &self.count_if {
            clauses.push(format!("a request counts only if `{}`", condition.text()));
        }
        if let Some((period, _)) = &self.block {
            let whom = if self.key.parts.is_empty() { "everybody" } else { "the key" };
            let length = Length(*period);
            clauses.push(format!("after a denial {whom} is denied everything for {length}"));
        }
        if self.needs_body() {
            clauses.push("only doors that see bodies can tell".to_owned());
        }
        match self.overrides().count() {
            0 => {}
            1 => clauses.push("1 key has a limit of its own".to_owned()),
            count => clauses.push(format!("{} keys have limits of their own", Count(count as u64))),
        }
        match (self.consistency(), self.on_store_failure()) {
            (Consistency::Local, _) => clauses.push("each node counts alone".to_owned()),
            (_, OnStoreFailure::Local { share: None }) => {}
            (_, OnStoreFailure::Local { share: Some(share) }) => {
                let alone =
                    format!("while the store is gone each node goes on with {share}% of it");
                clauses.push(alone);
            }
            (_, OnStoreFailure::Allow) => {
                clauses.push("while the store is gone everything passes".to_owned());
            }
            (_, OnStoreFailure::Deny) => {
                clauses.push("while the store is gone nothing passes".to_owned());
            }
        }
        match self.mode() {
            Mode::Enforce => {}
            Mode::Shadow => clauses.push("it only reports, and denies nothing".to_owned()),
            Mode::Off => clauses.push("it is off".to_owned()),
        }
        clauses.join("; ")
    }

    /// The limit alone, and what it counts by.
    fn limit_in_words(&self, tiers: Option<&Tiers>) -> String {
        let per = per(&self.key.parts);
        let (each, end) = match &self.budget {
            Budget::Rate(Rates { quotas, shape, .. }) => {
                let one = |quota: &Quota| quota_in_words(quota, shape);
                (quotas.0.iter().map(one).collect::<Vec<_>>(), None)
            }
            Budget::Concurrent { most, expires } => {
                let one = |most: &u32| format!("{} at once", Count(u64::from(*most)));
                let end = expires.map(|after| format!("a slot comes back after {}", After(after)));
                (most.0.iter().map(one).collect(), end)
            }
        };
        let mut text = match (&*each, &self.budget) {
            // `5 at once per account`, but `100 per 60 s, ..., per user`.
            ([one], Budget::Concurrent { .. }) if !self.key.parts.is_empty() => {
                format!("{one} {per}")
            }
            ([one], _) => format!("{one}, {per}"),
            (each, _) => {
                let name = |tier: usize| tiers.map_or("", |tiers| tiers.name(tier));
                let named = each.iter().enumerate();
                let named: Vec<_> =
                    named.map(|(tier, one)| format!("{}: {one}", name(tier))).collect();
                let counted = if self.key.parts.is_empty() { "" } else { "counted " };
                format!("{}; {counted}{per}", named.join("; "))
            }
        };
        if let Some(end) = end {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "; {end}");
        }
        text
    }
}

/// One quota, as its algorithm keeps it.
pub(crate) fn quota_in_words(quota: &Quota, shape: &Shape) -> String {
    let Some(rate) = quota.rate() else { return "unlimited".to_owned() };
    let (count, length) = (Count(rate.count()), Length(rate.period()));
    let burst = |usual| Count(rate.burst().unwrap_or(usual));
    match shape.algorithm {
        Algorithm::TokenBucket => {
            format!("{count} per {length}, at most {} at one instant", burst(rate.count()))
        }
        Algorithm::LeakyBucket { queue: 0 } => {
            format!("{count} per {length}, evenly, at most {} at one instant", burst(1))
        }
        Algorithm::LeakyBucket { queue } => {
            format!("{count} per {length}, evenly, with up to {} waiting in line", Count(queue))
        }
        Algorithm::FixedWindow => window_in_words(&rate, &shape.window),
        Algorithm::SlidingWindow => {
            format!("{count} in any {length}, as estimated from two windows")
        }
        Algorithm::SlidingLog => format!("{count} in any {length}, exactly"),
    }
}

fn window_in_words(rate: &Rate, window: &Window) -> String {
    let (count, length) = (Count(rate.count()), Length(rate.period()));
    match window {
        Window::Plain => format!("{count} in each window of {length}"),
        Window::Jittered => {
            format!("{count} in each window of {length}, beginning at another moment for each key")
        }
        Window::Calendar { unit, zone, day, anchor } => {
            let begin = match anchor {
                Some(attribute) => format!(", beginning on the day `{attribute}` names"),
                None if *day > 1 => format!(", beginning on day {day}"),
                None => String::new(),
            };
            format!("{count} in each {unit} of {zone}{begin}")
        }
    }
}

/// What a rule counts by: `per user and address`.
pub(crate) fn per(parts: &[Attribute]) -> String {
    match parts {
        [] => "one counter for everybody".to_owned(),
        parts => format!("per {}", joined(&parts.iter().map(noun).collect::<Vec<_>>(), "and")),
    }
}

/// An attribute as one says it.
pub(crate) fn noun(attribute: &Attribute) -> String {
    match attribute {
        Attribute::Ip => "address".to_owned(),
        Attribute::IpPrefix(_) => format!("network (`{attribute}`)"),
        Attribute::Asn => "network operator".to_owned(),
        Attribute::Header(name) => format!("header `{name}`"),
        Attribute::Query(name) => format!("query parameter `{name}`"),
        Attribute::Given(name) if **name == *"api_key" => "API key".to_owned(),
        Attribute::PathParameter(_) => format!("`{attribute}`"),
        Attribute::Given(name) if name.contains('.') => format!("`{attribute}`"),
        _ => attribute.to_string(),
    }
}

/// What happens to requests that lack a part of the key; nothing if none can.
fn missing(key: &KeyParts) -> Option<String> {
    let always = |part: &&Attribute| {
        matches!(part, Attribute::Method | Attribute::Path | Attribute::PathParameter(_))
    };
    let parts: Vec<_> = key.parts.iter().filter(|part| !always(part)).map(noun).collect();
    let lacking = match &*parts {
        [] => return None,
        [one] => format!("without {} {one}", article(one)),
        [..] => "that lacks a part of this".to_owned(),
    };
    Some(match &key.missing {
        Missing::Skip => format!("a request {lacking} is not limited"),
        Missing::Other(other) => format!("a request {lacking} counts per {}", noun(other)),
        Missing::Together(name) => {
            let plural = lacking.replace("that lacks", "that lack");
            format!("all requests {plural} count together as `{name}`")
        }
    })
}

fn article(noun: &str) -> &'static str {
    let vowel = |c: char| matches!(c.to_ascii_lowercase(), 'a' | 'e' | 'i' | 'o');
    if noun.trim_start_matches('`').starts_with(vowel) { "an" } else { "a" }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn joined(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// A number with commas: 10,000.
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// How long a period is: a single unit is said in the next smaller one, for `per min` has been
/// read as many things.
pub(crate) struct Length(pub(crate) Period);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, unit) = (self.0.times(), self.0.unit());
        match (times, unit) {
            (1, Unit::Minute) => f.write_str("60 s"),
            (1, Unit::Hour) => f.write_str("60 min"),
            (1, Unit::Day) => f.write_str("24 h"),
            (_, Unit::Day) => write!(f, "{times} days"),
            (_, Unit::Week) => write!(f, "{} days", u64::from(times) * 7),
            (_, Unit::Month) => write!(f, "{} days", u64::from(times) * 30),
            _ => write!(f, "{times} {unit}"),
        }
    }
}

/// A length of time in the largest unit that it is a multiple of.
pub(crate) struct After(pub(crate) std::time::Duration);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u128, &str); 4] =
            [(86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
        let ms = self.0.as_millis();
        let whole = |(unit, _): &&(u128, &str)| ms.is_multiple_of(*unit) && ms > *unit;
        match UNITS.iter().find(whole) {
            Some((unit, name)) => write!(f, "{} {name}", ms / unit),
            None if ms == 1_000 => f.write_str("1 s"),
            None => write!(f, "{ms} ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::RuleSet;

    fn words(rule: &str) -> String {
        let tiers = "tiers: { from: claims.plan, known: [free, pro], else: free }";
        let set = RuleSet::parse(&format!("{tiers}\nrules: [{{ name: a, {rule} }}]")).unwrap();
        set.rules()[0].in_words(set.tiers())
    }

    #[test]
    fn each_algorithm_is_said_as_it_counts() {
        let of = |rule: &str| words(&format!("key: [], {rule}"));
        let everybody = ", one counter for everybody";
        let said = [
            ("limit: 100/min", "100 per 60 s, at most 100 at one instant"),
            ("limit: 10k/h, burst: 50", "10,000 per 60 min, at most 50 at one instant"),
            (
                "limit: 50/s, algorithm: leaky_bucket",
                "50 per 1 s, evenly, at most 1 at one instant",
            ),
            (
                "limit: 50/s, algorithm: leaky_bucket, queue: 200",
                "50 per 1 s, evenly, with up to 200 waiting in line",
            ),
            ("limit: 10/15min, algorithm: sliding_log", "10 in any 15 min, exactly"),
            (
                "limit: 1M/day, algorithm: sliding_window",
                "1,000,000 in any 24 h, as estimated from two windows",
            ),
            ("limit: 5/2weeks, algorithm: fixed_window", "5 in each window of 14 days"),
            (
                "limit: 10k/month, window: { calendar: month, timezone: Europe/Berlin, \
                 anchor: account.billing_day }",
                "10,000 in each month of Europe/Berlin, \
                 beginning on the day `account.billing_day` names",
            ),
            (
                "limit: 7/month, window: { calendar: month, anchor: 15 }",
                "7 in each month of UTC, beginning on day 15",
            ),
        ];
        for (rule, expected) in said {
            assert_eq!(of(rule), format!("{expected}{everybody}"), "{rule}");
        }
        assert_eq!(of("limit: unlimited"), "unlimited, one counter for everybody");
    }

    #[test]
    fn tiers_are_said_one_by_one() {
        assert_eq!(
            words("key: [user], limit: { free: 100/min, pro: unlimited }"),
            "free: 100 per 60 s, at most 100 at one instant; pro: unlimited; counted per user; \
             a request without a user is not limited"
        );
    }

    #[test]
    fn slots_come_back() {
        assert_eq!(
            words("key: [account], concurrent: 5, expires: 10min, key_missing: ip"),
            "5 at once per account; a slot comes back after 10 min; \
             a request without an account counts per address"
        );
    }

    #[test]
    fn what_happens_without_the_store_is_said_if_it_is_unusual() {
        let of = |policy: &str| words(&format!("key: [], limit: 5/s{policy}"));
        let usual = of("");
        assert_eq!(of(", on_store_failure: local"), usual);
        for (policy, expected) in [
            ("allow", "everything passes"),
            ("deny", "nothing passes"),
            ("local 20%", "each node goes on with 20% of it"),
        ] {
            let text = of(&format!(", on_store_failure: {policy}"));
            assert_eq!(text, format!("{usual}; while the store is gone {expected}"));
        }
        let alone = of(", on_store_failure: deny, consistency: local");
        assert_eq!(alone, format!("{usual}; each node counts alone"), "it asks no store");
    }

    #[test]
    fn all_that_is_unusual_is_said() {
        let text = words(
            "key: [ip, body.username], key_missing: { together: nobody }, limit: 10/15min, \
             count_if: response.status == 401, block_for: 15min, mode: shadow, \
             consistency: local, overrides: { '192.0.2.1,alice': 9/s, '192.0.2.2,bob': 9/s }",
        );
        assert_eq!(
            text,
            "10 per 15 min, at most 10 at one instant, per address and `body.username`; \
             all requests that lack a part of this count together as `nobody`; \
             a request counts only if `response.status == 401`; \
             after a denial the key is denied everything for 15 min; \
             only doors that see bodies can tell; 2 keys have limits of their own; each node counts alone; \
             it only reports, and denies nothing"
        );
    }
}
