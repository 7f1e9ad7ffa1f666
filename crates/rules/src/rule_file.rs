//! Reading a rule file: what stands in it beside the rules, and all of these.

use crate::case::{Rules, read_cases};
use crate::check::{check, check_geo};
use crate::client_ip::{ClientHeader, ClientIp};
use crate::descriptors::Descriptors;
use crate::diagnostic::{Diagnostic, Report};
use crate::document::{Field, Node, Value};
use crate::files::Files;
use crate::geo::Geo;
use crate::matching::networks;
use crate::modes::index_active;
use crate::read::{Fields, Reader};
use crate::rule::{Alternative, Around, Rule};
use crate::rule_set::RuleSet;
use crate::settings::Settings;
use crate::tiers::Tiers;
use crate::version::Version;

pub(crate) const FIELDS: [&str; 9] = [
    "version",
    "namespace",
    "descriptors",
    "client_ip",
    "geo",
    "tiers",
    "defaults",
    "rules",
    "tests",
];

/// The fields of a group of rules.
pub(crate) const GROUP_FIELDS: [&str; 3] = ["group", "first_match", "rules"];

/// The fields of `client_ip`.
pub(crate) const CLIENT_IP_FIELDS: [&str; 3] = ["trusted_proxies", "header", "ipv6_host"];

pub(crate) fn read_file(
    reader: &mut Reader<'_>,
    root: &Node,
    files: &dyn Files,
) -> Option<RuleSet> {
    let fields = reader.fields(root, "a rule file", &FIELDS)?;
    if let Some(node) = fields.get("version") {
        reader.choice(node, "version of rule files", &[("1", ())]);
    }
    let namespace = match fields.get("namespace") {
        Some(node) => reader.name(node, "a namespace").unwrap_or_default(),
        None => "default",
    };
    let descriptors = fields.get("descriptors").and_then(|node| Descriptors::read(reader, node));
    let client_ip = match fields.get("client_ip") {
        Some(node) => reader.client_ip(node),
        None => ClientIp::default(),
    };
    let geo = fields.get("geo").and_then(|node| Geo::read(reader, node, files));
    let tiers = fields.get("tiers").and_then(|node| Tiers::read(reader, node));
    // A file whose tiers are no good is not told about each rule that needs them.
    let usual = match fields.get("defaults") {
        Some(node) => read_defaults(reader, node),
        None => Settings::default(),
    };
    let remedy = "list the rules: `rules: [{ name: per-user, key: [user], limit: 100/min }]`";
    let node = reader.required(&fields, "the file", "rules", remedy)?;
    let around = Around { tiers: tiers.as_ref(), usual: &usual, files, client_ip: &client_ip };
    let (rules, nodes) = read_rules(reader, node, &around)?;
    let tests = match fields.get("tests") {
        Some(node) => {
            let names = rules.iter().map(Rule::name).collect();
            let rules = Rules { tiers: tiers.as_ref(), rules: &names };
            read_cases(reader, node, rules, files)
        }
        None => Vec::new(),
    };
    let index = index_active(&rules);
    let version = Version::of(root, &rules);
    let has_alternatives = rules.iter().any(|rule| rule.alternative.is_some());
    let (namespace, rules) = (namespace.into(), rules.into());
    let warnings = Report::default();
    let set = RuleSet {
        version,
        namespace,
        descriptors: descriptors.unwrap_or_default(),
        client_ip,
        tiers,
        geo,
        rules,
        tests: tests.into(),
        index,
        has_alternatives,
        warnings,
    };
    // Databases that are no good were reported already.
    if set.geo.is_some() || !fields.has("geo") {
        check_geo(reader, &set, &fields, &nodes);
    }
    check(reader, &set, &nodes);
    Some(set)
}

fn read_defaults(reader: &mut Reader<'_>, node: &Node) -> Settings {
    match reader.fields(node, "`defaults`", &Settings::FIELDS) {
        Some(fields) => Settings::read(reader, &fields, &Settings::default()),
        None => Settings::default(),
    }
}

/// The rules, and where each of them is written.
fn read_rules<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    around: &Around<'_>,
) -> Option<(Vec<Rule>, Vec<&'n Node>)> {
    let nodes = reader.list(node, "`rules`")?;
    let mut count = 0;
    for node in nodes {
        count += written(node);
        if count > RuleSet::MAX_RULES {
            too_many(reader, node, RuleSet::MAX_RULES, "rules");
            return None;
        }
    }
    let (mut rules, mut read) = (Vec::new(), Vec::new());
    let (mut groups, mut limits, mut counted) = (0, 0, 0);
    for node in nodes {
        if let Some(members) = group(reader, node) {
            let Some((members, alternatives)) = members else { continue };
            let first = rules.len();
            for member in members {
                rules.extend(Rule::read(reader, member, around));
                read.resize(rules.len(), member);
            }
            if alternatives {
                rank(&mut rules[first..], groups);
                groups += 1;
            }
        } else {
            rules.extend(Rule::read(reader, node, around));
            read.resize(rules.len(), node);
        }
        let new = rules.get(counted..).unwrap_or_default().iter();
        limits += new.map(|rule| rule.limits().len() + rule.override_limits().len()).sum::<usize>();
        counted = rules.len();
        if limits > RuleSet::MAX_LIMITS {
            too_many(reader, node, RuleSet::MAX_LIMITS, "limits");
            return None;
        }
    }
    check_names(reader, &rules, &read);
    Some((rules, read))
}

/// How many rules these are, before anybody reads them.
fn written(node: &Node) -> usize {
    let Value::Map(fields) = &node.value else { return 1 };
    let rules = fields.iter().find(|field| field.name == "rules");
    match rules.map(|field| &field.value.value) {
        Some(Value::List(nodes)) => nodes.len(),
        _ => 1,
    }
}

fn too_many(reader: &mut Reader<'_>, node: &Node, most: usize, what: &str) {
    let message = format!("there are more than {most} {what}");
    let remedy = "give keys limits of their own with `overrides` instead of a rule each";
    let span = node.span.start..node.span.start;
    reader.add(Diagnostic::error("too-many-rules", span, message, "from here", remedy));
}

fn check_names(reader: &mut Reader<'_>, rules: &[Rule], nodes: &[&Node]) {
    let mut known = std::collections::BTreeSet::new();
    for (rule, node) in rules.iter().zip(nodes) {
        if !known.insert(&rule.name) {
            let message = format!("there are two rules called `{}`", rule.name);
            let remedy = "give one of them another name";
            reader.add(Diagnostic::error(
                "duplicate-rule",
                node.span.start..node.span.start,
                message,
                "the second one",
                remedy,
            ));
        }
    }
}

/// The rules of a group, and whether they are alternatives; `None` if this is a rule.
#[expect(clippy::option_option, reason = "a group that is no good is still no rule")]
fn group<'n>(reader: &mut Reader<'_>, node: &'n Node) -> Option<Option<(&'n [Node], bool)>> {
    let Value::Map(fields) = &node.value else { return None };
    if !fields.iter().any(|field: &Field| field.name == "rules" || field.name == "group") {
        return None;
    }
    Some(
        reader
            .fields(node, "a group", &GROUP_FIELDS)
            .and_then(|fields| read_group(reader, &fields)),
    )
}

fn read_group<'n>(reader: &mut Reader<'_>, fields: &Fields<'n>) -> Option<(&'n [Node], bool)> {
    if let Some(node) = fields.get("group") {
        reader.name(node, "a group");
    }
    let alternatives = match fields.get("first_match") {
        Some(node) => reader.boolean(node, "`first_match`")?,
        None => false,
    };
    let remedy = "list its rules: `rules: [...]`";
    let node = reader.required(fields, "a group", "rules", remedy)?;
    Some((reader.list(node, "`rules`")?, alternatives))
}

/// Orders alternatives: the most specific first, then as they are written.
fn rank(rules: &mut [Rule], group: u32) {
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(rules[*number].matching.specificity()));
    for (number, rank) in order.into_iter().zip(0..) {
        rules[number].alternative = Some(Alternative { group, rank });
    }
}

impl Reader<'_> {
    /// What of it is no good is left as it usually is: the report says so.
    fn client_ip(&mut self, node: &Node) -> ClientIp {
        let usual = ClientIp::default();
        let fields = self.fields(node, "`client_ip`", &CLIENT_IP_FIELDS);
        let Some(fields) = fields else { return usual };
        let trusted = match fields.get("trusted_proxies") {
            Some(node) => networks(self, self.items(node)),
            None => networks(self, &[]),
        };
        let header = match fields.get("header") {
            Some(node) => self.parsed(node, "a header", "x-forwarded-for", str::parse),
            None => None,
        };
        let bits = match fields.get("ipv6_host") {
            Some(node) => self.parsed(node, "a length", "64", |text| {
                let bits = text.parse().map_err(|_| "it is not 1 to 128 bits".to_owned())?;
                ClientIp::default().try_with_ipv6_host(bits).map_err(|error| error.to_string())
            }),
            None => None,
        };
        let header = header.map_or_else(ClientHeader::default, |header| header.value);
        bits.map_or(usual, |with_bits| with_bits.value)
            .with_header(header)
            .with_trusted_proxies(trusted)
    }
}
