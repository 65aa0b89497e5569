//! `soloist compare`: what isolation buys a program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ArgGroup;
use serde::Serialize;
use soloist_core::statistics::mean;
use soloist_host::observe::Summary;
use soloist_host::run::write_forever;

use crate::number::whole;
use crate::{complete, out, table, Ctx, Misuse, Table};

/// Memory that the co-runner of this program's own writes to, bytes.
const CO_RUNNER: usize = 64 << 20;

/// Measure what isolation buys a command: alone, beside co-runners, and in colours.
///
/// With the module loaded, runs and times the command on one CPU, with co-runners on
/// others. Without the module, --model records it in a virtual machine and simulates
/// it.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "one a switch")]
#[command(group = ArgGroup::new("played").args(["model", "recorded"]).multiple(true))]
#[command(after_help = examples![
    "soloist compare -- zstd -9 -k big.txt",
    "soloist compare --model --html sort.html -- sort big.txt",
    "soloist compare --recorded sort.rec --picture sort.svg",
])]
pub struct Args {
    /// Number of runs under each condition.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(1..=100_000), conflicts_with = "played")]
    pub runs: u32,
    /// Warm-up runs that are not counted.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(0..=100_000), conflicts_with = "played")]
    pub warmup: u32,
    /// Command of a co-runner; may be repeated [default: a program that writes to 64
    /// MiB again and again].
    #[arg(long, value_name = "PROGRAM", conflicts_with = "recorded")]
    pub corun: Vec<String>,
    /// Number of co-runners; several `--corun` take turns.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(0..=63))]
    pub neighbours: u32,
    /// CPUs: the first is the command's, the others the co-runners' [default: all that
    /// this process may use].
    #[arg(long, value_name = "LIST", conflicts_with = "played")]
    pub cpus: Option<String>,
    /// Arguments of `soloist run` for the run in colour.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "--colors 1",
        allow_hyphen_values = true,
        conflicts_with = "played"
    )]
    pub run: String,
    /// Measure even on an emulated processor, whose times say nothing about memory.
    #[arg(long, conflicts_with = "played")]
    pub force: bool,
    /// Accept any exit status of the command.
    #[arg(long, conflicts_with = "recorded")]
    pub any_status: bool,
    /// Record the command in a virtual machine and simulate it, instead of running it
    /// here.
    #[arg(long)]
    pub model: bool,
    /// Simulate this recording: each of its programs beside co-runners that repeat its
    /// last program.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub recorded: Option<PathBuf>,
    /// In the model: the machine [default: the one that was recorded on; without
    /// --recorded opteron-6128].
    #[arg(long, short, value_name = "NAME|FILE", requires = "played", add = complete::machines())]
    pub machine: Option<String>,
    /// In the model: placements to compare with that of Linux.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "POLICY",
        default_value = "diff_bank",
        requires = "played"
    )]
    pub policies: Vec<String>,
    /// In the model: bank sets of each program.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u32>(1..), requires = "played")]
    pub sets: u32,
    /// In the model: lines to play, from the middle of each program except the
    /// co-runner [default: a million, or fewer for about a minute of playing].
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..), requires = "played")]
    pub lines: Option<usize>,
    /// In the model: write a page with histograms and who waited for whom.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// In the model: write one picture.
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Write each run as a line of CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Be the co-runner.
    #[arg(long, hide = true)]
    pub be_neighbour: bool,
    /// As the co-runner: sleep after so many passes.
    #[arg(long, value_name = "N", hide = true, requires = "be_neighbour", value_parser = whole::<u32>(..))]
    pub passes: Option<u32>,
    /// The command and its arguments.
    #[arg(last = true, value_name = "CMD", add = complete::command_line())]
    pub command: Vec<OsString>,
}

/// A condition and what its runs came to.
#[derive(Debug, Clone, Serialize)]
pub struct Condition {
    /// Name of the program.
    pub program: String,
    /// Name of the condition, such as `alone`.
    pub name: String,
    /// Seconds of each run.
    pub seconds: Vec<f64>,
    /// Summary of all runs.
    #[serde(flatten)]
    pub summary: Summary,
    /// Mean time by the mean time of the first condition.
    pub slowdown: f64,
    /// Reasons why the figures may say little.
    pub warnings: Vec<String>,
    /// In the model: the 99th percentile of the latency of its lines, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_p99_ns: Option<f64>,
    /// In the model: who was waited for most, and for which share of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blamed: Option<String>,
}

impl Condition {
    /// One that took `seconds`, beside what the first took; none of no runs.
    fn of(program: &str, name: String, seconds: Vec<f64>, alone: f64) -> Option<Self> {
        let summary = Summary::of(&seconds)?;
        Some(Self {
            program: program.to_owned(),
            name,
            slowdown: summary.mean / alone,
            warnings: summary.warnings(),
            summary,
            seconds,
            line_p99_ns: None,
            blamed: None,
        })
    }
}

/// Conditions of one program: the first is what others are compared with.
pub fn conditions(program: &str, named: Vec<(String, Vec<f64>)>) -> Vec<Condition> {
    let alone = named.first().map_or(f64::NAN, |(_, seconds)| mean(seconds));
    let named = named.into_iter();
    named
        .filter_map(|(name, seconds)| Condition::of(program, name, seconds, alone))
        .collect()
}

impl Args {
    /// Is it played in the model, which is `soloist-lab`'s?
    pub fn is_modelled(&self) -> bool {
        self.model || self.recorded.is_some()
    }

    /// Becomes the co-runner, and never returns, or refuses arguments that can't be
    /// met. It comes before measuring and before modelling.
    pub fn begin(&self) -> Result<()> {
        if self.be_neighbour {
            write_forever(CO_RUNNER, self.passes);
        }
        if self.command.is_empty() && self.recorded.is_none() {
            return Err(Misuse("no command: soloist compare -- CMD".to_owned()).into());
        }
        crate::check_files(&[
            ("--html", self.html.as_deref()),
            ("--picture", self.picture.as_deref()),
            ("--csv", self.csv.as_deref()),
        ])
    }
}

/// The words of the co-runner that this program is itself.
pub fn own_co_runner() -> Result<Vec<OsString>> {
    let own = std::env::current_exe().context("this program's own path")?;
    Ok(vec![own.into(), "compare".into(), "--be-neighbour".into()])
}

/// Each run as a line of CSV.
fn csv(found: &[Condition]) -> Result<String> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    lines.write_record(["program", "condition", "run", "seconds"])?;
    for c in found {
        for (run, seconds) in c.seconds.iter().enumerate() {
            let (run, seconds) = (run.to_string(), format!("{seconds:.9}"));
            lines.write_record([&c.program, &c.name, &run, &seconds])?;
        }
    }
    Ok(String::from_utf8(lines.into_inner()?)?)
}

/// All conditions, a row each.
fn text(found: &[Condition]) -> Table {
    let modelled = found.iter().any(|c| c.line_p99_ns.is_some());
    let mut heads = vec![
        "PROGRAM",
        "CONDITION",
        "MEAN ± σ",
        "MIN",
        "MAX",
        "P50",
        "P99",
        "SLOWDOWN",
    ];
    if modelled {
        heads.extend(["A LINE'S P99 ns", "WAITED FOR"]);
    }
    let mut table = table(heads);
    for c in found {
        let s = &c.summary;
        let mut row = vec![
            c.program.clone(),
            c.name.clone(),
            format!("{:.6} ± {:.6}", s.mean, s.stddev),
            format!("{:.6}", s.min),
            format!("{:.6}", s.max),
            format!("{:.6}", s.p50),
            format!("{:.6}", s.p99),
            format!("{:.3}", c.slowdown),
        ];
        if modelled {
            row.push(
                c.line_p99_ns
                    .map_or_else(String::new, |ns| format!("{ns:.0}")),
            );
            row.push(c.blamed.clone().unwrap_or_default());
        }
        table.add_row(row);
    }
    table
}

/// The result of a comparison: `--json` prints these fields.
#[derive(Debug, Serialize)]
pub struct Found<'a> {
    /// `measured`, `emulated` or `modelled`.
    pub how: &'a str,
    /// The conditions of each program.
    pub conditions: &'a [Condition],
    /// Remarks on the figures.
    pub notes: &'a [String],
    /// Parts of recordings that could not be read. The figures leave them out.
    pub damage: &'a [String],
}

impl Found<'_> {
    /// Prints and writes it; the status is 1 where it is of a damaged recording.
    ///
    /// # Errors
    /// When it can't be printed or written.
    pub fn finish(&self, args: &Args, ctx: &Ctx) -> Result<ExitCode> {
        let printed = match ctx.json {
            true => ctx.print_json(self),
            false => self.print(ctx),
        };
        // The runs took minutes: whichever of the two can be had is had.
        let file = args.csv.as_deref();
        let written = file.map_or(Ok(()), |file| out::write(file, csv(self.conditions)?));
        let is_whole = self.damage.is_empty();
        Ok(ctx.judged(out::both(printed, written), is_whole))
    }

    fn print(&self, ctx: &Ctx) -> Result<()> {
        outln!("{}: seconds of each run", ctx.paint(1, self.how))?;
        outln!("{}", text(self.conditions))?;
        for c in self.conditions {
            for warning in &c.warnings {
                errln!("soloist: {}, {}: {warning}", c.program, c.name);
            }
        }
        for note in self.notes {
            outln!("{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn csv_keeps_any_name_of_a_program() {
        let name = "say \"a, b\"";
        let found = conditions(name, vec![("alone".to_owned(), vec![0.5, 0.25])]);
        let text = csv(&found).unwrap();
        let mut read = csv::Reader::from_reader(text.as_bytes());
        let fields = read.records().map(|line| {
            let line = line.unwrap();
            line.iter().map(str::to_owned).collect::<Vec<_>>()
        });
        let wanted = [
            [name, "alone", "0", "0.500000000"],
            [name, "alone", "1", "0.250000000"],
        ];
        assert_eq!(fields.collect::<Vec<_>>(), wanted);
    }
}
