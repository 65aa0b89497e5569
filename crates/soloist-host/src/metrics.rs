//! All figures in the text format of OpenMetrics.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::watch::{Field, Kind, Snapshot, CPU, GROUP, RULE, SYSTEM};
use crate::HostError;

/// The media type of [`openmetrics`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `snapshot` in the text format of OpenMetrics 1.0.
pub fn openmetrics(snapshot: &Snapshot) -> Result<String, HostError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collected(rows(snapshot))));
    let mut text = String::new();
    text::encode(&mut text, &registry).map_err(|e| HostError::Other(e.to_string()))?;
    Ok(text)
}

/// A figure of each thing that has it.
#[derive(Debug)]
struct Row {
    name: String,
    field: Field,
    /// Name of the label; empty: the figure is the system's.
    label: &'static str,
    values: Vec<(String, u64)>,
}

fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |room: &str, label, fields: &[Field], values: &dyn Fn(&str) -> Vec<_>| {
        for &field in fields {
            let name = match room {
                "" => format!("soloist_{}", field.key),
                room => format!("soloist_{room}_{}", field.key),
            };
            let values = values(field.key);
            rows.push(Row {
                name,
                field,
                label,
                values,
            });
        }
    };
    add("group", "group", GROUP, &|key| {
        let one = |g: &crate::watch::GroupSample| Some((g.name.clone(), *g.figures.get(key)?));
        snapshot.groups.iter().filter_map(one).collect()
    });
    let of = |samples: &[crate::watch::Sample], key: &str| -> Vec<(String, u64)> {
        let one = |s: &crate::watch::Sample| Some((s.name.clone(), *s.figures.get(key)?));
        samples.iter().filter_map(one).collect()
    };
    add("guard", "cpu", CPU, &|key| of(&snapshot.cpus, key));
    add("rule", "rule", RULE, &|key| of(&snapshot.rules, key));
    add("", "", SYSTEM, &|key| {
        let value = snapshot.system.get(key);
        value.map(|&v| (String::new(), v)).into_iter().collect()
    });
    rows
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
            for (of, value) in &row.values {
                let labels = match row.label {
                    "" => Vec::new(),
                    label => vec![(label.to_owned(), of.clone())],
                };
                let one = family.encode_family(&labels)?;
                match row.field.kind {
                    Kind::Counter => ConstCounter::new(*value).encode(one)?,
                    Kind::Gauge => {
                        let value = i64::try_from(*value).unwrap_or(i64::MAX);
                        ConstGauge::new(value).encode(one)?;
                    }
                }
            }
        }
        Ok(())
    }
}
