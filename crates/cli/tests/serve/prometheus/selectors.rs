//! What a query of Prometheus names: samples with labels, and labels to group by. Whether it is a
//! query at all, Prometheus itself says.

use std::collections::BTreeSet;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selectors {
    /// Names of samples, each with the labels that it is selected by.
    pub(super) samples: Vec<(String, BTreeSet<String>)>,
    /// Labels of `by`, `without`, `on` and the like.
    pub(super) grouping: BTreeSet<String>,
}

impl Selectors {
    pub(super) fn of(query: &str) -> Self {
        let mut found = Self::default();
        let plain = without_texts(query);
        let mut rest = &*plain;
        while let Some(start) = rest.find(begins_word) {
            let word = &rest[start..];
            let (word, after) = word.split_at(word.find(|c| !is_of_word(c)).unwrap_or(word.len()));
            rest = after;
            let next = after.trim_start();
            if GROUPING.contains(&word) {
                found.grouping.extend(words(between(next, '(', ')')));
            } else if next.starts_with('{') {
                let inside = between(next, '{', '}');
                found.samples.push((word.to_owned(), words(inside).collect()));
                rest = &next[inside.len() + 2..];
            } else if word.contains('_') && !next.starts_with('(') && word != "offset" {
                found.samples.push((word.to_owned(), BTreeSet::new()));
            }
            if GROUPING.contains(&word) {
                rest = &next[between(next, '(', ')').len() + 2..];
            }
        }
        found
    }
}

/// The query, with what stands in quotes, or says how long, left out.
fn without_texts(query: &str) -> String {
    query.split('"').step_by(2).collect::<Vec<_>>().join("")
}

fn begins_word(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

fn is_of_word(char: char) -> bool {
    begins_word(char) || char.is_ascii_digit()
}

fn between(text: &str, open: char, close: char) -> &str {
    let inside = text.strip_prefix(open).and_then(|text| text.split_once(close));
    inside.unwrap_or_else(|| panic!("no `{open}{close}`: {text}")).0
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|char| !is_of_word(char)).filter(|word| !word.is_empty()).map(str::to_owned)
}

const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

#[test]
fn names_are_found_wherever_they_stand() {
    let query = r#"sum by (job, le) (rate(a_b{door!~"x|y{}",le="1"}[5m])) / on (job) c_d > 0.2"#;
    let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
    let found = Selectors::of(query);
    assert_eq!(
        found.samples,
        [("a_b".to_owned(), labels(&["door", "le"])), ("c_d".to_owned(), labels(&[]))]
    );
    assert_eq!(found.grouping, labels(&["job", "le"]));
    assert_eq!(Selectors::of("histogram_quantile(0.9, x_y)").samples.len(), 1);
}
