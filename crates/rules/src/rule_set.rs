//! All the rules of a file, checked, and ready to be matched with requests.

use smallvec::SmallVec;

use crate::case::Case;
use crate::client_ip::ClientIp;
use crate::descriptors::Descriptors;
use crate::diagnostic::Report;
use crate::document::Document;
use crate::facts::Facts;
use crate::files::{Files, NoFiles, Together};
use crate::geo::Geo;
use crate::index::{BY_PATH, Candidates, Index};
use crate::read::Reader;
use crate::rule::{Alternative, Rule};
use crate::rule_file::read_file;
use crate::source::Source;
use crate::tiers::Tiers;
use crate::version::Version;

/// The rules of a file. It never changes: whoever wants other rules makes another one.
///
/// ```
/// use tollgate_rules::{Facts, Request, RuleSet};
/// let set = RuleSet::parse(
///     "rules:
///   - { name: per-user, match: { path: /v1/** }, key: [user], limit: 100/min }
///   - { name: per-ip, key: [ip], limit: 600/min }",
/// )?;
/// let request = Request::new("GET", "/v1/items").attributes(&[("user", "alice")]);
/// let applying = set.applying(&Facts::new(&set, &request, None));
/// let names: Vec<_> = applying.iter().map(|rule| set.rules()[*rule].name()).collect();
/// assert_eq!(names, ["per-user"], "there is no address to count by");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    pub(crate) version: Version,
    pub(crate) namespace: Box<str>,
    pub(crate) descriptors: Descriptors,
    pub(crate) client_ip: ClientIp,
    pub(crate) tiers: Option<Tiers>,
    pub(crate) geo: Option<Geo>,
    pub(crate) rules: Box<[Rule]>,
    pub(crate) tests: Box<[Case]>,
    pub(crate) index: Index,
    pub(crate) has_alternatives: bool,
    pub(crate) warnings: Report,
}

/// Numbers of the rules that apply to a request. Up to eight take no allocation.
pub type Applying = SmallVec<[usize; 8]>;

impl RuleSet {
    /// The most rules of a file.
    pub const MAX_RULES: usize = 100_000;

    /// The most limits of all rules: one for each tier, for each that overrides have, and for each
    /// day that a month can begin on.
    pub const MAX_LIMITS: usize = 1_000_000;

    /// Reads and checks a rule file. The report has everything that is wrong with it; warnings
    /// alone do not keep it from being used, and are [kept](Self::warnings).
    ///
    /// ```
    /// use tollgate_rules::{NoFiles, RuleSet, Source};
    /// let source = Source::new("rules.yaml", "rules: [{ nam: a, limit: 5/sec0nd }]");
    /// let report = RuleSet::read(&source, &NoFiles).unwrap_err();
    /// assert_eq!(report.diagnostics().len(), 4, "{}", report.to_text(&source));
    /// ```
    pub fn read(source: &Source, files: &dyn Files) -> Result<Self, Report> {
        let document = Document::parse(source)?;
        let mut report = Report::default();
        let set = read_file(&mut Reader::new(&mut report), document.root(), &Together::new(files));
        report.sort();
        match set {
            Some(set) if !report.has_errors() => Ok(Self { warnings: report, ..set }),
            _ => Err(report),
        }
    }

    /// Reads rules from text in YAML that names no other files.
    ///
    /// ```
    /// use tollgate_rules::RuleSet;
    /// let error = RuleSet::parse("rules: [{ name: a, key: [usr], limit: 5/s }]").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `user`?"), "{error}");
    /// ```
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let source = Source::new("rules", text);
        Self::read(&source, &NoFiles).map_err(|report| LoadError { text: source, report })
    }

    /// What the content is called.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let (a, b) = (RuleSet::parse("rules: []")?, RuleSet::parse("namespace: b\nrules: []")?);
    /// assert_ne!(a.version(), b.version());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Counters of two namespaces never mix.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// assert_eq!(RuleSet::parse("namespace: shop\nrules: []")?.namespace(), "shop");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// How the descriptors of one request of Envoy are decided about.
    ///
    /// ```
    /// # use tollgate_rules::{Descriptors, RuleSet};
    /// assert_eq!(RuleSet::parse("rules: []")?.descriptors(), Descriptors::Together);
    /// let set = RuleSet::parse("descriptors: each\nrules: []")?;
    /// assert_eq!(set.descriptors(), Descriptors::Each);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn descriptors(&self) -> Descriptors {
        self.descriptors
    }

    /// Whose word is believed about a client's address.
    ///
    /// ```
    /// # use tollgate_rules::{ClientIp, RuleSet};
    /// assert_eq!(*RuleSet::parse("rules: []")?.client_ip(), ClientIp::default());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn client_ip(&self) -> &ClientIp {
        &self.client_ip
    }

    /// The plans, if there are any.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// assert_eq!(RuleSet::parse("rules: []")?.tiers(), None);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn tiers(&self) -> Option<&Tiers> {
        self.tiers.as_ref()
    }

    /// The databases of networks that the file names, if it does: for [`Facts::new`].
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// assert!(RuleSet::parse("rules: []")?.geo().is_none());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn geo(&self) -> Option<&Geo> {
        self.geo.as_ref()
    }

    /// All rules, in the order of the file, those in groups among them.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// assert!(RuleSet::parse("rules: []")?.rules().is_empty());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The tests of the file and of those that it names, in order.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 5/s }]
    /// tests: [{ name: five, given: { request: GET /, times: 6 }, expect: { allowed: 5 } }]",
    /// )?;
    /// assert_eq!(set.tests().len(), 1);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn tests(&self) -> &[Case] {
        &self.tests
    }

    /// What is allowed, and hardly meant.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?;
    /// assert!(set.warnings().diagnostics().is_empty());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn warnings(&self) -> &Report {
        &self.warnings
    }

    /// The rules that apply to a request: that are about it, and find in it what they count by.
    /// Of alternatives the first.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse("rules: [{ name: a, match: { method: GET }, key: [], limit: 5/s }]")?;
    /// let applying = |method| set.applying(&Facts::new(&set, &Request::new(method, "/"), None)).len();
    /// assert_eq!((applying("GET"), applying("PUT")), (1, 0));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn applying(&self, facts: &Facts<'_>) -> Applying {
        let mut applying = Applying::new();
        self.each_matching(facts, |number, rule| {
            if rule.key.lacking(facts, &rule.matching).is_none() {
                applying.push(number);
            }
        });
        applying
    }

    /// Calls `found` for every rule that is about a request, in the order of the file, of
    /// alternatives for the first. Whether the request has what the rule counts by is left to ask:
    /// whoever goes on to count finds out.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse("rules: [{ name: a, key: [user], limit: 5/s }]")?;
    /// let request = Request::new("GET", "/");
    /// let mut names = Vec::new();
    /// set.each_matching(&Facts::new(&set, &request, None), |_, rule| names.push(rule.name()));
    /// assert_eq!(names, ["a"], "although there is no user");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn each_matching<'a>(&'a self, facts: &Facts<'_>, mut found: impl FnMut(usize, &'a Rule)) {
        let mut candidates = Candidates::new();
        self.index.candidates(facts, &mut candidates);
        if self.has_alternatives {
            self.leave_first(facts, &mut candidates);
        }
        for candidate in &candidates {
            let number = (candidate & !BY_PATH) as usize;
            let (rule, by_path) = (&self.rules[number], candidate & BY_PATH != 0);
            if rule.alternative.is_some() || rule.matching.fits(facts, by_path) {
                found(number, rule);
            }
        }
    }

    /// Leaves of all alternatives only the first that applies. One of which that cannot be told,
    /// because its condition fails, applies and does not keep the next one from it: an error must
    /// not hand out the looser of two limits.
    fn leave_first(&self, facts: &Facts<'_>, candidates: &mut Candidates) {
        let mut best = SmallVec::<[(Alternative, u32); 4]>::new();
        let mut unsure = SmallVec::<[u32; 4]>::new();
        for candidate in candidates.iter() {
            let number = *candidate & !BY_PATH;
            let rule = &self.rules[number as usize];
            let Some(place) = rule.alternative else { continue };
            // The rules of a group stand together, and candidates in the order of rules.
            let known = best.last_mut().filter(|(known, _)| known.group == place.group);
            if known.as_ref().is_some_and(|(known, _)| known.rank < place.rank) {
                continue;
            }
            let failures = facts.failures();
            match (rule.applies(facts), known) {
                (false, _) => {}
                (true, _) if facts.failures() > failures => unsure.push(number),
                (true, Some(known)) => *known = (place, number),
                (true, None) => best.push((place, number)),
            }
        }
        candidates.retain(|candidate| {
            let number = *candidate & !BY_PATH;
            let Some(place) = self.rules[number as usize].alternative else { return true };
            match best.binary_search_by_key(&place.group, |(best, _)| best.group) {
                Ok(at) if best[at].1 == number => true,
                Ok(at) => place.rank < best[at].0.rank && unsure.binary_search(&number).is_ok(),
                Err(_) => unsure.binary_search(&number).is_ok(),
            }
        });
    }
}

impl Rule {
    fn applies(&self, facts: &Facts<'_>) -> bool {
        self.matching.mismatch(facts).is_none() && self.key.lacking(facts, &self.matching).is_none()
    }
}

/// Rules that cannot be used, and why.
///
/// ```
/// let error = tollgate_rules::RuleSet::parse("rulez: []").unwrap_err();
/// assert!(error.to_string().contains("did you mean `rules`?"), "{error}");
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", report.to_text(text))]
pub struct LoadError {
    text: Source,
    report: Report,
}

impl LoadError {
    /// What is wrong.
    ///
    /// ```
    /// let error = tollgate_rules::RuleSet::parse("rules: 7").unwrap_err();
    /// assert_eq!(error.report().diagnostics()[0].code(), "wrong-type");
    /// ```
    pub const fn report(&self) -> &Report {
        &self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    #[test]
    fn an_alternative_that_cannot_be_told_does_not_keep_the_next_one_from_it() {
        let set = RuleSet::parse(
            "rules:
  - first_match: true
    rules:
      - name: internal
        match: { path: /v1/**, when: \"request.headers['x-internal'] == 'yes'\" }
        key: []
        limit: unlimited
      - { name: normal, key: [], limit: 1/min }",
        )
        .unwrap();
        let applying = |headers: &[(&str, &str)]| -> Vec<&str> {
            let request = Request::new("GET", "/v1/items").headers(headers);
            let facts = Facts::new(&set, &request, None);
            let applying = set.applying(&facts);
            let explained = set.explain(&facts);
            for (number, rule) in explained.rules.iter().enumerate() {
                let applies = matches!(rule.verdict, crate::explain::Verdict::Applies(_));
                assert_eq!(applies, applying.contains(&number), "{}", rule.name);
            }
            applying.iter().map(|number| set.rules()[*number].name()).collect()
        };
        assert_eq!(applying(&[("x-internal", "yes")]), ["internal"]);
        assert_eq!(applying(&[("x-internal", "no")]), ["normal"]);
        assert_eq!(applying(&[]), ["internal", "normal"], "both must allow it");
    }
}
