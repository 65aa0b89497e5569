//! `soloist sim`: traces and recorded programs on a modelled machine.

mod profile;
mod replay;
mod silicon;
mod slice;
mod traces;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{bail, Context, Result};
use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use soloist_memory::controller::{Completion, RowOutcome};
use soloist_memory::replay::{Figures, Report, Source};
use soloist_memory::trace::{Format, Reader};
use soloist_memory::Machine;
use soloist_play::import::unpacked;
use soloist_play::replay::{load, Part};
use soloist_play::requests::{self, Played};
use soloist_record::Lines;

use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::{Ctx, Misuse};

/// Simulate memory traces and recorded programs on a modelled machine.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Simulate traces of memory requests.
    ///
    /// Several traces run together, each as a separate requester.
    #[command(after_help = examples!["soloist sim trace --machine ddr3-1600k requests.txt"])]
    Trace(Trace),
    Replay(Box<replay::Replay>),
    Profile(profile::Args),
    Export(traces::Export),
    Import(traces::Import),
}

/// A program of a recording; what of it is damaged is told.
///
/// # Errors
/// Where nothing of it is left: figures of nothing look like figures of something.
pub fn recorded(dir: &Path, program: usize, lines: Lines) -> Result<Part> {
    let part = load(dir, program, lines)?;
    for damage in &part.program.damage {
        errln!("soloist: {damage}");
    }
    if part.program.lanes().is_empty() {
        let (dir, name) = (dir.display(), &part.name);
        bail!("{dir}: program {program} (`{name}`) has no lines here");
    }
    Ok(part)
}

/// Describes the damage in the recordings of `parts`, each stream once. Figures leave it out, so
/// that a command that prints some ends with 1.
pub fn damage<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Vec<String> {
    let mut told = Vec::new();
    for damage in parts.into_iter().flat_map(|part| &part.program.damage) {
        let damage = damage.to_string();
        if !told.contains(&damage) {
            told.push(damage);
        }
    }
    told
}

/// The machine of `--machine`, or of a recording without it, can't be.
pub fn no_machine(error: soloist_memory::Error) -> Misuse {
    Misuse(format!("--machine: {error}"))
}

/// Layout of a trace's lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TraceFormat {
    /// `0xADDR READ|WRITE CYCLE`
    Dramsim3,
    /// `0xADDR R|W` or `LD|ST ADDR`, as fast as the controller takes them
    Ramulator,
}

#[derive(Debug, clap::Args)]
pub struct Trace {
    /// Traces, plain or compressed by gzip, xz or zstd; `-` is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Format of the traces.
    #[arg(long, value_enum, default_value = "dramsim3")]
    format: TraceFormat,

    /// Machine: a name from `soloist map list` or a machine file.
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: String,

    /// Outstanding reads per trace: one number for all, or one for each; 0: as many
    /// as the queues hold.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = whole::<usize>(..))]
    outstanding: Vec<usize>,

    /// Write the latency of each request to this file: source, R or W, arrival,
    /// end, outcome.
    #[arg(long, value_name = "FILE")]
    latencies: Option<PathBuf>,

    /// Check each DRAM command against the rules of the data sheet.
    #[arg(long)]
    check: bool,
}

/// What `soloist sim trace --json` prints.
#[derive(Serialize)]
struct Output<'a> {
    machine: &'a str,
    device: &'a str,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    commands_checked: Option<u64>,
    wall_seconds: f64,
    requests_per_second: f64,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::Trace(trace) => trace.run(ctx),
        Args::Replay(replay) => replay.run(ctx),
        Args::Profile(profile) => profile.run(ctx),
        Args::Export(export) => export.run(),
        Args::Import(import) => import.run(ctx),
    }
}

impl Trace {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        soloist_cli::check_files(&[("--latencies", self.latencies.as_deref())])?;
        let machine = Machine::find(&self.machine).map_err(no_machine)?;
        let start = Instant::now();
        let Played {
            report,
            commands_checked,
        } = self.play(&machine)?;
        if report.all.requests == 0 {
            bail!("{}: no requests: nothing was played", self.names());
        }
        let wall = start.elapsed().as_secs_f64();
        let output = Output {
            machine: &machine.name,
            device: &machine.device.name,
            report: &report,
            commands_checked,
            wall_seconds: wall,
            requests_per_second: report.all.requests as f64 / wall,
        };
        if ctx.json {
            ctx.print_json(&output)?;
        } else {
            output.print()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The traces, as they were named.
    fn names(&self) -> String {
        let names = self.files.iter().map(|file| file.display().to_string());
        names.collect::<Vec<_>>().join(", ")
    }

    fn play(&self, machine: &Machine) -> Result<Played> {
        let sources = self.sources()?;
        let mut latencies = self.latency_file()?;
        let see = |source: usize, c: &Completion| latencies.see(source, c);
        let played = requests::play(machine, sources, self.check, see)?;
        latencies.finish().context("writing the latencies")?;
        Ok(played)
    }

    fn sources(&self) -> Result<Vec<Source<Box<dyn std::io::Read>>>> {
        let limits = &self.outstanding;
        if limits.len() > 1 && limits.len() != self.files.len() {
            return Err(anyhow::Error::new(Misuse(format!(
                "--outstanding has {} numbers for {} traces: give one, or one a trace",
                limits.len(),
                self.files.len()
            ))));
        }
        if self.files.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(anyhow::Error::new(Misuse(
                "`-` names standard input, which only one trace can come from".into(),
            )));
        }
        let format = match self.format {
            TraceFormat::Dramsim3 => Format::Dramsim3,
            TraceFormat::Ramulator => Format::Ramulator,
        };
        let open = |(i, path): (usize, &PathBuf)| {
            let (name, file): (String, Box<dyn std::io::Read>) = if is_stdin(path) {
                ("standard input".into(), Box::new(std::io::stdin().lock()))
            } else {
                let name = path.display().to_string();
                let file = File::open(path).with_context(|| name.clone())?;
                (name, Box::new(file))
            };
            let file = unpacked(file).with_context(|| name.clone())?;
            let limit = limits.get(i).or(limits.first()).copied().unwrap_or(0);
            Ok(Source {
                reader: Reader::new(file, &name, format),
                outstanding: (limit > 0).then_some(limit),
            })
        };
        self.files.iter().enumerate().map(open).collect()
    }

    fn latency_file(&self) -> Result<Latencies> {
        let open = |path: &PathBuf| {
            File::create(path)
                .map(BufWriter::new)
                .with_context(|| path.display().to_string())
        };
        Ok(Latencies {
            file: self.latencies.as_ref().map(open).transpose()?,
            written: Ok(()),
        })
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The file of `--latencies`, a line a request; nothing more is written after an error.
struct Latencies {
    file: Option<BufWriter<File>>,
    written: std::io::Result<()>,
}

impl Latencies {
    fn see(&mut self, source: usize, c: &Completion) {
        let (Some(file), Ok(())) = (&mut self.file, &self.written) else {
            return;
        };
        let kind = if c.write { 'W' } else { 'R' };
        let outcome = match c.outcome {
            RowOutcome::Hit => "hit",
            RowOutcome::Closed => "miss",
            RowOutcome::Conflict => "conflict",
            RowOutcome::Buffered => "buffered",
        };
        self.written = writeln!(file, "{source} {kind} {} {} {outcome}", c.arrival, c.done);
    }

    fn finish(mut self) -> std::io::Result<()> {
        self.written?;
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Output<'_> {
    fn print(&self) -> Result<()> {
        outln!("{} ({})", self.machine, self.device)?;
        print_figures(&self.report.all)?;
        let c = &self.report.commands;
        outln!(
            "commands   {} activates, {} precharges, {} refreshes, {} write drains",
            c.activates,
            c.precharges,
            c.refreshes,
            c.drains
        )?;
        if self.report.wrapped > 0 {
            outln!(
                "warning    {} addresses lay beyond the machine's memory and were folded into it",
                self.report.wrapped
            )?;
        }
        if let Some(n) = self.commands_checked {
            outln!("checked    {n} commands: all legal")?;
        }
        for (i, figures) in self.report.sources.iter().enumerate() {
            outln!("\nsource {i}")?;
            print_figures(figures)?;
        }
        outln!(
            "wall time  {:.3} s, {:.2} million requests a second",
            self.wall_seconds,
            self.requests_per_second / 1e6
        )?;
        Ok(())
    }
}

fn print_figures(f: &Figures) -> Result<()> {
    outln!(
        "requests   {} ({} reads, {} writes)",
        f.requests,
        f.reads,
        f.writes
    )?;
    let (c, n) = (&f.latency_cycles, &f.latency_ns);
    outln!(
        "latency    average {:.2}, p50 {}, p95 {}, p99 {}, max {} cycles ({:.2}, {:.2}, {:.2}, {:.2}, {:.2} ns)",
        c.average, c.p50, c.p95, c.p99, c.max, n.average, n.p50, n.p95, n.p99, n.max
    )?;
    outln!(
        "rows       {} hits, {} misses, {} conflicts, {} served by the write buffer",
        f.row_hits,
        f.row_misses,
        f.row_conflicts,
        f.buffered
    )?;
    outln!(
        "makespan   {} cycles ({:.0} ns), {:.3} GB/s",
        f.makespan_cycles,
        f.makespan_ns,
        f.bandwidth_bytes_per_second / 1e9
    )?;
    Ok(())
}
