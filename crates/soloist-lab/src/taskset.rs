//! Experiments on task sets: policies, seeds, claims (`experiments/rt`).
//!
//! As the lab's scenarios, with jobs and deadlines: a claim is `fitted`,
//! `predicted` (holds within 15 % of the printed effect) or an `order` (holds
//! where the 95 % intervals over seeds are apart).

mod check;

use std::path::Path;

use serde::{Deserialize, Serialize};
use soloist_core::statistics::mean;
use soloist_core::time::MS;
use soloist_machine::{FileError, FileText};
use soloist_memory::Platform;
use soloist_rt::model::cores::{play, PlayError, Setup};
use soloist_rt::model::policy::{places, Policy};
use soloist_rt::model::profile::{profiles, Profile};
use soloist_rt::model::program::Maker;
use soloist_rt::tasks::{file, Task, TaskSet};
use soloist_trace::timeline::{Figures, Timeline};
use toml::de::Deserializer;

use crate::jobs::{do_one, Options, Parts};
use crate::judgement::verdict::TOLERANCE;
use crate::judgement::{
    command, fingerprint, fingerprint_of, fingerprints, same, was_typed, Estimate, Judged, Verdict,
    VERSION,
};
use crate::spec::ClaimKind;

/// Where tasks have no machine.
const MACHINE: &str = "opteron-6128";

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
pub struct TaskSetSpec {
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
    pub claims: Vec<TaskClaim>,
}

impl TaskSetSpec {
    /// Plays by these options.
    #[must_use]
    pub fn plays(&self, options: Options) -> usize {
        let seeds = options.seeds.map_or(self.seeds, u64::from);
        self.policies.len() * seeds as usize
    }
}

/// A printed figure, or an order of policies.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskClaim {
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

impl Figure {
    /// All, as a table has them.
    pub const ALL: [Self; 5] = [Self::Mean, Self::Max, Self::Min, Self::Std, Self::Misses];

    /// Whether a row has it: of no job that was completed there is no time, and of none
    /// that ended no share that missed.
    fn is_of(self, row: &Row) -> bool {
        match self {
            Self::Misses => row.jobs > 0,
            _ => row.mean > 0.0,
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Misses => "%",
            _ => "ms",
        }
    }
}

/// What one policy did to one task with one seed; times are scaled up again, ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// An experiment as it came out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskSetOutcome {
    /// The file.
    #[serde(rename = "mission")]
    pub spec: TaskSetSpec,
    /// The machine.
    pub machine: String,
    /// Fingerprint of its model as it was then.
    pub model: String,
    /// The first seed.
    pub seed: u64,
    /// Seeds that were asked for instead of the file's.
    pub seeds: Option<u32>,
    /// One hyperperiod counted.
    pub small: bool,
    /// Name or file, as it was typed; empty: that is not known.
    #[serde(default)]
    pub arguments: String,
    /// Version of the program that ran it; empty: that is not known.
    #[serde(default)]
    pub version: String,
    /// The task file.
    pub set: serde_json::Value,
    /// Fingerprints of the recordings as they were then, of the tasks that play one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<String>,
    /// Its tasks with deadlines: name, period, longest execution alone, ms.
    pub tasks: Vec<(String, f64, f64)>,
    /// All figures.
    pub rows: Vec<Row>,
    /// The claims.
    pub verdicts: Vec<Verdict>,
    /// Of each policy, with the first seed: a hyperperiod of what counted.
    pub timelines: Vec<(Policy, Timeline)>,
}

impl<'a> From<&'a TaskSetOutcome> for Judged<'a> {
    fn from(outcome: &'a TaskSetOutcome) -> Self {
        Self {
            id: &outcome.spec.id,
            verdicts: &outcome.verdicts,
        }
    }
}

impl TaskSetOutcome {
    /// The command that repeats it.
    #[must_use]
    pub fn command(&self) -> String {
        let how = (self.seed, self.seeds, self.small);
        command(&self.arguments, &self.spec.id, how)
    }

    /// Is it what these options give, by the same program, files, recordings and model?
    #[must_use]
    pub fn is_of(&self, spec: &TaskSetSpec, set: &TaskSet, options: Options) -> bool {
        let recorded = set.tasks.iter().map(|task| &task.recorded);
        self.version == VERSION
            && (self.seed, self.seeds, self.small) == (options.seed, options.seeds, options.small)
            && self.set == serde_json::to_value(set).unwrap_or_default()
            && self.recordings == fingerprints(recorded)
            && self.model == fingerprint_of(&self.machine)
            && same(&self.spec, spec)
    }

    /// Judged by the claims of `known`, the built-in experiment of its name, where that was
    /// typed and plays the same still.
    #[must_use]
    pub fn judged_as(self, known: TaskSetSpec, set: &TaskSet) -> Self {
        let unclaimed = |spec: &TaskSetSpec| TaskSetSpec {
            claims: Vec::new(),
            ..spec.clone()
        };
        let is_it = was_typed(&self.arguments, &known.id)
            && same(&unclaimed(&self.spec), &unclaimed(&known))
            && self.set == serde_json::to_value(set).unwrap_or_default();
        match is_it {
            true => self.judged_by(known.claims),
            false => self,
        }
    }

    /// Judged by what the file claims now.
    #[must_use]
    pub fn judged_by(mut self, claims: Vec<TaskClaim>) -> Self {
        self.spec.claims = claims;
        let claims = self.spec.claims.iter();
        self.verdicts = claims.map(|c| judge(c, &self.rows)).collect();
        self
    }

    /// A figure over all seeds; `None`: no job was completed.
    #[must_use]
    pub fn figure(&self, policy: Policy, task: &str, figure: Figure) -> Option<Estimate> {
        estimate(&self.rows, policy, task, figure)
    }
}

/// Why an experiment can't be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// What its file says can't be.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its task set can't be played.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// An experiment that is built in, and its tasks.
///
/// # Errors
/// When there is none of that name, or its files are wrong.
pub fn find(name: &str) -> Result<(TaskSetSpec, TaskSet), FileError> {
    let known = EXPERIMENTS.iter().find(|(id, _, _)| *id == name);
    let (id, text, tasks) = known.ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.0).collect();
        let names = names.join(", ");
        FileError::whole("", format!("no experiment {name:?}; there is: {names}"))
    })?;
    let (file, tasks_file) = (format!("experiments/rt/{id}.toml"), "experiments/rt/");
    let place = FileText { file: &file, text };
    let spec: TaskSetSpec = toml::from_str(text).map_err(|e| place.toml(&e))?;
    let set = file::parse(tasks, &format!("{tasks_file}{}", spec.tasks))?;
    Ok((spec, set))
}

/// An experiment's file that says so, and the tasks that stand in another one beside it.
///
/// # Errors
/// When they can't be played or judged.
pub fn read(
    table: Deserializer<'_>,
    place: FileText<'_>,
) -> Result<(TaskSetSpec, TaskSet), FileError> {
    let spec = TaskSetSpec::deserialize(table).map_err(|e| place.toml(&e))?;
    let tasks = file::read(&Path::new(place.file).with_file_name(&spec.tasks))?;
    check::check(&spec, &tasks, place)?;
    Ok((spec, tasks))
}

/// Runs it; `progress` is told each time a play is done.
///
/// # Errors
/// As [`ExperimentError`].
pub fn run(
    spec: TaskSetSpec,
    set: TaskSet,
    options: Options,
    progress: &(dyn Fn() + Sync),
) -> Result<TaskSetOutcome, ExperimentError> {
    do_one(&PreparedTaskSet::new(spec, set, options)?, progress)
}

/// Whether it would begin: machine, cores, banks, and programs that can be fast enough.
///
/// # Errors
/// When it would not, with the line that is wrong.
pub fn check(spec: &TaskSetSpec, set: &TaskSet, options: Options) -> Result<(), FileError> {
    let prepared = PreparedTaskSet::new(spec.clone(), set.clone(), options);
    prepared.map(drop)
}

/// Cores that the machine has.
fn cores(platform: &Platform, set: &TaskSet) -> Result<(), PlayError> {
    let cores = platform.node_of_core.len();
    let core = |task: &Task| task.core.unwrap_or(0);
    match set.tasks.iter().find(|task| core(task) as usize >= cores) {
        None => Ok(()),
        Some(task) => Err(PlayError::Core {
            task: task.name.clone(),
            core: core(task),
            machine: platform.memory.name.clone(),
            last: cores - 1,
        }),
    }
}

/// Why a task set can't be played, with the line of the task that it is about.
fn in_file(set: &TaskSet, error: PlayError) -> FileError {
    let line = match &error {
        PlayError::Core { task, .. }
        | PlayError::Banks { task, .. }
        | PlayError::Memory { task, .. }
        | PlayError::Lines { task, .. }
        | PlayError::Pace(task, _) => {
            let named = set.tasks.iter().find(|t| t.name == *task);
            named.map_or(0, |task| task.line)
        }
        PlayError::OneController(_) | PlayError::Limits(_) | PlayError::Model(_) => {
            set.machine_line
        }
    };
    FileError::in_line(&set.file, line, error.to_string())
}

/// An experiment that can run; a part is a play of a policy with a seed.
pub struct PreparedTaskSet {
    spec: TaskSetSpec,
    set: TaskSet,
    options: Options,
    machine: String,
    platform: Platform,
    makers: Vec<Maker>,
    profiles: Vec<Profile>,
    /// Hyperperiod, picoseconds, scaled.
    hyper: u64,
}

impl PreparedTaskSet {
    /// By these options.
    ///
    /// # Errors
    /// When it can't be played, with the line that is wrong.
    pub fn new(spec: TaskSetSpec, set: TaskSet, options: Options) -> Result<Self, FileError> {
        let machine = set.machine.clone().unwrap_or_else(|| MACHINE.to_owned());
        let platform = Platform::find(&machine)
            .map_err(|e| FileError::in_line(&set.file, set.machine_line, e.to_string()))?;
        let refused = |e| in_file(&set, e);
        cores(&platform, &set).map_err(refused)?;
        for policy in &spec.policies {
            let tasks = policy.tasks(&set);
            places(*policy, &platform, &tasks, spec.bank_sets).map_err(refused)?;
        }
        let (makers, profiles) = profiles(&platform, &set, spec.scale).map_err(refused)?;
        Ok(Self {
            hyper: set.hyperperiod().unwrap_or(1000 * MS) / spec.scale,
            spec,
            set,
            options,
            machine,
            platform,
            makers,
            profiles,
        })
    }

    /// Policies and seeds.
    fn jobs(&self) -> Vec<(Policy, u64)> {
        let seeds = 0..self.options.seeds.map_or(self.spec.seeds, u64::from);
        let policies = self.spec.policies.iter();
        policies
            .flat_map(|&p| {
                seeds
                    .clone()
                    .map(move |n| (p, self.options.seed.wrapping_add(n)))
            })
            .collect()
    }

    /// From when on it counts, and until when.
    fn counted(&self) -> (u64, u64) {
        let counted = match self.options.small {
            true => 1,
            false => self.spec.hyperperiods.max(1),
        };
        let warm = self.spec.warm;
        (warm * self.hyper, (warm + counted) * self.hyper)
    }
}

/// A line from memory takes some such time, ps.
const LINE_PS: u64 = 20_000;

impl Parts for PreparedTaskSet {
    type Part = Timeline;
    type Whole = TaskSetOutcome;
    type Error = ExperimentError;

    /// In lines, as the lab's.
    fn costs(&self) -> Vec<u64> {
        let lines = self.counted().1 / LINE_PS;
        let cost = |(policy, _): (Policy, u64)| lines * policy.tasks(&self.set).tasks.len() as u64;
        self.jobs().into_iter().map(cost).collect()
    }

    fn part(&self, n: usize) -> Result<Timeline, ExperimentError> {
        let (policy, seed) = self.jobs()[n];
        let tasks = policy.tasks(&self.set);
        let kept: Vec<usize> = (0..self.set.tasks.len())
            .filter(|&i| tasks.tasks.iter().any(|t| t.name == self.set.tasks[i].name))
            .collect();
        let makers: Vec<_> = kept.iter().map(|&i| self.makers[i].clone()).collect();
        let accesses: Vec<u64> = kept.iter().map(|&i| self.profiles[i].accesses).collect();
        let played = play(&Setup {
            platform: &self.platform,
            set: &tasks,
            makers: &makers,
            accesses: &accesses,
            places: &places(policy, &self.platform, &tasks, self.spec.bank_sets)?,
            limits: &[],
            scale: self.spec.scale,
            length_ps: self.counted().1,
            seed,
        })?;
        Ok(played.timeline)
    }

    fn whole(&self, timelines: Vec<Timeline>) -> TaskSetOutcome {
        let (from, hyper) = (self.counted().0, self.hyper);
        let (spec, set, options) = (&self.spec, &self.set, self.options);
        let mut rows = Vec::new();
        let mut charts = Vec::new();
        for ((policy, seed), timeline) in self.jobs().into_iter().zip(timelines) {
            let with_deadline = policy.tasks(set).tasks;
            for (i, task) in with_deadline.iter().enumerate() {
                if task.release.is_some() {
                    let figures = timeline.figures(i, from);
                    rows.push(row(policy, seed, &task.name, &figures, spec.scale));
                }
            }
            if seed == options.seed {
                charts.push((policy, timeline.part(from, from + hyper)));
            }
        }
        let verdicts = spec.claims.iter().map(|c| judge(c, &rows)).collect();
        let ms = |ps: u64| ps as f64 / MS as f64;
        let tasks = set.tasks.iter().filter_map(|t| {
            let release = t.release?;
            Some((t.name.clone(), ms(release.period.0), ms(t.wcet.0)))
        });
        TaskSetOutcome {
            set: serde_json::to_value(set).unwrap_or_default(),
            recordings: fingerprints(set.tasks.iter().map(|task| &task.recorded)),
            model: fingerprint(&self.platform),
            machine: self.machine.clone(),
            seed: options.seed,
            seeds: options.seeds,
            small: options.small,
            arguments: String::new(),
            version: VERSION.to_owned(),
            tasks: tasks.collect(),
            spec: spec.clone(),
            rows,
            verdicts,
            timelines: charts,
        }
    }
}

fn row(policy: Policy, seed: u64, task: &str, f: &Figures, scale: u64) -> Row {
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

fn estimate(rows: &[Row], policy: Policy, task: &str, figure: Figure) -> Option<Estimate> {
    let value = |row: &Row| match figure {
        Figure::Mean => row.mean,
        Figure::Max => row.max,
        Figure::Min => row.min,
        Figure::Std => row.std,
        Figure::Misses => row.misses,
    };
    let mine = |r: &&Row| r.policy == policy && r.task == task;
    let has = |r: &&Row| figure.is_of(r);
    let all: Vec<f64> = rows.iter().filter(mine).filter(has).map(value).collect();
    if all.is_empty() {
        return None;
    }
    let mean_without = |skip: usize| mean(&[&all[..skip], &all[skip + 1..]].concat());
    let without: Vec<f64> = (0..all.len()).map(mean_without).collect();
    Some(Estimate::jackknife(mean(&all), &without))
}

/// Whether a seed lacks the claim's figure. The mean over the other seeds would be too good.
fn is_partial(rows: &[Row], policy: Policy, claim: &TaskClaim) -> bool {
    let mut mine = rows
        .iter()
        .filter(|r| r.policy == policy && r.task == claim.task);
    mine.any(|r| !claim.figure.is_of(r))
}

fn judge(claim: &TaskClaim, rows: &[Row]) -> Verdict {
    let ours = estimate(rows, claim.policy, &claim.task, claim.figure);
    let partial = |policy: &Policy| is_partial(rows, *policy, claim);
    let mut verdict = Verdict {
        what: claim.what.clone(),
        kind: claim.kind.unwrap_or(ClaimKind::Predicted),
        theirs: claim.theirs,
        ours,
        effect: None,
        holds: None,
        half: None,
        contradicted: None,
        unit: claim.figure.unit().to_owned(),
        error: None,
    };
    if let Some(other) = claim.below {
        verdict.kind = claim.kind.unwrap_or(ClaimKind::Order);
        let theirs = estimate(rows, other, &claim.task, claim.figure);
        let partial = [claim.policy, other].into_iter().find(partial);
        match (partial, ours.zip(theirs)) {
            (None, Some((ours, theirs))) => verdict.holds = ours.below(theirs),
            (None, None) => verdict.error = Some("no job is completed".to_owned()),
            (Some(policy), _) => {
                let name = policy.name();
                verdict.error = Some(format!("no job is completed in some seed under {name}"));
            }
        }
    } else if let Some(theirs) = claim.theirs {
        let from = claim.from.unwrap_or(0.0);
        // A run that does not end in time is far from one that did.
        let ours = ours.filter(|_| !partial(&claim.policy));
        let allowed = TOLERANCE * (theirs - from).abs();
        verdict.holds = ours.map_or(Some(false), |ours| ours.within(theirs, allowed));
        verdict.effect = ours
            .filter(|_| theirs != from)
            .map(|ours| (ours.value - from) / (theirs - from));
    }
    verdict
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn rows(policy: Policy, means: &[f64]) -> Vec<Row> {
        let row = |(seed, &mean): (usize, &f64)| Row {
            policy,
            task: "t".into(),
            seed: seed as u64,
            jobs: 1,
            mean,
            max: mean,
            min: mean,
            std: 0.0,
            misses: if mean > 0.0 { 0.0 } else { 100.0 },
            response: mean,
        };
        means.iter().enumerate().map(row).collect()
    }

    fn claim(text: &str) -> TaskClaim {
        let about = "what = \"w\"\npolicy = \"linux\"\ntask = \"t\"\nfigure = \"mean\"\n";
        toml::from_str(&format!("{about}{text}")).unwrap()
    }

    #[test]
    fn a_claim_is_judged_by_its_effect_and_what_never_ends_misses() {
        let printed = claim("theirs = 20.0\nfrom = 10.0");
        for (means, holds, effect) in [
            (&[21.0, 21.0, 21.0], true, Some(1.1)),
            (&[22.0, 22.0, 22.0], false, Some(1.2)),
            (&[0.0, 0.0, 0.0], false, None),
            // The seeds that have a time are near to what is printed, and not all have one.
            (&[20.0, 0.0, 20.0], false, None),
        ] {
            let v = judge(&printed, &rows(Policy::Linux, means));
            assert_eq!((v.holds, v.effect), (Some(holds), effect), "{v:?}");
            assert_eq!(v.kind, ClaimKind::Predicted);
        }
        // Nothing was printed of no effect: no share of it.
        let none = claim("theirs = 10.0\nfrom = 10.0");
        let v = judge(&none, &rows(Policy::Linux, &[10.0, 10.0]));
        assert_eq!((v.holds, v.effect), (Some(true), None));
    }

    #[test]
    fn an_order_needs_intervals_apart_and_jobs_that_end() {
        let order = claim("below = \"single\"");
        for (means, holds) in [
            (&[11.0, 11.1, 11.2], Some(true)),
            (&[9.9, 10.0, 10.1], Some(false)),
            (&[0.0, 0.0, 0.0], None),
            (&[11.0, 0.0, 11.2], None),
        ] {
            let mut all = rows(Policy::Linux, &[10.0, 10.1, 10.2]);
            all.extend(rows(Policy::Single, means));
            let v = judge(&order, &all);
            assert_eq!((v.holds, v.kind), (holds, ClaimKind::Order), "{v:?}");
            assert_eq!(v.error.is_some(), holds.is_none());
        }
        // Nor is what has no time in a seed below anything.
        let mut all = rows(Policy::Linux, &[10.0, 0.0, 10.2]);
        all.extend(rows(Policy::Single, &[11.0, 11.1, 11.2]));
        let error = judge(&order, &all).error.unwrap();
        assert!(error.ends_with("under linux"), "{error}");
        // Misses are counted of jobs that never end, too.
        let misses = TaskClaim {
            figure: Figure::Misses,
            ..claim("theirs = 33.0")
        };
        assert!(judge(&misses, &all).ours.is_some_and(|m| m.value > 30.0));
        assert_eq!(judge(&misses, &all).error, None);
        // Where none ended, none missed, and that says nothing.
        all.iter_mut()
            .for_each(|row| (row.jobs, row.misses) = (0, 0.0));
        let none = TaskClaim {
            theirs: Some(0.0),
            ..misses
        };
        let v = judge(&none, &all);
        assert_eq!((v.ours, v.holds), (None, Some(false)));
    }

    #[test]
    fn experiments_stand_as_their_files_say() {
        for (id, _, _) in EXPERIMENTS {
            let (spec, set) = find(id).unwrap();
            assert_eq!(spec.id, *id);
            let file = format!(
                "{}/../../experiments/rt/{id}.toml",
                env!("CARGO_MANIFEST_DIR")
            );
            for name in [*id, &file] {
                match Experiment::find(name).unwrap() {
                    Experiment::TaskSet(_, found) => assert_eq!(found.tasks, set.tasks),
                    Experiment::Scenario(_) => panic!("{name} is a task set"),
                }
            }
            // A claim on a task or a policy that is not there says nothing.
            for claim in &spec.claims {
                assert!(set.tasks.iter().any(|t| t.name == claim.task), "{claim:?}");
                let named = std::iter::once(claim.policy).chain(claim.below);
                assert!(named.into_iter().all(|p| spec.policies.contains(&p)));
            }
        }
        let found = Experiment::find("camc-table-2").unwrap();
        assert!(matches!(found, Experiment::Scenario(_)));
        assert!(Experiment::find("./nowhere.toml").is_err());
    }
}
