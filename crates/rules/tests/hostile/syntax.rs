//! What YAML, JSON and TOML can say, and a rule file cannot.

use tollgate_rules::{NoFiles, RuleSet, Source};

use crate::{refused, with};

#[test]
fn nothing_unfolds() {
    let laughs: String = (1..10)
        .map(|at| format!("l{at}: &l{at} [{}]\n", vec![format!("*l{}", at - 1); 10].join(", ")))
        .collect();
    let laughs = format!("l0: &l0 [ha, ha]\n{laughs}");
    for text in [
        laughs.as_str(),
        "rules: &a [*a]",
        "a: *missing",
        "&a a: 1",
        "? &a b\n: 1",
        "rules: [&a { name: a }, *a]",
        "base: &base { limit: 5/s }\nrules: [{ <<: *base }]",
    ] {
        let (codes, shown) = refused("a.yaml", text);
        assert_eq!(codes, ["no-anchors"], "{shown}");
    }
    let (_, shown) = refused("a.yaml", "rules: [{ <<: { limit: 5/s }, name: a, key: [] }]");
    assert!(shown.contains("a rule has no field `<<`"), "{shown}");
}

#[test]
fn no_tag_changes_what_a_value_is() {
    for text in [
        "rules: !!python/object/apply:os.system ['true']",
        "!!map {}",
        "a: !!binary aGk=",
        "a: !include other.yaml",
        "a: ! 5",
        "%TAG ! tag:example.org,2000:\n---\na: !b 5",
    ] {
        let (codes, shown) = refused("a.yaml", text);
        assert_eq!(codes, ["no-tags"], "{shown}");
    }
}

#[test]
fn every_field_given_twice_is_found() {
    let twice = "a: 1\n".repeat(20_000);
    let (codes, shown) = refused("a.yaml", twice);
    assert_eq!(codes, vec!["duplicate-field"; 100]);
    assert!(shown.contains("... and 19899 more"), "{shown}");
    assert_eq!(refused("a.json", r#"{"rules": [], "rules": []}"#).0, ["duplicate-field"]);
    assert_eq!(refused("a.toml", "rules = []\nrules = []").0, ["syntax"]);
}

#[test]
fn bytes_that_nobody_sees_are_refused_or_harmless() {
    let good = with("mode: enforce");
    let loads = |name: &str, text: String| {
        let source = Source::new(name, text);
        RuleSet::read(&source, &NoFiles).map_err(|report| report.to_text(&source))
    };
    let version = loads("a.yaml", good.clone()).unwrap().version();
    // A byte order mark, and the ends of lines of other systems.
    assert_eq!(loads("a.yaml", format!("\u{feff}{good}")).unwrap().version(), version);
    assert_eq!(loads("a.yaml", format!("{good}\r\n\r\n")).unwrap().version(), version);
    let toml = "[[rules]]\r\nname = \"a\"\r\nkey = [\"user\"]\r\nlimit = \"5/s\"\r\n";
    assert!(loads("a.toml", toml.to_owned()).is_ok());
    assert!(loads("a.toml", format!("\u{feff}{toml}")).is_ok());
    // In the middle of a text.
    for odd in ["\0", "\u{1}", "\u{1b}[2J", "\u{7f}", "\u{fffe}"] {
        for name in ["a.yaml", "a.json", "a.toml"] {
            refused(name, format!("# {odd}\nx{odd}: 1\n{odd}"));
        }
    }
    for line in ["rules:\n\t- name: a", "rules:\n  - name: a\n\tkey: []"] {
        let (codes, shown) = refused("a.yaml", line);
        assert_eq!(codes.len(), 1, "{shown}");
    }
}

#[test]
fn escapes_that_move_the_cursor_do_not_reach_a_terminal() {
    for escape in [r"\e[2J", r"\0", r"\r", r"\u202e", r"\x9b"] {
        for text in [
            format!("\"x{escape}\": 1\nrules: []"),
            format!("rules: [{{ name: \"x{escape}\", key: [], limit: 5/s }}]"),
            with(&format!("mode: \"x{escape}\"")),
            with(&format!("cost: \"x{escape}\"")),
            with(&format!("match: {{ path: \"x{escape}\" }}")),
            with(&format!("match: {{ when: \"x{escape}\" }}")),
            with(&format!("overrides: {{ \"x{escape}\": 1 }}")),
        ] {
            let (_, shown) = refused("a.yaml", text);
            assert!(!shown.contains('\u{202e}'), "{shown}");
        }
    }
}

#[test]
fn halves_of_characters_are_refused() {
    for half in [r"\ud800", r"\udc00", r"\ud800\ud800", r"\U00110000", r"\uZZZZ", r"\x"] {
        let (codes, shown) = refused("a.json", format!("{{\"rules\": [\"{half}\"]}}"));
        assert_eq!(codes, ["syntax"], "{shown}");
        let (codes, shown) = refused("a.toml", format!("a = \"{half}\""));
        assert_eq!(codes, ["syntax"], "{shown}");
    }
}
