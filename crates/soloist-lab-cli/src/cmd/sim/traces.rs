//! `soloist sim export`, `soloist sim import`: recordings as other tools' traces, and
//! traces as recordings.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use soloist_play::import::{self, import, Target};
use soloist_record::export::{export, Format};
use soloist_record::meta::vacant;
use soloist_record::Lines;

use super::{damage, recorded};
use crate::cmd::vm;
use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::whole;
use soloist_cli::{status, Ctx, Misuse};

/// Layout of an exported trace.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// `0xADDR READ|WRITE CYCLE`
    Dramsim3,
    /// `LD|ST ADDR`
    Ramulator,
    /// ChampSim's instructions, 64 bytes each; ChampSim reads them packed by xz
    Champsim,
    /// DynamoRIO's drmemtrace, 12 bytes an entry, as its simulators read it
    Drmemtrace,
}

/// Export a recorded program as a trace for another simulator.
///
/// Says on standard error what the format loses. `soloist sim trace` reads the first
/// two formats.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist sim export sort.rec --format ramulator >sort.trace"])]
pub struct Export {
    /// Recording that `soloist vm record` made.
    dir: PathBuf,
    /// Program of the recording, from 0.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<usize>(..))]
    program: usize,
    /// Lane of the program, from 0: a thread, or a CPU that several threads shared.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<usize>(..))]
    lane: usize,
    /// Format to write.
    #[arg(long, value_enum, default_value = "dramsim3")]
    format: ExportFormat,
    /// Write at most N lines.
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true, value_parser = whole::<usize>(1..))]
    lines: usize,
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let part = recorded(&self.dir, self.program, Lines::First(self.lines))?;
        let lanes = part.program.lanes();
        let Some(lane) = lanes.get(self.lane) else {
            let why = format!("--lane {}: there are {}, from 0", self.lane, lanes.len());
            return Err(Misuse(why).into());
        };
        let format = match self.format {
            ExportFormat::Dramsim3 => Format::Dramsim3,
            ExportFormat::Ramulator => Format::Ramulator,
            ExportFormat::Champsim => Format::Champsim,
            ExportFormat::Drmemtrace => Format::Drmemtrace,
        };
        errln!("{}", format.lost());
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let done = export(&part.program, lane, format, &mut out).and_then(|_| out.flush());
        done.context("standard output")?;
        Ok(status(damage([&part]).is_empty()))
    }
}

/// Layout of a trace that is taken in.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ImportFormat {
    /// DynamoRIO's drmemtrace, 12 bytes an entry
    Drmemtrace,
    /// ChampSim's instructions, 64 bytes each, a thread a file
    Champsim,
    /// `0xADDR READ|WRITE CYCLE`, a thread a file
    Dramsim3,
    /// `0xADDR R|W` or `LD|ST ADDR`, a thread a file
    Ramulator,
}

/// Import traces of other tools as a recording.
///
/// Says on standard error what the import loses. A trace of all accesses goes through
/// the machine's private caches, as a recorded program does. If pages have no physical
/// address in the trace, place them with `soloist sim replay --recolor`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist sim import -o traced.rec drmemtrace.app.7.trace"])]
pub struct Import {
    /// Traces of one or more threads each, plain or compressed by gzip, xz or zstd.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the traces.
    #[arg(long, value_enum, default_value = "drmemtrace")]
    format: ImportFormat,
    /// Machine whose private caches the accesses go through.
    #[arg(long, short, value_name = "NAME|FILE", default_value = "opteron-6128", add = complete::machines())]
    machine: String,
    /// Directory to write the recording to; it must not have one.
    #[arg(long, short, value_name = "DIR", default_value = "recording")]
    out: PathBuf,
}

impl Import {
    /// Runs the command.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        vacant(&self.out).map_err(|why| Misuse(format!("--out: {why}")))?;
        let machine = named(&self.machine)?;
        let name = self.files[0].file_stem();
        let target = Target {
            out: &self.out,
            name: name.map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            machine: self.machine.clone(),
            map: machine.map_text(),
            caches: vm::private_caches(&machine)?,
        };
        let format = match self.format {
            ImportFormat::Drmemtrace => import::Format::Drmemtrace,
            ImportFormat::Champsim => import::Format::Champsim,
            ImportFormat::Dramsim3 => import::Format::Dramsim3,
            ImportFormat::Ramulator => import::Format::Ramulator,
        };
        errln!("{}", format.lost());
        let imported = import(&self.files, format, &target)?;
        if ctx.json {
            ctx.print_json(&imported)?;
            return Ok(ExitCode::SUCCESS);
        }
        for (what, count) in &imported.dropped {
            errln!("lost: {count} {what}");
        }
        outln!(
            "{} threads, {} instructions, {} lines; {} pages, of {} the physical one is known",
            imported.threads,
            imported.instructions,
            imported.lines,
            imported.pages,
            imported.located
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
