//! Files that are large as a whole.

use tollgate_rules::{RuleSet, Source};

use crate::refused;

#[test]
fn what_is_too_large_is_not_looked_at() {
    let (codes, shown) = refused("a.yaml", " ".repeat(Source::MAX_BYTES + 1));
    assert_eq!(codes, ["too-large"], "{shown}");
    assert!(shown.contains("64 MB"), "{shown}");
}

#[test]
fn a_rule_too_many_refuses_all() {
    let rules = "- {name: a}\n".repeat(RuleSet::MAX_RULES + 1);
    let (codes, shown) = refused("a.yaml", format!("rules:\n{rules}"));
    assert_eq!(codes, ["too-many-rules"], "{shown}");
}

#[test]
fn groups_do_not_hide_how_many_rules_there_are() {
    let rules = "{name: a}, ".repeat(100_001);
    let (codes, shown) = refused("a.yaml", format!("rules: [{{ group: g, rules: [{rules}] }}]"));
    assert_eq!(codes, ["too-many-rules"], "{shown}");
    let (codes, shown) = refused("a.yaml", format!("rules: [{}]", "5, ".repeat(100_001)));
    assert_eq!(codes, ["too-many-rules"], "{shown}");
}

#[test]
fn megabytes_of_nothing_are_read() {
    let rule = "{ name: a, key: [], limit: 5/s }";
    for padding in [" ", "\n", "# comment\n", "\r\n"] {
        let padding = padding.repeat((1 << 20) / padding.len());
        RuleSet::parse(&format!("rules: [{rule}]\n{padding}")).unwrap();
    }
}

#[test]
fn megabytes_of_one_sign_are_read_or_refused() {
    let signs = [
        "a",
        "a ",
        "a: ",
        "- ",
        ",",
        ":",
        "?",
        "!",
        "&",
        "*",
        "|",
        ">",
        "'",
        "\"",
        "%",
        "@",
        "`",
        "#",
        "{",
        "}",
        "[",
        "]",
        "-",
        "---\n",
        "...\n",
        "\\",
        "\t",
        "a\n",
        "a:\n",
        "-\n",
        "? a\n",
        "[]",
        "{}",
        "''",
        "!a ",
        "&a ",
        "*a ",
        "a: b\n",
        "- a\n",
        "\u{e9}",
        "\u{1f600}",
        "[a, ",
        "a b: ",
        "'\n",
        "\"\n",
        "|\n ",
        ">\n ",
        "%A\n",
        "a.",
        "[a]\n",
        "[[a]]\n",
        "a=1\n",
        "a={}\n",
        "'''",
        "\"\"\"",
    ];
    for sign in signs {
        let text = sign.repeat((30 << 10) / sign.len());
        for name in ["a.yaml", "a.toml"] {
            refused(name, text.as_str());
            refused(name, format!("rules: [{text}"));
        }
    }
}
