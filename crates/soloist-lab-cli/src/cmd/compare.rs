//! The comparison in the timing model: recorded programs, alone and beside.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use soloist_cli::compare::{conditions, finish, own_neighbour, Args, Condition};
use soloist_cli::{out, progress, Ctx, Misuse};
use soloist_lab::report::comparison::{html, svg, Blame, Comparison, Condition as Drawn};
use soloist_memory::Platform;
use soloist_play::replay::{jobs_beside, Part, Placement, Replay, Replayed};
use soloist_record::{Lines, Meta};
use soloist_vm::Scratch;

use super::sim::recorded;
use super::vm;

/// Seeds of what placement leaves to chance; a run each.
const SEEDS: u64 = 5;

/// What is played, where.
struct Asked {
    placements: Vec<Placement>,
    platform: Platform,
}

/// What was recorded; the last program is the neighbour.
struct Recorded {
    kernel: String,
    programs: Vec<Part>,
}

/// Runs the comparison.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    args.begin()?;
    let asked = asked(args)?;
    let programs = match &args.recorded {
        Some(dir) => read(dir, args.lines)?,
        None => {
            let scratch = Scratch::new("soloist-compare-")?;
            let programs = vec![args.command.clone(), neighbour(args)?];
            match vm::record::here(&args.machine, scratch.path(), programs, ctx)? {
                0 => {}
                // Ctrl-C.
                130 => return Ok(ExitCode::from(130)),
                status if args.any_status && !(125..=127).contains(&status) => {
                    errln!("soloist: the command ended with status {status}");
                }
                status => anyhow::bail!("the command ended with status {status}"),
            }
            read(scratch.path(), args.lines)?
        }
    };
    play(args, &asked, &programs, ctx)
}

/// Refuses what is wrong before minutes of recording.
fn asked(args: &Args) -> Result<Asked> {
    let mut placements: Vec<Placement> = vec!["buddy".parse()?];
    for policy in &args.policies {
        placements.push(
            policy
                .parse()
                .map_err(|e| Misuse(format!("--policies: {e}")))?,
        );
    }
    let platform = Platform::find(&args.machine)?;
    if args.neighbours as usize >= platform.node_of_core.len() {
        let (n, machine) = (args.neighbours, &args.machine);
        let why = format!("--neighbours {n}: {machine} has no more cores");
        return Err(Misuse(why).into());
    }
    neighbour(args)?;
    Ok(Asked {
        placements,
        platform,
    })
}

/// The words of the one that all neighbours are.
fn neighbour(args: &Args) -> Result<Vec<OsString>> {
    let words: Vec<OsString> = match args.corun.as_slice() {
        [] => return own_neighbour(),
        [words] => words.split_whitespace().map(Into::into).collect(),
        _ => {
            let why = "--corun: in the model all neighbours are one program";
            return Err(Misuse(why.to_owned()).into());
        }
    };
    match words.is_empty() {
        true => Err(Misuse("--corun: no command".to_owned()).into()),
        false => Ok(words),
    }
}

fn read(dir: &Path, lines: usize) -> Result<Recorded> {
    let meta = Meta::read(dir)?;
    let n = meta.programs.len();
    if n < 2 {
        let dir = dir.display();
        let why = format!("{dir}: one program only; the last is the neighbour");
        return Err(Misuse(why).into());
    }
    let programs = (0..n).map(|program| recorded(dir, program, Lines::Middle(lines)));
    Ok(Recorded {
        kernel: meta.kernel,
        programs: programs.collect::<Result<_, _>>()?,
    })
}

fn play(args: &Args, asked: &Asked, recorded: &Recorded, ctx: &Ctx) -> Result<ExitCode> {
    let Some((neighbour, programs)) = recorded.programs.split_last() else {
        return Ok(ExitCode::FAILURE);
    };
    let company = args.neighbours as usize;
    let jobs = jobs_beside(&asked.placements, SEEDS);
    let bar = progress::bar(ctx, jobs.len() * programs.len(), "played");
    let (mut found, mut drawn, mut blames) = (Vec::new(), Vec::new(), Vec::new());
    for program in programs {
        let replay = Replay {
            sets: args.sets,
            ..Replay::beside(&asked.platform, program, (neighbour, company))
        };
        let runs = replay.play(&jobs, &|| bar.inc(1))?;
        let groups: Vec<&[Replayed]> = runs.chunks(SEEDS as usize).collect();
        let conditions = of_program(&program.name, &groups, company);
        for (runs, c) in groups.iter().zip(&conditions).skip(1) {
            blames.push(Blame::of(&runs[0], format!("{}, {}", c.program, c.name)));
        }
        drawn.push(drawing(&program.name, &conditions));
        found.extend(conditions);
    }
    bar.finish_and_clear();
    let notes = vec![format!(
        "modelled: programs recorded on {} in a virtual machine, played on a model of {}; docs/how-to/record.md says what is real",
        recorded.kernel, args.machine
    )];
    draw(args, &drawn, &blames, &notes)?;
    finish(args, ctx, "modelled", &found, &notes)
}

/// The files of `--picture` and `--html`.
fn draw(args: &Args, drawn: &[Comparison], blames: &[Blame], notes: &[String]) -> Result<()> {
    let title = format!("What isolation buys, modelled on {}", args.machine);
    if let Some(file) = &args.picture {
        out::write(file, svg(&title, drawn)?)?;
    }
    if let Some(file) = &args.html {
        out::write(file, html(&title, drawn, blames, notes)?)?;
    }
    Ok(())
}

/// What pictures show of a program's conditions.
fn drawing(program: &str, conditions: &[Condition]) -> Comparison {
    let drawn = |c: &Condition| Drawn {
        name: c.name.clone(),
        seconds: c.seconds.clone(),
    };
    Comparison {
        program: program.to_owned(),
        conditions: conditions.iter().map(drawn).collect(),
    }
}

/// Alone, beside by Linux, beside by each policy.
fn of_program(name: &str, groups: &[&[Replayed]], company: usize) -> Vec<Condition> {
    let label = |runs: &[Replayed]| match runs[0].placement.as_str() {
        _ if runs[0].programs == 1 => "alone".to_owned(),
        "buddy" => format!("beside {company}, Linux"),
        policy => format!("beside {company}, Soloist ({policy})"),
    };
    let seconds = |runs: &[Replayed]| runs.iter().map(|r| r.played[0].time_ns / 1e9).collect();
    let named = groups
        .iter()
        .map(|runs| (label(runs), seconds(runs)))
        .collect();
    let mut list = conditions(name, named);
    for (condition, runs) in list.iter_mut().zip(groups) {
        let p99 = runs.iter().map(|r| r.played[0].latency_ns.p99).sum::<f64>();
        // The model's runs differ by their seeds only.
        condition.warnings.clear();
        condition.line_p99_ns = Some(p99 / runs.len() as f64);
        condition.blamed = runs[0].played[0].waited();
    }
    list
}
