//! Which keys come most often, and which are denied most often, by estimate.

use std::fmt::{self, Write as _};

use arc_swap::ArcSwap;
use smallvec::SmallVec;
use tollgate_local::{Clock, HeavyKey, Key, KeyHash};
use tollgate_rules::{Attribute, Facts, Request, Rule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::keys::{key_hash, write_part};
use crate::engine::said::Said;

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
    ) -> SmallVec<[(KeyHash, bool, Label); MOST_RULES]> {
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

/// What a key is called. Mostly it stands where it is made: memory for it would be asked for in the
/// middle of a decision, and there others may be in front, such as whoever exchanges all rules.
struct Label(SmallVec<[u8; 128]>);

impl AsRef<str> for Label {
    fn as_ref(&self) -> &str {
        // It is made of texts.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Write for Label {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn label(rule: &Rule, facts: &Facts<'_>) -> Label {
    let mut label = Label(SmallVec::from_slice(rule.name().as_bytes()));
    for part in rule.key() {
        let is_secret = matches!(part, Attribute::Header(name)
            if SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret)));
        // It takes whatever is written to it.
        let _ = write!(label, " {part}=");
        let _ = match is_secret {
            true => label.write_str("(secret)"),
            false => write_part(rule, facts, part, &mut label),
        };
    }
    label
}
