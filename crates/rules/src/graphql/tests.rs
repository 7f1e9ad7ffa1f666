use proptest::prelude::*;

use super::*;

const RULE: GraphqlCost = GraphqlCost { depth: 10, list: 20 };

fn cost(document: &str) -> Result<u64, GraphqlError> {
    RULE.cost(document, None, None)
}

#[test]
fn worked_examples() {
    for (document, points) in [
        ("{ version }", 1),
        ("query { me { name } }", 1),
        ("{ me { name owner { name } } }", 2),
        ("{ users(first: 50) { name } }", 1),
        ("{ users(first: 50) { pet { name } } }", 51),
        ("{ users(first: 50) { nodes { name pet { name } } } }", 101),
        ("{ users(first: 10) { edges { node { pets(last: 5) { owner { name } } } } } }", 81),
        ("{ users { nodes { pet { name } } } }", 22),
        ("{ users(first: 2) { pets { nodes { toy { name } } } } }", 45),
        ("{ users(limit: 3, first: 4) { pet { name } } }", 5),
        ("{ users(first: 0) { pet { name } } }", 1),
        ("{ users(first: -1) { pet { name } } }", 21),
        ("{ users(first: null) { pet { name } } }", 21),
        ("{ users(first: \"9\") { pet { name } } }", 10),
        ("{ users(first: 8.5) { pet { name } } }", 10),
        ("{ users(first: 1e2) { pet { name } } }", 101),
        ("{ users(first: all) { pet { name } } }", 21),
        ("{ users(first: [1]) { pet { name } } }", 21),
        ("{ users(after: 7) { pet { name } } }", 2),
        ("{ a: me { name } b: me { name } }", 2),
        ("{ me { ... on User { pet { name } } ... @include(if: true) { name } } }", 2),
        ("{ me { ...f ...f } } fragment f on User { pet { name } }", 3),
        ("{ users(first: 3) { ...f } other { ...f } } fragment f on C { nodes { p { n } } }", 29),
        ("mutation { like }", 10),
        ("mutation { like { post { name } } b: like { name } }", 21),
        ("mutation { ...f } fragment f on M { like }", 10),
        ("subscription { posts { author { name } } }", 2),
        ("query A { a { b } } ", 1),
    ] {
        assert_eq!(cost(document), Ok(points), "{document}");
    }
}

#[test]
fn lengths_come_from_variables_then_from_defaults() {
    let document = "query ($n: Int = 7) { users(first: $n) { pet { name } } }";
    let cost = |variables| RULE.cost(document, None, variables);
    assert_eq!(cost(Some(r#"{"n": 3}"#)), Ok(4));
    assert_eq!(cost(Some("{}")), Ok(8));
    assert_eq!(cost(None), Ok(8));
    assert_eq!(cost(Some("null")), Ok(8));
    assert_eq!(cost(Some(r#"{"n": null}"#)), Ok(21));
    assert_eq!(cost(Some(r#"{"n": -3}"#)), Ok(21));
    assert_eq!(cost(Some(r#"{"n": true}"#)), Ok(21));
    assert_eq!(cost(Some(r#"{"n": "x"}"#)), Ok(21));
    assert_eq!(cost(Some(r#"{"n": "300"}"#)), Ok(301));
    assert_eq!(cost(Some(r#"{"n": 3e2}"#)), Ok(301));
    assert_eq!(cost(Some(r#"{"n": 18446744073709551615}"#)), Ok(u64::MAX));
    assert_eq!(cost(Some("[1]")), Err(GraphqlError::Variables));
    assert_eq!(cost(Some("{")), Err(GraphqlError::Variables));
    let long = format!("{{\"a\": \"{}\"}}", "a".repeat(GraphqlCost::MAX_LENGTH));
    assert!(matches!(cost(Some(&long)), Err(GraphqlError::TooLarge { .. })));
    assert_eq!(RULE.cost("{ a }", None, Some(&long)), Ok(1), "nobody asked");
}

#[test]
fn numbers_stop_at_the_largest() {
    let huge = "{ a(first: 99999999999999999999999) { b { c } } }";
    assert_eq!(cost(huge), Ok(u64::MAX));
    let product = "{ a(first: 9999999999) { b(first: 9999999999) { c(first: 9) { d { e } } } } }";
    assert_eq!(cost(product), Ok(u64::MAX));
}

#[test]
fn one_operation_is_chosen() {
    let document = "query A { a { b } } mutation B { c }";
    assert_eq!(RULE.cost(document, Some("A"), None), Ok(1));
    assert_eq!(RULE.cost(document, Some("B"), None), Ok(10));
    assert_eq!(RULE.cost(document, Some("C"), None), Err(GraphqlError::NoOperation));
    assert_eq!(RULE.cost(document, None, None), Err(GraphqlError::NoOperation));
    assert_eq!(cost("fragment a on A { b }"), Err(GraphqlError::NoOperation));
}

#[test]
fn what_cannot_be_run_is_an_error() {
    for document in ["", "{", "{ a { } }", "hello", "type A { b: Int }", "{ a(first: ) }", "}"] {
        let error = cost(document);
        assert!(matches!(error, Err(GraphqlError::Syntax { .. })), "{document}: {error:?}");
    }
    let name = || "a".to_owned();
    assert_eq!(cost("{ ...a }"), Err(GraphqlError::NoFragment { name: name() }));
    let twice = "{ ...a } fragment a on A { b } fragment a on A { c }";
    assert_eq!(cost(twice), Err(GraphqlError::NoFragment { name: name() }));
    let cycle = "{ ...a } fragment a on A { b { ...c } } fragment c on C { ...a }";
    assert!(matches!(cost(cycle), Err(GraphqlError::Cycle { .. })));
    let long = format!("{{ {} }}", "a ".repeat(GraphqlCost::MAX_LENGTH / 2));
    assert!(matches!(cost(&long), Err(GraphqlError::TooLarge { .. })));
    let words = format!("{{ {} }}", "a ".repeat(15_000));
    assert!(matches!(cost(&words), Err(GraphqlError::TooLarge { .. })));
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize| "{a".repeat(n) + &"}".repeat(n);
    assert_eq!(cost(&deep(10)), Ok(9));
    for n in [11, 100, 191, 192, 193, 1000, 20_000] {
        let result = cost(&deep(n));
        assert_eq!(result, Err(GraphqlError::TooDeep { limit: 10 }), "{n}");
    }
    let any = GraphqlCost { depth: u16::MAX, list: 1 };
    assert_eq!(any.cost(&deep(128), None, None), Ok(127));
    assert_eq!(any.cost(&deep(129), None, None), Err(GraphqlError::TooDeep { limit: 128 }));
    for n in [190, 200, 2000, 20_000] {
        let values = format!("{{ a(b: {}{}) }}", "[".repeat(n), "]".repeat(n));
        let result = cost(&values);
        assert_eq!(result.is_ok(), n < 192, "{n} {result:?}");
        let objects = format!("{{ a(b: {}1{}) }}", "{a:".repeat(n), "}".repeat(n));
        assert_eq!(cost(&objects).is_ok(), n < 191, "{n} {:?}", cost(&objects));
        let types = format!("query ($a: {}Int{}) {{ a }}", "[".repeat(n), "]".repeat(n));
        let _ = cost(&types);
        let inline = "{...".repeat(n) + "{a}" + &"}".repeat(n);
        assert_eq!(cost(&inline).is_ok(), n < 191, "{n}");
    }
}

#[test]
fn depth_goes_through_fragments() {
    let document = "{ a { ...f } } fragment f on A { b { ...g } } fragment g on A { c { d } }";
    let rule = |depth| GraphqlCost { depth, list: 1 };
    assert_eq!(rule(4).cost(document, None, None), Ok(3));
    assert_eq!(rule(3).cost(document, None, None), Err(GraphqlError::TooDeep { limit: 3 }));
}

/// Each fragment holds the next one twice: 2^n fields for n lines.
#[test]
fn a_fragment_bomb_takes_no_longer_than_its_text() {
    let bomb = |n: usize, inner: &str| {
        let line = |i| {
            format!("fragment f{i} on A {{ {inner} }}\n").replace('@', &format!("...f{}", i + 1))
        };
        let lines: String = (0..n).map(line).collect();
        format!("{{ ...f0 }}\n{lines}fragment f{n} on A {{ a {{ b }} }}")
    };
    assert_eq!(cost(&bomb(60, "@ @")), Ok(1 << 60));
    assert_eq!(cost(&bomb(100, "@ @")), Ok(u64::MAX));
    let points = (0..8).fold(1, |inside, _| 1 + 10 * 2 * inside);
    assert_eq!(cost(&bomb(8, "x(first: 10) { @ @ }")), Ok(points));
    for n in [188, 195, 1000, 1500] {
        let result = cost(&bomb(n, "@ @ @"));
        assert_eq!(result.is_err(), n > 190, "{n} {result:?}");
    }
}

#[test]
fn the_cache_is_bounded_and_exact() {
    let cache = GraphqlCache::new(RULE);
    for n in 0..3000_u64 {
        let document = format!("{{ users(first: {n}) {{ pet {{ name }} }} }}");
        assert_eq!(cache.cost(&document, None, None), Ok(1 + n));
        assert_eq!(cache.cost(&document, None, None), Ok(1 + n));
    }
    assert!((500..=1024).contains(&cache.len()), "{}", cache.len());
    // The same letters, cut elsewhere.
    let document = "query A { a } query AB { b { c } d { e } }";
    assert_eq!(cache.cost(document, Some("A"), Some("B")), Ok(1));
    assert_eq!(cache.cost(document, Some("AB"), Some("")), Ok(2));
    assert_eq!(cache.cost(document, Some("AB"), None), Ok(2));
    assert_eq!(cache.cost(document, None, Some("AB")), Err(GraphqlError::NoOperation));
    assert_eq!(cache.cost(document, None, Some("AB")), Err(GraphqlError::NoOperation));
    let long = format!("{{ a }} # {}", "a".repeat(60 << 10));
    let before = cache.len();
    assert_eq!(cache.cost(&long, None, None), Ok(1));
    assert_eq!(cache.len(), before, "too long to remember");
    let large = |n: u32| format!("{{ a }} # {n} {}", "a".repeat(20 << 10));
    (0..500).for_each(|n| assert_eq!(cache.cost(&large(n), None, None), Ok(1)));
    assert!(cache.len() <= 32 * 6 + 32, "{}", cache.len());
}

#[test]
fn the_cache_can_be_shared() {
    let cache = GraphqlCache::new(RULE);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in (0..200_u64).chain(0..200) {
                    let document = format!("{{ a(first: {n}) {{ b {{ c }} }} }}");
                    assert_eq!(cache.cost(&document, None, None), Ok(1 + n));
                }
            });
        }
    });
}

/// Queries, some of which are wrong.
fn query() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "name",
        "id",
        "...f",
        "...g",
        "x: id @skip(if: $a)",
        "... on A { id }",
        "nodes { id }",
    ]);
    let field = leaf.prop_map(str::to_owned).prop_recursive(6, 40, 4, |inner| {
        let head = prop::sample::select(vec![
            "user",
            "users(first: 3)",
            "edges",
            "nodes",
            "a: pets(last: $n, b: {c: [1, \"}\"]})",
            "...",
            "... on B",
            "limit(limit: -5)",
        ]);
        (head, prop::collection::vec(inner, 1..4))
            .prop_map(|(head, inner)| format!("{head} {{ {} }}", inner.join(" ")))
    });
    let head = prop::sample::select(vec!["", "mutation", "query Q($n: Int = 2, $a: B!)"]);
    (head, field.clone(), field.clone(), field).prop_map(|(head, a, f, g)| {
        format!("{head} {{ {a} }} fragment f on F {{ {f} }} fragment g on G {{ {g} }}")
    })
}

/// There is an answer, and no panic.
fn ends(document: &str) {
    for variables in [None, Some("{\"n\": 4}")] {
        let _ = RULE.cost(document, None, variables);
        let _ = RULE.cost(document, Some("Q"), variables);
    }
}

proptest! {
    #[test]
    fn any_text_has_a_cost_or_an_error(document in any::<String>()) {
        ends(&document);
    }

    #[test]
    fn words_in_any_order_end(words in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "(", ")", "[", "]", "...", "on", "a", "$", "$n", ":", "=", "!", "@", "\"", "\"\"\"",
        "1", "-", "fragment", "query", "mutation", "#", "\n", "&", "|", "type", "\\", "\u{feff}", "é",
    ]), 0..60)) {
        ends(&words.join(" "));
        ends(&words.concat());
    }

    #[test]
    fn queries_end_and_are_remembered_as_they_are(document in query()) {
        let cache = GraphqlCache::new(RULE);
        let cost = RULE.cost(&document, None, None);
        prop_assert_eq!(&cache.cost(&document, None, None), &cost);
        prop_assert_eq!(&cache.cost(&document, None, None), &cost);
    }

    #[test]
    fn mutated_queries_end(
        document in query(),
        at in any::<prop::sample::Index>(),
        piece in "[-{}()$:@.\"#a-z0-9 \\\\]{0,3}",
        cut in 0_usize..4,
    ) {
        let at = document.floor_char_boundary(at.index(document.len() + 1));
        let rest = document[at..].get(cut..).unwrap_or_default();
        ends(&format!("{}{piece}{rest}", &document[..at]));
    }
}
