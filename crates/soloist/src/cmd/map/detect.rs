//! `soloist map detect`: the detector on this machine or a simulated one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use soloist_core::{format_size, parse_size};
use soloist_detect::choice::measured::{self, file, no_map, report, Made, MadeOf, Report};
use soloist_detect::choice::Finding;
use soloist_detect::timing::cpu;
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::pool::Limits;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::timing::{Addresses, TimingSource};
use soloist_detect::{detect, Detected, Options};
use soloist_host::machine::edac;
use soloist_host::machine::{topology, Host};
use soloist_machine::{known, Machine};

mod text;

use text::text_of;

use super::made::{write_machine, wrote};
use super::registers;
use super::sources::{self, Place, Wanted};
use soloist_cli::number::whole;
use soloist_cli::weigh;
use soloist_cli::{check_files, out, Ctx, Misuse};

/// What `soloist map detect` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Use only this source [default: the first of known, firmware, registers, timing
    /// that has a map; the others check it].
    #[arg(long, value_name = "WHERE", conflicts_with = "simulate")]
    from: Option<Place>,
    /// Detect the map of this machine in simulated memory instead.
    #[arg(long, value_name = "MACHINE")]
    simulate: Option<String>,
    /// Noise of the simulated memory: none, low, high, drift, outliers, bursts, levels,
    /// closed, clock25, clock40, arm19, arm54 (Arm's clocks), aliases, guest, all, or
    /// single values such as high,burst=0.5 (the error for a wrong value lists all).
    #[arg(long, default_value = "low", requires = "simulate")]
    noise: Noise,
    /// Seed of the simulated noise and of the detector's choices.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
    /// Number of simulated runs, with successive seeds.
    #[arg(long, default_value_t = 1, requires = "simulate", value_parser = whole::<u64>(1..))]
    runs: u64,
    /// Simulate unknown physical addresses, as without root or in a guest.
    #[arg(long, requires = "simulate")]
    unprivileged: bool,
    /// Simulate a kernel that allocates memory in one piece.
    #[arg(long, requires = "simulate", conflicts_with = "unprivileged")]
    one_piece: bool,
    /// Page size: 1G, 2M or 4K; for a kernel with pages of 16 KiB, 32M or 16K [default:
    /// the largest available; simulated: 2M].
    #[arg(long, value_parser = parse_pages)]
    pages: Option<u32>,
    /// Memory to choose pages from [default: three quarters of what is available,
    /// or 512M if physical addresses are unknown].
    #[arg(long, value_parser = parse_size)]
    memory: Option<u64>,
    /// Stop after SECONDS, and print the findings so far.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = whole::<u64>(1..))]
    deadline: u64,
    /// Pages to sort into conflict classes if physical addresses are unknown
    /// [default: 64 huge pages, or 256 of 4 KiB].
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..))]
    class_pages: Option<usize>,
    /// In a virtual machine: trust the guest's physical addresses.
    #[arg(long, conflicts_with = "simulate")]
    trust_guest: bool,
    /// Write a machine file for `soloist up`, or a file of conflict classes if
    /// physical addresses are unknown. Exits with 1 if `up` would refuse it.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    registers: registers::Registers,
}

fn parse_pages(text: &str) -> Result<u32, String> {
    match text {
        "1G" => Ok(30),
        "32M" => Ok(25),
        "2M" => Ok(21),
        "16K" => Ok(14),
        "4K" => Ok(12),
        _ => Err(format!("`{text}`: expected 1G, 2M or 4K, or 32M or 16K")),
    }
}

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    if args.registers.is_named() && !args.registers.is_asked() {
        return Err(Misuse("--name names the map of --dump or --functions".to_owned()).into());
    }
    if args.registers.is_asked() {
        if args.from != Some(Place::Registers) {
            let why = "--dump, --functions and --name are for --from registers";
            return Err(Misuse(why.to_owned()).into());
        }
        return registers::run(&args.registers, args.output.as_deref(), ctx);
    }
    // A missing directory is made. Said before minutes are spent.
    let is_no_file = |file: &&Path| file.is_dir() || file.as_os_str() == "-";
    if let Some(file) = args.output.as_deref().filter(is_no_file) {
        check_files(&[("--output", Some(file))])?;
    }
    match &args.simulate {
        Some(name) => {
            if args.class_pages.is_some() && !args.unprivileged {
                let why = "--class-pages is for unknown addresses: simulate them by --unprivileged";
                return Err(Misuse(why.to_owned()).into());
            }
            let machine = known::find(name).map_err(|e| Misuse(format!("--simulate: {e}")))?;
            simulate(args, &machine, ctx)
        }
        None => here(args, ctx),
    }
}

/// This machine's map: from what knows it, else by timing.
fn here(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let wanted = Wanted {
        from: args.from.map(Into::into),
        seed: args.seed,
        deadline: Duration::from_secs(args.deadline),
        output: args.output.as_deref(),
    };
    match sources::run(&wanted, ctx)? {
        (Some(status), _) => Ok(status),
        (None, tried) => measure(args, tried, ctx),
    }
}

fn options(args: &Args, seed: u64) -> Options {
    Options {
        deadline: Duration::from_secs(args.deadline),
        seed,
        class_pages: args.class_pages,
    }
}

/// Runs the detector with a progress bar on a terminal.
fn watched(source: &mut dyn TimingSource, options: &Options, ctx: &Ctx) -> Detected {
    if !ctx.progress {
        return detect(source, options, &mut |_, _| {});
    }
    let bar = indicatif::ProgressBar::new(1000);
    if let Ok(style) = indicatif::ProgressStyle::with_template("{msg} {wide_bar} {elapsed}") {
        bar.set_style(style);
    }
    let found = detect(source, options, &mut |stage, share| {
        bar.set_message(stage.to_owned());
        bar.set_position((share * 1000.0) as u64);
    });
    bar.finish_and_clear();
    found
}

fn simulate(args: &Args, machine: &Machine, ctx: &Ctx) -> Result<ExitCode> {
    let pool = sim_pool(args)?;
    let mut reports = Vec::new();
    for seed in (0..args.runs.max(1)).map(|n| args.seed.wrapping_add(n)) {
        let mut source = SimSource::new(machine, pool, args.noise, seed);
        let found = watched(&mut source, &options(args, seed), ctx);
        let source = format!("simulated {}, noise {}", machine.about.name, args.noise);
        let mut report = report(source, seed, "cycles", &found);
        report.compare(&found, &machine.map);
        if seed == args.seed {
            let topology = machine.topology.clone();
            // Whether `up` takes it is a question of that machine, not of this one.
            if let Some(path) = &args.output {
                let made = file(path, &found, &report, &machine.about.name, topology)?;
                save(path, &made.text, &[], ctx)?;
            }
        }
        if args.runs <= 1 {
            return Ok(ctx.judged(print(&report, ctx), is_good(&report)));
        }
        reports.push(report);
    }
    summarise(machine, &reports, ctx)
}

/// The pages that the simulated kernel gives.
fn sim_pool(args: &Args) -> Result<SimPool> {
    let page_shift = args.pages.unwrap_or(21);
    if let Some(memory) = args.memory.filter(|memory| memory >> page_shift == 0) {
        let (memory, page) = (format_size(memory), format_size(1 << page_shift));
        let why = format!("--memory {memory}: less than a page, of {page} (--pages)");
        return Err(Misuse(why).into());
    }
    if args.unprivileged {
        let pages = args.class_pages.unwrap_or(256).clamp(1, 1 << 16) as u64;
        let pages = args.memory.map_or(pages, |bytes| bytes >> page_shift);
        return Ok(SimPool::unprivileged(page_shift, pages));
    }
    let everywhere = SimPool::everywhere();
    let most = args.memory.unwrap_or(everywhere.limits.most);
    // Large pages are few: all are measured.
    let keep = everywhere.limits.keep.max(16 << page_shift).min(most);
    Ok(SimPool {
        page_shift,
        limits: Limits { keep, most },
        scattered: !args.one_piece,
        ..everywhere
    })
}

#[derive(Serialize)]
struct Runs<'a> {
    machine: &'a str,
    runs: usize,
    recovered: usize,
    slowest_seconds: f64,
    failures: Vec<&'a Report>,
}

fn summarise(machine: &Machine, reports: &[Report], ctx: &Ctx) -> Result<ExitCode> {
    let good = |report: &&Report| report.recovered.unwrap_or(report.complete);
    let runs = Runs {
        machine: &machine.about.name,
        runs: reports.len(),
        recovered: reports.iter().filter(good).count(),
        slowest_seconds: reports.iter().map(|r| r.seconds).fold(0.0, f64::max),
        failures: reports.iter().filter(|report| !good(report)).collect(),
    };
    let printed = if ctx.json {
        ctx.print_json(&runs)
    } else {
        let mut out = format!(
            "{}: recovered exactly in {} of {} runs, slowest {:.2} s\n",
            runs.machine, runs.recovered, runs.runs, runs.slowest_seconds
        );
        for report in &runs.failures {
            let why = report.differences.join("; ");
            writeln!(out, "  seed {}: {why}", report.seed)?;
        }
        out::put(&out)
    };
    Ok(ctx.judged(printed, runs.recovered == runs.runs))
}

fn measure(args: &Args, tried: Vec<Finding>, ctx: &Ctx) -> Result<ExitCode> {
    let memory = HardwareOptions {
        memory: args.memory,
        page_shift: args.pages,
        trust_guest: args.trust_guest,
        ..HardwareOptions::default()
    };
    let (mut source, options) = Hardware::within(&memory, &options(args, args.seed))?;
    let name = format!(
        "this machine, {} pages of {}",
        source.n_pages(),
        format_size(1 << source.page_shift())
    );
    let found = watched(&mut source, &options, ctx);
    // Prints what it saw even if there is nothing to save.
    let mut report = report(name, args.seed, cpu::UNIT, &found);
    report.tried = tried;
    let host = Host::live();
    report.contradict(edac::counted(&host).as_ref(), &found);
    report.contradict_channels(&found);
    if found.addresses != Addresses::Physical {
        report.fleeting = measured::fleeting(&host);
    }
    let made = args.output.as_ref().map(|path| {
        let made = file(path, &found, &report, "detected", topology(&host));
        made.map(|made| (path, made))
    });
    if let Some(Ok((_, made))) = &made {
        report.refused = refused(made);
    }
    let printed = print(&report, ctx);
    // Also where a pipe's reader went early: finding it took minutes.
    let written = match made.transpose() {
        Ok(Some((path, made))) => save(path, &made.text, &report.refused, ctx),
        other => other.map(|_| ()).map_err(anyhow::Error::from),
    };
    Ok(ctx.judged(out::both(printed, written), is_good(&report)))
}

/// Why `soloist up` does not take the file that was made; nothing: it does.
fn refused(made: &Made) -> Vec<String> {
    match &made.of {
        MadeOf::Map(machine) => weigh::objections(machine).against,
        MadeOf::Classes => vec![no_map(&Host::live())],
    }
}

/// Writes the file.
fn save(path: &Path, text: &str, refused: &[String], ctx: &Ctx) -> Result<()> {
    write_machine(path, text)?;
    if !ctx.json {
        wrote(path, refused);
    }
    Ok(())
}

fn print(report: &Report, ctx: &Ctx) -> Result<()> {
    match ctx.json {
        true => ctx.print_json(report),
        false => out::put(&text_of(report)?),
    }
}

/// Whether all of memory was explained, and `soloist up` takes the file that was written.
fn is_good(report: &Report) -> bool {
    report.complete && report.recovered != Some(false) && report.refused.is_empty()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    /// What is written of a machine without the addresses of its memory.
    #[test]
    fn classes_are_said_to_be_no_map_for_up() {
        let args = [
            "detect",
            "-o",
            "/nonexistent/here.toml",
            "--deadline",
            "600",
        ];
        let args = Command::parse_from(args).args;
        let machine = known::find("skylake").unwrap();
        let pool = SimPool::unprivileged(21, 20);
        let mut source = SimSource::new(&machine, pool, args.noise, 1);
        let found = detect(&mut source, &options(&args, 1), &mut |_, _| {});
        let mut report = report("here".into(), 1, "cycles", &found);
        report.fleeting = Some("Free pages go.".into());
        let path = args.output.as_deref().unwrap();
        let made = file(path, &found, &report, "here", machine.topology.clone()).unwrap();
        let (text, refused) = (&made.text, refused(&made));
        assert!(
            text.contains("[classes]") && text.contains("# Free pages go."),
            "{text}"
        );
        assert!(refused[0].contains("no map"), "{refused:?}");
        report.complete = true;
        assert!(is_good(&report));
        report.refused = refused;
        assert!(!is_good(&report));
        assert!(text_of(&report).unwrap().contains("Free pages go."));
        // The time was up before a page was sorted.
        let classes = report.classes.as_mut().unwrap();
        classes.classes = 0;
        classes.pages.iter_mut().for_each(|page| page.class = None);
        let none = text_of(&report).unwrap();
        assert!(none.contains("nothing is known of classes"), "{none}");
        assert!(!none.contains("share"), "{none}");
        assert!(!none.contains("one class"), "{none}");
        assert!(!none.contains("Free pages go."), "{none}");
    }
}
