//! What each rule has said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tollgate::{Mode, RuleDecision, RuleSet, Ruling};

use super::shard::{self, SHARDS, Writer};

/// The counts of the rules in force. Those of a rule that stays, by name, are the same ones.
#[derive(Debug)]
pub(super) struct Series {
    rules: Arc<RuleSet>,
    /// One for each rule; those beyond the most share one.
    of_rules: Box<[Arc<Counts>]>,
    /// For all that have no series of their own.
    others: Arc<Counts>,
    by_name: BTreeMap<Box<str>, Arc<Counts>>,
}

/// What a rule has said, by outcome, in a line for each thread.
#[derive(Debug, Default)]
pub(super) struct Counts([Line; SHARDS]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; OUTCOMES.len()]);

impl Series {
    /// For these rules, going on from those of others.
    pub(super) fn new(rules: &Arc<RuleSet>, old: Option<&Self>) -> Self {
        let others = old.map_or_else(Arc::default, |old| Arc::clone(&old.others));
        let known = |name: &str| old.and_then(|old| old.by_name.get(name)).cloned();
        let mut by_name = BTreeMap::new();
        let of_rule = |name: &str| match by_name.get(name) {
            Some(counts) => Arc::clone(counts),
            None if by_name.len() == MOST_RULES => Arc::clone(&others),
            None => {
                let counts = known(name).unwrap_or_default();
                by_name.insert(name.into(), Arc::clone(&counts));
                counts
            }
        };
        let of_rules = rules.rules().iter().map(|rule| rule.name()).map(of_rule).collect();
        Self { rules: Arc::clone(rules), of_rules, others, by_name }
    }

    /// Whether a rule has series of its own.
    pub(super) fn has(&self, rule: &str) -> bool {
        self.by_name.contains_key(rule)
    }

    pub(super) const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Counts what each rule says.
    #[inline]
    pub(super) fn count(&self, writer: Writer, ruling: &Ruling) {
        // These rules are kept alive here, so none at the same address can be others.
        let is_mine = std::ptr::eq(ruling.rules(), &*self.rules);
        for each in ruling.each() {
            match self.of_rules.get(each.number()) {
                Some(counts) if is_mine => counts.add(writer, &each),
                _ => self.count_by_name(writer, &each),
            }
        }
    }

    /// A request that was under way when rules were exchanged. What a rule says that is gone, with
    /// its series, is not counted.
    #[cold]
    fn count_by_name(&self, writer: Writer, each: &RuleDecision<'_>) {
        if let Some(counts) = self.by_name.get(each.name()) {
            counts.add(writer, each);
        }
    }

    /// The names of the rules that have series, and their counts by [`OUTCOMES`].
    pub(super) fn totals(&self) -> impl Iterator<Item = (&str, [u64; OUTCOMES.len()])> {
        let rules = self.by_name.iter().map(|(name, counts)| (&**name, counts.totals()));
        // Its counts go on as long as there is anything in them.
        let others = Some(self.others.totals()).filter(|totals| *totals != [0; OUTCOMES.len()]);
        rules.chain(others.map(|totals| (OTHERS, totals)))
    }
}

impl Counts {
    #[inline]
    fn add(&self, writer: Writer, each: &RuleDecision<'_>) {
        let outcome = match (each.is_allowed(), each.mode()) {
            (true, _) => 0,
            (false, Mode::Shadow) => 2,
            (false, _) => 1,
        };
        writer.add(&writer.of(&self.0).0[outcome], 1);
    }

    fn totals(&self) -> [u64; OUTCOMES.len()] {
        std::array::from_fn(|outcome| shard::sum(&self.0, |line| &line.0[outcome]))
    }
}

/// What a rule can say.
pub(super) const OUTCOMES: [&str; 3] = ["allowed", "denied", "shadow_denied"];

/// The name of all rules that have no series. Rules cannot be called so.
pub(super) const OTHERS: &str = "(other)";

/// So many rules have series of their own: the first of the file.
pub(super) const MOST_RULES: usize = 1_000;
