//! The rules in force, and others in their place.

use ::http::header::{CONTENT_TYPE, IF_MATCH};
use ::http::{HeaderMap, Request, StatusCode};
use serde::Serialize;
use tollgate_rules::{Report, Severity, Source, Version};

use super::{Outcome, bad_request};
use crate::given::Origin;
use crate::respond::{self, mode_name};
use crate::service::{PushError, Service};
use crate::switches::Killed;
use crate::web::Answer;

/// The rules as they were given, and what is switched.
pub(super) fn show(service: &Service) -> Answer {
    let in_force = service.now_in_force();
    let given = &in_force.given;
    let rules = given.rules.rules().iter().map(|rule| ShownRule {
        name: rule.name(),
        mode: mode_name(rule.mode()),
        killed: in_force.switches.of(rule.name()),
    });
    let shown = Shown {
        version: given.rules.version().to_string(),
        namespace: given.rules.namespace(),
        from: given.source.as_ref().map(|source| source.name()),
        pushed: given.origin == Origin::Pushed,
        killed: in_force.switches.all(),
        rules: rules.collect(),
        text: given.source.as_ref().map(|source| source.text()),
    };
    respond::versioned(&shown.version, &shown)
}

/// How rules are pushed, as the headers say.
#[derive(Debug)]
pub(super) struct Pushed {
    name: &'static str,
    /// What the rules in force must be, if it matters.
    replaces: Option<String>,
}

impl Pushed {
    pub(super) fn of<B>(request: &Request<B>) -> Outcome<Self> {
        let is_toml = text(request.headers(), CONTENT_TYPE.as_str())?
            .is_some_and(|content_type| content_type.to_ascii_lowercase().contains("toml"));
        // The end of the name says how it is written; JSON is YAML with braces.
        let name = if is_toml { "pushed.toml" } else { "pushed.yaml" };
        let replaces = text(request.headers(), IF_MATCH.as_str())?.map(str::to_owned);
        Ok(Self { name, replaces })
    }

    fn is_meant_for(&self, version: Version) -> bool {
        let version = version.to_string();
        let fits = |tag: &str| tag == "*" || tag.trim_matches('"') == version;
        self.replaces.as_ref().is_none_or(|tags| tags.split(',').map(str::trim).any(fits))
    }
}

/// Puts rules in force.
pub(super) fn push(service: &Service, pushed: Pushed, body: Vec<u8>) -> Outcome<Answer> {
    let text = tollgate_rules::text(body)
        .map_err(|error| bad_request(&format!("these are no rules: {error}")))?;
    let source = Source::new(pushed.name, text);
    match service.push(&source, |version| pushed.is_meant_for(version)) {
        Ok((previous, rules)) => {
            let version = rules.version();
            tracing::info!(%version, %previous, rules = rules.rules().len(), "rules were pushed");
            let told = Told {
                version: version.to_string(),
                previous: previous.to_string(),
                rules: rules.rules().len(),
                warnings: findings(&source, rules.warnings()),
            };
            Ok(respond::versioned(&told.version, &told))
        }
        Err(error) => Err(Box::new(refused(service, &source, &error))),
    }
}

fn refused(service: &Service, source: &Source, error: &PushError) -> Answer {
    match error {
        PushError::Wrong(report) => {
            service.refuse_rules(source.name(), &report.to_text(source));
            let detail = "these rules cannot be used, and the old ones stay";
            respond::findings(detail, &findings(source, report), report.left_out())
        }
        PushError::Stale(version) => {
            let detail = format!(
                "the rules in force are not the ones that these were to replace: they are of \
                 version {version}; look at them first"
            );
            respond::problem(StatusCode::PRECONDITION_FAILED, &detail)
        }
        PushError::Swap(error) => {
            service.refuse_rules(source.name(), &error.to_string());
            respond::problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string())
        }
    }
}

fn findings(source: &Source, report: &Report) -> Vec<Finding> {
    let finding = |diagnostic: &tollgate_rules::Diagnostic| {
        let place = diagnostic.place(source);
        Finding {
            severity: match diagnostic.severity() {
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            code: diagnostic.code(),
            message: diagnostic.message().to_owned(),
            remedy: diagnostic.remedy().to_owned(),
            line: place.line,
            column: place.column,
        }
    };
    report.diagnostics().iter().map(finding).collect()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Outcome<Option<&'a str>> {
    let value = headers.get(name).map(|value| value.to_str()).transpose();
    value.map_err(|_| bad_request(&format!("the header `{name}` is no text")))
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    version: String,
    namespace: &'a str,
    /// Which file they are from.
    from: Option<&'a str>,
    pushed: bool,
    /// How all rules are switched, if they are.
    killed: Option<Killed>,
    rules: Vec<ShownRule<'a>>,
    text: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ShownRule<'a> {
    name: &'a str,
    /// What the rules say, whatever is switched.
    mode: &'static str,
    killed: Option<Killed>,
}

#[derive(Debug, Serialize)]
struct Told {
    version: String,
    previous: String,
    rules: usize,
    warnings: Vec<Finding>,
}

/// One thing that is wrong with rules, or hardly meant.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    severity: &'static str,
    /// The same in every version.
    code: &'static str,
    message: String,
    remedy: String,
    /// From 1, as the column, which counts characters.
    line: usize,
    column: usize,
}

/// The longest rules that can be pushed: about forty thousand of them.
pub(super) const MOST_BYTES: usize = 8 << 20;
