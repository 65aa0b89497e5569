//! Experiments on task sets: policies, seeds, claims (`experiments/rt`).
//!
//! As the lab's scenarios, with jobs and deadlines: a claim is `fitted`,
//! `predicted` (holds within 15 % of the printed effect) or an `order` (holds
//! where the 95 % intervals over seeds are apart).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use soloist_lab::judgement::verdict::TOLERANCE;
use soloist_lab::judgement::Estimate;
use soloist_lab::spec::ClaimKind;
use soloist_machine::{FileError, FileText};
use soloist_memory::Platform;

use crate::cores::{play, PlayError, Setup};
use crate::file;
use crate::policy::{places, NoPlace, Policy};
use crate::profile::{profiles, ProfileError};
use crate::task::TaskSet;
use crate::time::MS;
use crate::timeline::{Figures, Timeline};

/// Name and texts of each: the experiment, its task set.
pub const EXPERIMENTS: &[(&str, &str, &str)] = &[
    (
        "camc-tables-7-9",
        include_str!("../../../experiments/rt/camc-tables-7-9.toml"),
        include_str!("../../../experiments/rt/camc-table-6.toml"),
    ),
    (
        "palloc-real-time",
        include_str!("../../../experiments/rt/palloc-real-time.toml"),
        include_str!("../../../experiments/rt/palloc-real-time-tasks.toml"),
    ),
];

/// An experiment's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mission {
    /// Name.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// Where the printed figures stand.
    pub source: String,
    /// The task file beside it.
    pub tasks: String,
    /// Policies.
    pub policies: Vec<Policy>,
    /// All times are divided by it.
    pub scale: u64,
    /// Hyperperiods that are played before it counts.
    pub warm: u64,
    /// Hyperperiods that count.
    pub hyperperiods: u64,
    /// Seeds.
    pub seeds: u64,
    /// Bank sets of each task with deadlines, and of each other, where a policy
    /// gives any; left out: what its memory needs.
    #[serde(default)]
    pub bank_sets: Option<(u32, u32)>,
    /// What is said of the outcome.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A printed figure, or an order of policies.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In words.
    pub what: String,
    /// Policy.
    pub policy: Policy,
    /// Task.
    pub task: String,
    /// Which figure.
    pub figure: Figure,
    /// What is printed.
    pub theirs: Option<f64>,
    /// What it would be without effect.
    pub from: Option<f64>,
    /// Or: the figure lies below that of this policy.
    pub below: Option<Policy>,
    /// Left out: predicted, or an order where `below` is given.
    pub kind: Option<ClaimKind>,
}

/// A figure of a task's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Mean execution of completed jobs, ms.
    Mean,
    /// Longest.
    Max,
    /// Shortest.
    Min,
    /// Standard deviation.
    Std,
    /// Share of jobs that missed, per cent.
    Misses,
}

/// What one policy did to one task with one seed; times are scaled up again, ms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Policy.
    pub policy: Policy,
    /// Task.
    pub task: String,
    /// Seed.
    pub seed: u64,
    /// Jobs that ended.
    pub jobs: u64,
    /// Mean execution, ms.
    pub mean: f64,
    /// Longest, ms.
    pub max: f64,
    /// Shortest, ms.
    pub min: f64,
    /// Standard deviation, ms.
    pub std: f64,
    /// Jobs that missed, per cent.
    pub misses: f64,
    /// Longest response of completed jobs, ms.
    pub response: f64,
}

/// A claim, judged.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// In words.
    pub what: String,
    /// Fitted, predicted or an order.
    pub kind: ClaimKind,
    /// Printed figure; of an order, the other policy's.
    pub theirs: f64,
    /// Ours.
    pub ours: Estimate,
    /// Does it hold?
    pub holds: Option<bool>,
}

/// An experiment as it came out.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The file.
    pub mission: Mission,
    /// All figures.
    pub rows: Vec<Row>,
    /// The claims.
    pub verdicts: Vec<Verdict>,
    /// Of each policy, with the first seed: what counted.
    #[serde(skip)]
    pub timelines: Vec<(Policy, Timeline)>,
}

/// Why it could not be run.
#[derive(Debug, thiserror::Error)]
pub enum MissionError {
    /// No such experiment.
    #[error("no experiment {0:?}; there is: {names}", names = EXPERIMENTS.iter().map(|e| e.0).collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// A file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The machine is not known.
    #[error(transparent)]
    Machine(#[from] soloist_memory::Error),
    /// A task can't be played alone.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// No place for a task.
    #[error(transparent)]
    Place(#[from] NoPlace),
    /// A task can't be played.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// An experiment by name, and its tasks.
///
/// # Errors
/// When there is none of that name, or its files are wrong.
pub fn find(name: &str) -> Result<(Mission, TaskSet), MissionError> {
    let known = EXPERIMENTS.iter().find(|(id, _, _)| *id == name);
    let (id, text, tasks) = known.ok_or_else(|| MissionError::Unknown(name.to_owned()))?;
    let file = format!("experiments/rt/{id}.toml");
    let place = FileText { file: &file, text };
    let mission: Mission = toml::from_str(text).map_err(|e| place.toml(&e))?;
    let set = file::parse(tasks, &format!("experiments/rt/{}", mission.tasks))?;
    Ok((mission, set))
}

/// Runs it; `progress` is told each time a play is done, with how many there are.
///
/// # Errors
/// As [`MissionError`].
pub fn run(
    (mission, set): (Mission, TaskSet),
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Outcome, MissionError> {
    let platform = Platform::find(set.machine.as_deref().unwrap_or("opteron-6128"))?;
    let (makers, profiles) = profiles(&platform, &set, mission.scale)?;
    let hyper = set.hyperperiod().unwrap_or(1000 * MS) / mission.scale;
    let (from, to) = (
        mission.warm * hyper,
        (mission.warm + mission.hyperperiods.max(1)) * hyper,
    );
    let jobs: Vec<(Policy, u64)> = mission
        .policies
        .iter()
        .flat_map(|&p| (1..=mission.seeds).map(move |seed| (p, seed)))
        .collect();
    let one = |&(policy, seed): &(Policy, u64)| -> Result<_, MissionError> {
        let tasks = policy.tasks(&set);
        let kept: Vec<usize> = (0..set.tasks.len())
            .filter(|&i| tasks.tasks.iter().any(|t| t.name == set.tasks[i].name))
            .collect();
        let makers: Vec<_> = kept.iter().map(|&i| makers[i].clone()).collect();
        let accesses: Vec<u64> = kept.iter().map(|&i| profiles[i].accesses).collect();
        let played = play(&Setup {
            platform: &platform,
            set: &tasks,
            makers: &makers,
            accesses: &accesses,
            places: &places(policy, &platform, &tasks, mission.bank_sets)?,
            limits: &[],
            scale: mission.scale,
            length_ps: to,
            seed,
        })?;
        progress(jobs.len());
        Ok(played.timeline)
    };
    let timelines: Vec<Timeline> = jobs.par_iter().map(one).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    for (&(policy, seed), timeline) in jobs.iter().zip(timelines) {
        let with_deadline = policy.tasks(&set).tasks;
        for (i, task) in with_deadline.iter().enumerate() {
            if task.release.is_some() {
                let figures = timeline.figures(i, from);
                rows.push(row((policy, seed), &task.name, &figures, mission.scale));
            }
        }
        if seed == 1 {
            charts.push((policy, timeline.part(from, from + hyper)));
        }
    }
    let verdicts = mission.claims.iter().map(|c| judge(c, &rows)).collect();
    Ok(Outcome {
        mission,
        rows,
        verdicts,
        timelines: charts,
    })
}

fn row((policy, seed): (Policy, u64), task: &str, f: &Figures, scale: u64) -> Row {
    let ms = |ps: f64| ps * scale as f64 / MS as f64;
    Row {
        policy,
        task: task.to_owned(),
        seed,
        jobs: f.jobs,
        mean: ms(f.mean_ps),
        max: ms(f.max_ps as f64),
        min: ms(f.min_ps as f64),
        std: ms(f.std_ps),
        misses: f.miss_rate() * 100.0,
        response: ms(f.response_ps as f64),
    }
}

/// A figure over all seeds.
#[must_use]
pub fn estimate(rows: &[Row], policy: Policy, task: &str, figure: Figure) -> Estimate {
    let of = |row: &Row| match figure {
        Figure::Mean => row.mean,
        Figure::Max => row.max,
        Figure::Min => row.min,
        Figure::Std => row.std,
        Figure::Misses => row.misses,
    };
    let mine = |r: &&Row| r.policy == policy && r.task == task;
    let mut all: Vec<f64> = rows.iter().filter(mine).map(of).collect();
    // Of no job that was completed there is no time.
    if figure != Figure::Misses {
        all.retain(|&v| v > 0.0);
    }
    let mean = |skip: usize| {
        let kept = all.iter().enumerate().filter(|(i, _)| *i != skip);
        let (sum, n) = kept.fold((0.0, 0.0), |(s, n), (_, v)| (s + v, n + 1.0));
        sum / n
    };
    let without: Vec<f64> = (0..all.len()).map(mean).collect();
    Estimate::jackknife(mean(usize::MAX), &without)
}

fn judge(claim: &Claim, rows: &[Row]) -> Verdict {
    let ours = estimate(rows, claim.policy, &claim.task, claim.figure);
    let (theirs, kind, holds) = match (claim.below, claim.theirs) {
        (Some(other), _) => {
            let other = estimate(rows, other, &claim.task, claim.figure);
            (other.value, ClaimKind::Order, ours.below(other))
        }
        (None, theirs) => {
            let theirs = theirs.unwrap_or(f64::NAN);
            let effect = (theirs - claim.from.unwrap_or(0.0)).abs();
            let near = (ours.value - theirs).abs() <= TOLERANCE * effect;
            (theirs, ClaimKind::Predicted, Some(near))
        }
    };
    Verdict {
        what: claim.what.clone(),
        kind: claim.kind.unwrap_or(kind),
        theirs,
        ours,
        holds,
    }
}
