//! Decisions as spans, kept until they are sent.

use std::sync::{Mutex, PoisonError, TryLockError};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use rustix::rand::{GetRandomFlags, getrandom};
use tollgate_doors::{Decided, Observer};

use super::{scope, text};

/// Spans that wait to be sent.
#[derive(Debug)]
pub(super) struct Traces {
    ratio: f64,
    waiting: Mutex<Vec<Span>>,
}

impl Traces {
    pub(super) const fn new(ratio: f64) -> Self {
        Self { ratio, waiting: Mutex::new(Vec::new()) }
    }

    /// All spans that wait, or nothing.
    pub(super) fn request(&self, resource: Resource) -> Option<ExportTraceServiceRequest> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let spans = std::mem::take(&mut *waiting);
        if spans.is_empty() {
            return None;
        }
        let spans = ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() };
        let all = ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        };
        Some(ExportTraceServiceRequest { resource_spans: vec![all] })
    }
}

impl Observer for Traces {
    /// One in 64 at most, on the thread that decided: it never waits for whoever sends.
    fn decided(&self, decided: &Decided<'_>) {
        let mut id = [0; 24];
        if self.ratio <= 0.0 || getrandom(&mut id, GetRandomFlags::empty()) != Ok(id.len()) {
            return;
        }
        let (trace, span) = id.split_at(16);
        // As the samplers of OpenTelemetry do: by the end of the name of the trace.
        let end = trace[8..].iter().fold(0, |end: u64, byte| end << 8 | u64::from(*byte));
        if end as f64 / u64::MAX as f64 > self.ratio {
            return;
        }
        let mut waiting = match self.waiting.try_lock() {
            Ok(waiting) => waiting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if waiting.len() < MOST {
            waiting.push(span_of(decided, trace, span));
        }
    }
}

fn span_of(decided: &Decided<'_>, trace: &[u8], span: &[u8]) -> Span {
    let took = u64::try_from(decided.took.as_nanos()).unwrap_or(u64::MAX);
    let end = decided.at.as_unix_nanos();
    let outcome = if decided.is_allowed { "allowed" } else { "denied" };
    let mut attributes = vec![
        text("tollgate.door", decided.door),
        text("tollgate.outcome", outcome),
        text("tollgate.rules.version", &decided.version.to_string()),
    ];
    attributes.extend(decided.rule.map(|rule| text("tollgate.rule", rule)));
    Span {
        trace_id: trace.to_vec(),
        span_id: span.to_vec(),
        name: "decide".to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: end.saturating_sub(took),
        end_time_unix_nano: end,
        attributes,
        ..Span::default()
    }
}

/// So many spans wait at most; others are left out.
const MOST: usize = 4_096;
