//! `soloist bench`: the programs of bench/load, alone and beside others.

pub(super) mod silicon;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_host::observe::Summary;
use soloist_host::run::{output, CoRunners};
use soloist_machine::did_you_mean;

use super::compare;
use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::table;
use soloist_cli::{Ctx, Misuse};

/// The programs, and what they do.
const PROGRAMS: [(&str, &str); 6] = [
    (
        "bandwidth",
        "walks through memory: read, write, nontemporal, copy, scale, add, triad",
    ),
    ("latency", "follows 1, 2, 4, 8 or 16 shuffled lists at once"),
    (
        "fps",
        "copies a picture 25 to 120 times a second, with deadlines",
    ),
    ("matmult", "multiplies two matrices, naive or blocked"),
    ("is", "NAS integer sort, class S, W, A or B, verified"),
    ("barrier", "OpenMP threads that meet at a barrier"),
];

/// What needs no program, and what it does.
const SILICON: (&str, &str) = ("silicon", "measures what co-runners cost on this machine");

/// Run a memory benchmark alone and beside co-runners.
///
/// Programs: bandwidth, latency, fps, matmult, is, barrier. Without a name, lists
/// them. `make bench-load` builds them.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = examples![
    "soloist bench latency",
    "soloist bench latency --corun bandwidth --cpus 2-3 -- --size 32M",
])]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// The program.
    #[arg(add = complete::names(load_names))]
    name: Option<String>,
    /// A program to run beside it, on the next CPU; may be repeated.
    #[arg(long, value_name = "NAME", add = complete::names(load_names))]
    corun: Vec<String>,
    /// CPUs: the first is the program's [default: all that this process may use].
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Number of runs.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(1..=100_000))]
    runs: u32,
    /// Arguments of the program; `-- --help` lists them.
    #[arg(last = true, value_name = "WORDS", add = complete::command_line())]
    words: Vec<OsString>,
}

/// Benchmarks that need no program of bench/load.
#[derive(Debug, clap::Subcommand)]
enum Other {
    Silicon(silicon::Args),
}

/// What the runs of one condition came to.
#[derive(Serialize)]
struct Row {
    condition: &'static str,
    ns_per_access: Summary,
    bytes_per_second: f64,
    warnings: Vec<String>,
    runs: Vec<serde_json::Value>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    if let Some(Other::Silicon(args)) = &args.other {
        return silicon::run(args, ctx);
    }
    let Some(name) = &args.name else {
        return list(ctx);
    };
    let mut words = vec![find(name)?.into_os_string()];
    words.extend(args.words.iter().cloned());
    if args.words.iter().any(|word| word == "--help") {
        outln!(
            "{}",
            output(&words, compare::cpus(args.cpus.as_deref())?[0])?.trim_end()
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args
        .words
        .iter()
        .any(|w| w == "--seconds" || w == "--passes")
        && name != "is"
    {
        words.extend(["--seconds".into(), "1".into()]);
    }
    words.push("--json".into());
    let cpus = compare::cpus(args.cpus.as_deref())?;
    let Some((&own, others)) = cpus
        .split_first()
        .filter(|(_, o)| o.len() >= args.corun.len())
    else {
        let why = format!("{} programs need a CPU each", args.corun.len() + 1);
        return Err(Misuse(why).into());
    };
    let company = args
        .corun
        .iter()
        .zip(others)
        .map(|(name, &cpu)| {
            let long = long(name).map(OsString::from);
            let words = std::iter::once(find(name)?.into_os_string()).chain(long);
            Ok((words.collect::<Vec<_>>(), cpu))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut rows = vec![measure("alone", &words, own, &[], &args)?];
    if !company.is_empty() {
        rows.push(measure("beside", &words, own, &company, &args)?);
    }
    if ctx.json {
        ctx.print_json(&rows)?;
    } else {
        print(&rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The words with which a co-runner takes long; it is started again where it ends.
fn long(name: &str) -> [&'static str; 2] {
    match name {
        "is" => ["--passes", "10"],
        _ => ["--seconds", "3600"],
    }
}

fn list(ctx: &Ctx) -> Result<ExitCode> {
    if ctx.json {
        let all: Vec<_> = PROGRAMS
            .iter()
            .chain([&SILICON])
            .map(|(name, about)| serde_json::json!({ "name": name, "about": about }))
            .collect();
        ctx.print_json(&all)?;
    } else {
        for (name, about) in PROGRAMS.into_iter().chain([SILICON]) {
            outln!("{name:<10} {about}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The programs' names.
fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(name, _)| *name)
}

fn load_names() -> Vec<String> {
    names().map(str::to_owned).collect()
}

/// Where the program is: in the source tree, or beside this one.
fn find(name: &str) -> Result<PathBuf> {
    if !names().any(|known| known == name) {
        let known: Vec<&str> = names().chain([SILICON.0]).collect();
        let like = did_you_mean(name, known.iter().copied());
        let known = known.join(", ");
        return Err(Misuse(format!("no program '{name}'{like}; known: {known}")).into());
    }
    let own = std::env::current_exe().context("this program's own path")?;
    own.ancestors()
        .map(|dir| dir.join("build/bench").join(name))
        .chain(
            own.ancestors()
                .nth(2)
                .map(|top| top.join("lib/soloist/bench").join(name)),
        )
        .find(|file| file.exists())
        .ok_or_else(|| {
            Misuse(format!(
                "{name} is not built: `make bench-load` in the source tree"
            ))
            .into()
        })
}

fn measure(
    condition: &'static str,
    words: &[OsString],
    cpu: u32,
    company: &[(Vec<OsString>, u32)],
    args: &Args,
) -> Result<Row> {
    let company = CoRunners::start(company)?;
    let mut runs = Vec::new();
    for _ in 0..args.runs {
        let text = output(words, cpu)?;
        company.check()?;
        let run: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("it printed: {text}"))?;
        runs.push(run);
    }
    let figures = |key: &str| -> Vec<f64> { runs.iter().filter_map(|r| r[key].as_f64()).collect() };
    let ns = Summary::of(&figures("ns_per_access")).context("no figure was printed")?;
    let rates = Summary::of(&figures("bytes_per_second")).context("no figure was printed")?;
    Ok(Row {
        condition,
        warnings: ns.warnings(),
        ns_per_access: ns,
        bytes_per_second: rates.mean,
        runs,
    })
}

fn print(rows: &[Row]) -> Result<()> {
    let mut table = table([
        "CONDITION",
        "ns AN ACCESS",
        "MIN",
        "P50",
        "P99",
        "MAX",
        "MB/s",
        "SLOWDOWN",
    ]);
    for row in rows {
        let s = &row.ns_per_access;
        table.add_row([
            row.condition.to_owned(),
            format!("{:.2} ± {:.2}", s.mean, s.stddev),
            format!("{:.2}", s.min),
            format!("{:.2}", s.p50),
            format!("{:.2}", s.p99),
            format!("{:.2}", s.max),
            format!("{:.1}", row.bytes_per_second / 1e6),
            format!("{:.3}", s.mean / rows[0].ns_per_access.mean),
        ]);
    }
    outln!("{}", table)?;
    for row in rows {
        for warning in &row.warnings {
            errln!("soloist: {}: {warning}", row.condition);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_takes_no_seconds() {
        assert_eq!(long("is"), ["--passes", "10"]);
        assert_eq!(long("bandwidth"), ["--seconds", "3600"]);
    }
}
