//! Nesting: in every way that a format has.

use crate::refused;

const LEVELS: usize = 100_000;

#[test]
fn brackets_are_not_followed_down() {
    let (open, close) = ("[".repeat(LEVELS), "]".repeat(LEVELS));
    for text in [format!("{open}{close}"), open.clone(), format!("rules: {open}{close}")] {
        for name in ["a.yaml", "a.json"] {
            assert_eq!(refused(name, text.as_str()).0, ["too-deep"]);
        }
    }
    assert_eq!(refused("a.json", r#"{"a":"#.repeat(LEVELS)).0, ["too-deep"]);
    assert_eq!(refused("a.yaml", "{a: ".repeat(LEVELS)).0, ["too-deep"]);
    assert_eq!(refused("a.toml", format!("a = {open}{close}")).0, ["too-deep"]);
    assert_eq!(refused("a.toml", format!("a = {}", "{ a = ".repeat(LEVELS))).0.len(), 1);
}

#[test]
fn blocks_are_not_followed_down() {
    let indented: String = (0..1_000).map(|at| format!("{}a:\n", " ".repeat(at))).collect();
    assert_eq!(refused("a.yaml", indented).0, ["too-deep"]);
    assert_eq!(refused("a.yaml", "- ".repeat(LEVELS)).0, ["too-deep"]);
    assert_eq!(refused("a.yaml", format!("{}a", "? ".repeat(LEVELS))).0, ["too-deep"]);
}

#[test]
fn dotted_names_are_not_followed_down() {
    let name = format!("{}a", "a.".repeat(LEVELS));
    for text in [
        format!("{name} = 1"),
        format!("[{name}]"),
        format!("[[{name}]]"),
        format!("a = {{ {name} = 1 }}"),
        format!("[[rules]]\n{name} = 1"),
    ] {
        let (codes, shown) = refused("a.toml", text);
        assert_eq!(codes, ["too-deep"], "{shown}");
    }
}
