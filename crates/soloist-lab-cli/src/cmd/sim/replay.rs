//! `soloist sim replay`: recorded programs in the model.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_core::cpu_list;
use soloist_host::control::parse_rate;
use soloist_memory::Platform;
use soloist_play::guard::PERIOD_US;
use soloist_play::placement::buddy::History;
use soloist_play::replay::{self, means, Limit, Means, Part, Placement, Replayed, WORN};
use soloist_record::{Lines, Meta};

mod print;

use super::{damage, no_machine, recorded};
use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::progress::Steps;
use soloist_cli::{check_folder, status, Ctx, Misuse};

/// Lines of each processor, unless told otherwise.
const LINES: usize = 20_000_000;

/// Simulate recorded programs: the foreground alone, and beside the others.
///
/// With one recording, all its programs run where they were recorded. With several
/// recordings, the first program of each runs, on cores of one node, and --recolor must
/// place their pages anew. The first recording is the foreground. You may name a
/// recording more than once. The others repeat until the foreground is done. The
/// last-level cache begins empty: play many more lines than it holds.
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
        check_folder("--export", self.export.as_deref())?;
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
            print::means(&machine, &stage.parts, &rows)?;
            print::last_level(&stage.platform, &runs[0])?;
            print::idle(&runs)?;
            print::blame(&runs)?;
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
