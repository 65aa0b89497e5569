//! What isolation buys a program: alone, beside neighbours on Linux and by policies, and on a
//! node where nobody else runs.

use soloist_memory::Platform;

use super::beside::jobs_beside;
use super::{jobs, Job, Part, Pilot, Placement, Replay, ReplayError, Replayed, PILOT_LINES};
use crate::policy::linux;

/// Seeds of what placement leaves to chance; a run each.
const SEEDS: u64 = 5;

/// Requests that the runs of one program may come to, or fewer lines are played: a minute of two
/// idle processors.
const REQUESTS: u64 = 120_000_000;

/// Lines that are played of each program at most.
pub const MOST_LINES: usize = 1_000_000;

impl Pilot {
    /// How many lines of the program to play.
    #[must_use]
    pub fn most_lines(&self) -> usize {
        self.lines_within(REQUESTS).clamp(PILOT_LINES, MOST_LINES)
    }
}

/// What all programs of a comparison have in common.
pub struct Setting {
    /// The machine.
    pub platform: Platform,
    /// Where pages lie; the first is Linux'.
    pub placements: Vec<Placement>,
    /// How many neighbours a program has.
    pub neighbours: usize,
    /// Bank sets that each program gets of a policy that gives private ones.
    pub sets: u32,
}

/// Under which a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nobody else runs.
    Alone,
    /// Beside the neighbours, pages lying so.
    Beside(Placement),
    /// On this node, where no neighbour runs, as `numactl -N` has it.
    FreeNode(u32),
}

/// The runs of one condition, one a seed.
pub struct ConditionRuns {
    /// Under which the program ran.
    pub condition: Condition,
    /// At least one.
    pub runs: Vec<Replayed>,
}

impl ConditionRuns {
    /// The program's time in each run, s.
    #[must_use]
    pub fn seconds(&self) -> Vec<f64> {
        let of_run = |run: &Replayed| run.played[0].time_ns / 1e9;
        self.runs.iter().map(of_run).collect()
    }

    /// The mean over runs of the 99th percentile of a line's latency, ns.
    #[must_use]
    pub fn line_p99_ns(&self) -> f64 {
        let p99 = self.runs.iter().map(|run| run.played[0].latency_ns.p99);
        p99.sum::<f64>() / self.runs.len() as f64
    }
}

/// The program on a node where nobody else runs.
struct Moved {
    replay: Replay,
    node: u32,
    jobs: Vec<Job>,
}

/// One program beside its neighbours, and on a node where nobody else runs if there is one.
pub struct Compared {
    beside: Replay,
    jobs: Vec<Job>,
    moved: Option<Moved>,
}

impl Compared {
    /// A program beside neighbours that do all the same.
    #[must_use]
    pub fn new(setting: &Setting, program: &Part, neighbour: &Part) -> Self {
        let beside = Replay {
            sets: setting.sets,
            ..Replay::beside(&setting.platform, program, neighbour, setting.neighbours)
        };
        let linux = Placement::Policy(&linux::BUDDY);
        let moved = beside.on_a_free_node().map(|(replay, node)| Moved {
            replay,
            node,
            jobs: jobs([(linux, false)], SEEDS, |_, seed| seed == 1),
        });
        Self {
            beside,
            jobs: jobs_beside(&setting.placements, SEEDS),
            moved,
        }
    }

    /// The program's name.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.beside.parts[0].name
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.jobs.len() + self.moved.as_ref().map_or(0, |moved| moved.jobs.len())
    }

    /// What a line takes, by a trial of a program of which this has [`PILOT_LINES`].
    ///
    /// # Errors
    /// When they can't be played.
    pub fn pilot(&self) -> Result<Pilot, ReplayError> {
        let beside = self.beside.pilot(&self.jobs)?;
        match &self.moved {
            Some(moved) => Ok(beside + moved.replay.pilot(&moved.jobs)?),
            None => Ok(beside),
        }
    }

    /// How long all runs will take, s, by the trial of a few of the lines.
    #[must_use]
    pub fn seconds(&self, pilot: Pilot) -> f64 {
        pilot.seconds(self.beside.lines())
    }

    /// Plays all conditions; `progress` is told each time a run is done. Alone comes first,
    /// then Linux; the free node is third.
    ///
    /// # Errors
    /// When the programs do not fit the machine, or the model refuses.
    pub fn play(&self, progress: &(dyn Fn() + Sync)) -> Result<Vec<ConditionRuns>, ReplayError> {
        let seeds = SEEDS as usize;
        let runs = self.beside.play(&self.jobs, progress)?;
        let groups = self.jobs.chunks(seeds).zip(runs.chunks(seeds));
        let mut played: Vec<ConditionRuns> = groups
            .map(|(jobs, runs)| ConditionRuns {
                condition: match jobs[0].alone {
                    true => Condition::Alone,
                    false => Condition::Beside(jobs[0].placement),
                },
                runs: runs.to_vec(),
            })
            .collect();
        if let Some(Moved { replay, node, jobs }) = &self.moved {
            let on_node = ConditionRuns {
                condition: Condition::FreeNode(*node),
                runs: replay.play(jobs, progress)?,
            };
            played.insert(2, on_node);
        }
        Ok(played)
    }
}
