//! What is fuzzed: each function takes bytes as anybody could send them, and panics if something
//! is not as it should be. The test command runs them as well, with changes of good inputs.

use std::net::IpAddr;

use tollgate::rules::{
    ClientHeader, ClientIp, Condition, CostExpression, Document, Explanation, Facts, GraphqlCost,
    ImportKind, Networks, NoFiles, Outcome, Report, Request, RequestLine, RuleSet, Source, Verdict,
    format, import, text,
};
use tollgate::{Engine, ManualClock, Seed};

/// A file is read into a tree, or refused.
pub fn document(bytes: &[u8]) {
    for source in sources(bytes) {
        if let Err(report) = Document::parse(&source) {
            readable(&report, &source);
        }
    }
}

/// Rules are read, and decide.
pub fn rules(bytes: &[u8]) {
    for source in sources(bytes) {
        match RuleSet::read(&source, &NoFiles) {
            Ok(set) => at_work(set, source.text()),
            Err(report) => readable(&report, &source),
        }
    }
}

/// What is formatted says the same, and stays as it is when it is formatted again.
pub fn formatted(bytes: &[u8]) {
    for source in sources(bytes) {
        match format(&source) {
            Ok(once) => {
                let again = Source::new(source.name(), once.as_str());
                let twice = format(&again).expect("what was formatted can be formatted");
                assert_eq!(once, twice);
                let version =
                    |source| RuleSet::read(source, &NoFiles).ok().map(|set| set.version());
                assert_eq!(version(&source), version(&again));
            }
            Err(report) => readable(&report, &source),
        }
    }
}

/// Expressions have a value, or there is an error.
pub fn condition(bytes: &[u8]) {
    let Some(text) = valid(bytes) else { return };
    let attributes = [("user", "a"), ("claims.plan", "pro"), ("body.n", "7")];
    let headers = [("x-a", "1"), ("X-B", text)];
    let request = Request::new("GET", "/v1/items?a=b").headers(&headers).attributes(&attributes);
    let ip = Some(IpAddr::from([192, 0, 2, 7]));
    let outcome = Outcome { status: Some(401), headers: &headers };
    if let Ok(condition) = Condition::parse(text) {
        let _ = condition.holds(&request, Some("pro"), ip, None);
    }
    if let Ok(condition) = Condition::parse_outcome(text) {
        let _ = condition.holds(&request, None, None, Some(&outcome));
    }
    if let Ok(cost) = CostExpression::parse(text) {
        let _ = cost.cost(&request, Some("pro"), ip);
    }
}

/// Queries have a cost, or there is an error.
pub fn graphql(bytes: &[u8]) {
    let Some(text) = valid(bytes) else { return };
    let (query, variables) = text.split_once('\0').unwrap_or((text, "{\"n\": 7}"));
    for (depth, list) in [(10, 20), (1, 1), (128, u32::MAX)] {
        let rule = GraphqlCost { depth, list };
        let _ = rule.cost(query, None, Some(variables));
        let _ = rule.cost(query, Some("A"), None);
    }
}

/// Headers name a client, or do not.
pub fn client_ip(bytes: &[u8]) {
    let Some(text) = valid(bytes) else { return };
    let lines: Vec<_> = text.split('\n').collect();
    let trusted = ["10.0.0.0/8", "::1"].map(|it| Networks::network(it).expect("a network"));
    let trusted = Networks::try_new(trusted).expect("few networks");
    for name in ["x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip"] {
        let headers: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
        let Ok(header) = name.parse::<ClientHeader>() else { continue };
        let client = ClientIp::default().with_header(header).with_trusted_proxies(trusted.clone());
        for peer in [IpAddr::from([10, 0, 0, 1]), IpAddr::from([192, 0, 2, 1])] {
            let found = client.of(&Request::new("GET", "/").peer(peer).headers(&headers));
            let is_trusted = trusted.contains(peer);
            assert!(is_trusted || found == Some(peer), "{found:?} is not {peer}");
        }
    }
    let _ = text.parse::<RequestLine>();
}

/// Files of other software become rules that can be used, or are refused.
pub fn imported(bytes: &[u8]) {
    let Some(text) = valid(bytes) else { return };
    let limitador = ImportKind::Limitador { namespace: None };
    for kind in [ImportKind::Envoy, limitador, ImportKind::Nginx] {
        match import(kind, "other", text) {
            Ok(imported) => {
                let rules = RuleSet::parse(&imported.yaml);
                assert!(rules.is_ok(), "{}{}", imported.yaml, rules.unwrap_err());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn valid(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The bytes as each kind of file; none if they are no text, which is then said.
fn sources(bytes: &[u8]) -> Vec<Source> {
    match text(bytes.to_vec()) {
        Ok(text) => {
            ["a.yaml", "a.json", "a.toml"].map(|name| Source::new(name, text.as_str())).into()
        }
        Err(error) => {
            assert!(error.to_string().ends_with("is not text in UTF-8"), "{error}");
            Vec::new()
        }
    }
}

fn readable(report: &Report, source: &Source) {
    assert!(report.has_errors() && report.diagnostics().len() <= Report::MAX);
    let text = report.to_text(source);
    assert!(!text.is_empty() && text.len() < 2_000_000, "{} bytes", text.len());
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    for found in report.diagnostics() {
        let place = found.place(source);
        assert!(place.line > 0 && place.column > 0 && !found.message().is_empty());
    }
}

/// What is found by the index is what is found by asking each rule, and all of it can be counted.
fn at_work(set: RuleSet, text: &str) {
    assert!(set.rules().len() <= RuleSet::MAX_RULES);
    for rule in set.rules() {
        assert!(!rule.in_words(set.tiers()).is_empty());
    }
    assert!(set.changes(&set.clone()).is_empty());
    each_request(text, |request| {
        let mut room = String::new();
        let request = request.normal(&mut room);
        let applying = set.applying(&Facts::new(&set, &request, set.geo()));
        let explained = set.explain(&Facts::new(&set, &request, set.geo()));
        assert_eq!(applying.to_vec(), asked_one_by_one(&explained), "{request:?}");
        assert!(!explained.to_string().is_empty());
    });
    let (clock, seed) = (ManualClock::new(), Seed::new(7));
    let engine = Engine::builder(set).keys(64).seed(seed).clock(clock).build();
    let Ok(engine) = engine else { return };
    each_request(text, |request| {
        let allowed = engine.peek(request).is_allowed();
        let ruling = engine.decide(request);
        assert_eq!(ruling.is_allowed(), allowed);
        engine.report(ruling, request, &Outcome { status: Some(200), headers: &[] });
    });
}

fn asked_one_by_one(explained: &Explanation) -> Vec<usize> {
    let applies = |(_, rule): &(usize, &_)| {
        let rule: &tollgate::rules::RuleExplanation = rule;
        matches!(rule.verdict, Verdict::Applies(_))
    };
    explained.rules.iter().enumerate().filter(applies).map(|(number, _)| number).collect()
}

/// Requests that good files are about, and some that are made of the words of the file.
fn each_request(text: &str, mut ask: impl FnMut(&Request<'_>)) {
    let words: Vec<_> = text.split_whitespace().collect();
    let word = |at: usize| words.get(at % words.len().max(1)).copied().unwrap_or_default();
    let peer = IpAddr::from([10, 1, 2, 3]);
    for (at, target) in ["/v1/items", "/login", "/v1/users/7/x?a=b", "", "*", word(7), word(11)]
        .into_iter()
        .enumerate()
    {
        let headers =
            [("x-forwarded-for", "192.0.2.1, 10.0.0.2"), ("x-a", word(at)), (word(3), "b")];
        let attributes = [
            ("user", if at % 2 == 0 { "u1" } else { word(at * 5) }),
            ("account", "acme"),
            ("claims.plan", ["free", "pro", word(at)][at % 3]),
            ("body.username", "bob"),
            ("body.query", "{ a { b } }"),
            ("body.tokens", word(at * 3)),
            (word(at), word(at + 1)),
        ];
        let method = ["GET", "POST", word(at)][at % 3];
        let given = if at == 3 { &attributes[..0] } else { &attributes[..] };
        let request = Request::new(method, target).host("api.example.com").headers(&headers);
        let request = request.attributes(given);
        ask(&if at == 4 { request } else { request.peer(peer) });
    }
}
