//! Single values that are too long, too large, or of another kind.

use crate::{refused, with};

#[test]
fn long_texts_are_neither_repeated_nor_compared() {
    for name in ["a.yaml", "a.json"] {
        let long = "x".repeat(10 << 20);
        refused(name, format!("{{\"{long}\": 1, \"rules\": []}}"));
    }
    let long = "x".repeat(300 << 10);
    for text in [
        long.clone(),
        format!("{long}: 1\nrules: []"),
        format!("version: {long}\nrules: []"),
        format!("namespace: {long}\nrules: []"),
        format!("tiers: {{ from: {long}, known: [a], else: a }}\nrules: []"),
        format!("tiers: {{ from: user, known: [a], else: {long} }}\nrules: []"),
        format!("rules: [{{ name: {long}, key: [], limit: 5/s }}]"),
        with(&format!("{long}: 5")),
        with(&format!("mode: {long}")),
        with(&format!("cost: {long}")),
        with(&format!("count_if: {long}")),
        with(&format!("block_for: {long}")),
        with(&format!("overrides: {long}")),
        with(&format!("overrides: {{ {long}: 5/s }}")),
        with(&format!("overrides: {{ a: {long} }}")),
        with(&format!("key_missing: {long}")),
        with(&format!("deny: {{ message: {long} }}")),
        with(&format!("window: {{ calendar: month, timezone: {long} }}")),
        with(&format!("match: {{ path: {long} }}")),
        with(&format!("match: {{ path: /{long}*a }}")),
        with(&format!("match: {{ method: {long} }}")),
        with(&format!("match: {{ user: '{long}*{long}' }}")),
        with(&format!("match: {{ ip: {long} }}")),
        with(&format!("match: {{ tier: {long} }}")),
        with(&format!("match: {{ {long}: 5 }}")),
        format!("{}\ntests: [{long}]", with("")),
        format!("{}\ntests: [{{ name: {long}, given: {{ request: {long} }} }}]", with("")),
    ] {
        refused("a.yaml", text);
    }
}

#[test]
fn numbers_are_whole_and_not_too_large() {
    let odd = [
        "1e400",
        "-1",
        "0x10",
        "0o7",
        "NaN",
        ".nan",
        "inf",
        "-.inf",
        "1.5",
        "99999999999999999999",
        "18446744073709551616",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "12:30:45",
        "\u{661}",
        "5 5",
        "- 5",
        "[]",
        "{}",
        "true",
    ];
    for number in odd {
        let quoted = format!("'{number}'");
        for written in [number, &quoted] {
            for rule in [
                format!("limit: {written}"),
                format!("limit: 5/s, burst: {written}"),
                format!("limit: 5/s, block_for: {written}"),
                format!("concurrent: {written}"),
                format!("concurrent: 5, expires: {written}"),
                format!("limit: 5/s, algorithm: leaky_bucket, queue: {written}"),
                format!("limit: 5/s, deny: {{ status: {written} }}"),
                format!("limit: 5/s, warn_at: [{written}]"),
                format!("limit: 5/s, cost: {written}"),
                format!("limit: 5/s, cost: {{ graphql: {{ depth: {written} }} }}"),
                format!("limit: 5/s, cost: {{ graphql: {{ list: {written} }} }}"),
            ] {
                // No items are no warnings.
                if rule != "limit: 5/s, cost: {}" && !rule.contains("warn_at: [[]]") {
                    refused("a.yaml", format!("rules: [{{ name: a, key: [user], {rule} }}]"));
                }
            }
        }
        let plain = number.replace(' ', "-");
        for limit in [format!("{plain}/s"), format!("5/{plain}s"), format!("5/s/{plain}")] {
            refused("a.yaml", format!("rules: [{{ name: a, key: [], limit: '{limit}' }}]"));
        }
    }
}

#[test]
fn the_largest_numbers_there_are_do_no_harm() {
    for number in ["18446744073709551615", "9223372036854775807", "4294967296", "18446744073G"] {
        for rule in [
            format!("limit: {number}/s"),
            format!("limit: 5/{number}month"),
            format!("limit: 5/s, burst: {number}"),
            format!("limit: 5/s, algorithm: leaky_bucket, queue: {number}"),
            format!("limit: 5/s, algorithm: sliding_log, burst: {number}"),
            format!("limit: {number}/s, algorithm: sliding_log"),
            format!("limit: {number}/month, window: {{ calendar: month, anchor: {number} }}"),
            format!("concurrent: {number}, expires: {number}month"),
            format!("limit: 5/s, cost: {number}"),
            format!("limit: 5/s, block_for: {number}month"),
            format!("limit: 5/s, cost: {{ expression: {number} * {number} }}"),
        ] {
            let text = format!("rules: [{{ name: a, key: [user], {rule} }}]");
            if let Err(error) = tollgate_rules::RuleSet::parse(&text) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn dates_are_not_values() {
    for date in ["1979-05-27", "1979-05-27T07:32:00Z", "07:32:00"] {
        assert_eq!(refused("a.toml", format!("version = {date}\nrules = []")).0, ["no-dates"]);
        let (codes, shown) = refused("a.yaml", format!("version: {date}\nrules: []"));
        assert_eq!(codes, ["unknown-choice"], "{shown}");
    }
}
