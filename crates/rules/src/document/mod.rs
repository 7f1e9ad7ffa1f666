//! The tree of a rule file: what is written where, before anybody asks what it means.
//!
//! Reading into types that fit exactly would stop at the first thing that does not, and the rest
//! of the file would go unseen. A tree can be read on.

mod toml;
mod yaml;

use crate::diagnostic::{Diagnostic, Report};
use crate::source::{Format, Source, Span};

/// A rule file as a tree of values, each with its place.
///
/// ```
/// use tollgate_rules::{Document, Source};
/// assert!(Document::parse(&Source::new("rules.yaml", "rules: []")).is_ok());
/// assert!(Document::parse(&Source::new("rules.toml", "rules = []")).is_ok());
/// assert!(Document::parse(&Source::new("rules.json", r#"{"rules": []}"#)).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    root: Node,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As it is written: what kind of number is wanted is known where it is read.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Field>),
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) value: Node,
}

/// Nodes are the same if they say the same, wherever they stand.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Node {}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.value) == (&other.name, &other.value)
    }
}

impl Eq for Field {}

impl Document {
    /// The deepest nesting that is read. Rules need six levels.
    pub const MAX_DEPTH: usize = 32;

    /// Reads a file, or says what about its syntax is wrong: the first thing, because what follows
    /// cannot be trusted, and every field that is given twice.
    ///
    /// ```
    /// use tollgate_rules::{Document, Source};
    /// let report = Document::parse(&Source::new("rules.yaml", "rules: [")).unwrap_err();
    /// assert!(report.has_errors());
    /// ```
    pub fn parse(source: &Source) -> Result<Self, Report> {
        let mut report = Report::default();
        if source.text().len() > Source::MAX_BYTES {
            report.add(too_large(source));
            return Err(report);
        }
        let parsed = match source.format() {
            Format::Yaml => yaml::parse(source.text()),
            Format::Toml => toml::parse(source.text()),
        };
        match parsed {
            Ok(root) => {
                check_duplicates(&root, &mut report);
                report.sort();
                if report.has_errors() { Err(report) } else { Ok(Self { root }) }
            }
            Err(diagnostic) => {
                report.add(diagnostic);
                Err(report)
            }
        }
    }

    /// The outermost value.
    pub(crate) const fn root(&self) -> &Node {
        &self.root
    }
}

impl Value {
    /// What to call it in a message.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map of fields",
        }
    }
}

fn too_large(source: &Source) -> Diagnostic {
    let (is, most) = (source.text().len() >> 20, Source::MAX_BYTES >> 20);
    let message = format!("the file has {is} MB, and at most {most} MB are read");
    Diagnostic::error(
        "too-large",
        0..0,
        message,
        "",
        "keep lists of overrides in a file of their own",
    )
}

fn too_deep(span: Span) -> Diagnostic {
    let message = format!("values are nested more than {} deep", Document::MAX_DEPTH);
    Diagnostic::error("too-deep", span, message, "too deep", "a rule needs six levels at most")
}

/// Reports all fields that are given twice in one map.
fn check_duplicates(node: &Node, report: &mut Report) {
    match &node.value {
        Value::List(nodes) => nodes.iter().for_each(|node| check_duplicates(node, report)),
        Value::Map(fields) => {
            let mut seen = std::collections::BTreeSet::new();
            for field in fields {
                if !seen.insert(&field.name) {
                    let message = format!("`{}` is given twice", field.name);
                    let label = "the second one";
                    let span = field.span.clone();
                    report.add(Diagnostic::error(
                        "duplicate-field",
                        span,
                        message,
                        label,
                        "keep one of them",
                    ));
                }
                check_duplicates(&field.value, report);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(name: &str, text: &str) -> Node {
        Document::parse(&Source::new(name, text)).unwrap().root
    }

    fn refused(name: &str, text: &str) -> (Vec<&'static str>, String) {
        let source = Source::new(name, text);
        let report = Document::parse(&source).unwrap_err();
        let codes = report.diagnostics().iter().map(Diagnostic::code).collect();
        (codes, report.to_text(&source))
    }

    #[test]
    fn three_ways_to_write_make_one_tree() {
        let yaml = parsed(
            "a.yaml",
            "# comment\nrules:\n  - name: per-user\n    limit: {free: 100/min, pro: 5}\n    on: true\n    key: [user, ip/24]\n",
        );
        let toml = parsed(
            "a.toml",
            "[[rules]]\nname = \"per-user\"\nlimit = { free = \"100/min\", pro = 5 }\non = true\nkey = [\"user\", \"ip/24\"]\n",
        );
        let json = parsed(
            "a.json",
            "{\"rules\": [{\"name\": \"per-user\", \"limit\": {\"free\": \"100/min\", \"pro\": 5},\n\t\"on\": true, \"key\": [\"user\", \"ip/24\"]}]}",
        );
        assert_eq!(yaml, toml);
        assert_eq!(yaml, json);
    }

    #[test]
    fn spans_cover_what_is_written() {
        let text = "rules:\n  - name: \"per user\"\n    limit: 100/min\n";
        let root = parsed("a.yaml", text);
        let Value::Map(fields) = &root.value else { panic!("{root:?}") };
        assert_eq!(&text[fields[0].span.clone()], "rules");
        let Value::List(rules) = &fields[0].value.value else { panic!("{root:?}") };
        let Value::Map(rule) = &rules[0].value else { panic!("{root:?}") };
        let texts: Vec<_> = rule.iter().map(|field| &text[field.value.span.clone()]).collect();
        assert_eq!(texts, ["\"per user\"", "100/min"]);
    }

    #[test]
    fn scalars_are_what_they_look_like() {
        let root =
            parsed("a.yaml", "[1, -2.5, 1e3, '1', true, yes, null, ~, 0x1f, 100/min, 1_000, '']");
        let Value::List(nodes) = root.value else { panic!("a list") };
        let values: Vec<_> = nodes.into_iter().map(|node| node.value).collect();
        let number = |text: &str| Value::Number(text.to_owned());
        let text = |text: &str| Value::Text(text.to_owned());
        let expected = [
            number("1"),
            number("-2.5"),
            number("1e3"),
            text("1"),
            Value::Bool(true),
            text("yes"),
            Value::Null,
            Value::Null,
            text("0x1f"),
            text("100/min"),
            text("1_000"),
            text(""),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn all_fields_given_twice_are_found() {
        let (codes, text) = refused("a.yaml", "a: 1\nb: {c: 1, c: 2}\na: 3\n");
        assert_eq!(codes, ["duplicate-field"; 2]);
        assert!(text.contains("a.yaml:2:11") && text.contains("a.yaml:3:1"), "{text}");
    }

    #[test]
    fn what_cannot_be_read_is_shown_where_it_is() {
        for (name, text, code, place) in [
            ("a.yaml", "rules:\n  - name: x\n bad: [\n", "syntax", "a.yaml:3"),
            ("a.yaml", "a: &x 1\nb: *x\n", "no-anchors", "a.yaml:1:7"),
            ("a.yaml", "a: !!binary aGk=\n", "no-tags", "a.yaml:1:"),
            ("a.yaml", "a: 1\n---\nb: 2\n", "one-document", "a.yaml:2:1"),
            ("a.yaml", "? [a, b]\n: 1\n", "field-name", "a.yaml:1:3"),
            ("a.toml", "a = 1\nb = \n", "syntax", "a.toml:2:"),
            ("a.toml", "a = 1979-05-27\n", "no-dates", "a.toml:1:5"),
            ("a.json", "{\"a\": 1,, }", "syntax", "a.json:1:"),
        ] {
            let (codes, shown) = refused(name, text);
            assert_eq!(codes, [code], "{shown}");
            assert!(shown.contains(place), "{shown}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for name in ["a.yaml", "a.json"] {
            assert!(Document::parse(&Source::new(name, deep(Document::MAX_DEPTH))).is_ok());
            for levels in [Document::MAX_DEPTH + 1, 10_000, 200_000] {
                assert_eq!(refused(name, &deep(levels)).0, ["too-deep"], "{levels}");
            }
        }
        let toml = |levels| format!("a = {}", deep(levels));
        assert!(Document::parse(&Source::new("a.toml", toml(Document::MAX_DEPTH - 1))).is_ok());
        for levels in [Document::MAX_DEPTH, 10_000, 200_000] {
            assert!(Document::parse(&Source::new("a.toml", toml(levels))).is_err(), "{levels}");
        }
        let block: String = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        assert_eq!(refused("a.yaml", &block).0, ["too-deep"]);
    }

    #[test]
    fn an_empty_file_is_nothing() {
        assert_eq!(parsed("a.yaml", "").value, Value::Null);
        assert_eq!(parsed("a.yaml", "# only a comment\n").value, Value::Null);
        assert_eq!(parsed("a.toml", "").value, Value::Map(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "[ -~\\n\\t\u{e9}\u{4e16}]{0,200}", toml in any::<bool>(),
        ) {
            let source = Source::new(if toml { "a.toml" } else { "a.yaml" }, text);
            match Document::parse(&source) {
                Ok(document) => prop_assert!(document.root().span.end <= source.text().len()),
                Err(report) => prop_assert!(!report.to_text(&source).is_empty()),
            }
        }

        #[test]
        fn any_change_to_a_good_file_is_read_or_refused(
            at in 0..GOOD.len(), with in "[ -~\\n]{0,3}", cut in 0..4usize,
        ) {
            prop_assume!(GOOD.is_char_boundary(at));
            let end = (at + cut).min(GOOD.len());
            prop_assume!(GOOD.is_char_boundary(end));
            let source = Source::new("a.yaml", format!("{}{with}{}", &GOOD[..at], &GOOD[end..]));
            if let Err(report) = Document::parse(&source) {
                prop_assert!(!report.to_text(&source).is_empty());
            }
        }
    }

    const GOOD: &str = "version: 1\ntiers: { from: claims.plan, known: [free, pro] }\nrules:\n  - name: per-user # é\n    match: { path: \"/v1/**\" }\n    limit: { free: 100/min, pro: 10k/min }\n    deny: |\n      Too many.\n      Later.\n";
}
