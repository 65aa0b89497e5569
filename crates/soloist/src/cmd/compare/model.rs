//! The comparison in the timing model: recorded programs, alone and beside.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use soloist_lab::replay::{load, Job, Outcome, Part, Placement, Stage, WORN};
use soloist_lab::report::comparison::{html, svg, Blame, Comparison, Condition as Drawn};
use soloist_memory::Platform;
use soloist_record::{Lines, Meta};

use super::{conditions, finish, own_neighbour, Args, Condition};
use crate::cmd::{progress, vm};
use crate::{Ctx, Misuse};

/// Seeds of what placement leaves to chance; a run each.
const SEEDS: u64 = 5;

/// Runs the comparison.
pub(super) fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let work;
    let dir: &Path = match &args.recorded {
        Some(dir) => dir,
        None => {
            work = std::env::temp_dir().join(format!("soloist-compare-{}", std::process::id()));
            let programs = vec![args.command.clone(), neighbour(args)?];
            let status = vm::record_here(&args.machine, &work, programs, ctx);
            match status {
                Ok(0) => &work,
                Ok(status) if args.any_status => {
                    errln!("soloist: the command ended with status {status}");
                    &work
                }
                Ok(status) => {
                    return Err(anyhow::anyhow!("the command ended with status {status}"))
                }
                Err(error) => return Err(error),
            }
        }
    };
    let result = play(args, ctx, dir);
    if args.recorded.is_none() {
        // Nobody needs it any more; if it can't go, it stays in /tmp.
        let _ = std::fs::remove_dir_all(dir);
    }
    result
}

fn neighbour(args: &Args) -> Result<Vec<std::ffi::OsString>> {
    match args.corun.first() {
        Some(words) => Ok(words.split_whitespace().map(Into::into).collect()),
        None => own_neighbour(),
    }
}

fn play(args: &Args, ctx: &Ctx, dir: &Path) -> Result<ExitCode> {
    let meta = Meta::read(dir)?;
    let n = meta.programs.len();
    if n < 2 {
        let why = format!(
            "{}: one program only; the last is the neighbour",
            dir.display()
        );
        return Err(Misuse(why).into());
    }
    let mut placements: Vec<Placement> = vec!["buddy".parse()?];
    for policy in &args.policies {
        placements.push(
            policy
                .parse()
                .map_err(|e| Misuse(format!("--policies: {e}")))?,
        );
    }
    let platform = Platform::find(&args.machine)?;
    let company = args.neighbours as usize;
    if company >= platform.node_of_core.len() {
        let why = format!("--neighbours {company}: {} has no more cores", args.machine);
        return Err(Misuse(why).into());
    }
    let seat = |part: Part, core: usize| Part {
        cores: vec![core],
        ..part
    };
    let lines = Lines::Middle(args.lines);
    let last = load(dir, n - 1, lines)?;
    let jobs_of_one = SEEDS as usize * (1 + placements.len());
    let bar = progress::bar(ctx, jobs_of_one * (n - 1), "played");
    let (mut found, mut drawn, mut blames) = (Vec::new(), Vec::new(), Vec::new());
    for program in 0..n - 1 {
        let mut parts = vec![seat(load(dir, program, lines)?, 0)];
        for core in 1..=company {
            let mut neighbour = seat(last.clone(), core);
            neighbour.name = format!("neighbour {core}");
            parts.push(neighbour);
        }
        let stage = Stage {
            platform: platform.clone(),
            parts,
            sets: args.sets,
            history: WORN,
        };
        let jobs: Vec<Job> = std::iter::once((placements[0], true))
            .chain(placements.iter().map(|&p| (p, false)))
            .flat_map(|(placement, alone)| {
                (1..=SEEDS).map(move |seed| Job {
                    placement,
                    alone,
                    seed,
                    blame: seed == 1,
                })
            })
            .collect();
        let runs = stage.play(&jobs, &|| bar.inc(1))?;
        let groups: Vec<&[Outcome]> = runs.chunks(SEEDS as usize).collect();
        let conditions = of_program(&stage.parts[0].name, &groups, company);
        blames.extend(
            groups
                .iter()
                .skip(1)
                .zip(&conditions[1..])
                .map(|(runs, c)| {
                    matrix(&stage.parts, &runs[0], format!("{}, {}", c.program, c.name))
                }),
        );
        drawn.push(Comparison {
            program: stage.parts[0].name.clone(),
            conditions: conditions
                .iter()
                .map(|c| Drawn {
                    name: c.name.clone(),
                    seconds: c.seconds.clone(),
                })
                .collect(),
        });
        found.extend(conditions);
    }
    bar.finish_and_clear();
    let title = format!("What isolation buys, modelled on {}", args.machine);
    let notes = vec![format!(
        "modelled: programs recorded on {} in a virtual machine, played on a model of {}; docs/record.md says what is real",
        meta.kernel, args.machine
    )];
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).with_context(|| file.display().to_string())
    };
    if let Some(file) = &args.picture {
        write(file, svg(&title, &drawn)?)?;
    }
    if let Some(file) = &args.html {
        write(file, html(&title, &drawn, &blames, &notes)?)?;
    }
    finish(args, ctx, "modelled", &found, &notes)
}

/// Alone, beside by Linux, beside by each policy.
fn of_program(name: &str, groups: &[&[Outcome]], company: usize) -> Vec<Condition> {
    let label = |runs: &[Outcome]| match runs[0].placement.as_str() {
        _ if runs[0].programs == 1 => "alone".to_owned(),
        "buddy" => format!("beside {company}, Linux"),
        policy => format!("beside {company}, Soloist ({policy})"),
    };
    let seconds = |runs: &[Outcome]| runs.iter().map(|r| r.played[0].time_ns / 1e9).collect();
    let named = groups
        .iter()
        .map(|runs| (label(runs), seconds(runs)))
        .collect();
    let mut list = conditions(name, named, true);
    for (condition, runs) in list.iter_mut().zip(groups) {
        let p99 = runs.iter().map(|r| r.played[0].latency_ns.p99).sum::<f64>();
        condition.line_p99_ns = Some(p99 / runs.len() as f64);
        condition.blamed = blamed(&runs[0]);
    }
    list
}

/// The share of the time that was spent waiting for others, and why mostly.
fn blamed(run: &Outcome) -> Option<String> {
    let of = &run.played[0];
    let others = of
        .blame
        .iter()
        .filter(|s| s.culprit.as_ref().is_some_and(|c| *c != of.name));
    let total: f64 = others.clone().map(|s| s.ns).sum();
    if total <= 0.0 {
        return None;
    }
    let mut causes: Vec<(&str, f64)> = Vec::new();
    for share in others {
        match causes.iter_mut().find(|(cause, _)| *cause == share.cause) {
            Some((_, ns)) => *ns += share.ns,
            None => causes.push((share.cause, share.ns)),
        }
    }
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let why = causes.first().map_or("", |(cause, _)| cause);
    Some(format!(
        "others {:.0} % of the time, mostly {why}",
        100.0 * total / of.time_ns
    ))
}

/// Who waited for whom, of one run.
fn matrix(parts: &[Part], run: &Outcome, condition: String) -> Blame {
    let names: Vec<String> = parts.iter().map(|p| p.name.clone()).collect();
    let rows = run
        .played
        .iter()
        .map(|played| {
            let of = |name: &String| {
                let shares = played
                    .blame
                    .iter()
                    .filter(|s| s.culprit.as_ref() == Some(name));
                shares.map(|s| s.ns / 1e9).sum()
            };
            names.iter().map(of).collect()
        })
        .collect();
    Blame {
        condition,
        names,
        rows,
    }
}
