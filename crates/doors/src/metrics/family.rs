//! Metrics of one name, as they are written.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::histogram::Timings;

/// Metrics of one name, as they are now.
#[derive(Clone, Debug)]
pub struct Family {
    /// What they are called, without what kinds of metrics have at their end, such as `_total`.
    pub name: &'static str,
    /// What they say.
    pub help: &'static str,
    /// One for each set of labels.
    pub samples: Samples,
}

/// The metrics of a family.
#[derive(Clone, Debug)]
pub enum Samples {
    /// Counts that only rise, but for a restart.
    Counter(Vec<(Labels, u64)>),
    /// Values that rise and fall.
    Gauge(Vec<(Labels, f64)>),
    /// How long something took.
    Histogram(Vec<(Labels, Timings)>),
    /// What there is to say is in the labels.
    Info(Labels),
}

/// Names and values that tell metrics of a family apart.
pub type Labels = Vec<(&'static str, String)>;

/// All families as one text. Values of labels are escaped, whatever they are.
pub(super) fn write(families: Vec<Family>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page(families)));
    let mut text = String::new();
    // A `String` takes whatever is written to it.
    let _ = text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Page(Vec<Family>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = match &self.samples {
            Samples::Counter(_) => MetricType::Counter,
            Samples::Gauge(_) => MetricType::Gauge,
            Samples::Histogram(_) => MetricType::Histogram,
            Samples::Info(_) => MetricType::Info,
        };
        let mut family = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        match &self.samples {
            Samples::Counter(samples) => samples.iter().try_for_each(|(labels, count)| {
                with(&mut family, labels, |one| {
                    one.encode_counter::<NoLabelSet, _, u64>(count, None)
                })
            }),
            Samples::Gauge(samples) => samples.iter().try_for_each(|(labels, value)| {
                with(&mut family, labels, |one| one.encode_gauge(value))
            }),
            Samples::Histogram(samples) => samples.iter().try_for_each(|(labels, it)| {
                with(&mut family, labels, |one| {
                    one.encode_histogram::<NoLabelSet>(it.sum, it.count, &it.buckets, None)
                })
            }),
            Samples::Info(labels) => family.encode_info(labels),
        }
    }
}

/// One sample, with its labels if it has any: not with braces around nothing.
fn with(
    family: &mut MetricEncoder<'_>,
    labels: &Labels,
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    match labels.is_empty() {
        true => encode(family),
        false => encode(&mut family.encode_family(labels)?),
    }
}
