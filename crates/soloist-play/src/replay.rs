//! Recorded programs, played in the model: alone, and beside each other.
//!
//! A recording holds what left the private caches of real processors. Here its
//! lines go on through what programs share: last-level cache, links, queues,
//! controllers, banks. Its pages lie where the module put them
//! ([`Placement::Recorded`]), or are placed anew in the order of their first
//! touch: coloured ones as the module hands them out, others by the model of Linux'
//! allocator. What the kernel alone touches is never coloured, and stays where it was if
//! the machine is the recording's.

mod beside;
mod compared;
mod export;
mod means;
mod pages;
mod seats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use soloist_core::Refusal;
use soloist_memory::core::CoreStats;
use soloist_memory::latency::{Latencies, Summary};
use soloist_memory::system;
use soloist_memory::Platform;
use soloist_record::{Lines, Program, Recording};

pub use crate::guard::Limit;
use crate::place;
use crate::placement::buddy::History;
use crate::placement::memory::{Exhaust, Exhausted, Lack};
use crate::placement::FreeMemory;
use crate::policy::{Given, Policy};
use crate::programs::order::Wakes;
use crate::programs::recorded::{Playback, Recorded, Span};
use crate::stage::{Played, Regulator, Seat, Stage, StageError};
pub use beside::{Pilot, PILOT_LINES};
pub use compared::{Compared, Condition, ConditionRuns, Setting, MOST_LINES};
pub use export::ExportError;
pub use means::{means, Means};
pub use pages::Placement;

/// Why a recording can't be played.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It can't be read.
    #[error(transparent)]
    Record(#[from] soloist_record::Error),
    /// What was asked for does not fit the recording or the machine.
    #[error("{0}")]
    Misfit(String),
    /// The machine has not enough colours for the policy.
    #[error("{policy}: {source}")]
    Colors {
        /// The policy.
        policy: String,
        /// The palette's reason.
        source: Refusal,
    },
    /// A program's colours or node ran out of pages.
    #[error("{policy}: `{program}`: {source}; {}", remedy(*source))]
    Memory {
        /// The policy.
        policy: String,
        /// The program.
        program: String,
        /// How far it came.
        source: Exhausted,
    },
    /// The model refused.
    #[error("{policy}: {source}")]
    Model {
        /// The policy.
        policy: String,
        /// The reason.
        source: system::RunError,
    },
}

/// What gives a program pages where there were none.
fn remedy(exhausted: Exhausted) -> &'static str {
    match exhausted.lack {
        Lack::Colors => "give it more bank sets",
        Lack::Node(_) | Lack::Memory => "take another policy, or a machine with more memory",
    }
}

/// A program that is played.
#[derive(Clone)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What it did.
    pub program: Arc<Program>,
    /// Name of the machine that it was recorded on.
    pub machine: String,
    /// Where it was recorded: programs of one recording are placed in the order
    /// of their common first touches.
    pub recording: PathBuf,
    /// The cores that it plays on, one a lane.
    pub cores: Vec<usize>,
    /// What the module's group was told when it was recorded, as `name=value`.
    pub settings: Vec<String>,
}

/// Programs and the machine that they are played on; the first is the
/// foreground, the others go round and round for as long as it runs.
pub struct Replay {
    /// The machine.
    pub platform: Platform,
    /// The parts of the programs that play.
    pub parts: Vec<Part>,
    /// Bank sets that each gets of a policy that gives private ones.
    pub sets: u32,
    /// What happened to free memory before.
    pub history: History,
}

/// A machine that has been up for a while; as the experiments of the lab have it.
pub const WORN: History = History {
    used: 0.2,
    scatter: 0.3,
};

/// What came of one program.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PartResult {
    /// Its name.
    pub name: String,
    /// From its start to its end (of the foreground: its last lane's), ns.
    pub time_ns: f64,
    /// Instructions.
    pub instructions: u64,
    /// Lines that the last-level cache had.
    pub llc_hits: u64,
    /// Lines that memory had to give.
    pub llc_misses: u64,
    /// Dirty lines that its fills pushed out to memory.
    pub write_backs: u64,
    /// Latency of the lines that it asked for, from its private caches' miss on.
    pub latency_ns: Summary,
    /// Of its time, waiting for lines, ns.
    pub stall_ns: f64,
    /// Waiting for another of its threads, ns, lane by lane.
    pub idle_ns: Vec<f64>,
    /// Who it waited for, where the job asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blame: Vec<Share>,
    /// Share of its pages that lie on another node than its core, per cent.
    pub remote: f64,
    /// Pages of user space that lie out of its colours.
    pub spilled: u64,
}

/// A part of a program's waiting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The program whose doing it is; none: nobody's.
    pub culprit: Option<String>,
    /// Why, as the timing model names it.
    pub cause: &'static str,
    /// How long, ns.
    pub ns: f64,
}

/// One run: who played, where pages lay, what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// Name of the placement.
    pub placement: String,
    /// The bandwidth of each core of all but the first; `None`: what the policy said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// How many programs played; 1: the foreground alone.
    pub programs: usize,
    /// Seed of the placement.
    pub seed: u64,
    /// Foreground first.
    pub played: Vec<PartResult>,
}

/// One run that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Where pages lie.
    pub placement: Placement,
    /// The foreground alone.
    pub alone: bool,
    /// The bandwidth of each core of the others; `None`: what the policy says.
    pub limit: Option<Limit>,
    /// Of what placement leaves to chance.
    pub seed: u64,
    /// Find out who waited for whom; takes half as long again.
    pub blame: bool,
}

/// The runs of each condition, a placement and whether the foreground is alone, with seeds
/// from 1 to `seeds`; `blame` says of which to find out who waited for whom.
pub fn jobs(
    conditions: impl IntoIterator<Item = (Placement, bool)>,
    seeds: u64,
    blame: impl Fn(bool, u64) -> bool,
) -> Vec<Job> {
    let of_condition = |(placement, alone)| {
        let job = |seed| Job {
            placement,
            alone,
            limit: None,
            seed,
            blame: blame(alone, seed),
        };
        (1..=seeds).map(job).collect::<Vec<_>>()
    };
    conditions.into_iter().flat_map(of_condition).collect()
}

/// All jobs, and those beside others once more under each limit.
#[must_use]
pub fn limited(mut jobs: Vec<Job>, limits: &[Limit]) -> Vec<Job> {
    let beside: Vec<Job> = jobs.iter().filter(|job| !job.alone).copied().collect();
    for &limit in limits {
        jobs.extend(beside.iter().map(|&job| Job {
            limit: Some(limit),
            blame: false,
            ..job
        }));
    }
    jobs
}

/// Lines that do not stay in a machine's last-level cache: those of fewer would, played over
/// and over, though the program that they are of goes on to others.
#[must_use]
pub fn lines_beyond(platform: &Platform) -> usize {
    let shape = platform.llc.shape;
    shape.sets as usize * shape.ways * 3 / 2
}

/// Loads program number `program` of the recording in `dir`.
pub fn load(dir: &std::path::Path, program: usize, lines: Lines) -> Result<Part, ReplayError> {
    let recording = Recording::open(dir)?;
    let loaded = recording.load(program, lines)?;
    let about = &recording.meta.programs[program];
    let cpus = about.cpus.iter().map(|&cpu| cpu as usize);
    Ok(Part {
        name: about.name.clone(),
        program: Arc::new(loaded),
        machine: recording.meta.machine.clone(),
        recording: dir.to_path_buf(),
        cores: cpus.collect(),
        settings: about.colors.clone(),
    })
}

impl Replay {
    /// Plays all jobs, in parallel; `progress` is told each time one is done.
    pub fn play(
        &self,
        jobs: &[Job],
        progress: &(dyn Fn() + Sync),
    ) -> Result<Vec<Replayed>, ReplayError> {
        self.check()?;
        let recorded = self.recorded();
        jobs.par_iter()
            .map(|job| {
                let replayed = self.play_one(&recorded, *job);
                progress();
                replayed
            })
            .collect()
    }

    fn check(&self) -> Result<(), ReplayError> {
        let cores = self.platform.node_of_core.len();
        let (needed, programs) = (self.lanes(), self.parts.len());
        if needed > cores {
            return Err(ReplayError::Misfit(format!(
                "{programs} programs need {needed} cores, and the machine has {cores}: leave some out, or name a \
                 larger machine (--machine)"
            )));
        }
        let mut taken = vec![None; cores];
        for part in &self.parts {
            let lanes = part.program.lanes().len();
            if lanes == 0 {
                let why = format!("`{}`: nothing was recorded of it", part.name);
                return Err(ReplayError::Misfit(why));
            }
            if lanes > part.cores.len() {
                return Err(ReplayError::Misfit(format!(
                    "`{}` needs {lanes} cores and has {}",
                    part.name,
                    part.cores.len()
                )));
            }
            for &core in &part.cores {
                let Some(seat) = taken.get_mut(core) else {
                    return Err(ReplayError::Misfit(format!(
                        "`{}`: no core {core}: the machine has 0-{}",
                        part.name,
                        cores - 1
                    )));
                };
                if let Some(other) = seat.replace(&part.name) {
                    return Err(ReplayError::Misfit(format!(
                        "core {core} is `{other}`'s and `{}`'s: one program a core",
                        part.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// The frame of each page of each program, as [`Self::play`] has them in this job: for
    /// other simulators.
    ///
    /// # Errors
    /// As [`Self::play`] has them.
    pub fn place(&self, job: Job) -> Result<Vec<Vec<u32>>, ReplayError> {
        self.check()?;
        let place = |stage: Stage| place::place(&stage, &place::colors(&stage)?);
        let (placed, first) = self.staged(&self.recorded(), job, place)?;
        let frames = |&seat: &usize| placed[seat].frames.clone();
        Ok(first.iter().map(frames).collect())
    }

    fn recorded(&self) -> Vec<Recorded> {
        let recorded = |part: &Part| Recorded::new(Arc::clone(&part.program));
        self.parts.iter().map(recorded).collect()
    }

    /// What `act` makes of the job's stage, and the first seat of each part.
    fn staged<T>(
        &self,
        recorded: &[Recorded],
        job: Job,
        act: impl FnOnce(Stage) -> Result<T, StageError>,
    ) -> Result<(T, Vec<usize>), ReplayError> {
        let asked_for;
        let policy: &dyn Policy = match job.placement {
            Placement::Policy(policy) => policy,
            Placement::Recorded => {
                asked_for = Given(pages::asked_for(self)?);
                &asked_for
            }
        };
        let (seats, first) = self.seats(recorded, job)?;
        let stage = Stage {
            memory: FreeMemory {
                history: self.history,
                exhaust: Exhaust::Spill,
                as_the_module: true,
            },
            touches: pages::touches(self, &first),
            regulator: job.limit.map_or(Regulator::ByPolicy, Regulator::Limiting),
            account: job.blame,
            latencies: true,
            ..Stage::new(&self.platform, policy, seats, job.seed)
        };
        let done = act(stage).map_err(|e| self.refused(job, &first, e))?;
        Ok((done, first))
    }

    fn play_one(&self, recorded: &[Recorded], job: Job) -> Result<Replayed, ReplayError> {
        let (played, first) = self.staged(recorded, job, |stage| stage.play())?;
        let parts = if job.alone { 1 } else { self.parts.len() };
        let result = |part: usize| {
            let mut result = self.result(part, first[part], &played);
            if !job.blame {
                result.blame.clear();
            }
            result
        };
        Ok(Replayed {
            placement: job.placement.name(),
            limit: job.limit,
            programs: parts,
            seed: job.seed,
            played: (0..parts).map(result).collect(),
        })
    }

    /// A seat for each lane of each part, and the first seat of each part. Pages lie as
    /// they would beside the others: only company is what differs for one that is alone.
    fn seats(
        &self,
        recorded: &[Recorded],
        job: Job,
    ) -> Result<(Vec<Seat>, Vec<usize>), ReplayError> {
        let (mut seats, mut first) = (Vec::new(), Vec::new());
        let stay = pages::stay(self, job.placement)?;
        for (i, ((part, recorded), stay)) in self.parts.iter().zip(recorded).zip(stay).enumerate() {
            first.push(seats.len());
            let span = if i > 0 { Span::Endless } else { Span::Whole };
            let wakes = Wakes::default();
            let mut stay = Some(stay);
            for (thread, &core) in (0..recorded.threads()).zip(&part.cores) {
                let playback = Playback::new(recorded, thread, span, &wakes);
                seats.push(Seat {
                    thread,
                    owner: i,
                    background: i > 0,
                    plays: i == 0 || !job.alone,
                    sets: self.sets,
                    stay: stay.take().unwrap_or_default(),
                    ..Seat::new(Box::new(playback), core)
                });
            }
        }
        Ok((seats, first))
    }

    fn refused(&self, job: Job, first: &[usize], error: StageError) -> ReplayError {
        let policy = job.placement.name();
        match error {
            StageError::Colors(source) => ReplayError::Colors { policy, source },
            StageError::Memory { seat, source, .. } => {
                let part = first.partition_point(|&first| first <= seat) - 1;
                ReplayError::Memory {
                    policy,
                    program: self.parts[part].name.clone(),
                    source,
                }
            }
            StageError::Regulator(refusal) => ReplayError::Misfit(match job.limit {
                Some(Limit {
                    bytes_per_second: rate,
                    period_us,
                }) => format!("{rate} bytes a second for each core, in {period_us} us: {refusal}"),
                None => refusal.to_string(),
            }),
            StageError::Model(source) => ReplayError::Model { policy, source },
        }
    }

    fn result(&self, part: usize, seat: usize, played: &Played) -> PartResult {
        let part = &self.parts[part];
        let lanes = part.program.lanes().len();
        let cores: Vec<&CoreStats> = (part.cores[..lanes].iter())
            .map(|&core| &played.cores[core])
            .collect();
        let sum = |field: fn(&CoreStats) -> u64| cores.iter().map(|s| field(s)).sum::<u64>();
        let mut latencies = Latencies::default();
        for kept in cores.iter().filter_map(|s| s.account.latencies.as_ref()) {
            latencies.merge(kept);
        }
        let ns = |ps: u64| ps as f64 / 1000.0;
        let (seat, map) = (&played.seats[seat], &self.platform.memory.map);
        PartResult {
            name: part.name.clone(),
            time_ns: ns(cores.iter().map(|s| s.finished_ps).max().unwrap_or(0)),
            instructions: sum(|s| s.instructions),
            llc_hits: sum(|s| s.llc_hits),
            llc_misses: sum(|s| s.llc_misses),
            write_backs: sum(|s| s.write_backs),
            latency_ns: latencies.summary(0.001),
            stall_ns: ns(sum(|s| s.account.stall_ps)),
            idle_ns: cores.iter().map(|s| ns(s.account.slept_ps)).collect(),
            blame: self.blame(&cores),
            remote: seat.remote,
            spilled: match &seat.colors {
                Some(colors) => pages::out_of(colors, map, part, &seat.frames),
                None => 0,
            },
        }
    }

    /// The shares of lanes' waiting, by program and cause, the largest first.
    fn blame(&self, lanes: &[&CoreStats]) -> Vec<Share> {
        let owner = |core: usize| {
            self.parts
                .iter()
                .position(|part| part.cores.contains(&core))
        };
        let mut sums: BTreeMap<(Option<usize>, &'static str), i64> = BTreeMap::new();
        for stats in lanes {
            for share in stats.account.blame.shares() {
                let culprit = share.culprit.and_then(owner);
                *sums.entry((culprit, share.cause.name())).or_default() += share.ps;
            }
        }
        let mut shares: Vec<Share> = sums
            .into_iter()
            .map(|((culprit, cause), ps)| Share {
                culprit: culprit.map(|part| self.parts[part].name.clone()),
                cause,
                ns: ps as f64 / 1000.0,
            })
            .collect();
        shares.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        shares
    }
}
