//! The comparison in the timing model: recorded programs, alone and beside.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use soloist_cli::compare::{conditions, own_co_runner, Args, Condition as Row, Found};
use soloist_cli::progress::Steps;
use soloist_cli::{out, Ctx, Misuse};
use soloist_lab::report::comparison::{html, svg, Blame, Comparison, Condition as Drawn};
use soloist_memory::Platform;
use soloist_play::replay::{
    Compared, Condition, ConditionRuns, Part, Placement, Setting, MOST_LINES, PILOT_LINES,
};
use soloist_record::{Lines, Meta};
use soloist_vm::Scratch;

use super::sim::{damage, recorded};
use super::vm;

/// Passes of this program's own co-runner that are recorded: what is played is from their middle,
/// and each takes as long as a second of a program.
const PASSES: &str = "8";

/// Times that a program takes longer while it is recorded, from and to (evidence/memory-model.md).
const SLOWER: (u32, u32) = (100, 200);

/// Where nobody names a machine, and nothing was recorded on one.
const MACHINE: &str = "opteron-6128";

/// What was recorded; the last program is the co-runner.
struct Recorded {
    kernel: String,
    /// That it is played on.
    machine: String,
    dir: PathBuf,
    programs: usize,
}

impl Recorded {
    fn read(dir: &Path, machine: String) -> Result<Self> {
        let meta = Meta::read(dir)?;
        let programs = meta.programs.len();
        if programs < 2 {
            let dir = dir.display();
            let why = format!("{dir}: one program only; the last is the co-runner");
            return Err(Misuse(why).into());
        }
        Ok(Self {
            kernel: meta.kernel,
            machine,
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
    let machine = machine(args)?;
    let setting = setting(args, &machine)?;
    if let Some(dir) = &args.recorded {
        return play(args, &setting, &Recorded::read(dir, machine)?, ctx);
    }
    let scratch = Scratch::new("soloist-compare-")?;
    let programs = vec![args.command.clone(), co_runner(args)?];
    programs.iter().try_for_each(|words| is_there(&words[0]))?;
    if !ctx.json {
        errln!("soloist: {}", recording_takes());
    }
    let status = vm::record::here(&machine, scratch.path(), programs, ctx)?;
    match status.ok_or_else(|| anyhow::anyhow!(took_too_long()))? {
        0 => {}
        // Ctrl-C.
        130 => return Ok(ExitCode::from(130)),
        status if args.any_status && !(125..=127).contains(&status) => {
            errln!("soloist: the command ended with status {status}");
        }
        status => anyhow::bail!("the command ended with status {status}"),
    }
    let recorded = Recorded::read(scratch.path(), machine)?;
    play(args, &setting, &recorded, ctx)
}

/// Refuses a program that the guest, which has this machine's files, would not find.
fn is_there(program: &OsStr) -> Result<(), Misuse> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = match Path::new(program).components().nth(1) {
        Some(_) => Path::new(program).is_file(),
        None => std::env::split_paths(&path).any(|dir| dir.join(program).is_file()),
    };
    let why = || {
        format!(
            "{}: no such program (is it in PATH?)",
            program.to_string_lossy()
        )
    };
    found.then_some(()).ok_or_else(|| Misuse(why()))
}

/// Said beforehand. Nobody knows when a command ends, nor how long it takes here: to run it
/// twice may change what it works on.
fn recording_takes() -> String {
    let (few, many) = SLOWER;
    format!(
        "records the command in a virtual machine. When it ends is not known: some 10 s, and {few} \
         to {many} times as long as it takes here (1 s: {:.0} to {:.0} minutes; {} minutes at \
         most); then plays it, a minute or so",
        f64::from(few) / 60.0,
        f64::from(many) / 60.0,
        vm::record::LONGEST.as_secs() / 60
    )
}

/// Why nothing of it is known, and how it can be.
fn took_too_long() -> String {
    let (few, many) = SLOWER;
    let longest = vm::record::LONGEST.as_secs();
    format!(
        "the command did not end in {} minutes of recording, as one that takes more than {} to {} s here: \
         give it less to do, or `soloist vm record --no-module --timeout 0 -o DIR -- CMD -- CO-RUNNER`, \
         then `soloist compare --recorded DIR`",
        longest / 60,
        longest / u64::from(many),
        longest / u64::from(few)
    )
}

/// The machine that is named, or that a recording was made on: it is behind that one's caches.
fn machine(args: &Args) -> Result<String> {
    Ok(match (&args.machine, &args.recorded) {
        (Some(named), _) => named.clone(),
        (None, Some(dir)) => Meta::read(dir)?.machine,
        (None, None) => MACHINE.to_owned(),
    })
}

/// Refuses what is wrong before minutes of recording.
fn setting(args: &Args, machine: &str) -> Result<Setting> {
    let mut placements: Vec<Placement> = vec!["buddy".parse()?];
    for policy in &args.policies {
        placements.push(
            policy
                .parse()
                .map_err(|e| Misuse(format!("--policies: {e}")))?,
        );
    }
    let platform = Platform::find(machine).map_err(|e| Misuse(format!("--machine: {e}")))?;
    if args.neighbours as usize >= platform.node_of_core.len() {
        let n = args.neighbours;
        let why = format!("--neighbours {n}: {machine} has no more cores");
        return Err(Misuse(why).into());
    }
    co_runner(args)?;
    Ok(Setting {
        placements,
        platform,
        neighbours: args.neighbours as usize,
        sets: args.sets,
    })
}

/// The words of the one that all co-runners are.
fn co_runner(args: &Args) -> Result<Vec<OsString>> {
    let words: Vec<OsString> = match args.corun.as_slice() {
        [] => {
            let mut own = own_co_runner()?;
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

/// A condition's name.
fn name(condition: Condition, co_runners: u32) -> String {
    match condition {
        Condition::Alone => "alone".to_owned(),
        Condition::FreeNode(node) => format!("beside {co_runners}, Linux (numactl -N {node})"),
        Condition::Beside(placement) => match placement.name().as_str() {
            "buddy" => format!("beside {co_runners}, Linux"),
            policy => format!("beside {co_runners}, Soloist ({policy})"),
        },
    }
}

/// The programs to play, each beside the co-runner, and how many of its lines are played.
struct Cast {
    parts: Vec<Part>,
    programs: Vec<(Compared, usize)>,
    /// How long it will take, by a trial, s.
    seconds: f64,
}

fn cast(args: &Args, setting: &Setting, recorded: &Recorded) -> Result<Cast> {
    // It goes round and round: few lines of it would come to lie in the last level.
    let co_runner = recorded.part(recorded.programs - 1, MOST_LINES)?;
    let (mut parts, mut programs, mut seconds) = (vec![co_runner.clone()], Vec::new(), 0.0);
    for program in 0..recorded.programs - 1 {
        let few = recorded.part(program, PILOT_LINES)?;
        let pilot = Compared::new(setting, &few, &co_runner).pilot()?;
        let lines = args.lines.unwrap_or_else(|| pilot.most_lines());
        let part = recorded.part(program, lines)?;
        let compared = Compared::new(setting, &part, &co_runner);
        seconds += compared.seconds(pilot);
        programs.push((compared, lines));
        parts.push(part);
    }
    Ok(Cast {
        parts,
        programs,
        seconds,
    })
}

fn play(args: &Args, setting: &Setting, recorded: &Recorded, ctx: &Ctx) -> Result<ExitCode> {
    let Cast {
        parts,
        programs,
        seconds,
    } = cast(args, setting, recorded)?;
    let runs = programs.iter().map(|(one, _)| one.runs()).sum();
    if !ctx.json {
        errln!("soloist: plays {runs} runs: some {seconds:.0} s, by a trial of few lines");
    }
    let progress = Steps::new(ctx, runs, "played");
    let (mut found, mut drawn, mut blames, mut played) = (vec![], vec![], vec![], vec![]);
    for (compared, lines) in &programs {
        let program = compared.program();
        let groups = compared.play(&|| progress.step())?;
        let conditions = of_program(args, program, &groups);
        for (group, c) in groups.iter().zip(&conditions).skip(1) {
            blames.push(Blame::of(
                &group.runs[0],
                format!("{}, {}", c.program, c.name),
            ));
        }
        drawn.push(drawing(program, &conditions));
        played.push(format!("{lines} of {program}"));
        found.extend(conditions);
    }
    progress.finish();
    let notes = notes(setting, recorded, &played);
    let found = Found {
        how: "modelled",
        conditions: &found,
        notes: &notes,
        damage: &damage(&parts),
    };
    // Before the pages: a full disk must not lose what took minutes.
    let finished = found.finish(args, ctx);
    draw(args, &recorded.machine, &drawn, &blames, &notes)?;
    finished
}

/// Remarks on the figures.
fn notes(setting: &Setting, recorded: &Recorded, played: &[String]) -> Vec<String> {
    let Recorded {
        kernel, machine, ..
    } = recorded;
    let mut notes = vec![
        format!(
            "modelled: programs recorded on {kernel} in a virtual machine, played on a model of \
             {machine}; docs/how-to/record.md says what is real"
        ),
        format!(
            "lines from the middle, at most: {}; the last-level cache begins empty",
            played.join(", ")
        ),
    ];
    if setting.platform.memory.map.memory_nodes().len() < 2 {
        notes.push(format!("{machine} has one node: numactl has none to offer"));
    }
    notes
}

/// The files of `--picture` and `--html`.
fn draw(
    args: &Args,
    machine: &str,
    drawn: &[Comparison],
    blames: &[Blame],
    notes: &[String],
) -> Result<()> {
    let title = format!("What isolation buys, modelled on {machine}");
    if let Some(file) = &args.picture {
        out::write(file, svg(&title, drawn)?)?;
    }
    if let Some(file) = &args.html {
        out::write(file, html(&title, drawn, blames, notes)?)?;
    }
    Ok(())
}

/// What pictures show of a program's conditions.
fn drawing(program: &str, conditions: &[Row]) -> Comparison {
    let drawn = |c: &Row| Drawn {
        name: c.name.clone(),
        seconds: c.seconds.clone(),
    };
    Comparison {
        program: program.to_owned(),
        conditions: conditions.iter().map(drawn).collect(),
    }
}

/// The conditions of one program, alone first.
fn of_program(args: &Args, program: &str, groups: &[ConditionRuns]) -> Vec<Row> {
    let named = groups
        .iter()
        .map(|group| (name(group.condition, args.neighbours), group.seconds()))
        .collect();
    let mut rows = conditions(program, named);
    for (row, group) in rows.iter_mut().zip(groups) {
        // The model's runs differ by their seeds only.
        row.warnings.clear();
        row.line_p99_ns = Some(group.line_p99_ns());
        row.blamed = group.runs[0].played[0].waited();
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before it is waited for, and after an hour.
    #[test]
    fn how_long_recording_takes_is_said() {
        let said = recording_takes();
        assert!(said.contains("When it ends is not known"), "{said}");
        assert!(
            said.contains("(1 s: 2 to 3 minutes; 60 minutes at most)"),
            "{said}"
        );
        let said = took_too_long();
        assert!(said.contains("in 60 minutes"), "{said}");
        assert!(said.contains("more than 18 to 36 s here"), "{said}");
    }
}
