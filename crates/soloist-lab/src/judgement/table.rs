//! Outcomes as tables of comma-separated values: the claims, a line each, and
//! everything that was measured, a line for each task of each run.

use serde::{Deserialize, Serialize};

use super::verdict::ONE_SEED;
use super::{ScenarioOutcome, Verdict};
use crate::measurements::{metric, METRICS};

/// A claim's line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimLine {
    /// Name of the experiment.
    pub experiment: String,
    /// The claim in words.
    pub claim: String,
    /// What its figure is worth.
    pub kind: String,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// What came out.
    pub ours: Option<f64>,
    /// Half of its 95 per cent interval.
    pub interval: Option<f64>,
    /// Our effect over theirs.
    pub effect: Option<f64>,
    /// In a word: `holds`, `misses` ...
    pub verdict: String,
    /// Half of the work gives the same; nothing: it can't be said.
    pub converged: Option<bool>,
}

impl ClaimLine {
    /// It holds, or all that is missing is a second seed to give it an interval.
    #[must_use]
    pub fn near(&self) -> bool {
        self.verdict == "holds" || (self.theirs.is_some() && self.verdict == ONE_SEED)
    }
}

/// A line for each claim of an experiment.
pub fn lines(experiment: &str, verdicts: &[Verdict]) -> Vec<ClaimLine> {
    let line = |v: &Verdict| ClaimLine {
        experiment: experiment.to_owned(),
        claim: v.what.clone(),
        kind: v.worth().to_owned(),
        theirs: v.theirs,
        ours: v.ours.map(|e| digits(e.value)),
        interval: v.ours.and_then(|e| e.half).map(digits),
        effect: v.effect.map(digits),
        verdict: v.word().to_owned(),
        converged: v.converged(),
    };
    verdicts.iter().map(line).collect()
}

/// A line for each claim of `outcomes`.
pub fn claims(outcomes: &[ScenarioOutcome]) -> Vec<ClaimLine> {
    let claims = |o: &ScenarioOutcome| lines(&o.scenario.experiment.id, &o.verdicts);
    outcomes.iter().flat_map(claims).collect()
}

/// Four digits: more are noise, and make every change a change of the file.
fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// The claims as CSV.
pub fn claims_csv(lines: &[ClaimLine]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line)?;
    }
    text(writer)
}

/// What [`claims_csv`] wrote.
pub fn read_claims(text: &str) -> Result<Vec<ClaimLine>, csv::Error> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect()
}

/// Everything measured as CSV; a metric that a task has not is empty.
pub fn values_csv<'a>(
    outcomes: impl Iterator<Item = &'a ScenarioOutcome>,
) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = [
        "experiment",
        "case",
        "policy",
        "value",
        "seed",
        "task",
        "cpu",
    ];
    let metrics = METRICS.iter().map(|(name, _)| *name);
    writer.write_record(head.into_iter().chain(metrics))?;
    for outcome in outcomes {
        for case in &outcome.cases {
            for run in &case.runs {
                for task in &run.tasks {
                    let start = [
                        outcome.scenario.experiment.id.clone(),
                        case.case.clone(),
                        case.policy.clone(),
                        case.point().to_string(),
                        run.seed.to_string(),
                        task.name.clone(),
                        task.cpu.to_string(),
                    ];
                    let value =
                        |name: &str| metric(task, name).map_or_else(String::new, |v| v.to_string());
                    let values = METRICS.iter().map(|(name, _)| value(name));
                    writer.write_record(start.into_iter().chain(values))?;
                }
            }
        }
    }
    text(writer)
}

fn text(writer: csv::Writer<Vec<u8>>) -> Result<String, csv::Error> {
    let bytes = writer
        .into_inner()
        .map_err(|e| csv::Error::from(e.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_claims_line_is_read_as_it_was_written() {
        let line = ClaimLine {
            experiment: "e".into(),
            claim: "a, \"b\" and c".into(),
            kind: "order".into(),
            theirs: None,
            ours: Some(digits(1234.567)),
            interval: Some(digits(0.012_345)),
            effect: None,
            verdict: "holds".into(),
            converged: Some(false),
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(&line).unwrap();
        let written = text(writer).unwrap();
        assert!(written.contains(",1235.0,0.01235,"), "{written}");
        assert_eq!(read_claims(&written).unwrap(), [line]);
    }
}
