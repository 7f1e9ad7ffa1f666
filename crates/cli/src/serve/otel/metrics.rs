//! The metrics of `/metrics`, as OpenTelemetry has them: the same names, the same labels.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tollgate::Wall;
use tollgate_doors::{Family, Labels, Samples, Timings};

use super::{scope, text};

/// All families, counted since the beginning.
pub(super) fn request(
    resource: Resource,
    families: &[Family],
    began: Wall,
    now: Wall,
) -> ExportMetricsServiceRequest {
    let times = Times { began: began.as_unix_nanos(), now: now.as_unix_nanos() };
    let metrics = families.iter().map(|family| times.metric(family)).collect();
    let metrics = ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() };
    let all = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![metrics],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![all] }
}

/// In nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Times {
    began: u64,
    now: u64,
}

impl Times {
    fn metric(self, family: &Family) -> Metric {
        let (name, data) = match &family.samples {
            Samples::Counter(counts) => {
                let point = |(labels, count): &(Labels, u64)| {
                    let count = i64::try_from(*count).unwrap_or(i64::MAX);
                    self.number(labels, Value::AsInt(count))
                };
                let sum = Sum {
                    data_points: counts.iter().map(point).collect(),
                    aggregation_temporality: AggregationTemporality::Cumulative.into(),
                    is_monotonic: true,
                };
                (family.name.to_owned(), Data::Sum(sum))
            }
            Samples::Gauge(values) => {
                let point =
                    |(labels, value): &(Labels, f64)| self.number(labels, Value::AsDouble(*value));
                let data_points = values.iter().map(point).collect();
                (family.name.to_owned(), Data::Gauge(Gauge { data_points }))
            }
            Samples::Histogram(timings) => {
                let point = |(labels, timings): &(Labels, Timings)| self.histogram(labels, timings);
                let histogram = Histogram {
                    data_points: timings.iter().map(point).collect(),
                    aggregation_temporality: AggregationTemporality::Cumulative.into(),
                };
                (family.name.to_owned(), Data::Histogram(histogram))
            }
            // What there is to say is in the labels.
            Samples::Info(labels) => {
                let data_points = vec![self.number(labels, Value::AsInt(1))];
                (format!("{}_info", family.name), Data::Gauge(Gauge { data_points }))
            }
        };
        let is_time = matches!(family.samples, Samples::Histogram(_));
        Metric {
            name,
            description: family.help.to_owned(),
            unit: if is_time { "s".to_owned() } else { String::new() },
            data: Some(data),
            ..Metric::default()
        }
    }

    fn number(self, labels: &Labels, value: Value) -> NumberDataPoint {
        NumberDataPoint {
            attributes: labels.iter().map(|(name, value)| text(name, value)).collect(),
            start_time_unix_nano: self.began,
            time_unix_nano: self.now,
            value: Some(value),
            ..NumberDataPoint::default()
        }
    }

    fn histogram(self, labels: &Labels, timings: &Timings) -> HistogramDataPoint {
        let bounds = timings.buckets.iter().map(|(bound, _)| *bound);
        HistogramDataPoint {
            attributes: labels.iter().map(|(name, value)| text(name, value)).collect(),
            start_time_unix_nano: self.began,
            time_unix_nano: self.now,
            count: timings.count,
            sum: Some(timings.sum),
            bucket_counts: timings.buckets.iter().map(|(_, count)| *count).collect(),
            explicit_bounds: bounds.filter(|bound| bound.is_finite()).collect(),
            ..HistogramDataPoint::default()
        }
    }
}
