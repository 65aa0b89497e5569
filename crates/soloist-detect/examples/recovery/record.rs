//! What came of runs: a line of a file each, and the table of them all.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What came of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub seed: u64,
    pub map: String,
    pub layout: String,
    pub pool: String,
    pub noise: String,
    /// Nothing was said to be open.
    pub complete: bool,
    /// The judge found no difference.
    pub right: bool,
    pub confidence: f64,
    pub seconds: f64,
    pub samples: u64,
    /// Whether the division was named in all of memory, where the map has one.
    #[serde(default)]
    pub named: Option<bool>,
}

impl Record {
    /// Wrong, and nothing said so.
    pub fn is_wrong(&self) -> bool {
        self.complete && !self.right
    }
}

/// What came of the runs with one choice; those that are neither right and sure nor
/// wrong and sure are unsure.
#[derive(Default, Clone)]
struct Row {
    runs: u32,
    right: u32,
    wrong: u32,
    seconds: Vec<f64>,
    samples: u64,
}

/// All runs, by each choice.
#[derive(Default)]
pub struct Table {
    rows: BTreeMap<(usize, String), Row>,
    /// Runs and right ones, by what was said.
    said: BTreeMap<usize, (u32, u32)>,
    /// Maps with a division, and those whose division was named.
    divisions: (u32, u32),
    /// Runs that were wrong, and nothing said so.
    pub wrong: u32,
}

/// Lower ends of the classes of confidence.
const SAID: [f64; 6] = [0.0, 0.5, 0.9, 0.95, 0.98, 0.99];

impl Table {
    /// Takes a run in.
    pub fn add(&mut self, run: &Record) {
        self.wrong += u32::from(run.is_wrong());
        let keys = [
            ("all", ""),
            ("layout", run.layout.as_str()),
            ("pool", &run.pool),
            ("noise", &run.noise),
            ("map", &run.map),
        ];
        for (i, (kind, value)) in keys.iter().enumerate() {
            let row = self.rows.entry((i, format!("{kind} {value}"))).or_default();
            row.runs += 1;
            row.right += u32::from(run.right && run.complete);
            row.wrong += u32::from(run.is_wrong());
            row.seconds.push(run.seconds);
            row.samples += run.samples;
        }
        if let Some(named) = run.named {
            self.divisions.0 += 1;
            self.divisions.1 += u32::from(named);
        }
        // What could not be seen is said beside the confidence.
        if run.complete {
            let class = SAID.iter().rposition(|&least| run.confidence >= least);
            let said = self.said.entry(class.unwrap_or(0)).or_default();
            said.0 += 1;
            said.1 += u32::from(run.right);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| | runs | right and sure, % | wrong and sure | median s | slowest s | samples |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for ((_, name), row) in &self.rows {
            let mut seconds = row.seconds.clone();
            seconds.sort_unstable_by(f64::total_cmp);
            let last = seconds.len() - 1;
            writeln!(
                f,
                "| {} | {} | {:.1} | {} | {:.2} | {:.2} | {} |",
                name.trim(),
                row.runs,
                100.0 * f64::from(row.right) / f64::from(row.runs),
                row.wrong,
                seconds[last / 2],
                seconds[last],
                row.samples / u64::from(row.runs)
            )?;
        }
        writeln!(f, "\n| confidence said | runs | right |\n|---|---|---|")?;
        for (class, (runs, right)) in &self.said {
            let end = SAID
                .get(class + 1)
                .map_or("1.00".into(), |end| format!("{end:.2}"));
            writeln!(f, "| {:.2} to {end} | {runs} | {right} |", SAID[*class])?;
        }
        let (divisions, named) = self.divisions;
        writeln!(
            f,
            "\nDivisions: {divisions}; named in all of memory: {named}"
        )?;
        Ok(())
    }
}
