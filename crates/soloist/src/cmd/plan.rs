//! `soloist plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_core::{AddrMap, NumList};
use soloist_host::{
    counted, format_size, load, plan as steps_to, Config, Control, Exhaust, GroupConfig, Host,
    Mode, ModuleChoice,
};
use soloist_machine::{known, FileError, Machine};
use soloist_memory::Platform;
use soloist_rt::inputs::{self, Input};
use soloist_rt::interference::PERIOD_PS;
use soloist_rt::measured::Measured;
use soloist_rt::plan::{plan, simulate, Assignment, Check, Plan};
use soloist_rt::refusal::PlanError;
use soloist_rt::time::Time;
use soloist_rt::{evidence, file, gantt, recorded};

use super::number::whole;
use super::{table, up};
use crate::{out, Ctx, Misuse};

/// Find cores, colours and bandwidth under which a task set meets its deadlines.
///
/// Reads tasks with their periods, deadlines and memory (docs/real-time.md),
/// proves the plan by response-time analysis with bounds on memory interference,
/// and checks it by playing it on the modelled machine. Where a deadline can't be
/// proved it says how little would be enough.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The task file.
    #[arg(value_name = "TASKS")]
    file: PathBuf,

    /// Machine, by name or by the path of its file; else the task file's.
    #[arg(long)]
    machine: Option<String>,

    /// Take misses, writes and memory of tasks of kind `program` from their
    /// recordings, DIR/NAME (`soloist vm record --out DIR/NAME -- CMD`).
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,

    /// Draw the schedule that was played as an extended Gantt chart, SVG.
    #[arg(long, value_name = "FILE")]
    gantt: Option<PathBuf>,

    /// Write what `soloist apply` takes; `-`: standard output, and nothing else
    /// there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Write one HTML document for a certification: channels of interference,
    /// mitigation, analysis, check, and what is not covered.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// What was measured under the plan, for the report: what `soloist trace
    /// --json --tasks TASKS` printed.
    #[arg(long, value_name = "FILE", requires = "report")]
    measured: Option<PathBuf>,

    /// Make the plan's groups and limits on this host, if it holds.
    #[arg(long)]
    apply: bool,

    /// Apply it even if the machine is not like this host, or its map incomplete.
    #[arg(long, requires = "apply")]
    force: bool,

    /// Compare this host's groups and limits with the plan.
    #[arg(long, conflicts_with = "apply")]
    check: bool,

    /// Keep all else that runs here off the controllers of tasks with deadlines:
    /// what is in /system.slice, /user.slice, /machine.slice and /init.scope gets
    /// the other controllers' memory, with `--apply`, `--check` and `--config`.
    #[arg(long)]
    rest: bool,

    /// Draws the programs that stand for tasks, and their pages.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    simulation: &'a Check,
    config: &'a Config,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    if args.rest && !(args.apply || args.check || args.config.is_some()) {
        let what = "--rest changes what --apply, --check and --config make: add one of them";
        return Err(Misuse(what.to_owned()).into());
    }
    let mut set = match &args.profile {
        Some(_) => file::read_to_fill(&args.file),
        None => file::read(&args.file),
    }
    .map_err(misuse)?;
    let machine = args.machine.as_ref().or(set.machine.as_ref());
    let Some(machine) = machine else {
        return Err(misuse(FileError {
            file: set.file,
            line: 1,
            message:
                "no machine is named: add `machine = \"NAME\"` here, or --machine NAME (soloist map list)"
                    .to_owned(),
        }));
    };
    let machine = known::find(machine).map_err(|error| match &args.machine {
        None => misuse(FileError {
            file: set.file.clone(),
            line: set.machine_line,
            message: error.to_string(),
        }),
        Some(_) => misuse(error),
    })?;
    let platform = Platform::of(&machine)?;
    if let Some(dir) = &args.profile {
        for seen in recorded::fill(&mut set, &platform, dir)? {
            errln!(
                "soloist: {}: {:.2} misses per thousand instructions, {:.0} % of their lines written, {} of memory: {}",
                seen.task,
                seen.mpki,
                seen.writes * 100.0,
                format_size(seen.bytes),
                seen.from.display()
            );
        }
    }
    let made = plan(&platform, &set, args.seed).map_err(|error| match error {
        PlanError::Place { .. } | PlanError::Task { .. } => misuse(error),
        PlanError::Profile(_) | PlanError::Play(_) => error.into(),
    })?;
    let check = simulate(&platform, &made)?;
    let mut config = config(&made, &platform, &machine.file);
    if args.rest {
        rest(&mut config, &made, &platform)?;
    }
    let text = config.text()?;
    if let Some(path) = &args.gantt {
        let title = format!("{} on {}", args.file.display(), made.machine);
        let svg = gantt::svg(&check.timeline, &title, 1);
        fs::write(path, svg).with_context(|| path.display().to_string())?;
    }
    refuse_disproved(&made, &check)?;
    if let Some(path) = &args.report {
        let html = report(&args, &made, &check, (&text, &machine.file))?;
        fs::write(path, html).with_context(|| path.display().to_string())?;
    }
    match &args.config {
        Some(path) if path.as_os_str() == "-" => {
            out::put(&text)?;
            return Ok(status(&made));
        }
        Some(path) => fs::write(path, &text).with_context(|| path.display().to_string())?,
        None => {}
    }
    if ctx.json {
        ctx.print_json(&Report {
            plan: &made,
            simulation: &check,
            config: &config,
        })?;
    } else {
        say(&made, &check, ctx)?;
    }
    if args.apply && !made.holds {
        anyhow::bail!("the plan does not hold: nothing was applied");
    }
    if args.apply || args.check {
        if args.apply {
            weigh(&machine, args.force)?;
        }
        return host(&config, &machine.addr_map(), args.apply, ctx);
    }
    Ok(status(&made))
}

/// Is the machine this host? What is loaded already was asked before.
fn weigh(machine: &Machine, force: bool) -> Result<()> {
    let loaded = Control::open(&Host::live()).and_then(|control| control.map());
    match loaded.ok() == Some(machine.addr_map()) {
        true => Ok(()),
        false => up::weigh(machine, force),
    }
}

/// A file that can't be what is meant: what the user wrote is wrong.
fn misuse(error: impl std::fmt::Display) -> anyhow::Error {
    Misuse(error.to_string()).into()
}

/// The document for a certification; `config` is the plan's, `machine` the
/// machine's file.
fn report(
    args: &Args,
    made: &Plan,
    check: &Check,
    (config, machine): (&str, &str),
) -> Result<String> {
    let named = args.machine.as_ref().or(made.set.machine.as_ref());
    let named = named.map_or("", String::as_str);
    let tasks = fs::read_to_string(&args.file)?;
    let mut inputs = inputs::recordings(&made.set)?;
    let built_in = known::text(&made.machine)
        .filter(|_| machine == format!("machines/{}.toml", made.machine) && !named.contains('/'));
    let bytes = match built_in {
        Some(text) => text.as_bytes().to_vec(),
        None => fs::read(machine).with_context(|| machine.to_owned())?,
    };
    let machine = Input::of("machine", machine, &bytes);
    inputs.insert(0, machine);
    let mut measured = None;
    if let Some(path) = &args.measured {
        let name = path.display().to_string();
        let bytes = fs::read(path).with_context(|| name.clone())?;
        let seen: Measured = serde_json::from_slice(&bytes).map_err(|e| {
            Misuse(format!(
                "--measured {name}: not what `soloist trace --json` prints: {e}"
            ))
        })?;
        let analysed = &made.analysis;
        if !analysed.iter().any(|a| seen.task(&a.task).is_some()) {
            let what = format!("--measured {name}: none of its tasks is one of the plan's");
            return Err(Misuse(what).into());
        }
        inputs.push(Input::of("measured", &name, &bytes));
        measured = Some(seen);
    }
    Ok(evidence::html(
        made,
        check,
        &evidence::Source {
            file: &args.file.display().to_string(),
            tasks: &tasks,
            config,
            inputs: &inputs,
            measured: measured.as_ref(),
            command: &typed(args, made),
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
    words
}

fn status(plan: &Plan) -> ExitCode {
    ExitCode::from(u8::from(!plan.holds))
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

/// The plan as `soloist apply` takes it.
fn config(plan: &Plan, platform: &Platform, file: &str) -> Config {
    let name = &plan.machine;
    let built_in = known::find(name).is_ok_and(|known| known.file == file);
    let mut config = Config {
        machine: Some(if built_in { name } else { file }.to_owned()),
        guard: guard(plan, platform),
        ..Config::default()
    };
    let llc = |a: &Assignment| cache_colors(&platform.memory.map, &a.llc);
    for (assignment, task) in plan.assignments.iter().zip(&plan.set.tasks) {
        let mine = llc(assignment);
        // The kernel counts owners of a cache colour over all caches, so two
        // groups of two caches can't both be its only owner.
        let alone = plan
            .assignments
            .iter()
            .filter(|other| other.group != assignment.group)
            .all(|other| llc(other).is_disjoint(&mine));
        let group = config.groups.entry(assignment.group.clone());
        let group = group.or_insert_with(|| GroupConfig {
            bank_sets: assignment.bank_sets.clone(),
            llc: match mine.is_empty() {
                true => String::new(),
                false => assignment.llc.clone(),
            },
            mode: match alone {
                true => Mode::Exclusive,
                false => Mode::Shareable,
            },
            ..GroupConfig::default()
        });
        let before = group
            .reserve
            .as_deref()
            .and_then(|s| soloist_host::parse_size(s).ok());
        if task.release.is_some() {
            let bytes = before.unwrap_or(0) + task.bytes.next_multiple_of(4096);
            group.reserve = Some(bytes.to_string());
        }
        if let Some(limit) = assignment.limit {
            // But for stores that go round the caches, a write to memory makes
            // room for a line that was read: a limit of what is read limits both.
            let rate = format!("{}MB/s:reclaim=0", limit / 1_000_000);
            config.cpus.insert(assignment.core.to_string(), rate);
        }
    }
    config
}

/// Where systemd puts all that runs on a host.
const REST: [(&str, &str); 4] = [
    ("rest-system", "/system.slice"),
    ("rest-user", "/user.slice"),
    ("rest-machine", "/machine.slice"),
    ("rest-init", "/init.scope"),
];

/// CAMC's rule for what the plan doesn't name: it is on other controllers than
/// tasks with deadlines, as long as their memory lasts.
fn rest(config: &mut Config, plan: &Plan, platform: &Platform) -> Result<()> {
    let map = &platform.memory.map;
    let tasks = plan.set.tasks.iter();
    let timed = plan.assignments.iter().zip(tasks);
    let timed = timed.filter(|(_, task)| task.release.is_some());
    let timed: BTreeSet<u32> = timed.map(|(a, _)| a.node).collect();
    let named = config.groups.values();
    let named = named.filter_map(|g| NumList::parse(&g.bank_sets, map.n_bank_sets()).ok());
    let named: BTreeSet<u32> = named.flat_map(|l| l.iter().collect::<Vec<_>>()).collect();
    let mut sets = NumList::new(map.n_bank_sets());
    for node in (0..map.n_nodes()).filter(|node| !timed.contains(node)) {
        let here = map.sets_of_node(node).filter(|set| !named.contains(set));
        here.for_each(|set| {
            sets.insert(set);
        });
    }
    if sets.is_empty() {
        return Err(Misuse(format!(
            "--rest: tasks with deadlines are on every controller of {}, so none is left for all else",
            plan.machine
        ))
        .into());
    }
    for (name, cgroup) in REST {
        let group = GroupConfig {
            bank_sets: sets.to_string(),
            exhaust: Exhaust::Spill,
            cgroup: Some(cgroup.to_owned()),
            ..GroupConfig::default()
        };
        config.groups.insert(name.to_owned(), group);
    }
    Ok(())
}

/// The cache colours that a group has to name: none where it has them all.
fn cache_colors(map: &AddrMap, list: &str) -> BTreeSet<u32> {
    let named = NumList::parse(list, map.n_llc()).ok();
    let colors: BTreeSet<u32> = named.iter().flat_map(NumList::iter).collect();
    match colors.len() as u32 == map.n_llc() {
        true => BTreeSet::new(),
        false => colors,
    }
}

/// What the plan's limits need of the guard; which event counts lines stays the
/// host's affair.
fn guard(plan: &Plan, platform: &Platform) -> BTreeMap<String, String> {
    let limits = plan.assignments.iter();
    let limits: BTreeMap<u32, u64> = limits.filter_map(|a| Some((a.core, a.limit?))).collect();
    if limits.is_empty() {
        return BTreeMap::new();
    }
    // The guard promises 99 of 100 bytes of r_min. Limits may add up to more
    // than one bank can do: they hold tasks back and promise them nothing.
    let all: u64 = limits.values().sum();
    let r_min = (platform.memory.device.one_bank_bandwidth() as u64).max(all.div_ceil(99) * 100);
    BTreeMap::from([
        ("period_us".to_owned(), (PERIOD_PS / 1_000_000).to_string()),
        ("r_min".to_owned(), r_min.to_string()),
    ])
}

fn say(plan: &Plan, check: &Check, ctx: &Ctx) -> Result<()> {
    let verdict = match plan.holds {
        true => ctx.paint(32, "every deadline is proved"),
        false => ctx.paint(31, "not every deadline can be proved"),
    };
    outln!(
        "{}: {verdict} ({} tried)\n",
        plan.machine,
        counted(plan.candidates as u64, "way")
    )?;
    let mut places = table([
        "task",
        "core",
        "node",
        "bank sets",
        "cache colours",
        "bandwidth",
        "priority",
    ]);
    for a in &plan.assignments {
        let limit = a
            .limit
            .map_or("-".to_owned(), |l| format!("{} MB/s", l / 1_000_000));
        let priority = if a.priority > 0 {
            a.priority.to_string()
        } else {
            "-".to_owned()
        };
        let llc = if a.llc.is_empty() { "any" } else { &a.llc };
        places.add_row([
            &a.task,
            &a.core.to_string(),
            &a.node.to_string(),
            &a.bank_sets,
            llc,
            &limit,
            &priority,
        ]);
    }
    outln!("{places}\n")?;
    let mut proof = table([
        "task",
        "deadline",
        "response at most",
        "alone",
        "its core's others",
        "memory",
        "played",
        "",
    ]);
    for answer in &plan.analysis {
        let played = check.tasks.iter().find(|(name, ..)| *name == answer.task);
        let played = played.map_or("-".to_owned(), |(_, response, jobs, missed)| match missed {
            0 => response.to_string(),
            _ => format!("{missed} of {jobs} miss"),
        });
        let response = match (answer.response, answer.holds) {
            (Some(response), _) => response.to_string(),
            (None, true) => format!("{} left", Time(answer.slack_ps.unsigned_abs())),
            (None, false) => format!("+{} at least", Time(answer.slack_ps.unsigned_abs())),
        };
        let word = if answer.holds { "holds" } else { "not proved" };
        proof.add_row([
            &answer.task,
            &answer.deadline.to_string(),
            &response,
            &answer.alone.to_string(),
            &answer.preempted.to_string(),
            &answer.memory.to_string(),
            &played,
            word,
        ]);
    }
    outln!("{proof}\n{}", plan.alone_is())?;
    for r in &plan.relaxations {
        outln!(
            "\n{} misses by {} or more: {}",
            r.task,
            r.misses_by,
            r.change
        )?;
    }
    if plan.holds {
        outln!("\nto run it: soloist plan ... --apply, then")?;
        for (a, task) in plan.assignments.iter().zip(&plan.set.tasks) {
            outln!("  {}", command(a, task))?;
        }
    } else {
        outln!(
            "\n`played` is one play of {} on the model; the proof is for all.",
            Time(check.timeline.end_ps)
        )?;
    }
    Ok(())
}

/// How a task is started under its plan.
fn command(a: &Assignment, task: &soloist_rt::task::Task) -> String {
    let rt = match a.priority {
        0 => String::new(),
        priority => format!("--rt {priority} "),
    };
    format!(
        "soloist run --group {} --cpus {} {rt}-- ./{}    # {}",
        a.group,
        a.core,
        task.name,
        format_size(task.bytes)
    )
}

/// Applies the plan to this host, or says how the host differs.
fn host(config: &Config, map: &AddrMap, apply: bool, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    if apply {
        let say = |step: &str| {
            if ctx.progress {
                errln!("soloist: {step} ...");
            }
        };
        load(&host, &ModuleChoice::default(), Some(map), &say)?;
    }
    let control = Control::open(&host)?;
    let steps = steps_to(config, Some(&control), map, false)?;
    if apply {
        steps.apply(&control)?;
    }
    let head = if apply {
        "applied"
    } else {
        "differs from the plan"
    };
    if !ctx.json {
        match steps.steps.is_empty() {
            true => outln!("\nthis host is as the plan says")?,
            false => outln!("\n{head}:")?,
        }
        for step in &steps.steps {
            outln!("{step}")?;
        }
    }
    Ok(ExitCode::from(u8::from(!apply && !steps.steps.is_empty())))
}
