//! The comparison in the timing model: recorded programs, alone and beside.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use soloist_cli::compare::{conditions, finish, own_neighbour, Args, Condition};
use soloist_cli::progress::Steps;
use soloist_cli::{out, Ctx, Misuse};
use soloist_lab::report::comparison::{html, svg, Blame, Comparison, Condition as Drawn};
use soloist_memory::Platform;
use soloist_play::policy::linux;
use soloist_play::replay::{
    jobs, jobs_beside, Job, Part, Placement, Replay, ReplayError, Replayed, PILOT_LINES,
};
use soloist_record::{Lines, Meta};
use soloist_vm::Scratch;

use super::sim::recorded;
use super::vm;

/// Seeds of what placement leaves to chance; a run each.
const SEEDS: u64 = 5;

/// Lines that are played of each program unless the user says how many.
const LINES: usize = 1_000_000;

/// Requests that the runs of one program may come to, or fewer lines are played: a minute of two
/// idle processors.
const REQUESTS: u64 = 120_000_000;

/// Passes of this program's own neighbour that are recorded: what is played is from their middle,
/// and each takes as long as a second of a program.
const PASSES: &str = "8";

/// What is played, where.
struct Asked {
    placements: Vec<Placement>,
    platform: Platform,
}

/// What was recorded; the last program is the neighbour.
struct Recorded {
    kernel: String,
    dir: PathBuf,
    programs: usize,
}

impl Recorded {
    fn read(dir: &Path) -> Result<Self> {
        let meta = Meta::read(dir)?;
        let programs = meta.programs.len();
        if programs < 2 {
            let dir = dir.display();
            let why = format!("{dir}: one program only; the last is the co-runner");
            return Err(Misuse(why).into());
        }
        Ok(Self {
            kernel: meta.kernel,
            dir: dir.to_path_buf(),
            programs,
        })
    }

    /// So many lines from the middle of a program.
    fn part(&self, program: usize, lines: usize) -> Result<Part> {
        recorded(&self.dir, program, Lines::Middle(lines))
    }
}

/// Runs the comparison.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    args.begin()?;
    let asked = asked(args)?;
    if let Some(dir) = &args.recorded {
        return play(args, &asked, &Recorded::read(dir)?, ctx);
    }
    let scratch = Scratch::new("soloist-compare-")?;
    let programs = vec![args.command.clone(), neighbour(args)?];
    if !ctx.json {
        errln!(
            "soloist: records the command in a virtual machine, some 10 s and 100 to 200 times as \
             long as it takes here; then plays it, a minute or so"
        );
    }
    match vm::record::here(&args.machine, scratch.path(), programs, ctx)? {
        0 => {}
        // Ctrl-C.
        130 => return Ok(ExitCode::from(130)),
        status if args.any_status && !(125..=127).contains(&status) => {
            errln!("soloist: the command ended with status {status}");
        }
        status => anyhow::bail!("the command ended with status {status}"),
    }
    play(args, &asked, &Recorded::read(scratch.path())?, ctx)
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
        [] => {
            let mut own = own_neighbour()?;
            own.extend(["--passes".into(), PASSES.into()]);
            return Ok(own);
        }
        [words] => words.split_whitespace().map(Into::into).collect(),
        _ => {
            let why = "--corun: in the model all co-runners are one program";
            return Err(Misuse(why.to_owned()).into());
        }
    };
    match words.is_empty() {
        true => Err(Misuse("--corun: no command".to_owned()).into()),
        false => Ok(words),
    }
}

/// One program beside its neighbours, and on a node where nobody else runs if there is one.
struct Compared {
    beside: Replay,
    jobs: Vec<Job>,
    /// With the node's number, and its runs.
    moved: Option<(Replay, u32, Vec<Job>)>,
}

impl Compared {
    fn new(args: &Args, asked: &Asked, program: &Part, neighbour: &Part) -> Self {
        let company = (neighbour, args.neighbours as usize);
        let beside = Replay {
            sets: args.sets,
            ..Replay::beside(&asked.platform, program, company)
        };
        let linux = Placement::Policy(&linux::BUDDY);
        let moved = beside.on_a_free_node().map(|(replay, node)| {
            let jobs = jobs([(linux, false)], SEEDS, |_, seed| seed == 1);
            (replay, node, jobs)
        });
        Self {
            beside,
            jobs: jobs_beside(&asked.placements, SEEDS),
            moved,
        }
    }

    fn runs(&self) -> usize {
        self.jobs.len() + self.moved.as_ref().map_or(0, |(_, _, jobs)| jobs.len())
    }

    /// Condition by condition: its name and its runs.
    fn play(
        &self,
        company: u32,
        progress: &(dyn Fn() + Sync),
    ) -> Result<Vec<(String, Vec<Replayed>)>, ReplayError> {
        let runs = self.beside.play(&self.jobs, progress)?;
        let label = |runs: &[Replayed]| match runs[0].placement.as_str() {
            _ if runs[0].programs == 1 => "alone".to_owned(),
            "buddy" => format!("beside {company}, Linux"),
            policy => format!("beside {company}, Soloist ({policy})"),
        };
        let groups = runs.chunks(SEEDS as usize);
        let mut named: Vec<_> = groups.map(|runs| (label(runs), runs.to_vec())).collect();
        if let Some((replay, node, jobs)) = &self.moved {
            let name = format!("beside {company}, Linux (numactl -N {node})");
            named.insert(2, (name, replay.play(jobs, progress)?));
        }
        Ok(named)
    }
}

/// How many lines of a program to play: what the user says, or as many as may be.
fn lines(args: &Args, asked: &Asked, recorded: &Recorded, program: usize) -> Result<usize> {
    if let Some(lines) = args.lines {
        return Ok(lines);
    }
    let pilot = recorded.part(program, PILOT_LINES)?;
    let neighbour = recorded.part(recorded.programs - 1, LINES)?;
    let pilot = Compared::new(args, asked, &pilot, &neighbour);
    let most = pilot.beside.lines_within(REQUESTS, &pilot.jobs)?;
    Ok(most.clamp(PILOT_LINES, LINES))
}

fn play(args: &Args, asked: &Asked, recorded: &Recorded, ctx: &Ctx) -> Result<ExitCode> {
    // It goes round and round: few lines of it would come to lie in the last level.
    let neighbour = recorded.part(recorded.programs - 1, LINES)?;
    let mut all = Vec::new();
    for program in 0..recorded.programs - 1 {
        let lines = lines(args, asked, recorded, program)?;
        let part = recorded.part(program, lines)?;
        all.push((Compared::new(args, asked, &part, &neighbour), lines));
    }
    let progress = Steps::new(ctx, all.iter().map(|(one, _)| one.runs()).sum(), "played");
    let (mut found, mut drawn, mut blames) = (Vec::new(), Vec::new(), Vec::new());
    let mut played = Vec::new();
    for (compared, lines) in &all {
        let program = &compared.beside.parts[0].name;
        let named = compared.play(args.neighbours, &|| progress.step())?;
        let conditions = of_program(program, &named);
        for ((_, runs), c) in named.iter().zip(&conditions).skip(1) {
            blames.push(Blame::of(&runs[0], format!("{}, {}", c.program, c.name)));
        }
        drawn.push(drawing(program, &conditions));
        played.push(format!("{lines} of {program}"));
        found.extend(conditions);
    }
    progress.finish();
    let notes = notes(args, asked, recorded, &played);
    draw(args, &drawn, &blames, &notes)?;
    finish(args, ctx, "modelled", &found, &notes)
}

/// Remarks on the figures.
fn notes(args: &Args, asked: &Asked, recorded: &Recorded, played: &[String]) -> Vec<String> {
    let (kernel, machine) = (&recorded.kernel, &args.machine);
    let mut notes = vec![
        format!(
            "modelled: programs recorded on {kernel} in a virtual machine, played on a model of \
             {machine}; docs/how-to/record.md says what is real"
        ),
        format!("lines from the middle, at most: {}", played.join(", ")),
    ];
    if asked.platform.memory.map.memory_nodes().len() < 2 {
        notes.push(format!("{machine} has one node: numactl has none to offer"));
    }
    notes
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

/// The conditions of one program, alone first.
fn of_program(name: &str, groups: &[(String, Vec<Replayed>)]) -> Vec<Condition> {
    let seconds = |runs: &[Replayed]| runs.iter().map(|r| r.played[0].time_ns / 1e9).collect();
    let named = groups
        .iter()
        .map(|(name, runs)| (name.clone(), seconds(runs)))
        .collect();
    let mut list = conditions(name, named);
    for (condition, (_, runs)) in list.iter_mut().zip(groups) {
        let p99 = runs.iter().map(|r| r.played[0].latency_ns.p99).sum::<f64>();
        // The model's runs differ by their seeds only.
        condition.warnings.clear();
        condition.line_p99_ns = Some(p99 / runs.len() as f64);
        condition.blamed = runs[0].played[0].waited();
    }
    list
}
