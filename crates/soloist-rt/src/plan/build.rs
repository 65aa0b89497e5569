//! One candidate as a plan: colours, times in them, limits, the analysis.

use soloist_core::time::Time;
use soloist_memory::Platform;

use super::alone::{jobs_of, slowed};
use super::candidates::Candidate;
use super::colors::{deal, groups, Dealt, Group};
use super::proof::{analyse_all, analyse_if_others_hold, budgets};
use super::refusal::{in_task, overfull, with_line, PlanError};
use super::relax::{enough, relaxed, Enough};
use super::{Assignment, Plan, LIMITS};
use crate::analysis::interference::{Conditions, Costs, Shared, Sharing};
use crate::analysis::linux::Server;
use crate::analysis::response::Answer;
use crate::analysis::ProfiledSet;
use crate::model::cores::{PageSource, PlayError};
use crate::model::in_colors::in_colors;
use crate::model::profile::Profile;
use crate::model::program::Maker;
use crate::tasks::{Order, TaskSet};

/// What all candidates have in common.
pub(super) struct Search<'a> {
    pub(super) platform: &'a Platform,
    pub(super) set: &'a TaskSet,
    pub(super) seed: u64,
    /// What the jobs of each task do.
    pub(super) makers: &'a [Maker],
    /// What a job of each asks of memory, alone on the machine.
    pub(super) alone: &'a [Profile],
    /// The longest that each was played for, alone on the machine.
    pub(super) undivided: &'a [Time],
}

/// The tasks in the colours of a candidate.
struct Colored {
    set: TaskSet,
    groups: Vec<Group>,
    /// The group of each task.
    group_of: Vec<usize>,
    /// By group.
    dealt: Vec<Dealt>,
    places: Vec<PageSource>,
    profiles: Vec<Profile>,
    /// How many jobs of each task were played in its colours.
    played: Vec<u64>,
}

/// What the analysis says of a candidate.
struct Verdict {
    limits: Vec<Option<u64>>,
    analysis: Vec<Answer>,
    enough: Vec<Enough>,
    servers: Vec<Option<Server>>,
}

impl Search<'_> {
    /// The first candidate that holds, or the one that misses least.
    pub(super) fn best(&self, candidates: &[Candidate]) -> Result<Plan, PlanError> {
        let mut best: Option<(f64, Plan)> = None;
        let mut refused = None;
        for (tried, candidate) in (1..).zip(candidates) {
            let mut plan = match self.build(candidate) {
                Err(PlanError::Memory(error)) => {
                    refused.get_or_insert(error);
                    continue;
                }
                other => other?,
            };
            if plan.holds {
                plan.tried = tried;
                return Ok(plan);
            }
            plan.tried = candidates.len();
            let misses = plan.misses();
            if best.as_ref().is_none_or(|(least, _)| misses < *least) {
                best = Some((misses, plan));
            }
        }
        match (best, refused) {
            (Some((_, plan)), _) => Ok(relaxed(self.platform, self.set, plan)),
            (None, Some(error)) => Err(PlanError::Memory(error)),
            (None, None) => Err(overfull(self.platform, self.set)),
        }
    }

    fn build(&self, candidate: &Candidate) -> Result<Plan, PlanError> {
        let colored = self.color(candidate)?;
        let verdict = self.verdict(&colored);
        let assignments = (0..colored.set.tasks.len()).map(|i| assignment(&colored, &verdict, i));
        Ok(Plan {
            machine: self.platform.memory.name.clone(),
            holds: verdict.analysis.iter().all(|a| a.holds),
            assignments: assignments.collect(),
            analysis: verdict.analysis,
            relaxations: Vec::new(),
            refuted: Vec::new(),
            costs: Costs::of(self.platform),
            tried: 0,
            seed: self.seed,
            places: colored.places,
            makers: self.makers.to_vec(),
            accesses: colored.profiles.iter().map(|p| p.accesses).collect(),
            limits: verdict.limits,
            enough: verdict.enough,
            set: colored.set,
        })
    }

    /// Deals colours, and plays each task alone in its own.
    fn color(&self, candidate: &Candidate) -> Result<Colored, PlanError> {
        let mut set = candidate.bind(self.set);
        let (groups, group_of) = groups(&set, &candidate.nodes);
        let dealt = deal(self.platform, &groups).map_err(|source| {
            let PlayError::Banks { task, .. } = &source else {
                return in_task(&set, 0, source.to_string());
            };
            let in_group = |&i: &usize| groups[group_of[i]].name == *task;
            let first = (0..set.tasks.len()).find(in_group);
            PlanError::no_place(&set, first, &source)
        })?;
        let place = |&group: &usize| PageSource {
            colors: Some(dealt[group].colors.clone()),
            node: None,
        };
        let places: Vec<PageSource> = group_of.iter().map(place).collect();
        let (mut profiles, mut played) = (self.alone.to_vec(), vec![0; set.tasks.len()]);
        for i in 0..set.tasks.len() {
            let task = &set.tasks[i];
            if task.release.is_some() {
                let jobs = jobs_of(self.platform, &set, i, self.seed);
                let (maker, alone) = (&self.makers[i], &self.alone[i]);
                let there = in_colors(self.platform, task, maker, alone, &places[i], jobs)
                    .map_err(|e| with_line(&set, e))?;
                set.tasks[i].wcet = slowed(task.wcet, self.undivided[i], &there);
                (profiles[i], played[i]) = (there.profile, there.jobs);
            }
        }
        Ok(Colored {
            set,
            groups,
            group_of,
            dealt,
            places,
            profiles,
            played,
        })
    }

    /// Analyses the tasks; where others are too loud, under the highest limit of
    /// bandwidth with which all hold.
    fn verdict(&self, colored: &Colored) -> Verdict {
        let set = &colored.set;
        let shared = |a: u32, b: u32| self.shared(colored, a, b);
        let tasks = ProfiledSet {
            set,
            profiles: &colored.profiles,
        };
        let mut limits = vec![None; self.platform.node_of_core.len()];
        let mut analysis = analyse_all(tasks, self.conditions(&limits, &shared));
        let loud = loud(set);
        // A limit is of reads, and bounds nothing where a core writes without any.
        if !loud.is_empty() && !Costs::of(self.platform).writes_alone {
            for limit in LIMITS {
                if analysis.iter().all(|a| a.holds) {
                    break;
                }
                loud.iter()
                    .for_each(|&core| limits[core as usize] = Some(limit * 1_000_000));
                analysis = analyse_all(tasks, self.conditions(&limits, &shared));
            }
        }
        let beside_held =
            |tasks: ProfiledSet| analyse_if_others_hold(tasks, self.conditions(&limits, &shared));
        let hopeful = beside_held(tasks);
        let enough = (0..set.tasks.len()).map(|i| {
            let name = &set.tasks[i].name;
            let misses = |answers: &[Answer]| answers.iter().any(|a| !a.holds && a.task == *name);
            if !misses(&hopeful) {
                return Enough {
                    others: misses(&analysis),
                    ..Enough::default()
                };
            }
            enough(tasks, i, &|tasks| {
                let answers = beside_held(tasks);
                // What helps it takes no other's proof away.
                let held = |a: &Answer| analysis.iter().any(|b| b.task == a.task && b.holds);
                let mut matter = answers.iter().filter(|a| a.task == *name || held(a));
                matter.all(|a| a.holds)
            })
        });
        let enough = enough.collect();
        let holds = analysis.iter().all(|a| a.holds);
        let servers = match holds && set.order == Order::Edf {
            true => budgets(tasks, self.conditions(&limits, &shared)),
            false => vec![None; set.tasks.len()],
        };
        Verdict {
            limits,
            analysis,
            enough,
            servers,
        }
    }

    fn conditions<'b>(
        &'b self,
        limits: &'b [Option<u64>],
        shared: &'b dyn Fn(u32, u32) -> Shared,
    ) -> Conditions<'b> {
        Conditions {
            platform: self.platform,
            limits,
            shared,
        }
    }

    /// What two cores share: banks never, a controller where both have memory of one
    /// node.
    fn shared(&self, colored: &Colored, a: u32, b: u32) -> Shared {
        let groups_of = |core: u32| {
            let all = colored.groups.iter().enumerate();
            all.filter(move |(_, group)| group.core == core)
        };
        let has = |core: u32, node: u32| groups_of(core).any(|(_, group)| group.node == node);
        let common = groups_of(a).any(|(_, group)| has(b, group.node));
        let llc_of = &self.platform.llc_of_core;
        let mut both = groups_of(a).chain(groups_of(b));
        let own = both.all(|(i, _)| colored.dealt[i].own_llc);
        Shared {
            memory: match common {
                true => Sharing::Controller,
                false => Sharing::Nothing,
            },
            llc: llc_of[a as usize] == llc_of[b as usize] && !own,
            elsewhere: groups_of(b).any(|(_, group)| !has(a, group.node)),
        }
    }
}

impl Plan {
    /// How badly it misses: the most that is missing of a deadline, by that deadline.
    fn misses(&self) -> f64 {
        let missing = |a: &Answer| (-a.slack_ps).max(0) as f64 / a.deadline.0.max(1) as f64;
        self.analysis.iter().map(missing).fold(0.0, f64::max)
    }
}

/// Cores without deadlines, whose bandwidth may be limited.
fn loud(set: &TaskSet) -> Vec<u32> {
    let timed = |core: u32| {
        let mut here = set.tasks.iter().filter(|t| t.core == Some(core));
        here.any(|t| t.release.is_some())
    };
    let others = set.tasks.iter().filter(|t| t.release.is_none());
    let cores = others.filter_map(|t| t.core);
    cores.filter(|&core| !timed(core)).collect()
}

fn assignment(colored: &Colored, verdict: &Verdict, i: usize) -> Assignment {
    let task = &colored.set.tasks[i];
    let group = &colored.groups[colored.group_of[i]];
    let colors = &colored.dealt[colored.group_of[i]].colors;
    Assignment {
        task: task.name.clone(),
        core: group.core,
        node: group.node,
        group: group.name.clone(),
        bank_sets: colors.sets().map_or_else(String::new, ToString::to_string),
        llc: colors.llc().map_or_else(String::new, ToString::to_string),
        limit: verdict.limits[group.core as usize],
        priority: colored.set.priorities()[i],
        server: verdict.servers[i],
        wcet: task.wcet,
        jobs_alone: colored.played[i],
        lines: colored.profiles[i].lines,
    }
}
