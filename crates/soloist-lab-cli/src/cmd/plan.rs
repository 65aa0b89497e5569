//! `soloist plan`.

mod host;
mod say;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Result};
use serde::Serialize;
use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::{out, status, Ctx, Misuse};
use soloist_core::format_size;
use soloist_host::config::Config;
use soloist_host::control::check_event;
use soloist_machine::file::{read_bytes, read_text};
use soloist_machine::{known, FileError, Machine};
use soloist_memory::Platform;
use soloist_rt::model::recorded;
use soloist_rt::plan::check::{simulate, Check};
use soloist_rt::plan::config::{add_rest, config};
use soloist_rt::plan::event::Event;
use soloist_rt::plan::evidence;
use soloist_rt::plan::grounds::{machine_text, Grounds};
use soloist_rt::plan::host::Difference;
use soloist_rt::plan::inputs::{self, Input};
use soloist_rt::plan::measured::{hold_against, unlike};
use soloist_rt::plan::refusal::PlanError;
use soloist_rt::plan::{plan, Plan};
use soloist_rt::tasks::{file, TaskSet};
use soloist_trace::gantt;
use soloist_trace::measured::Measured;

/// Plan cores, colours and bandwidth so that tasks meet their deadlines.
///
/// Reads tasks with periods, deadlines and memory (docs/how-to/real-time.md). Proves
/// the plan by response-time analysis with bounds on memory interference, and checks it
/// by simulation. If `plan` cannot prove a deadline, it says which change would be
/// enough.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("use").args(["apply", "check", "config"]).multiple(true))]
#[command(after_help = examples![
    status "0 proved, or this host is as planned; 1 not, or failed; 2 misused";
    "soloist plan docs/examples/three-tasks.toml --machine raspberry-pi-4",
    "soloist plan tasks.toml --gantt schedule.svg --report evidence.html",
    "soloist plan tasks.toml --profile rec",
    "soloist plan tasks.toml --apply",
])]
pub struct Args {
    /// The task file.
    #[arg(value_name = "TASKS")]
    file: PathBuf,

    /// Machine: a name from `soloist map list` or a machine file [default: the task
    /// file's].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,

    /// Take misses, writes and memory of tasks of kind `program` from their
    /// recordings, DIR/NAME (`soloist vm record --out DIR/NAME -- CMD`).
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,

    /// Draw the simulated schedule as a Gantt chart, SVG.
    #[arg(long, value_name = "FILE")]
    gantt: Option<PathBuf>,

    /// Write a configuration file for `soloist apply`, if the plan holds; `-` prints
    /// only the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Write an HTML report for certification: interference channels, mitigation,
    /// analysis, check, and gaps.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Compare a measurement with the proof, and add it to the report: the output of
    /// `soloist trace --json --tasks TASKS`. The plan does not hold if a job took longer
    /// than it proves.
    #[arg(long, value_name = "FILE", requires = "report")]
    measured: Option<PathBuf>,

    /// Apply the plan's groups and limits to this host, if it holds.
    #[arg(long)]
    apply: bool,

    /// Write the plan even if it does not hold. Apply it even if the machine differs
    /// from this host, or its map is incomplete. Accept an event that may miss lines
    /// (the host's own, unless --event names one).
    #[arg(long, requires = "use")]
    force: bool,

    /// Event for the plan's limits (`soloist guard set --event`). It must count every
    /// line that a core moves.
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Compare this host's groups and limits with the plan.
    #[arg(long, conflicts_with = "apply")]
    check: bool,

    /// With `--apply`, `--check` and `--config`: give everything else on this host
    /// (/system.slice, /user.slice, /machine.slice, /init.scope) memory of controllers
    /// without a task that has a deadline.
    #[arg(long)]
    rest: bool,

    /// Seed of the simulated programs and their pages.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    /// What of the machine it rests on.
    grounds: &'a Grounds,
    /// What counts the lines of its limits; none: it has none.
    event: Option<&'a Event>,
    simulation: &'a Check,
    config: &'a Config,
    /// How the host differed from it, with `--check` and `--apply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    check_options(&args, ctx.json)?;
    let (mut set, given) = read(&args)?;
    let machine = machine(&args, &set)?;
    let platform = Platform::of(&machine)?;
    if let Some(dir) = &args.profile {
        fill(&mut set, &platform, dir)?;
    }
    let mut made = make(&args, &machine, &platform, &set)?;
    if let (Some((_, seen)), Some(path)) = (&given.measured, &args.measured) {
        if let Some(what) = unlike(&made.plan, seen) {
            return Err(misuse(format!("--measured {}: {what}", path.display())));
        }
        hold_against(&mut made.plan, seen);
    }
    if let Some(path) = &args.gantt {
        let title = format!("{} on {}", args.file.display(), made.plan.machine);
        write(path, &gantt::svg(&made.check.timeline, &title, 1))?;
    }
    refuse_disproved(&made.plan, &made.check)?;
    let mut config = config(&made.plan, &platform, &machine.file, made.event.as_ref());
    if args.rest {
        add_rest(&mut config, &made.plan, &platform)
            .map_err(|error| Misuse(format!("--rest: {error}")))?;
    }
    let rests = say::grounds(&made.grounds, made.event.as_ref());
    let head = say::head(&made.plan, &args.file.display().to_string(), &rests);
    let text = config.text_under(&head)?;
    if let Some(path) = &args.report {
        write(path, &report(&args, &given, &made, &text, &machine)?)?;
    }
    let refused = args
        .config
        .as_ref()
        .and_then(|path| made.unfit(path, args.force));
    if prints_file(&args) {
        return match refused {
            Some(why) => Err(anyhow::anyhow!("{why}")),
            None => Ok(ctx.judged(out::put(&text), made.plan.holds)),
        };
    }
    if let (Some(path), None) = (&args.config, &refused) {
        write(path, &text)?;
    }
    // Whether or not anybody reads it, what was asked for is done.
    let printed = match ctx.json {
        true => Ok(()),
        false => say::say(&made.plan, &made.check, &rests, ctx),
    };
    let done = match refused {
        Some(why) => Err(anyhow::anyhow!("{why}")),
        None if args.apply || args.check => on_host(&args, &made, &config, &machine, ctx),
        None => Ok((status(made.plan.holds), None)),
    };
    made.tell(&config, done, printed, ctx)
}

/// Options that can't be meant together, or at all.
fn check_options(args: &Args, json: bool) -> Result<()> {
    let more = [
        ("--apply", args.apply),
        ("--check", args.check),
        ("--json", json),
    ];
    let more = more.into_iter().find(|(_, given)| *given);
    if let Some((option, _)) = more.filter(|_| prints_file(args)) {
        let what = format!(
            "--config - prints the file and does nothing else: leave {option} out, or name a file"
        );
        return Err(Misuse(what).into());
    }
    if args.rest && !(args.apply || args.check || args.config.is_some()) {
        let what = "--rest changes what --apply, --check and --config make: add one of them";
        return Err(Misuse(what.to_owned()).into());
    }
    let config = args.config.as_deref().filter(|_| !prints_file(args));
    soloist_cli::check_files(&[
        ("--report", args.report.as_deref()),
        ("--config", config),
        ("--gantt", args.gantt.as_deref()),
    ])?;
    if let Some(name) = &args.event {
        check_event(name).map_err(|e| Misuse(format!("--event {e}")))?;
    }
    Ok(())
}

/// Is the plan's file all that is printed?
fn prints_file(args: &Args) -> bool {
    let path = args.config.as_deref();
    path.is_some_and(|path| path.as_os_str() == "-")
}

/// Files of the user, each read once: a pipe has its text only once.
struct Given {
    /// Text of the task file.
    tasks: String,
    /// The measurement, where there is one.
    measured: Option<(Input, Measured)>,
}

/// Reads the task file and the measurement.
fn read(args: &Args) -> Result<(TaskSet, Given)> {
    let (tasks, name) = read_text(&args.file).map_err(misuse)?;
    let set = match &args.profile {
        Some(_) => file::parse_to_fill(&tasks, &name),
        None => file::parse(&tasks, &name),
    };
    let set = set.map_err(misuse)?;
    let measured = args.measured.as_ref();
    let measured = measured.map(|path| measurement(path, &set)).transpose()?;
    Ok((set, Given { tasks, measured }))
}

/// The file of `--measured`: tasks of the set, as `soloist trace --json` saw them.
fn measurement(path: &Path, set: &TaskSet) -> Result<(Input, Measured)> {
    let wrong = |what: String| misuse(format!("--measured {}: {what}", path.display()));
    let bytes = read_bytes(path).map_err(|error| wrong(error.message))?;
    let seen: Measured = serde_json::from_slice(&bytes)
        .map_err(|e| wrong(format!("not what `soloist trace --json` prints: {e}")))?;
    let mut timed = set.tasks.iter().filter(|task| task.release.is_some());
    if !timed.any(|task| seen.task(&task.name).is_some()) {
        let what = "none of its tasks has a deadline in the task file";
        return Err(wrong(what.to_owned()));
    }
    let name = path.display().to_string();
    Ok((Input::of("measured", &name, &bytes), seen))
}

/// The machine that the command or the task file names.
fn machine(args: &Args, set: &TaskSet) -> Result<Machine> {
    if let Some(name) = &args.machine {
        return known::find(name).map_err(misuse);
    }
    let Some(name) = &set.machine else {
        let what = "no machine is named: add `machine = \"NAME\"` here, or --machine NAME (soloist map list)";
        return Err(misuse(FileError::in_line(&set.file, 1, what)));
    };
    known::find(name).map_err(|error| {
        misuse(FileError::in_line(
            &set.file,
            set.machine_line,
            error.to_string(),
        ))
    })
}

/// Takes what recordings say of tasks, and says it.
fn fill(set: &mut TaskSet, platform: &Platform, dir: &Path) -> Result<()> {
    for seen in recorded::fill(set, platform, dir)? {
        errln!(
            "soloist: {}: {:.2} misses per thousand instructions, {:.0} % of their lines written, {} of memory: {}",
            seen.task,
            seen.mpki,
            seen.writes * 100.0,
            format_size(seen.bytes),
            seen.from.display()
        );
    }
    Ok(())
}

fn make(args: &Args, machine: &Machine, platform: &Platform, set: &TaskSet) -> Result<Made> {
    let plan = plan(platform, set, args.seed).map_err(|error| match error {
        PlanError::Memory(_) | PlanError::Task(_) => misuse(error),
        PlanError::Play(_) => error.into(),
    })?;
    let machine_text = machine_text(machine)?;
    Ok(Made {
        check: simulate(platform, &plan)?,
        grounds: Grounds::of(machine, &machine_text),
        machine_text,
        event: Event::of(args.event.as_deref(), machine, &plan),
        plan,
    })
}

fn on_host(
    args: &Args,
    made: &Made,
    config: &Config,
    machine: &Machine,
    ctx: &Ctx,
) -> Result<(ExitCode, Option<Difference>)> {
    if args.apply && !made.plan.holds {
        bail!("the plan does not hold: nothing was applied");
    }
    if args.apply {
        host::weigh(machine, args.force)?;
    }
    let timed = made.plan.analysis.iter().map(|answer| answer.core);
    let ask = host::Ask {
        apply: args.apply,
        force: args.force,
        timed: timed.collect(),
    };
    let map = machine.addr_map();
    let (status, differs) = host::host(config.clone(), &map, &ask, made.event.as_ref(), ctx)?;
    if !made.plan.holds {
        errln!("soloist: the plan does not hold, whatever this host is like");
        return Ok((ExitCode::FAILURE, Some(differs)));
    }
    Ok((status, Some(differs)))
}

fn write(path: &Path, text: &str) -> Result<()> {
    out::write(path, text)
}

/// A plan and what there is to say of it.
struct Made {
    plan: Plan,
    check: Check,
    grounds: Grounds,
    /// The machine's file, of which `grounds` are.
    machine_text: String,
    event: Option<Event>,
}

impl Made {
    /// As JSON has it.
    fn report<'a>(&'a self, config: &'a Config, difference: Option<Difference>) -> Report<'a> {
        Report {
            plan: &self.plan,
            grounds: &self.grounds,
            event: self.event.as_ref(),
            simulation: &self.check,
            config,
            difference,
        }
    }

    /// Prints it as JSON, where the text was not `printed`; the status of what was `done`.
    fn tell(
        &self,
        config: &Config,
        done: Result<(ExitCode, Option<Difference>)>,
        printed: Result<()>,
        ctx: &Ctx,
    ) -> Result<ExitCode> {
        let (status, difference) = match done {
            Ok((status, difference)) => (Ok(status), difference),
            Err(error) => (Err(error), None),
        };
        let printed = match ctx.json {
            true => ctx.print_json(&self.report(config, difference)),
            false => printed,
        };
        status.map(|status| ctx.judged(printed, status == ExitCode::SUCCESS))
    }

    /// Why it is not to be written.
    fn unfit(&self, path: &Path, force: bool) -> Option<String> {
        let objection = self
            .event
            .as_ref()
            .and_then(|event| event.objection.as_ref());
        let why = match (self.plan.holds, objection) {
            _ if force => return None,
            (true, None) => return None,
            (true, Some(why)) => format!("the plan's limits may not hold: {why}"),
            (false, _) => {
                let misses = say::misses(&self.plan);
                format!("the plan does not hold: {}", misses.join("; "))
            }
        };
        let file = match path.as_os_str() == "-" {
            true => String::new(),
            false => format!(" to {}", path.display()),
        };
        Some(format!("{why}\nsoloist: nothing was written{file}; --force writes it, and that it does not hold"))
    }
}

/// A file that can't be what is meant: what the user wrote is wrong.
fn misuse(error: impl std::fmt::Display) -> anyhow::Error {
    Misuse(error.to_string()).into()
}

/// The document for a certification; `config` is the plan's.
fn report(
    args: &Args,
    given: &Given,
    made: &Made,
    config: &str,
    machine: &Machine,
) -> Result<String> {
    let mut inputs = inputs::recordings(&made.plan.set)?;
    let text = made.machine_text.as_bytes();
    inputs.insert(0, Input::of("machine", &machine.file, text));
    inputs.extend(given.measured.iter().map(|(input, _)| input.clone()));
    let objection = made.event.as_ref().and_then(|e| e.objection.as_deref());
    Ok(evidence::html(
        &made.plan,
        &made.check,
        &evidence::Source {
            file: &args.file.display().to_string(),
            tasks: &given.tasks,
            config,
            inputs: &inputs,
            grounds: &made.grounds,
            event: objection,
            measured: given.measured.as_ref().map(|(_, seen)| seen),
            command: &typed(args, &made.plan),
            version: env!("CARGO_PKG_VERSION"),
            seed: args.seed,
        },
    ))
}

/// The command that writes the report again.
fn typed(args: &Args, made: &Plan) -> String {
    let mut words = format!(
        "soloist plan {} --machine {} --seed {}",
        args.file.display(),
        args.machine.as_ref().unwrap_or(&made.machine),
        args.seed
    );
    for (option, path) in [
        ("--profile", &args.profile),
        ("--report", &args.report),
        ("--measured", &args.measured),
    ] {
        if let Some(path) = path {
            words += &format!(" {option} {}", path.display());
        }
    }
    if let Some(event) = &args.event {
        words += &format!(" --event {event}");
    }
    if args.rest {
        words += " --rest --config -";
    }
    words
}

/// A play that an analysis calls impossible: nothing of it may be used.
fn refuse_disproved(plan: &Plan, check: &Check) -> Result<()> {
    let tasks = check.disproved(&plan.analysis);
    if tasks.is_empty() {
        return Ok(());
    }
    anyhow::bail!(
        "the play took longer than the analysis says is possible ({}): the analysis is wrong here, so rely on none of it; please report it with the task file",
        tasks.join(", ")
    )
}
