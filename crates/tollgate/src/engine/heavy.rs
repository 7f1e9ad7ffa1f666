//! Which keys come most often, and which are denied most often, by estimate.

use arc_swap::ArcSwap;
use smallvec::SmallVec;
use tollgate_local::{Clock, HeavyKey, Key, KeyHash};
use tollgate_rules::{Attribute, Facts, Request, Rule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::keys::{key_hash, key_parts};
use crate::engine::ruling::Said;

/// Of one request that is sampled, the keys of so many rules are counted.
const MOST_RULES: usize = 16;

/// What stands for values that let whoever knows them in.
const SECRETS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

impl<C: Clock> Engine<C> {
    /// The keys that come most often, of all rules together, by estimate, the heaviest first. Each
    /// is called by its rule and what that counts by: `per-user user=alice`.
    ///
    /// Only some requests are looked at, the fewer the more there are, and up to 16 rules of each.
    /// Values of headers that carry credentials are left out; others are shown as they are, to
    /// whoever is shown this.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse(
    ///     "rules: [{ name: per-user, key: [user, method], limit: 9/h }]",
    /// )?)?;
    /// for user in ["alice", "bob", "alice"] {
    ///     let attributes = [("user", user)];
    ///     let _ = engine.decide(&Request::new("GET", "/").attributes(&attributes));
    /// }
    /// assert_eq!(engine.top(1)[0].key, "per-user user=alice method=GET");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn top(&self, n: usize) -> Vec<HeavyKey> {
        self.heavy.as_ref().map_or_else(Vec::new, |heavy| heavy.top(n))
    }

    /// The keys that rules deny most often, also rules in shadow, which only say so.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [user], limit: 1/h }]")?)?;
    /// for user in ["alice", "bob", "bob"] {
    ///     let attributes = [("user", user)];
    ///     let _ = engine.decide(&Request::new("GET", "/").attributes(&attributes));
    /// }
    /// assert_eq!(engine.top_denied(5)[0].key, "a user=bob");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn top_denied(&self, n: usize) -> Vec<HeavyKey> {
        self.heavy.as_ref().map_or_else(Vec::new, |heavy| heavy.top_denied(n))
    }

    /// Counts the keys of a request, if it is its turn.
    #[inline(always)]
    pub(super) fn watch(&self, active: &Active, request: &Request<'_>, said: &Said) {
        if let Some(heavy) = &self.heavy {
            heavy.count_each(|| self.keys_of(active, request, said));
        }
    }

    /// The keys of a request, whether they were denied, and what they are called. That is found out
    /// once more: whoever decides has no use for it.
    #[cold]
    #[inline(never)]
    fn keys_of(
        &self,
        active: &Active,
        request: &Request<'_>,
        said: &Said,
    ) -> SmallVec<[(KeyHash, bool, String); 4]> {
        let mut room = String::new();
        let request = request.normal(&mut room);
        let geo = active.geo().map(ArcSwap::load);
        let facts = Facts::new(active.rules(), &request, geo.as_ref().map(|geo| &***geo));
        let key = |(number, decision): (&u32, &tollgate_core::Decision)| {
            let rule = &active.rules().rules()[*number as usize];
            let key = key_hash(rule, &facts, &self.seed)?;
            // Rules that count by the same count apart.
            let key = self.seed.both(key, rule.name().hash(&self.seed));
            Some((key, !decision.is_allowed(), label(rule, &facts)))
        };
        said.rules.iter().zip(&said.each).take(MOST_RULES).filter_map(key).collect()
    }
}

fn label(rule: &Rule, facts: &Facts<'_>) -> String {
    let mut label = rule.name().to_owned();
    for (part, (name, value)) in rule.key().iter().zip(key_parts(rule, facts)) {
        let is_secret = matches!(part, Attribute::Header(name)
            if SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret)));
        let value = if is_secret { "(secret)" } else { &value };
        label.extend([" ", &name, "=", value]);
    }
    label
}
