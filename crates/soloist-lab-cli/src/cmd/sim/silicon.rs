//! `soloist sim replay --on-silicon`: recorded programs on this machine's own memory, beside
//! what the model says.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use soloist_bench::banks::How;
use soloist_bench::cores::real::bind;
use soloist_bench::cores::Attack;
use soloist_bench::slices::Plan;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::{cpu_name, fit, Host};
use soloist_machine::{gf2, known};
use soloist_memory::Platform;
use soloist_play::policy::Policy;
use soloist_play::replay::Placement;
use soloist_record::{Lines, Meta};
use soloist_validate::cut::Cut;
use soloist_validate::memory::{Effort, Outcome};
use soloist_validate::place::Terms;
use soloist_validate::stage::{Both, Player, Silicon};

use super::replay::Replay;
use super::{damage, recorded};
use soloist_cli::machine::named;
use soloist_cli::{progress, status, table};
use soloist_cli::{Ctx, Misuse};

/// Lines of each program, unless told otherwise.
const LINES: usize = 400_000;
/// Of placement and of the turns: a real machine's runs differ without another one.
const SEED: u64 = 1;

/// The document of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    /// The machine whose memory it was.
    silicon: String,
    virtual_machine: bool,
    /// The machine that the model is of.
    machine: &'a str,
    /// Whether that is the machine whose memory it was.
    is_modelled: bool,
    banks: u32,
    /// Bank functions inside a page; none: lines were found pair by pair.
    functions: Vec<String>,
    programs: Vec<String>,
    rows: &'a [Both],
    /// Of the recordings: what of them could not be read.
    damage: &'a [String],
}

/// By default what Linux does, and private banks.
fn policies(replay: &Replay) -> Result<Vec<&'static dyn Policy>> {
    let policy = |placement: &Placement| match placement {
        Placement::Policy(policy) => Ok(*policy),
        Placement::Recorded => {
            let why = "--recolor recorded: the pages' places are another machine's; name policies, such as \
                       buddy,diff_bank";
            Err(Misuse(why.to_owned()).into())
        }
    };
    match replay.recolor.as_slice() {
        [] => Ok(vec!["buddy".parse()?, "diff_bank".parse()?]),
        chosen => chosen.iter().map(policy).collect(),
    }
}

/// The first recording, and all others beside it.
fn players(replay: &Replay) -> Result<Vec<Player>> {
    let (first, others) = replay.range(LINES);
    let mut players = vec![player(&replay.dirs[0], first)?];
    for dir in &replay.dirs[1..] {
        players.push(player(dir, others)?);
    }
    for word in &replay.neighbours {
        let dir = Path::new(word);
        players.push(match word.as_str() {
            "read" => Player::Loop(Attack::Read),
            "write" => Player::Loop(Attack::Write),
            "both" => Player::Loop(Attack::Both),
            _ if dir.is_dir() => player(dir, others)?,
            _ => {
                let why = format!("`{word}` is no recording, and not read, write or both");
                return Err(Misuse(why).into());
            }
        });
    }
    if players.len() == 1 {
        let why = "--on-silicon needs co-runners: recordings, read, write or both, behind --";
        return Err(Misuse(why.to_owned()).into());
    }
    Ok(players)
}

/// The first program of a recording, by the recording's name.
fn player(dir: &Path, lines: Lines) -> Result<Player> {
    let mut part = recorded(dir, 0, lines)?;
    if let Some(name) = dir.file_name() {
        part.name = name.to_string_lossy().into_owned();
    }
    Ok(Player::Recorded(part))
}

impl Replay {
    /// Runs the command on silicon; 1: a neighbour hardly ran under some policy, or a recording
    /// is damaged.
    pub fn run_on_silicon(&self, ctx: &Ctx) -> Result<ExitCode> {
        // Refused before recordings are read.
        policies(self)?;
        let machine = match &self.machine {
            Some(machine) => machine.clone(),
            None => Meta::read(&self.dirs[0])?.machine,
        };
        let silicon = self.stage(&machine)?;
        let (name, Outcome { banks, rows }) = self.play(&silicon, ctx)?;
        let parts = silicon.players.iter().filter_map(|player| match player {
            Player::Recorded(part) => Some(part),
            Player::Loop(_) => None,
        });
        let damage = damage(parts);
        let output = Output {
            virtual_machine: self.silicon.simulate.is_none() && !is_bare_metal(&Host::live()),
            silicon: name,
            is_modelled: self.is_modelled(&machine)?,
            machine: &machine,
            banks: self.silicon.banks,
            functions: match &banks.how {
                How::Functions(functions) => functions.iter().map(|&f| gf2::show(f)).collect(),
                How::Pairs => Vec::new(),
            },
            programs: silicon.players.iter().map(Player::name).collect(),
            rows: &rows,
            damage: &damage,
        };
        if ctx.json {
            ctx.print_json(&output)?;
        } else {
            print(&output, &silicon)?;
        }
        let all_ran = rows.iter().all(|row| row.silicon.is_some());
        Ok(status(all_ran && damage.is_empty()))
    }

    /// Whether `machine`, which the model is of, is the one whose memory is played on.
    fn is_modelled(&self, machine: &str) -> Result<bool> {
        Ok(match self.silicon.simulate.as_deref() {
            Some(simulated) => simulated == machine,
            None => fit(&Host::live(), &named(machine)?).fits,
        })
    }

    /// The programs, on a slice of the machine.
    fn stage(&self, machine: &str) -> Result<Silicon> {
        let players = players(self)?;
        let banks = self.silicon.banks;
        let platform = Platform::find(machine).map_err(|e| Misuse(format!("--machine: {e}")))?;
        let pages = Silicon::pages(&players);
        Ok(Silicon {
            cut: Cut::new(platform, banks as usize, pages)?,
            terms: Terms {
                sets: self.sets.unwrap_or(banks / 4),
                history: self.history(),
                seed: SEED,
            },
            players,
        })
    }

    /// Plays on simulated memory, or here: the memory's name, and what came of it.
    fn play(&self, silicon: &Silicon, ctx: &Ctx) -> Result<(String, Outcome)> {
        let policies = policies(self)?;
        let effort = Effort {
            policies: &policies,
            deadline: Duration::from_secs(self.silicon.deadline),
            plan: Plan {
                blocks: self.silicon.blocks as usize,
                time: Duration::from_secs(self.silicon.seconds),
                seed: SEED,
            },
        };
        let simulated = self.silicon.simulate.as_deref();
        let machine = simulated.map(known::find).transpose();
        let machine = machine.map_err(|e| Misuse(format!("--simulate: {e}")))?;
        let cpus = match simulated {
            Some(_) => Vec::new(),
            None => self.bound(silicon.players.len())?,
        };
        let bar = progress::bar(ctx, 100, "");
        let mut progress = |what: &str, share: f64| {
            bar.set_message(what.to_owned());
            bar.set_position((100.0 * share) as u64);
        };
        let outcome = match &machine {
            Some(machine) => {
                let same_bank_ns = self.silicon.same_bank;
                silicon.play_simulated(machine, same_bank_ns, &effort, &mut progress)
            }
            None => silicon.play_here(&cpus, self.silicon.memory, &effort, &mut progress),
        };
        bar.finish_and_clear();
        let name = match simulated {
            Some(name) => format!("{name}, simulated"),
            None => {
                cpu_name(&Host::live()).unwrap_or_else(|| "a processor without a name".to_owned())
            }
        };
        Ok((name, outcome?))
    }

    /// A processor for each program, to each of which this thread can be bound.
    fn bound(&self, programs: usize) -> Result<Vec<usize>> {
        let cpus = self.silicon.cpus(programs)?;
        // The foreground's last: memory is of the node that it is first touched from.
        for &cpu in cpus.iter().rev() {
            bind(cpu).map_err(|e| Misuse(format!("--cpus: processor {cpu}: {e}")))?;
        }
        Ok(cpus)
    }
}

fn print(output: &Output, silicon: &Silicon) -> Result<()> {
    print_basis(output, silicon)?;
    outln!("{}", figures(output.rows))?;
    print_verdicts(output.rows)
}

/// Prints what was played, where, and what the figures leave out.
fn print_basis(output: &Output, silicon: &Silicon) -> Result<()> {
    let inside = if output.virtual_machine {
        ", a virtual machine"
    } else {
        ""
    };
    outln!(
        "{} beside {} in {} banks of {}{inside}; modelled: {} with as many",
        output.programs[0],
        output.programs[1..].join(", "),
        output.banks,
        output.silicon,
        output.machine
    )?;
    if !output.is_modelled {
        outln!(
            "The model is of {}, not of the machine that was measured, whose controller and DRAM timing no \
             machine file says: compare slowdowns only.",
            output.machine
        )?;
    }
    match output.functions.as_slice() {
        [] => outln!("Lines of the banks were found pair by pair; hardly two lie in one row.")?,
        functions => outln!(
            "Banks by functions {} and a class for each page.",
            functions.join(", ")
        )?,
    }
    for player in silicon.players.iter().filter(|player| player.threads() > 1) {
        let (name, threads) = (player.name(), player.threads());
        outln!("{name} has {threads} threads; the one that asks for most lines plays.")?;
    }
    for row in output.rows.iter().take(1) {
        outln!(
            "No line stays in a cache; the last level of {} would have {:.1} % of the lines, which are left out.",
            output.machine,
            row.hits_percent
        )?;
    }
    Ok(())
}

/// Each placement's times: on silicon, and of the model.
fn figures(rows: &[Both]) -> soloist_cli::Table {
    let mut table = table([
        "PLACEMENT",
        "",
        "ALONE ns",
        "BESIDE ns",
        "SLOWDOWN (99 %)",
        "TO FIRST",
        "P99 ALONE ns",
        "P99 BESIDE ns",
        "OTHERS MB/s",
    ]);
    let time = |row: &Both, ns: f64| ns * row.lines as f64;
    let first = rows
        .first()
        .map_or(1.0, |row| time(row, row.model.alone_ns));
    for row in rows {
        if let Some(s) = &row.silicon {
            table.add_row([
                row.placement.clone(),
                "silicon".to_owned(),
                format!("{:.1}", s.alone_ns),
                format!("{:.1}", s.beside_ns),
                format!(
                    "{:.3} ({:.3} to {:.3})",
                    s.slowdown.median, s.slowdown.low, s.slowdown.high
                ),
                s.slowdown_to_first
                    .map_or("-".to_owned(), |to| format!("{to:.3}")),
                format!("{:.0}", s.p99_alone_ns),
                format!("{:.0}", s.p99_beside_ns),
                format!("{:.0}", s.neighbours_bytes_per_second / 1e6),
            ]);
        }
        let m = &row.model;
        table.add_row([
            row.placement.clone(),
            "model".to_owned(),
            format!("{:.1}", m.alone_ns),
            format!("{:.1}", m.beside_ns),
            format!("{:.3}", m.slowdown),
            format!("{:.3}", time(row, m.beside_ns) / first),
            format!("{:.0}", m.p99_alone_ns),
            format!("{:.0}", m.p99_beside_ns),
            "-".to_owned(),
        ]);
    }
    table
}

/// Prints what each placement's times say, and what keeps them from saying it.
fn print_verdicts(rows: &[Both]) -> Result<()> {
    for row in rows {
        match &row.silicon {
            Some(silicon) => outln!("{}", silicon.verdict())?,
            None => outln!(
                "{}: a co-runner hardly ran beside the program: other tasks use the CPUs.",
                row.placement
            )?,
        }
        if row.spilled > 0 {
            outln!(
                "{}: {} pages came out of its colours: --sets gives it more banks.",
                row.placement,
                row.spilled
            )?;
        }
    }
    Ok(())
}
