use cel::common::ast::Expr;
use proptest::prelude::*;

use super::*;

fn request() -> Request<'static> {
    Request::new("POST", "/v1/items?page=2")
        .host("api.example.com")
        .headers(&[("Accept", "text/html"), ("X-Plan", "7"), ("x-plan", "8")])
        .attributes(&[("user", "alice"), ("claims.plan", "pro"), ("user.age", "30")])
}

fn holds(text: &str) -> Result<bool, EvaluationError> {
    let condition = Condition::parse_outcome(text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = Outcome { status: Some(403), headers: &[("Retry-After", "9")] };
    condition.holds(&request(), Some("gold"), "192.0.2.7".parse().ok(), Some(&outcome))
}

#[test]
fn conditions_see_the_whole_request() {
    for text in [
        "request.method == 'POST' && request.host == \"api.example.com\"",
        "request.path == '/v1/items' && request.query == 'page=2'",
        "request.headers['x-plan'] == '7' && request.headers.accept == 'text/html'",
        "'X-PLAN' in request.headers && !('via' in request.headers)",
        "client.ip == '192.0.2.7' && has(client.ip)",
        "user == 'alice' && user.age == '30' && int(user.age) + 1 > 30",
        "tier == 'gold' && attributes.tier == 'gold' && 'tier' in attributes",
        "claims.plan == 'pro' && claims['plan'] == 'pro' && 'plan' in claims",
        "attributes['claims.plan'] == 'pro' && attributes.claims.plan == 'pro'",
        "has(claims.plan) && !has(claims.region) && has(user.age) && !has(account.age)",
        "has(user.age) && !has(body.a.b) && has(attributes.user) && !has(attributes.account)",
        "response.status == 403 && response.headers['retry-after'] == '9'",
        "has(response.status) && has(request.headers.accept) && !has(request.headers.via)",
        "size(request.headers) == 3 && size(claims) == 1 && request.path.size() == 9",
        "[1, 2].size() == 2 && 3 in [1, 1 + 2] && [1] + [2] == [1, 2]",
        "request.path.startsWith('/v1') && request.path.endsWith('s') && 'abc'.contains('b')",
        "1 + 2 * 3 - -4 == 11 && 7 % 4 == 3 && 7 / 2 == 3 && -(1) == -1 && 0x10 == 16",
        "1 < 2 && 2.5 >= 2 && 'a' < 'b' && 1e3 == 1000.0 && 1 == 1.0",
        "(false ? 1 : true ? 2 : 3) == 2 && string(1) + 'a' == '1a' && double('1.5') == 1.5",
        "'\\u00e4\\x41\\'' == \"äA'\" && size('\\n\\t') == 2",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
}

#[test]
fn what_is_missing_is_an_error_unless_it_does_not_matter() {
    let missing = |name: &str| Err(EvaluationError::Missing { name: name.to_owned() });
    assert_eq!(holds("account == 'a'"), missing("account"));
    assert_eq!(holds("claims.region == 'eu'"), missing("claims.region"));
    assert_eq!(holds("body['name'] == 'a'"), missing("body.name"));
    assert_eq!(holds("request.headers['via'] == 'a'"), missing("via"));
    assert_eq!(holds("has(account.x) && account.x == 'a'"), Ok(false));
    assert_eq!(holds("account == 'a' || user == 'alice'"), Ok(true));
    assert_eq!(holds("account == 'a' && user == 'bob'"), Ok(false));
    let condition = Condition::parse_outcome("response.status >= 500").expect("a condition");
    assert_eq!(condition.holds(&request(), None, None, None), missing("response.status"));
}

#[test]
fn arithmetic_that_fails_is_an_error() {
    for text in [
        "1 / 0 == 1",
        "1 % 0 == 1",
        "9223372036854775807 + 1 == 0",
        "-9223372036854775808 / -1 == 0",
        "-9223372036854775808 % -1 == 1",
        "-(-9223372036854775808) == 0",
        "9223372036854775807 * 2 == 0",
        "-9223372036854775808 - 1 == 0",
        "int('a') == 1",
        "int(1e300) == 1",
        "double('') == 1.0",
    ] {
        let failed = matches!(holds(text), Err(EvaluationError::Failed { .. }));
        assert!(failed, "{text}: {:?}", holds(text));
    }
}

#[test]
fn mistakes_are_found_with_their_places() {
    for (text, at, words) in [
        ("", 0, "ends too early"),
        ("true &&", 7, "ends too early"),
        ("usr == 'a'", 0, "did you mean `user`?"),
        ("'ä' == 'ä' && requst.path == ''", 16, "did you mean `request.path`?"),
        ("request.pth == ''", 0, "did you mean `request.path`?"),
        ("request == 'a'", 0, "there are request.method"),
        ("region == 'eu'", 0, "`descriptor.region`"),
        ("user == 'a' && response.status == 200", 15, "`count_if`"),
        ("user == 1", 8, "a string is needed here, and this is an integer"),
        ("user in [1]", 9, "a string is needed"),
        ("1 in [1, size(user), user]", 21, "an integer is needed here"),
        ("1 in request.headers", 5, "a list, or a map for a string"),
        ("user", 0, "true or false is needed"),
        ("user && true", 0, "true or false is needed"),
        ("size(1) == 1", 5, "something with a size"),
        ("request.path.matches('a*')", 12, "`startsWith`"),
        ("[1].exists(x, x == 1)", 3, "no loops"),
        ("request.path.startWith('a')", 12, "did you mean `startsWith`?"),
        ("user == null", 8, "`has(claims.plan)`"),
        ("{'a': 1}.a == 1", 0, "without braces"),
        ("true // yes", 5, "behind `#`"),
        ("r'a' == 'a'", 0, "plain string"),
        ("'''a''' == 'a'", 0, "three quotes"),
        ("'a", 0, "has no end"),
        ("'\\q' == 'a'", 1, "no such escape"),
        ("(true", 5, "`)` is missing"),
        ("true)", 4, "operator is missing"),
        ("user = 'a'", 5, "no meaning"),
        ("99999999999999999999 == 1", 0, "too large"),
        ("12ab == 1", 0, "not a number"),
        ("has(user.age, 1)", 0, "one name"),
        ("has('a')", 4, "name a variable"),
        ("request.headers == request.headers", 16, "a single value"),
        ("'a'[0] == 'a'", 3, "a map is needed"),
    ] {
        let error = Condition::parse(text).expect_err(text);
        let said = format!("{error}; {}", error.remedy());
        assert!(said.contains(words) && error.at() == at, "{text}: {error:?} {said}");
    }
}

#[test]
fn costs_are_integers_that_are_not_negative() {
    let cost = |text: &str| CostExpression::parse(text).map(|it| it.cost(&request(), None, None));
    assert_eq!(cost("1 + size(request.path)"), Ok(Ok(10)));
    assert_eq!(cost("int(user.age) * 2"), Ok(Ok(60)));
    assert_eq!(cost("0 - 1"), Ok(Err(EvaluationError::Negative { cost: -1 })));
    assert!(cost("1.5").is_err() && cost("true").is_err() && cost("response.status").is_err());
}

#[test]
fn a_status_is_compared_without_the_language() {
    for (text, direct) in [
        ("response.status in [401, 403]", true),
        ("response.status == 403", true),
        ("response.status != 403", true),
        ("response.status < 403", true),
        ("response.status <= 403", true),
        ("response.status > 403", true),
        ("response.status >= 400", true),
        ("response.status in [401, 400 + 3]", false),
    ] {
        let condition = Condition::parse_outcome(text).expect(text);
        assert_eq!(matches!(condition.plan, Plan::Status(_)), direct, "{text}");
        let general = Condition {
            plan: Plan::General(checked(text, true, Kind::Bool).expect(text)),
            text: text.into(),
        };
        for status in [200, 400, 401, 402, 403, 404, 500] {
            let outcome = Outcome { status: Some(status), headers: &[] };
            let ask = |condition: &Condition| {
                condition.holds(&request(), None, None, Some(&outcome)).expect(text)
            };
            assert_eq!(ask(&condition), ask(&general), "{text} {status}");
        }
    }
}

/// On a small stack, as deep as it goes and far beyond.
#[test]
fn depth_is_bounded() {
    let deep = |n: usize| {
        [
            "(".repeat(n) + "true" + &")".repeat(n),
            "!".repeat(n) + "true",
            "1".to_owned() + &"+1".repeat(n) + " == 1",
            "- ".repeat(n) + "1 == 1",
            "[".repeat(n) + "1" + &"]".repeat(n) + " == [1]",
            "true?true:".repeat(n) + "true",
            "(true?".repeat(n / 2) + "true" + &":true)".repeat(n / 2),
            "string(".repeat(n) + "'a'" + &")".repeat(n) + " == 'a'",
            "'a'".to_owned() + &"+'a'".repeat(n) + " == 'a'",
            "attributes.a".to_owned() + &".a".repeat(n) + " == ''",
            "attributes".to_owned() + &"['a']".repeat(n) + " == ''",
        ]
    };
    let run = |n: usize| {
        let check = move || {
            let parsed = deep(n).map(|text| Condition::parse(&text));
            let evaluate = |condition: &Condition| {
                let _ = condition.holds(&request(), None, None, None);
            };
            parsed.iter().flatten().for_each(evaluate);
            parsed.iter().filter(|it| it.is_ok()).count()
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
        thread.expect("a thread").join().expect("no panic")
    };
    // Index chains have the wrong kind from the second on.
    assert_eq!(run(10), 10);
    assert_eq!(run(parse::MAX_DEPTH - 3), 10);
    for n in parse::MAX_DEPTH - 2..parse::MAX_DEPTH + 3 {
        run(n);
    }
    for n in [60, 300, 1000, 100_000] {
        assert_eq!(run(n), 0, "{n}");
    }
}

#[test]
fn long_chains_of_and_are_not_deep() {
    let text = "true".to_owned() + &" && true".repeat(500);
    assert_eq!(holds(&text), Ok(true));
    let text = "1 in [".to_owned() + &"2,".repeat(2000) + "1]";
    assert_eq!(holds(&text), Ok(true));
    let text = "true || ".repeat(1000) + "true";
    assert!(matches!(Condition::parse(&text), Err(ExpressionError::TooLong { .. })));
}

/// Expressions of the shared part of the grammar, not very deep.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "true",
        "1",
        "-1",
        "0x1f",
        "2.5",
        "1e3",
        "'a'",
        "\"b\\n\\u00e4\"",
        "user",
        "request.path",
        "response.status",
        "claims.plan",
        "request.headers",
        "attributes",
        "[]",
        "9e99",
        "-9223372036854775808",
    ]);
    let operator = prop::sample::select(vec![
        "&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", " in ",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, move |inner| {
        let pair = (inner.clone(), operator.clone(), inner.clone());
        prop_oneof![
            4 => pair.prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => inner.clone().prop_map(|a| format!("-({a})")),
            1 => inner.clone().prop_map(|a| format!("({a})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b},]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).contains({b})")),
            1 => inner.clone().prop_map(|a| format!("size({a})")),
            1 => inner.clone().prop_map(|a| format!("int({a})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("({a}) ? ({b}) : {c}")),
        ]
    })
}

/// An expression of this kind, chosen by these bytes: simple when they run out.
fn of_kind(kind: Kind, depth: usize, bytes: &mut std::slice::Iter<'_, u8>) -> String {
    let byte = if depth == 0 { 0 } else { bytes.next().copied().unwrap_or_default() };
    let any = [Kind::Bool, Kind::Int, Kind::Double, Kind::String, Kind::List];
    let other = any[usize::from(byte / 16) % any.len()];
    let mut an = |kind| of_kind(kind, depth.saturating_sub(1), bytes);
    let mut pair = |kind, operator: &str| format!("({} {operator} {})", an(kind), an(kind));
    match (kind, byte % 8) {
        (Kind::Bool, 1) => pair(Kind::Bool, if byte > 99 { "&&" } else { "||" }),
        (Kind::Bool, 2) => pair(other, if byte > 99 { "==" } else { "!=" }),
        (Kind::Bool, 3) => pair(Kind::Int, [">", "<", ">=", "<="][usize::from(byte >> 6)]),
        (Kind::Bool, 4) => format!("({} in [{}, {}])", an(other), an(other), an(other)),
        (Kind::Bool, 5) => format!("({} in {})", an(Kind::String), an(Kind::Names)),
        (Kind::Bool, 6) => format!("!{}.contains({})", an(Kind::String), an(Kind::String)),
        (Kind::Bool, 7) => format!("({} < {})", an(Kind::Double), an(Kind::Int)),
        (Kind::Bool, _) => {
            ["true", "has(claims.plan)", "has(client.ip)"][usize::from(byte) % 3].into()
        }
        (Kind::Int, 1..4) => pair(Kind::Int, ["+", "-", "*", "/", "%"][usize::from(byte >> 4) % 5]),
        (Kind::Int, 4) => format!("size({})", an(Kind::String)),
        (Kind::Int, 5) => format!("{}.size()", an(Kind::List)),
        (Kind::Int, 6) => format!("int({})", an(Kind::String)),
        (Kind::Int, 7) => format!("-({})", an(Kind::Int)),
        (Kind::Int, _) => ["9223372036854775807", "0", "-1"][usize::from(byte) % 3].into(),
        (Kind::Double, 1..5) => pair(Kind::Double, ["+", "-", "*", "/"][usize::from(byte >> 6)]),
        (Kind::Double, 5..8) => format!("double({})", an(Kind::Int)),
        (Kind::Double, _) => "1.5e300".into(),
        (Kind::String, 1..3) => pair(Kind::String, "+"),
        (Kind::String, 3) => format!("string({})", an(Kind::Double)),
        (Kind::String, 4) => format!("{}[{}]", an(Kind::Names), an(Kind::String)),
        (Kind::String, 5) => format!("({} ? {} : '')", an(Kind::Bool), an(Kind::String)),
        (Kind::String, _) => ["user", "'a'", "client.ip"][usize::from(byte) % 3].into(),
        (Kind::List, 1..4) => pair(Kind::List, "+"),
        (Kind::List, 4..6) => format!("[{}, {}]", an(Kind::Int), an(Kind::Names)),
        (Kind::List, _) => "[1]".into(),
        (Kind::Names, _) => {
            ["attributes", "claims", "request.headers"][usize::from(byte) % 3].into()
        }
    }
}

/// Without numbers, which are places here and something else there.
fn unnumbered(node: &mut IdedExpr) {
    node.id = 0;
    match &mut node.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| unnumbered(target));
            call.args.iter_mut().for_each(unnumbered);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(unnumbered),
        Expr::Select(select) => unnumbered(&mut select.operand),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_tree_is_the_one_that_cel_makes(text in expression()) {
        if let Ok(mut ours) = parse::parse(&text) {
            let theirs = LANGUAGE.parser().parse(&text);
            let mut theirs = theirs.map_err(|error| TestCaseError::fail(error.to_string()))?;
            unnumbered(&mut ours);
            unnumbered(&mut theirs);
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn any_text_is_an_expression_or_an_error(text in any::<String>()) {
        end(&text)?;
    }

    #[test]
    fn any_expression_ends(text in expression()) {
        end(&text)?;
    }

    #[test]
    fn kinds_that_fit_never_fail_as_kinds(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let text = of_kind(Kind::Bool, 5, &mut bytes.iter());
        match Condition::parse_outcome(&text) {
            Ok(_) => end(&text)?,
            Err(ExpressionError::TooDeep { .. } | ExpressionError::TooLong { .. }) => {}
            Err(error) => return Err(TestCaseError::fail(format!("{text}: {error:?}"))),
        }
    }

    #[test]
    fn mutated_expressions_end(
        text in expression(),
        at in any::<prop::sample::Index>(),
        piece in "[-!?:()\\[\\].,'\"\\\\a-z0-9 &|=<>{}]{0,4}",
    ) {
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        let mutated = format!("{}{piece}{}", &text[..at], text[at..].get(1..).unwrap_or_default());
        end(&mutated)?;
    }
}

/// No panic; a value of the wrong kind was found before; places lie in the text.
fn end(text: &str) -> Result<(), TestCaseError> {
    match Condition::parse_outcome(text) {
        Ok(condition) => {
            let outcome = Outcome { status: Some(403), headers: &[] };
            let result = condition.holds(&request(), None, None, Some(&outcome));
            if let Err(EvaluationError::Failed { message }) = result {
                let kind = ["overload", "another kind", "Unsupported", "Unexpected"];
                // What is not a number compares with none, which is told as a lack of overloads.
                let wrong =
                    !message.contains("double") && kind.iter().any(|it| message.contains(it));
                prop_assert!(!wrong, "{text}: {message}");
            }
        }
        Err(error) => prop_assert!(text.is_char_boundary(error.at().min(text.len()))),
    }
    if let Ok(cost) = CostExpression::parse(text) {
        let _ = cost.cost(&request(), None, None);
    }
    Ok(())
}
