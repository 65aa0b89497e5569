//! `soloist sim replay`, `soloist sim profile`: recorded programs in the model.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_core::cpu_list;
use soloist_host::control::{format_rate, parse_rate};
use soloist_memory::Platform;
use soloist_play::guard::PERIOD_US;
use soloist_play::placement::buddy::History;
use soloist_play::profile::{profile, Profile};
use soloist_play::replay::{self, means, Limit, Means, Part, Placement, Replayed, WORN};
use soloist_record::{Lines, Meta};

use super::{damage, no_machine, recorded};
use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::progress::Steps;
use soloist_cli::{status, table};
use soloist_cli::{Ctx, Misuse};

/// Lines of each processor, unless told otherwise.
const LINES: usize = 20_000_000;

/// Simulate recorded programs: the foreground alone, and beside the others.
///
/// With one recording, all its programs run where they were recorded. With several
/// recordings, the first program of each runs, on cores of one node, and --recolor must
/// place their pages anew. The first recording is the foreground. You may name a
/// recording more than once. The others repeat until the foreground is done.
///
/// With --on-silicon the accesses also go to this machine's own memory, in a slice of
/// few banks. The command finds it by timing. It needs no root and no module.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist sim replay sort.rec",
    "soloist sim replay sort.rec write.rec --recolor buddy,diff_bank --bandwidth 500MB/s,2GB/s",
    "soloist sim replay --on-silicon sort.rec -- write",
])]
pub struct Replay {
    /// Recordings that `soloist vm record` made.
    #[arg(required = true, value_name = "DIR")]
    pub(super) dirs: Vec<PathBuf>,
    /// Co-runners: recordings, or the loops `read`, `write` and `both`, which load
    /// memory.
    #[arg(last = true, value_name = "CO-RUNNER")]
    pub(super) neighbours: Vec<String>,
    #[command(flatten)]
    pub(super) silicon: super::slice::Options,
    /// Machine to play them on [default: the one they were recorded on].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    pub(super) machine: Option<String>,
    /// Place the pages anew, in first-touch order, by each of these policies: buddy
    /// (Linux), `same_bank`, `diff_bank`, `diff_controller`, camc, mem, llc ... or
    /// `recorded` (as the module placed them).
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    pub(super) recolor: Vec<Placement>,
    /// Private bank sets of each program, under policies with private ones [default:
    /// 1]. On silicon only the foreground has private ones, and co-runners share the
    /// rest [default: a quarter].
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub(super) sets: Option<u32>,
    /// Cores of the model, one for each recorded CPU in order.
    #[arg(long, value_name = "LIST", conflicts_with = "on_silicon")]
    cores: Option<String>,
    /// Play at most N lines of each CPU; a line takes 8 bytes of memory [default:
    /// 20000000; on silicon 400000]. If the others' lines would fit into the last-level
    /// cache, the model plays more of them.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..))]
    lines: Option<usize>,
    /// Play the lines in the middle of the recording instead of the programs' starts.
    #[arg(long)]
    middle: bool,
    /// Start the foreground at this percentage of its recording; the others start in
    /// their middle.
    #[arg(long, value_name = "PERCENT", conflicts_with = "middle", value_parser = whole::<u32>(0..=100))]
    at: Option<u32>,
    /// Repeat with N seeds for the random part of placement.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "on_silicon", value_parser = whole::<u64>(1..=1000))]
    seeds: u64,
    /// Place the pages on a machine that has just booted, as the recorded guest had
    /// [default: a machine that has been up for some time].
    #[arg(long)]
    pub(super) fresh: bool,
    /// Also hold each core of the co-runners to each of these reservations, such as
    /// 500MB/s: lines that it reads from memory.
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = parse_rate, conflicts_with = "on_silicon")]
    bandwidth: Vec<u64>,
    /// Length of a period of --bandwidth, microseconds.
    #[arg(long, value_name = "US", default_value_t = PERIOD_US, requires = "bandwidth", value_parser = whole::<u32>(10..=1_000_000))]
    period: u32,
    /// Show which programs the foreground waited for.
    #[arg(long, conflicts_with = "on_silicon")]
    blame: bool,
    /// Also write the played lines to DIR, for other simulators: a file for each
    /// placement, seed, program and lane, with kind, dependence, instructions and
    /// placed address of each line.
    #[arg(long, value_name = "DIR", conflicts_with = "on_silicon")]
    export: Option<PathBuf>,
}

#[derive(Serialize)]
struct Output<'a> {
    machine: &'a str,
    /// The figures come from the timing model.
    modelled: bool,
    programs: Vec<&'a str>,
    rows: &'a [Means],
    runs: &'a [Replayed],
    damage: &'a [String],
}

impl Replay {
    fn metas(&self) -> Result<Vec<Meta>> {
        let metas: Result<_, _> = self.dirs.iter().map(|dir| Meta::read(dir)).collect();
        Ok(metas?)
    }

    /// Runs the command.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        if self.silicon.on_silicon {
            return self.run_on_silicon(ctx);
        }
        if let Some(co_runner) = self.neighbours.first() {
            let why = format!("`{co_runner}` behind --: co-runners of --on-silicon; else name recordings before it");
            return Err(Misuse(why).into());
        }
        let placements = self.placements()?;
        let metas = self.metas()?;
        self.check_effects(&placements, &metas)?;
        let machine = self
            .machine
            .clone()
            .unwrap_or_else(|| metas[0].machine.clone());
        let platform = Platform::find(&machine).map_err(no_machine)?;
        let mut stage = replay::Replay {
            parts: self.parts(&metas, &platform)?,
            platform,
            sets: self.sets.unwrap_or(1),
            history: self.history(),
        };
        self.seat(&metas, &mut stage)?;
        let alone = &[true, false][..stage.parts.len().min(2)];
        let conditions = placements
            .iter()
            .flat_map(|&placement| alone.iter().map(move |&alone| (placement, alone)));
        let blame = |alone: bool, seed: u64| self.blame && !alone && seed == 1;
        let limits = self.limits();
        let jobs = replay::limited(replay::jobs(conditions, self.seeds, blame), &limits);
        if let Some(dir) = &self.export {
            stage.export(&jobs, dir)?;
        }
        let steps = Steps::new(ctx, jobs.len(), "played");
        let runs = stage.play(&jobs, &|| steps.step())?;
        steps.finish();
        let rows = means(&placements, &limits, &runs);
        let damage = damage(&stage.parts);
        if ctx.json {
            ctx.print_json(&Output {
                machine: &machine,
                modelled: true,
                programs: stage.parts.iter().map(|p| p.name.as_str()).collect(),
                rows: &rows,
                runs: &runs,
                damage: &damage,
            })?;
        } else {
            self.print(&machine, &stage.parts, &rows)?;
            print_idle(&runs)?;
            print_blame(&runs)?;
        }
        Ok(status(damage.is_empty()))
    }

    /// Where pages lie. Of recordings made apart several have the same physical page, and
    /// would find each other's lines in the cache.
    fn placements(&self) -> Result<Vec<Placement>> {
        let placements = match self.recolor.as_slice() {
            [] => vec![Placement::Recorded],
            chosen => chosen.to_vec(),
        };
        if self.dirs.len() > 1 && placements.contains(&Placement::Recorded) {
            let why = "programs that were not recorded together must be placed anew, \
                       such as --recolor buddy: they had the same pages";
            return Err(Misuse(why.to_owned()).into());
        }
        Ok(placements)
    }

    /// Options that would change nothing.
    fn check_effects(&self, placements: &[Placement], metas: &[Meta]) -> Result<(), Misuse> {
        let anew = placements.iter().any(|p| *p != Placement::Recorded);
        let of_pages = [
            ("--sets", self.sets.is_some()),
            ("--seeds", self.seeds > 1),
            ("--fresh", self.fresh),
        ];
        if let (false, Some((option, _))) = (anew, of_pages.into_iter().find(|given| given.1)) {
            let why = format!("{option} is for pages that are placed anew: add --recolor POLICY");
            return Err(Misuse(why));
        }
        let alone = self.dirs.len() == 1 && metas[0].programs.len() == 1;
        let of_others = [
            ("--blame", self.blame),
            ("--bandwidth", !self.bandwidth.is_empty()),
        ];
        if let (true, Some((option, _))) = (alone, of_others.into_iter().find(|given| given.1)) {
            let why =
                "the foreground is alone: name co-runners' recordings too, and --recolor POLICY";
            return Err(Misuse(format!("{option}: {why}")));
        }
        self.check_bandwidth(placements)
    }

    /// A policy that regulates has reservations of its own.
    fn check_bandwidth(&self, placements: &[Placement]) -> Result<(), Misuse> {
        let regulated = placements.iter().find(|p| p.is_regulated());
        match (self.bandwidth.is_empty(), regulated) {
            (false, Some(policy)) => Err(Misuse(format!(
                "--bandwidth: {policy} regulates by itself: leave one of the two out"
            ))),
            _ => Ok(()),
        }
    }

    /// Limits of a co-runner's core. Each limit is played by itself.
    fn limits(&self) -> Vec<Limit> {
        let limit = |&bytes_per_second: &u64| Limit {
            bytes_per_second,
            period_us: self.period,
        };
        self.bandwidth.iter().map(limit).collect()
    }

    /// The state of free memory before the programs begin.
    pub(super) fn history(&self) -> History {
        match self.fresh {
            true => History::FRESH,
            false => WORN,
        }
    }

    /// Which lines the foreground plays, and which the others, at most `most` if nothing else
    /// was asked for.
    pub(super) fn range(&self, most: usize) -> (Lines, Lines) {
        let most = self.lines.unwrap_or(most);
        let others = match self.middle || self.at.is_some() {
            true => Lines::Middle(most),
            false => Lines::First(most),
        };
        (self.at.map_or(others, |at| Lines::At(at, most)), others)
    }

    fn parts(&self, metas: &[Meta], platform: &Platform) -> Result<Vec<Part>> {
        let (first, others) = self.range(LINES);
        let others = others.at_least(replay::lines_beyond(platform));
        if let [only] = self.dirs.as_slice() {
            let lines = |i| if i == 0 { first } else { others };
            let all = 0..metas[0].programs.len();
            return all.map(|i| recorded(only, i, lines(i))).collect();
        }
        let mut parts: Vec<Part> = Vec::new();
        for dir in &self.dirs {
            let lines = if parts.is_empty() { first } else { others };
            let mut known = parts.iter().skip(usize::from(first != others));
            let known = known.find(|p| p.recording == *dir).cloned();
            let mut part = known.map_or_else(|| recorded(dir, 0, lines), Ok)?;
            if let Some(name) = dir.file_name() {
                part.name = name.to_string_lossy().into_owned();
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// Gives every lane a core: one of `--cores`, or one of the node that it was recorded on.
    fn seat(&self, metas: &[Meta], stage: &mut replay::Replay) -> Result<()> {
        if let Some(list) = &self.cores {
            let cores = in_order(list).map_err(|why| Misuse(format!("--cores {list}: {why}")))?;
            let needed = stage.lanes();
            if cores.len() != needed {
                let why = format!("--cores names {} cores; {needed} are needed", cores.len());
                return Err(Misuse(why).into());
            }
            stage.seat_on(cores);
            return Ok(());
        }
        let recorded_together = self.dirs.len() == 1;
        stage.seat_near(recorded_together.then_some(&metas[0].node_of_cpu));
        Ok(())
    }

    fn print(&self, machine: &str, parts: &[Part], rows: &[Means]) -> Result<()> {
        let names: Vec<&str> = parts[1..].iter().map(|p| p.name.as_str()).collect();
        match names.as_slice() {
            [] => outln!("{} alone, modelled on {machine}", parts[0].name)?,
            names => outln!(
                "{} beside {}, modelled on {machine}",
                parts[0].name,
                names.join(", ")
            )?,
        }
        let mut table = table([
            "PLACEMENT",
            "ALONE ms",
            "BESIDE ms",
            "SLOWDOWN",
            "TO FIRST",
            "MISSES/1000",
            "P99 ALONE ns",
            "P99 BESIDE ns",
            "OTHERS GB/s",
            "REMOTE %",
            "SPILLED",
        ]);
        let maybe = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
        };
        for row in rows {
            table.add_row([
                match row.limit {
                    Some(limit) => {
                        let rate = format_rate(limit.bytes_per_second);
                        format!("{}, {rate} each", row.placement)
                    }
                    None => row.placement.clone(),
                },
                format!("{:.3}", row.alone_ms),
                maybe(row.beside_ms, 3),
                match row.slowdown_range {
                    Some((least, most)) => {
                        format!("{} ({least:.3} to {most:.3})", maybe(row.slowdown, 3))
                    }
                    None => maybe(row.slowdown, 3),
                },
                maybe(row.slowdown_to_first, 3),
                format!("{:.2}", row.mpki),
                format!("{:.0}", row.p99_alone_ns),
                maybe(row.p99_beside_ns, 0),
                maybe(row.others_gb_s, 1),
                format!("{:.0}", row.remote_percent),
                row.spilled.to_string(),
            ]);
        }
        outln!("{}", table)
    }
}

/// The cores of a list, in the order that they are named in, each once.
fn in_order(list: &str) -> Result<Vec<usize>, String> {
    cpu_list(list).map_err(|e| e.to_string())?;
    let mut cores = Vec::new();
    for part in list.split(',') {
        let part = cpu_list(part).map_err(|e| e.to_string())?;
        for core in part.iter().map(|core| core as usize) {
            if cores.contains(&core) {
                return Err(format!("core {core} is named twice: name another one"));
            }
            cores.push(core);
        }
    }
    Ok(cores)
}

fn print_blame(runs: &[Replayed]) -> Result<()> {
    for run in runs.iter().filter(|run| !run.played[0].blame.is_empty()) {
        let foreground = &run.played[0];
        outln!(
            "\n{} waited {:.3} ms, {}:",
            foreground.name,
            foreground.stall_ns / 1e6,
            run.placement
        )?;
        for share in foreground.blame.iter().take(8) {
            let culprit = share.culprit.as_deref().unwrap_or("nobody");
            outln!("  {:>9.3} ms  {culprit}, {}", share.ns / 1e6, share.cause)?;
        }
    }
    Ok(())
}

/// How long each thread of a program of several waited for another of them.
fn print_idle(runs: &[Replayed]) -> Result<()> {
    let is_told = |run: &&Replayed| run.seed == 1 && run.limit.is_none();
    for run in runs.iter().filter(is_told) {
        for played in run.played.iter().filter(|p| p.idle_ns.len() > 1) {
            let when = match run.programs {
                1 => "alone".to_owned(),
                n => format!("beside {}", n - 1),
            };
            let idle: Vec<String> = played
                .idle_ns
                .iter()
                .map(|ns| format!("{:.3}", ns / 1e6))
                .collect();
            outln!(
                "{}, {}, {when}: threads waited for each other {} ms",
                played.name,
                run.placement,
                idle.join(", ")
            )?;
        }
    }
    Ok(())
}

/// Show statistics of recorded programs: misses, writes, footprint, rows, banks.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist sim profile sort.rec"])]
pub struct ProfileArgs {
    /// Recordings that `soloist vm record` made.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Machine whose last-level cache and map the statistics use [default: that of each
    /// recording].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
    /// Print the pages of the first program instead: virtual and physical number, and
    /// the thread that touched them first.
    #[arg(long)]
    pages: bool,
}

#[derive(Serialize)]
struct Page {
    virt: u64,
    phys: u64,
    user: bool,
    thread: u32,
}

#[derive(Serialize)]
struct PagesOf {
    pages: Vec<Page>,
    damage: Vec<String>,
}

#[derive(Serialize)]
struct Profiled {
    #[serde(flatten)]
    profile: Profile,
    damage: Vec<String>,
}

impl ProfileArgs {
    /// Runs the command.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        if self.pages {
            return self.print_pages(ctx);
        }
        let mut profiles = Vec::new();
        for dir in &self.dirs {
            let meta = Meta::read(dir)?;
            let name = self.machine.as_deref().unwrap_or(&meta.machine);
            let platform = Platform::find(name).map_err(no_machine)?;
            for program in 0..meta.programs.len() {
                let part = recorded(dir, program, Lines::ALL)?;
                profiles.push(Profiled {
                    profile: profile(&part, &platform),
                    damage: damage([&part]),
                });
            }
        }
        if ctx.json {
            ctx.print_json(&profiles)?;
        } else {
            print_profiles(&profiles)?;
        }
        Ok(status(profiles.iter().all(|p| p.damage.is_empty())))
    }

    fn print_pages(&self, ctx: &Ctx) -> Result<ExitCode> {
        let mut intact = true;
        for dir in &self.dirs {
            let part = recorded(dir, 0, Lines::ALL)?;
            let damage = damage([&part]);
            intact &= damage.is_empty();
            let page = |p: &soloist_record::Page| Page {
                virt: p.virt,
                phys: p.phys,
                user: p.user,
                thread: p.thread,
            };
            let pages: Vec<Page> = part.program.pages.iter().map(page).collect();
            if ctx.json {
                ctx.print_json(&PagesOf { pages, damage })?;
                continue;
            }
            for page in pages {
                outln!(
                    "page {:#x} {:#x} {} {}",
                    page.virt,
                    page.phys,
                    if page.user { "user" } else { "kernel" },
                    page.thread
                )?;
            }
        }
        Ok(status(intact))
    }
}

fn print_profiles(profiles: &[Profiled]) -> Result<()> {
    let mut table = table([
        "PROGRAM",
        "LANES",
        "10^6 INSTR",
        "L2 MISSES/1000",
        "LLC MISSES/1000",
        "WRITES %",
        "FETCHES %",
        "KERNEL %",
        "DEPENDENT %",
        "MiB",
        "ROW HITS %",
        "BANKS OF 8",
    ]);
    for Profiled { profile: p, .. } in profiles {
        table.add_row([
            p.name.clone(),
            p.lanes.to_string(),
            format!("{:.1}", p.minstructions),
            format!("{:.2}", p.apki),
            format!("{:.2}", p.mpki),
            format!("{:.0}", p.writes),
            format!("{:.0}", p.fetches),
            format!("{:.0}", p.kernel),
            format!("{:.0}", p.dependent),
            format!("{:.1}", p.footprint_mib),
            format!("{:.0}", p.row_hits),
            format!("{:.1}", p.banks),
        ]);
    }
    outln!("{}", table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_keep_the_order_that_they_are_named_in() {
        assert_eq!(in_order("12,0,4-5"), Ok(vec![12, 0, 4, 5]));
        assert!(in_order("0-3,2").is_err_and(|why| why.contains("core 2 is named twice")));
        assert!(in_order("0,x").is_err());
    }
}
