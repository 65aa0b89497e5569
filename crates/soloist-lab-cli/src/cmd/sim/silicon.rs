//! `soloist sim replay --on-silicon`: recorded programs on this machine's own memory, beside
//! what the model says.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::{cpu_name, Host};
use soloist_machine::{gf2, known};
use soloist_map::detect::hardware::{Hardware, HardwareOptions};
use soloist_map::detect::noise::Noise;
use soloist_map::detect::sim::{SimPool, SimSource};
use soloist_map::silicon::banks::{Banks, How};
use soloist_map::silicon::cores::{bind, RealCores};
use soloist_map::silicon::sim::{SimCores, Truth};
use soloist_map::silicon::slices::Plan;
use soloist_map::silicon::{Attack, Cores};
use soloist_memory::Platform;
use soloist_play::policy::Policy;
use soloist_play::replay::Placement;
use soloist_record::{Lines, Meta};
use soloist_silicon::cut::Cut;
use soloist_silicon::place::Terms;
use soloist_silicon::stage::{Both, Player, Silicon};

use super::recorded;
use super::replay::Replay;
use soloist_cli::{progress, status, table};
use soloist_cli::{Ctx, Misuse};

/// Lines of each program, unless told otherwise.
const LINES: usize = 400_000;
/// Huge pages that a simulated machine gives.
const SIM_PAGES: u64 = 64;

/// The document of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    /// The machine whose memory it was.
    silicon: String,
    virtual_machine: bool,
    /// The machine that the model is of.
    machine: &'a str,
    banks: u32,
    /// Bank functions inside a page; none: lines were found pair by pair.
    functions: Vec<String>,
    programs: Vec<String>,
    rows: &'a [Both],
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

type Found = (String, Banks, Vec<Both>);

fn simulated(
    replay: &Replay,
    silicon: &Silicon,
    policies: &[&'static dyn Policy],
    name: &str,
    ctx: &Ctx,
) -> Result<Found> {
    let noise = Noise::LOW;
    let pool = SimPool::unprivileged(21, SIM_PAGES);
    let mut memory = SimSource::new(&known::find(name)?, pool, noise, replay.seeds);
    let banks = replay.find(&mut memory, silicon, ctx)?;
    let truth = Truth {
        same_bank_ns: replay.silicon.same_bank,
        same_channel_ns: 0.0,
        others_ns: 20.0,
        taken: 0.01,
        noise,
    };
    let mut cores = SimCores::new(&memory, truth, replay.seeds);
    let rows = replay.play(silicon, policies, (&mut cores, &banks), ctx)?;
    Ok((format!("{name}, simulated"), banks, rows))
}

fn here(
    replay: &Replay,
    silicon: &Silicon,
    policies: &[&'static dyn Policy],
    ctx: &Ctx,
) -> Result<Found> {
    let cpus = replay.silicon.cpus(silicon.players.len())?;
    // The foreground's last: memory is of the node that it is first touched from.
    for &cpu in cpus.iter().rev() {
        bind(cpu).map_err(|e| Misuse(format!("--cpus: CPU {cpu}: {e}")))?;
    }
    let mut memory = Hardware::new(&HardwareOptions {
        memory: Some(replay.silicon.memory),
        unprivileged: true,
        ..HardwareOptions::default()
    })?;
    let banks = replay.find(&mut memory, silicon, ctx)?;
    let mut cores = RealCores::new(&memory, cpus[0], &cpus[1..])?;
    let rows = replay.play(silicon, policies, (&mut cores, &banks), ctx)?;
    let name = cpu_name(&Host::live()).unwrap_or_else(|| "a processor without a name".to_owned());
    Ok((name, banks, rows))
}

impl Replay {
    /// Runs the command on silicon; 1: a neighbour hardly ran under some policy.
    pub fn run_on_silicon(&self, ctx: &Ctx) -> Result<ExitCode> {
        let policies = policies(self)?;
        let machine = match &self.machine {
            Some(machine) => machine.clone(),
            None => Meta::read(&self.dirs[0])?.machine,
        };
        let silicon = self.stage(&machine)?;
        let (name, found, rows) = match &self.silicon.simulate {
            Some(name) => simulated(self, &silicon, &policies, name, ctx)?,
            None => here(self, &silicon, &policies, ctx)?,
        };
        let output = Output {
            virtual_machine: self.silicon.simulate.is_none() && !is_bare_metal(&Host::live()),
            silicon: name,
            machine: &machine,
            banks: self.silicon.banks,
            functions: match &found.how {
                How::Functions(functions) => functions.iter().map(|&f| gf2::show(f)).collect(),
                How::Pairs => Vec::new(),
            },
            programs: silicon.players.iter().map(Player::name).collect(),
            rows: &rows,
        };
        if ctx.json {
            ctx.print_json(&output)?;
        } else {
            print(&output, &silicon)?;
        }
        Ok(status(rows.iter().all(|row| row.silicon.is_some())))
    }

    /// The programs, on a slice of the machine.
    fn stage(&self, machine: &str) -> Result<Silicon> {
        let players = players(self)?;
        let banks = self.silicon.banks;
        let pages = Silicon::pages(&players);
        Ok(Silicon {
            cut: Cut::new(Platform::find(machine)?, banks as usize, pages)?,
            terms: Terms {
                sets: self.sets.unwrap_or(banks / 4),
                history: self.history(),
                seed: self.seeds,
            },
            players,
        })
    }

    /// Lines by bank.
    fn find(
        &self,
        memory: &mut dyn soloist_map::detect::source::TimingSource,
        silicon: &Silicon,
        ctx: &Ctx,
    ) -> Result<Banks> {
        let options = &self.silicon;
        let bar = progress::bar(ctx, 100, "");
        let within = (Duration::from_secs(options.deadline), self.seeds);
        let banks = Banks::find(
            memory,
            silicon.players.len() - 1,
            within,
            &mut |what, share| {
                bar.set_message(what.to_owned());
                bar.set_position((100.0 * share) as u64);
            },
        );
        bar.finish_and_clear();
        let banks = banks?;
        let there = banks.slice(usize::MAX).len();
        if there < options.banks as usize {
            let why = format!(
                "--banks {}: lines of {there} banks were found",
                options.banks
            );
            anyhow::bail!(why);
        }
        Ok(banks)
    }

    fn play(
        &self,
        silicon: &Silicon,
        policies: &[&'static dyn Policy],
        on: (&mut dyn Cores, &Banks),
        ctx: &Ctx,
    ) -> Result<Vec<Both>> {
        let bar = progress::bar(ctx, 100, "");
        let plan = Plan {
            blocks: self.silicon.blocks as usize,
            time: Duration::from_secs(self.silicon.seconds),
            seed: self.seeds,
        };
        let rows = silicon.play(policies, on, plan, &mut |what, share| {
            bar.set_message(what.to_owned());
            bar.set_position((100.0 * share) as u64);
        });
        bar.finish_and_clear();
        Ok(rows?)
    }
}

fn print(output: &Output, silicon: &Silicon) -> Result<()> {
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
    let mut table = table([
        "PLACEMENT",
        "",
        "ALONE ns",
        "BESIDE ns",
        "SLOWDOWN (99 %)",
        "TO FIRST",
        "P99 ns",
        "BESIDE ns",
        "OTHERS MB/s",
    ]);
    let first = output.rows.first().map_or(1.0, |row| row.model.alone_ns);
    for row in output.rows {
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
                format!("{:.3}", s.slowdown_to_first),
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
            format!("{:.3}", m.beside_ns / first),
            format!("{:.0}", m.p99_alone_ns),
            format!("{:.0}", m.p99_beside_ns),
            "-".to_owned(),
        ]);
    }
    outln!("{table}")?;
    for row in output.rows {
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
