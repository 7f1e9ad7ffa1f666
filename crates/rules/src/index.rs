//! Which rules may be about a request, without looking at each.
//!
//! Every rule is filed under the rarest thing it asks for: one of its paths, its host, or the exact
//! value of another attribute. A request looks under its own path and its own values, and finds few rules but
//! those that are about it, however many there are. Whether they are is still to be asked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::attribute::Attribute;
use crate::facts::{Facts, Value};
use crate::matching::{Matching, Pattern};
use crate::normal::bare_host;
use crate::path::{PathPattern, Segment, Segments, segments};
use crate::short::{Short, hash, same};

/// Numbers of rules.
pub(crate) type Candidates = SmallVec<[u32; 16]>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    paths: Trie,
    values: Box<[Values]>,
    /// Rules that ask for nothing exact.
    always: Vec<u32>,
}

impl Index {
    pub(crate) fn new<'r>(rules: impl Iterator<Item = (u32, &'r Matching)> + Clone) -> Self {
        let mut uses = Uses::default();
        for (_, matching) in rules.clone() {
            uses.count(matching);
        }
        let mut index = Self { paths: Trie::new(), ..Self::default() };
        let (mut values, mut places) = (Vec::new(), BTreeMap::new());
        for (rule, matching) in rules {
            match uses.rarest(matching) {
                Filed::Always => index.always.push(rule),
                Filed::Path => {
                    for path in &matching.paths {
                        index.paths.insert(path, rule);
                    }
                }
                Filed::Value(attribute, patterns) => {
                    let at = *places.entry(attribute.to_string()).or_insert_with(|| {
                        values.push(Values::new(attribute.clone()));
                        values.len() - 1
                    });
                    for value in exact_texts(attribute, patterns) {
                        values[at].insert(&value, rule);
                    }
                }
            }
        }
        index.values = values.into();
        index
    }

    /// The rules that may be about the request, in the order of the file.
    pub(crate) fn candidates(&self, facts: &Facts<'_>, found: &mut Candidates) {
        push_all(&self.always, 0, found);
        self.paths.find(facts.request().path(), found);
        for values in &self.values {
            values.find(facts, found);
        }
        sort(found);
    }
}

/// Marks a candidate whose path is known to fit.
pub(crate) const BY_PATH: u32 = 1 << 31;

/// In the order of the file, each once.
#[inline]
fn sort(found: &mut Candidates) {
    let number = |candidate: &u32| candidate & !BY_PATH;
    if found.len() > FEW {
        found.sort_unstable_by_key(number);
    } else {
        let found = found.as_mut_slice();
        for end in 1..found.len() {
            let mut at = end;
            while at > 0 && number(&found[at - 1]) > number(&found[at]) {
                found.swap(at - 1, at);
                at -= 1;
            }
        }
    }
    if !found.is_sorted_by(|a, b| number(a) < number(b)) {
        found.dedup_by_key(|candidate| number(candidate));
    }
}

/// So many are put in order faster in the plainest way.
const FEW: usize = 16;

/// What a rule is filed under.
enum Filed<'r> {
    Always,
    Path,
    Value(&'r Attribute, &'r [Pattern]),
}

/// How many rules ask for the same.
#[derive(Default)]
struct Uses {
    paths: BTreeMap<String, usize>,
    values: BTreeMap<(String, Box<str>), usize>,
}

impl Uses {
    fn count(&mut self, matching: &Matching) {
        for path in &matching.paths {
            *self.paths.entry(path.to_string()).or_default() += 1;
        }
        for (attribute, patterns) in exact_values(matching) {
            for value in exact_texts(attribute, patterns) {
                let key = (attribute.to_string(), value.into());
                *self.values.entry(key).or_default() += 1;
            }
        }
    }

    fn rarest<'r>(&self, matching: &'r Matching) -> Filed<'r> {
        let of_path = |path: &PathPattern| self.paths.get(&path.to_string()).copied();
        let paths = matching.paths.iter().filter_map(of_path).max();
        let mut rarest = match paths {
            // A pattern that every path fits says nothing.
            Some(_) if matching.paths.iter().any(|path| path.specificity() == 0) => {
                (usize::MAX, Filed::Always)
            }
            Some(uses) => (uses, Filed::Path),
            None => (usize::MAX, Filed::Always),
        };
        for (attribute, patterns) in exact_values(matching) {
            let of_value = |value: Cow<'_, str>| {
                self.values.get(&(attribute.to_string(), value.into())).copied()
            };
            let uses = exact_texts(attribute, patterns).filter_map(of_value).max();
            if let Some(uses) = uses.filter(|uses| *uses < rarest.0) {
                rarest = (uses, Filed::Value(attribute, patterns));
            }
        }
        rarest.1
    }
}

/// The attributes that must have one of some exact texts.
fn exact_values(matching: &Matching) -> impl Iterator<Item = (&Attribute, &[Pattern])> {
    let text = |(attribute, _): &&(Attribute, Box<[Pattern]>)| {
        matches!(attribute, Attribute::Given(_) | Attribute::Header(_) | Attribute::Query(_))
    };
    let others = matching.others.iter().filter(text);
    let host = (!matching.hosts.is_empty()).then_some((&Attribute::Host, &*matching.hosts));
    let all = others.map(|(attribute, patterns)| (attribute, &**patterns)).chain(host);
    all.filter(|(_, patterns)| patterns.iter().all(|pattern| pattern.exact().is_some()))
}

/// The texts that fit, as requests have them.
fn exact_texts<'r>(
    attribute: &Attribute,
    patterns: &'r [Pattern],
) -> impl Iterator<Item = Cow<'r, str>> {
    let is_host = *attribute == Attribute::Host;
    patterns.iter().filter_map(Pattern::exact).map(move |text| match is_host {
        true => Cow::Owned(bare_host(text).to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    })
}

/// Rules by the value of an attribute.
#[derive(Clone, Debug)]
struct Values {
    attribute: Attribute,
    table: HashTable<(Box<str>, Vec<u32>)>,
}

impl Values {
    const fn new(attribute: Attribute) -> Self {
        Self { attribute, table: HashTable::new() }
    }

    fn insert(&mut self, value: &str, rule: u32) {
        let entry = self.table.entry(
            hash(0, value.as_bytes()),
            |(known, _)| **known == *value,
            |(known, _)| hash(0, known.as_bytes()),
        );
        let rules = entry.or_insert_with(|| (value.into(), Vec::new())).into_mut();
        rules.1.push(rule);
    }

    #[inline]
    fn find(&self, facts: &Facts<'_>, found: &mut Candidates) {
        let value = match &self.attribute {
            Attribute::Given(name) => facts.given(name),
            Attribute::Host => return self.find_host(facts.request().host_name(), found),
            other => match facts.plain_value(other) {
                Some(Value::Text(value)) => Some(value),
                _ => None,
            },
        };
        if let Some(value) = value {
            self.look(value.as_bytes(), found);
        }
    }

    /// Hosts are written in any letters, mostly in small ones.
    fn find_host(&self, host: &str, found: &mut Candidates) {
        let host = bare_host(host).as_bytes();
        if !host.iter().any(u8::is_ascii_uppercase) {
            return self.look(host, found);
        }
        let mut small = SmallVec::<[u8; 64]>::from_slice(host);
        small.make_ascii_lowercase();
        self.look(&small, found);
    }

    #[inline]
    fn look(&self, value: &[u8], found: &mut Candidates) {
        let is_it = |(known, _): &(Box<str>, Vec<u32>)| same(known.as_bytes(), value);
        if let Some((_, rules)) = self.table.find(hash(0, value), is_it) {
            push_all(rules, 0, found);
        }
    }
}

/// Rules by path: a tree of segments.
#[derive(Clone, Debug, Default)]
struct Trie {
    nodes: Vec<Branch>,
    /// Nodes by their parent and their text.
    children: HashTable<u32>,
}

#[derive(Clone, Debug, Default)]
struct Branch {
    parent: u32,
    text: Box<str>,
    has_children: bool,
    /// Where texts lead, if there are few that lead somewhere, and all are short: to look through
    /// them takes less time than to look one up in a table.
    few: Vec<Edge>,
    /// Where any segment leads.
    any: Option<u32>,
    /// Rules whose pattern ends here.
    here: Vec<u32>,
    /// Rules whose pattern goes on with `**`.
    below: Vec<u32>,
}

/// Where a text leads.
#[derive(Clone, Copy, Debug)]
struct Edge {
    text: Short,
    child: u32,
}

/// So many are looked through. More of them are in the table alone.
const FEW_EDGES: usize = 4;

impl Trie {
    fn new() -> Self {
        Self { nodes: vec![Branch::default()], children: HashTable::new() }
    }

    fn insert(&mut self, pattern: &PathPattern, rule: u32) {
        let mut at = 0;
        for segment in pattern.segments() {
            at = match segment {
                Segment::Text(text) => self.child(at, text),
                Segment::Any | Segment::Parameter(_) => match self.nodes[at as usize].any {
                    Some(any) => any,
                    None => {
                        let any = self.add(at, "");
                        self.nodes[at as usize].any = Some(any);
                        any
                    }
                },
            };
        }
        let node = &mut self.nodes[at as usize];
        if pattern.is_open_ended() { node.below.push(rule) } else { node.here.push(rule) }
    }

    fn child(&mut self, parent: u32, text: &str) -> u32 {
        if let Some(child) = self.look(parent, text.as_bytes()) {
            return child;
        }
        let child = self.add(parent, text);
        let hashed = hash(parent, text.as_bytes());
        let node = &mut self.nodes[parent as usize];
        match Short::of(text.as_bytes()) {
            Some(text) if node.few.len() < FEW_EDGES && node.has_few() => {
                node.few.push(Edge { text, child });
            }
            _ => node.few.clear(),
        }
        node.has_children = true;
        let Self { nodes, children } = self;
        children.insert_unique(hashed, child, |known| {
            let known = &nodes[*known as usize];
            hash(known.parent, known.text.as_bytes())
        });
        child
    }

    fn add(&mut self, parent: u32, text: &str) -> u32 {
        self.nodes.push(Branch { parent, text: text.into(), ..Branch::default() });
        // As many as segments of all rules together, which a file of 64 MB bounds.
        (self.nodes.len() - 1) as u32
    }

    #[inline]
    fn look(&self, parent: u32, text: &[u8]) -> Option<u32> {
        let is_it = |known: &u32| {
            let known = &self.nodes[*known as usize];
            known.parent == parent && same(known.text.as_bytes(), text)
        };
        self.children.find(hash(parent, text), is_it).copied()
    }

    /// Where a segment leads from a node, if it leads anywhere.
    #[inline(always)]
    fn follow(&self, node: u32, branch: &Branch, segment: &[u8]) -> Option<u32> {
        match &*branch.few {
            [] if branch.has_children => self.look(node, segment),
            [] => None,
            few => {
                let text = Short::of(segment)?;
                few.iter().find(|edge| edge.text == text).map(|edge| edge.child)
            }
        }
    }

    fn find(&self, path: &str, found: &mut Candidates) {
        if self.nodes.len() > 1 || !self.nodes.first().is_none_or(Branch::is_empty) {
            self.walk(0, segments(path), found);
        }
    }

    /// Walks down all branches that the path fits: along the text of its segments, and aside where
    /// any segment will do. No deeper than the longest pattern.
    fn walk(&self, mut node: u32, mut path: Segments<'_>, found: &mut Candidates) {
        loop {
            let branch = &self.nodes[node as usize];
            push_all(&branch.below, BY_PATH, found);
            let Some(segment) = path.next() else {
                return push_all(&branch.here, BY_PATH, found);
            };
            if let Some(any) = branch.any {
                self.walk(any, path.clone(), found);
            }
            match self.follow(node, branch, segment) {
                Some(child) => node = child,
                None => return,
            }
        }
    }
}

#[inline]
fn push_all(rules: &[u32], mark: u32, found: &mut Candidates) {
    for rule in rules {
        found.push(rule | mark);
    }
}

impl Branch {
    /// Whether all of its children are among the few.
    fn has_few(&self) -> bool {
        !self.has_children || !self.few.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.below.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Facts, Request, RuleSet};

    /// One of these after `field:`, or nothing.
    fn asked(field: &'static str, of: &'static [&'static str]) -> impl Strategy<Value = String> {
        let one = prop::sample::select(of).prop_map(move |value| format!("{field}: {value}"));
        prop_oneof![Just(String::new()), one]
    }

    fn rule() -> impl Strategy<Value = String> {
        let fields = (
            asked("path", &["/a", "/a/b", "/a/**", "'/{x}/b'", "/**", "[/a, /c/*]"]),
            asked("host", &["a.com", "A.com", "'a.com:80'", "'*.com'", "[a.com, b.com]"]),
            asked("user", &["u", "[u, v]", "'u*'"]),
            asked("header.x-y", &["1", "'*'"]),
            asked("method", &["GET", "[GET, PUT]"]),
        );
        fields.prop_map(|(path, host, user, header, method)| {
            [path, host, user, header, method].into_iter().filter(|field| !field.is_empty()).fold(
                String::new(),
                |all, field| match all.is_empty() {
                    true => field,
                    false => all + ", " + &field,
                },
            )
        })
    }

    /// The rules of those with these paths that are found for each of them.
    fn found(paths: &[&str]) -> Vec<Vec<usize>> {
        let text = paths.iter().enumerate().fold(String::from("rules:"), |text, (at, path)| {
            text + &format!(
                "\n  - {{ name: r{at}, match: {{ path: {path} }}, key: [], limit: 1/s }}"
            )
        });
        let set = RuleSet::parse(&text).unwrap();
        let of = |path: &&str| {
            let request = Request::new("GET", path);
            let mut found = Vec::new();
            set.each_matching(&Facts::new(&set, &request, None), |number, _| found.push(number));
            found
        };
        paths.iter().map(of).collect()
    }

    #[test]
    fn paths_are_found_however_many_there_are_and_however_long() {
        let few = ["/a", "/b", "/ba", "/ab"];
        let many = ["/a", "/b", "/c", "/d", "/e", "/f", "/aa", "/1234567"];
        let long = ["/1234567", "/12345678", "/123456789", "/a", "/1234567/12345678"];
        let back = ["/12345678", "/a", "/b/a", "/b"];
        for paths in [&few[..], &many, &long, &back] {
            let each: Vec<_> = (0..paths.len()).map(|at| vec![at]).collect();
            assert_eq!(found(paths), each, "{paths:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_found_but_what_a_look_at_every_rule_finds(
            rules in prop::collection::vec(rule(), 1..20),
            method in prop::sample::select(&["GET", "put"][..]),
            path in prop::sample::select(&["/", "/a", "/a/b", "/c/d", "/c/b/e"][..]),
            host in prop::sample::select(&["", "a.com", "B.Com", "a.com:80", "c.com."][..]),
            user in prop::sample::select(&["u", "v", "uv"][..]),
            header in prop::sample::select(&[None, Some("1"), Some("2")][..]),
        ) {
            let text = rules.iter().enumerate().fold(String::from("rules:"), |text, (at, rule)| {
                text + &format!("\n  - {{ name: r{at}, match: {{ {rule} }}, key: [], limit: 1/s }}")
            });
            let set = RuleSet::parse(&text).unwrap();
            let (attributes, headers) = ([("user", user)], header.map(|it| [("x-y", it)]));
            let headers = headers.as_ref().map_or(&[][..], |it| it);
            let request =
                Request::new(method, path).host(host).attributes(&attributes).headers(headers);
            let mut room = String::new();
            for request in [request.normal(&mut room), request] {
                let facts = Facts::new(&set, &request, None);
                let (mut found, mut all) = (Vec::new(), Vec::new());
                set.each_matching(&facts, |number, _| found.push(number));
                for (number, rule) in set.rules().iter().enumerate() {
                    if rule.matching.mismatch(&facts).is_none() {
                        all.push(number);
                    }
                }
                prop_assert_eq!(found, all, "{}", text);
            }
        }
    }
}
