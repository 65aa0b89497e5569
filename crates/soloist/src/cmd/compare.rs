//! `soloist compare`: what isolation buys a program.

#[cfg(feature = "lab")]
mod model;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_core::cpu_list;
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_host::observe::Summary;
use soloist_host::run::{time, write_forever, Neighbours};

use soloist_map::guest;

use super::number::whole;
use super::table;
use crate::{Ctx, Misuse};

/// Memory that the neighbour of this program's own writes to, bytes.
const NEIGHBOUR: usize = 64 << 20;

/// Compare a command alone, beside neighbours, and beside them in colours of its own.
///
/// Where the module is loaded, the command is run and timed for real, on a
/// processor of its own, with neighbours on others. Without the module, --model
/// records it in a virtual machine and plays it in the timing model.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "one a switch")]
pub struct Args {
    /// Runs under each condition.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(1..=100_000))]
    runs: u32,
    /// Runs beforehand that are not counted.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(0..=100_000))]
    warmup: u32,
    /// A neighbour, as words of a command; may be given several times [default: a
    /// program that writes to 64 MiB again and again].
    #[arg(long, value_name = "PROGRAM")]
    corun: Vec<String>,
    /// How many neighbours; given ones take turns.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(0..=63))]
    neighbours: u32,
    /// Processors: the first is the command's, the others the neighbours'
    /// [default: all that this process may use].
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Words for `soloist run`, with which the command runs in colour.
    #[arg(long, value_name = "WORDS", default_value = "--colors 1")]
    run: String,
    /// Run it on an emulated processor too, whose times say nothing of memory.
    #[arg(long)]
    force: bool,
    /// Let the command end with any status.
    #[arg(long)]
    any_status: bool,
    /// Do not run it here: record it in a virtual machine and play it in the
    /// timing model.
    #[arg(long)]
    model: bool,
    /// Play this recording instead of a new one: each of its programs beside
    /// neighbours that do what its last program did.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    recorded: Option<PathBuf>,
    /// In the model: machine.
    #[arg(long, short, default_value = "opteron-6128")]
    machine: String,
    /// In the model: placements to compare with Linux' own.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "POLICY",
        default_value = "diff_controller"
    )]
    policies: Vec<String>,
    /// In the model: bank sets of each program.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u32>(1..))]
    sets: u32,
    /// In the model: lines that are played, from the middle of each program.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = whole::<usize>(1..))]
    lines: usize,
    /// Write a page with histograms and who waited for whom.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write one picture.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Write every run as a line.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Be the neighbour.
    #[arg(long, hide = true)]
    be_neighbour: bool,
    /// The command and its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A condition and what its runs came to.
#[derive(Debug, Clone, Serialize)]
struct Condition {
    program: String,
    name: String,
    seconds: Vec<f64>,
    #[serde(flatten)]
    summary: Summary,
    slowdown: f64,
    warnings: Vec<String>,
    /// In the model: the 99th percentile of the latency of its lines, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_p99_ns: Option<f64>,
    /// In the model: who was waited for most, and for which share of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    blamed: Option<String>,
}

/// Conditions of one program: the first is what others are compared with.
fn conditions(program: &str, named: Vec<(String, Vec<f64>)>, modelled: bool) -> Vec<Condition> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let alone = named.first().map_or(f64::NAN, |(_, seconds)| mean(seconds));
    named
        .into_iter()
        .filter_map(|(name, seconds)| {
            let summary = Summary::of(&seconds)?;
            Some(Condition {
                program: program.to_owned(),
                name,
                slowdown: summary.mean / alone,
                // The model's runs differ by their seeds only.
                warnings: if modelled {
                    Vec::new()
                } else {
                    summary.warnings()
                },
                summary,
                seconds,
                line_p99_ns: None,
                blamed: None,
            })
        })
        .collect()
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    if args.be_neighbour {
        write_forever(NEIGHBOUR);
    }
    if args.command.is_empty() && args.recorded.is_none() {
        return Err(Misuse("no command: soloist compare -- CMD".to_owned()).into());
    }
    check_outputs(&args)?;
    if args.model || args.recorded.is_some() {
        #[cfg(feature = "lab")]
        return model::run(&args, ctx);
        #[cfg(not(feature = "lab"))]
        return Err(Misuse("this soloist was built without the lab: no model".to_owned()).into());
    }
    let Ok(control) = Control::open(&Host::live()) else {
        return Err(Misuse(
            "the module is not loaded: `soloist up` loads it; --model records the command in a \
             virtual machine and plays it in the timing model instead"
                .to_owned(),
        )
        .into());
    };
    control.map().context("no map, so no colours")?;
    let notes = emulated(args.force)?;
    let found = measure(&args, ctx)?;
    let how = match notes.is_empty() {
        true => "measured",
        false => "emulated",
    };
    finish(&args, ctx, how, &found, &notes)
}

/// What is to be said of an emulated processor, where its times are wanted all the same.
fn emulated(is_forced: bool) -> Result<Vec<String>> {
    let Some(sign) = guest::emulator() else {
        return Ok(Vec::new());
    };
    let why = format!(
        "this processor is emulated ({sign}): its caches and memory take no time, so the times of \
         runs say nothing of isolation"
    );
    if is_forced {
        return Ok(vec![why]);
    }
    let instead =
        "`soloist compare --model -- CMD` on a workplace models it; --force measures all the same";
    Err(Misuse(format!("{why}; {instead}")).into())
}

/// What can't be written is told before the minutes that the runs take.
fn check_outputs(args: &Args) -> Result<()> {
    if cfg!(not(feature = "lab")) && (args.html.is_some() || args.picture.is_some()) {
        let why = "this soloist was built without the lab: no --html, no --picture";
        return Err(Misuse(why.to_owned()).into());
    }
    let files = [
        ("--html", &args.html),
        ("--picture", &args.picture),
        ("--csv", &args.csv),
    ];
    for (option, file) in files {
        let Some(dir) = file.as_deref().and_then(Path::parent) else {
            continue;
        };
        if !dir.as_os_str().is_empty() && !dir.is_dir() {
            let why = format!("{option}: no directory {}", dir.display());
            return Err(Misuse(why).into());
        }
    }
    Ok(())
}

/// The words of the neighbour that this program is itself.
fn own_neighbour() -> Result<Vec<OsString>> {
    let own = std::env::current_exe().context("this program's own path")?;
    Ok(vec![own.into(), "compare".into(), "--be-neighbour".into()])
}

/// The processors named, or all that this process may use.
pub(super) fn cpus(list: Option<&str>) -> Result<Vec<u32>> {
    match list {
        Some(list) => Ok(cpu_list(list)
            .map_err(|e| Misuse(format!("--cpus {list}: {e}")))?
            .iter()
            .collect()),
        None => {
            let set = rustix::process::sched_getaffinity(None)?;
            Ok((0..1024).filter(|&cpu| set.is_set(cpu as usize)).collect())
        }
    }
}

fn measure(args: &Args, ctx: &Ctx) -> Result<Vec<Condition>> {
    let cpus = cpus(args.cpus.as_deref())?;
    let Some((&own, others)) = cpus.split_first() else {
        return Err(Misuse("no processors".to_owned()).into());
    };
    if others.len() < args.neighbours as usize {
        let why = format!(
            "{} neighbours need as many processors beside the command's own; there are {}: --neighbours, --cpus",
            args.neighbours,
            others.len()
        );
        return Err(Misuse(why).into());
    }
    let neighbours = neighbours(args, others)?;
    let own_path = std::env::current_exe().context("this program's own path")?;
    let mut colored: Vec<OsString> = vec![own_path.into(), "run".into(), "--cpus".into()];
    colored.push(own.to_string().into());
    colored.extend(args.run.split_whitespace().map(OsString::from));
    colored.push("--".into());
    colored.extend(args.command.iter().cloned());
    let n = args.neighbours;
    let mut named = Vec::new();
    for (name, words, beside) in [
        ("alone".to_owned(), &args.command, false),
        (format!("beside {n}, Linux"), &args.command, true),
        (format!("beside {n}, Soloist"), &colored, true),
    ] {
        if ctx.progress {
            errln!("{name}: {} runs", args.runs);
        }
        let mut company = if beside {
            Neighbours::start(&neighbours)?
        } else {
            Neighbours::start(&[])?
        };
        let mut seconds = Vec::new();
        for run in 0..args.warmup + args.runs {
            company.keep()?;
            let took = time(words, own, args.any_status)?;
            if run >= args.warmup {
                seconds.push(took);
            }
        }
        named.push((name, seconds));
    }
    let name = args.command[0].to_string_lossy();
    Ok(conditions(&name, named, false))
}

fn neighbours(args: &Args, cpus: &[u32]) -> Result<Vec<(Vec<OsString>, u32)>> {
    let mut commands: Vec<Vec<OsString>> = args
        .corun
        .iter()
        .map(|words| words.split_whitespace().map(OsString::from).collect())
        .collect();
    if commands.iter().any(Vec::is_empty) {
        return Err(Misuse("--corun: no command".to_owned()).into());
    }
    if commands.is_empty() {
        commands.push(own_neighbour()?);
    }
    let turns = commands.iter().cycle().cloned();
    Ok(turns
        .zip(cpus.iter().copied())
        .take(args.neighbours as usize)
        .collect())
}

/// Prints and writes what was found; `how` is `measured`, `emulated` or `modelled`.
fn finish(
    args: &Args,
    ctx: &Ctx,
    how: &str,
    found: &[Condition],
    notes: &[String],
) -> Result<ExitCode> {
    if let Some(file) = &args.csv {
        let mut text = String::from("program,condition,run,seconds\n");
        for c in found {
            for (run, seconds) in c.seconds.iter().enumerate() {
                text += &format!("\"{}\",\"{}\",{run},{seconds:.9}\n", c.program, c.name);
            }
        }
        std::fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    if ctx.json {
        ctx.print_json(&serde_json::json!({ "how": how, "conditions": found, "notes": notes }))?;
        return Ok(ExitCode::SUCCESS);
    }
    outln!("{}: seconds of each run", ctx.paint(1, how))?;
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
    outln!("{}", table)?;
    for c in found {
        for warning in &c.warnings {
            errln!("soloist: {}, {}: {warning}", c.program, c.name);
        }
    }
    for note in notes {
        outln!("{note}")?;
    }
    Ok(ExitCode::SUCCESS)
}
