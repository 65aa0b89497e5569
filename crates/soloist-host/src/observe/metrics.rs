//! All figures in the text format of OpenMetrics.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::observe::verify::Reason;
use crate::observe::watch::{
    Field, GroupSample, Kind, Sample, Snapshot, CPU, GROUP, OCCUPANCY, OUT_OF_COLOR, RULE, SYSTEM,
    UP,
};
use crate::HostError;

/// The media type of [`openmetrics`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `snapshot` in the text format of OpenMetrics 1.0; none: there are no figures, which
/// `soloist_up 0` says.
pub fn openmetrics(snapshot: Option<&Snapshot>) -> Result<String, HostError> {
    let mut registry = Registry::default();
    let mut all = vec![Row {
        name: format!("soloist_{}", UP.key),
        field: UP,
        values: vec![(Vec::new(), snapshot.is_some().into())],
    }];
    all.extend(snapshot.map(rows).unwrap_or_default());
    registry.register_collector(Box::new(Collected(all)));
    let mut text = String::new();
    text::encode(&mut text, &registry).map_err(|e| HostError::Other(e.to_string()))?;
    Ok(text)
}

type Labels = Vec<(&'static str, String)>;

/// A figure of each thing that has it.
#[derive(Debug)]
struct Row {
    name: String,
    field: Field,
    /// Names and values of the labels; none: the figure is the system's.
    values: Vec<(Labels, u64)>,
}

fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |room: &str, fields: &[Field], values: &dyn Fn(&str) -> Vec<_>| {
        for &field in fields {
            let name = match room {
                "" => format!("soloist_{}", field.key),
                room => format!("soloist_{room}_{}", field.key),
            };
            let values = values(field.key);
            rows.push(Row {
                name,
                field,
                values,
            });
        }
    };
    let groups = || snapshot.groups.iter();
    add("group", GROUP, &|key| {
        let figure =
            |g: &GroupSample| Some((vec![("group", g.name.clone())], *g.figures.get(key)?));
        groups().filter_map(figure).collect()
    });
    add("group", &[OUT_OF_COLOR], &|_| {
        let each = |g: &GroupSample| -> Vec<(Labels, u64)> {
            let label =
                |reason: &Reason| vec![("group", g.name.clone()), ("reason", reason.to_string())];
            let reasons = g.not_in_color.iter();
            reasons
                .map(|(reason, &pages)| (label(reason), pages))
                .collect()
        };
        groups().flat_map(each).collect()
    });
    add("group", &[OCCUPANCY], &|_| {
        let each = |g: &GroupSample| -> Vec<(Labels, u64)> {
            let label =
                |holder: &str| vec![("group", g.name.clone()), ("holder", holder.to_owned())];
            let held = g.occupancy.iter().flat_map(|held| held.holders());
            held.map(|(holder, pages)| (label(holder), pages)).collect()
        };
        groups().flat_map(each).collect()
    });
    let samples_of = |label, samples: &[Sample], key: &str| -> Vec<(Labels, u64)> {
        let figure = |s: &Sample| Some((vec![(label, s.name.clone())], *s.figures.get(key)?));
        samples.iter().filter_map(figure).collect()
    };
    add("guard", CPU, &|key| samples_of("cpu", &snapshot.cpus, key));
    add("rule", RULE, &|key| {
        samples_of("rule", &snapshot.rules, key)
    });
    add("", SYSTEM, &|key| {
        let value = snapshot.system.get(key);
        value.map(|&v| (Vec::new(), v)).into_iter().collect()
    });
    rows
}

fn encode_value(kind: Kind, value: u64, to: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
    match kind {
        Kind::Counter => ConstCounter::new(value).encode(to),
        Kind::Gauge => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(to),
    }
}

#[derive(Debug)]
struct Collected(Vec<Row>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        for row in self.0.iter().filter(|row| !row.values.is_empty()) {
            let kind = match row.field.kind {
                Kind::Counter => ConstCounter::new(0u64).metric_type(),
                Kind::Gauge => ConstGauge::new(0i64).metric_type(),
            };
            let no_unit: Option<&Unit> = None;
            let mut family = encoder.encode_descriptor(&row.name, row.field.help, no_unit, kind)?;
            match row.values.as_slice() {
                [(labels, value)] if labels.is_empty() => {
                    encode_value(row.field.kind, *value, family)?;
                }
                values => {
                    for (labels, value) in values {
                        let one = family.encode_family(labels)?;
                        encode_value(row.field.kind, *value, one)?;
                    }
                }
            }
        }
        Ok(())
    }
}
