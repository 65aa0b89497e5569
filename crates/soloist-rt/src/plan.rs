//! From tasks and a machine to cores, colours and bandwidth under which every
//! deadline holds.
//!
//! CAMC's rule first: tasks with deadlines on controllers of their own, all else
//! on the others. Candidates are tried from the fewest cores up, a controller
//! each before several cores to a controller; on each, tasks that are not bound go to the first core that still holds,
//! the heaviest first, or to the emptiest one. Each task is played alone in its colours, since fewer
//! banks and less cache cost time too, and the candidate is analysed with that
//! ([`crate::analysis::response`]). Where others on its controller are too loud, they get
//! the highest limit of bandwidth under which all holds. The first candidate
//! that holds is the plan; if none does, the one that misses least is shown, with
//! the smallest change that would make it hold.

mod alone;
pub mod colors;
pub mod evidence;
pub mod grounds;
pub mod inputs;
pub mod refusal;
mod relax;

use std::collections::BTreeSet;

use serde::Serialize;
use soloist_memory::Platform;

use crate::analysis::interference::{surroundings, Costs, Sharing, Surroundings};
use crate::analysis::linux::{stretched, Server, OTHERS_PS};
use crate::analysis::response::{analyse, servers, Answer};
use crate::cores::{play, Place, Setup};
use crate::plan::alone::{check_ps, jobs_of, slowed, undivided};
use crate::plan::colors::{deal, Group};
use crate::plan::refusal::{at, check, no_core_left, overfull, told, PlanError};
use crate::plan::relax::{enough, Enough};
use crate::policy::NoPlace;
use crate::profile::{in_colors, profiles, Profile};
use crate::program::Maker;
use crate::tasks::{Order, Task, TaskSet, HIGHEST};
use crate::time::Time;
use soloist_trace::timeline::Timeline;

/// Limits of bandwidth that are tried, MB/s.
pub(crate) const LIMITS: [u64; 8] = [2000, 1000, 500, 250, 125, 64, 32, 16];

/// Where one task goes.
#[derive(Debug, Clone, Serialize)]
pub struct Assignment {
    /// The task.
    pub task: String,
    /// Its core.
    pub core: u32,
    /// Node of its memory.
    pub node: u32,
    /// Its group: all of a core and node.
    pub group: String,
    /// Bank sets.
    pub bank_sets: String,
    /// Last-level colours; empty: any.
    pub llc: String,
    /// Bytes a second that its core may read, and write; `None`: no limit.
    pub limit: Option<u64>,
    /// SCHED_FIFO priority, or 0.
    pub priority: u32,
    /// Its SCHED_DEADLINE, under EDF.
    pub server: Option<Server>,
    /// Longest execution alone in these colours.
    pub wcet: Time,
    /// Of how many jobs that were played there.
    pub jobs_alone: u64,
    /// Lines a job in these colours.
    pub lines: u64,
}

/// A change that makes it hold.
#[derive(Debug, Clone, Serialize)]
pub struct Relaxation {
    /// The task that misses.
    pub task: String,
    /// By how much.
    pub misses_by: Time,
    /// In words: what to change.
    pub change: String,
}

/// A plan, or the nearest to one.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The machine.
    pub machine: String,
    /// All deadlines are proved.
    pub holds: bool,
    /// By task, in the order of the file.
    pub assignments: Vec<Assignment>,
    /// What the analysis says of each task with deadlines.
    pub analysis: Vec<Answer>,
    /// What would make it hold.
    pub relaxations: Vec<Relaxation>,
    /// What a line of a neighbour costs here.
    pub costs: Costs,
    /// What was tried.
    pub candidates: usize,
    /// What drew programs, pages and jitter, of the check too.
    pub seed: u64,
    /// The tasks, each on its core.
    #[serde(skip)]
    pub set: TaskSet,
    #[serde(skip)]
    places: Vec<Place>,
    #[serde(skip)]
    makers: Vec<Maker>,
    #[serde(skip)]
    accesses: Vec<u64>,
    #[serde(skip)]
    limits: Vec<Option<u64>>,
    /// By task; what would be enough for those that are not proved.
    #[serde(skip)]
    enough: Vec<Enough>,
}

/// What a check by simulation showed.
#[derive(Debug, Serialize)]
pub struct Check {
    /// By task with deadlines: name, longest response, jobs, jobs that missed.
    pub tasks: Vec<(String, Time, u64, u64)>,
    /// The schedule.
    #[serde(skip)]
    pub timeline: Timeline,
}

/// A candidate: cores of all tasks, nodes of their memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) cores: Vec<u32>,
    pub(crate) nodes: Vec<u32>,
}

/// Plans; `seed` draws the programs that stand for tasks, and their pages.
///
/// # Errors
/// When the tasks can't be on this machine at all; a set that only misses
/// deadlines has a plan that does not hold.
pub fn plan(platform: &Platform, set: &TaskSet, seed: u64) -> Result<Plan, PlanError> {
    check(platform, set)?;
    let (makers, alone) = profiles(platform, set, 1).map_err(|e| told(set, e))?;
    let undivided =
        undivided(platform, set, (&makers, &alone), seed).map_err(|e| told(set, e.into()))?;
    let mut candidates = candidates(platform, set);
    let some = !candidates.is_empty();
    if set.order == Order::Edf {
        candidates.retain(|candidate| leaves_a_core(platform, set, candidate));
    }
    if some && candidates.is_empty() {
        return Err(no_core_left(platform, set));
    }
    let mut best: Option<(f64, Plan)> = None;
    let mut refused = None;
    let n = candidates.len();
    for candidate in candidates {
        let built = build(
            platform,
            (set, seed),
            &candidate,
            (&makers, &alone, &undivided),
        );
        let (badness, mut plan) = match built {
            Err(PlanError::Place { file, line, source }) => {
                refused.get_or_insert(PlanError::Place { file, line, source });
                continue;
            }
            other => other?,
        };
        plan.candidates = n;
        if plan.holds {
            return Ok(plan);
        }
        if best.as_ref().is_none_or(|(b, _)| badness < *b) {
            best = Some((badness, plan));
        }
    }
    match (best, refused) {
        (Some((_, plan)), _) => Ok(relaxed(platform, set, plan)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(overfull(platform, set)),
    }
}

/// Is there a core without deadlines? SCHED_DEADLINE wants a cpuset for each that has
/// some, and what else runs on the host must be somewhere.
fn leaves_a_core(platform: &Platform, set: &TaskSet, candidate: &Candidate) -> bool {
    let timed = set.tasks.iter().zip(&candidate.cores);
    let timed = timed.filter(|(task, _)| task.release.is_some());
    let timed: BTreeSet<u32> = timed.map(|(_, &core)| core).collect();
    timed.len() < platform.node_of_core.len()
}

/// Ways to put the tasks on cores, the fewest cores first.
pub(crate) fn candidates(platform: &Platform, set: &TaskSet) -> Vec<Candidate> {
    let nodes = platform.memory.map.n_nodes() as usize;
    let cores_of = |node: usize| {
        let all = platform.node_of_core.iter().enumerate();
        let here = all
            .filter(move |(_, &n)| n == node)
            .map(|(core, _)| core as u32);
        here.collect::<Vec<u32>>()
    };
    let widest = (0..nodes).map(|n| cores_of(n).len()).max().unwrap_or(1);
    let mut all: Vec<Candidate> = Vec::new();
    for each in 1..=widest {
        for timed in 1..=nodes {
            let of = |rank: usize| (0..timed).filter_map(move |n| cores_of(n).get(rank).copied());
            let allowed: Vec<u32> = (0..each).flat_map(of).collect();
            // The fewest cores, then all of them: apart, tasks don't preempt
            // each other and keep their caches.
            for spread in [false, true] {
                let found = fill(platform, set, &allowed, (timed, spread));
                all.extend(found.filter(|f| !all.contains(f)));
            }
        }
    }
    all
}

/// Tasks with deadlines on the first `timed` nodes, all else beside them.
fn fill(
    platform: &Platform,
    set: &TaskSet,
    allowed: &[u32],
    (timed, spread): (usize, bool),
) -> Option<Candidate> {
    let node_of = |core: u32| platform.node_of_core[core as usize] as u32;
    let nodes = platform.memory.map.n_nodes();
    let mut placed = set.clone();
    let mut order: Vec<usize> = (0..set.tasks.len())
        .filter(|&i| set.tasks[i].release.is_some() && set.tasks[i].core.is_none())
        .collect();
    order.sort_by(|&a, &b| {
        set.tasks[b]
            .utilisation()
            .total_cmp(&set.tasks[a].utilisation())
    });
    let alone = Surroundings::alone(Costs::of(platform));
    let none = vec![Profile::default(); set.tasks.len()];
    for i in order {
        let load = |core: &u32| {
            let mine = placed.tasks.iter().filter(|t| t.core == Some(*core));
            mine.map(|t| t.utilisation()).sum::<f64>()
        };
        let mut order = allowed.to_vec();
        if spread {
            order.sort_by(|a, b| load(a).total_cmp(&load(b)));
        }
        let core = order.into_iter().find(|&core| {
            placed.tasks[i].core = Some(core);
            let answers = analyse((&placed, &none), core, &alone);
            answers.len() <= HIGHEST as usize && answers.iter().all(|a| a.holds)
        });
        placed.tasks[i].core = Some(core?);
    }
    let busy: Vec<u32> = placed.tasks.iter().filter_map(|t| t.core).collect();
    let quiet: Vec<u32> = (0..nodes)
        .filter(|&n| {
            let lives = |t: &Task| t.release.is_some() && t.core.map(node_of) == Some(n);
            !placed.tasks.iter().any(lives) && n >= timed as u32
        })
        .collect();
    // Where every node has deadlines, the rest is spread over all.
    let rest: Vec<u32> = if quiet.is_empty() {
        (0..nodes).collect()
    } else {
        quiet
    };
    let mut free: Vec<u32> = (0..platform.node_of_core.len() as u32)
        .filter(|c| !busy.contains(c))
        .collect();
    free.sort_by_key(|&c| (!rest.contains(&node_of(c)), c));
    let mut free = free.into_iter();
    let mut turn = 0;
    let mut homes = Vec::new();
    for task in &mut placed.tasks {
        if task.release.is_some() {
            homes.push(task.core.map_or(0, node_of));
            continue;
        }
        let core = task
            .core
            .or_else(|| free.next())
            .unwrap_or(*allowed.last()?);
        task.core = Some(core);
        // On its own node where that is one of them.
        let home = node_of(core);
        homes.push(if rest.contains(&home) {
            home
        } else {
            turn += 1;
            rest[(turn - 1) % rest.len()]
        });
    }
    Some(Candidate {
        cores: placed.tasks.iter().filter_map(|t| t.core).collect(),
        nodes: homes,
    })
}

/// Groups of a candidate, and the group of each task.
pub(crate) fn groups(set: &TaskSet, nodes: &[u32]) -> (Vec<Group>, Vec<usize>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut of = Vec::new();
    for (task, &node) in set.tasks.iter().zip(nodes) {
        let core = task.core.unwrap_or(0);
        let known = groups.iter().position(|g| g.core == core && g.node == node);
        let at = known.unwrap_or_else(|| {
            groups.push(Group {
                name: task.name.clone(),
                core,
                node,
                bytes: 0,
                timed: false,
            });
            groups.len() - 1
        });
        let group = &mut groups[at];
        if group.bytes > 0 {
            group.name = format!("core-{core}-node-{node}");
        }
        group.bytes += task.bytes;
        group.timed |= task.release.is_some();
        of.push(at);
    }
    (groups, of)
}

/// Colours, times in them and the analysis of a candidate; how badly it misses.
fn build(
    platform: &Platform,
    (set, seed): (&TaskSet, u64),
    candidate: &Candidate,
    (makers, alone, undivided): (&[Maker], &[Profile], &[Time]),
) -> Result<(f64, Plan), PlanError> {
    let mut set = set.clone();
    for (task, &core) in set.tasks.iter_mut().zip(&candidate.cores) {
        task.core = Some(core);
    }
    let (groups, group_of) = groups(&set, &candidate.nodes);
    let dealt = deal(platform, &groups).map_err(|source| {
        let NoPlace::Banks { task, .. } = &source else {
            return at(&set, 0, source.to_string());
        };
        let in_group = |&i: &usize| groups[group_of[i]].name == *task;
        let line = (0..set.tasks.len())
            .find(in_group)
            .map_or(0, |i| set.tasks[i].line);
        PlanError::Place {
            file: set.file.clone(),
            line,
            source,
        }
    })?;
    let places: Vec<Place> = group_of
        .iter()
        .map(|&g| Place {
            colors: Some(dealt[g].0.clone()),
            node: None,
        })
        .collect();
    let costs = Costs::of(platform);
    let (mut profiles, mut played) = (alone.to_vec(), vec![0; set.tasks.len()]);
    for i in 0..set.tasks.len() {
        let task = &set.tasks[i];
        if task.release.is_some() {
            let given = (&alone[i], &places[i]);
            let jobs = jobs_of(platform, &set, i, seed);
            let there = in_colors(platform, task, &makers[i], given, jobs)
                .map_err(|e| told(&set, e.into()))?;
            set.tasks[i].wcet = slowed(task.wcet, undivided[i], &there);
            (profiles[i], played[i]) = (there.profile, there.jobs);
        }
    }
    let shares = |a: u32, b: u32| {
        let of = |core: u32| {
            groups
                .iter()
                .enumerate()
                .filter(move |(_, g)| g.core == core)
        };
        let common = of(a).any(|(_, g)| of(b).any(|(_, h)| g.node == h.node));
        let same = platform.llc_of_core[a as usize] == platform.llc_of_core[b as usize];
        let own = of(a).chain(of(b)).all(|(i, _)| dealt[i].1);
        let memory = if common {
            Sharing::Controller
        } else {
            Sharing::Nothing
        };
        (memory, same && !own)
    };
    let loud: Vec<u32> = set
        .tasks
        .iter()
        .filter(|t| t.release.is_none())
        .filter_map(|t| t.core)
        .filter(|&core| {
            !set.tasks
                .iter()
                .any(|t| t.core == Some(core) && t.release.is_some())
        })
        .collect();
    let verdict =
        |limits: &[Option<u64>]| analyse_all(platform, (&set, &profiles), limits, &shares);
    let mut limits = vec![None; platform.node_of_core.len()];
    let mut analysis = verdict(&limits);
    if !loud.is_empty() {
        for limit in LIMITS {
            if analysis.iter().all(|a| a.holds) {
                break;
            }
            loud.iter()
                .for_each(|&c| limits[c as usize] = Some(limit * 1_000_000));
            analysis = verdict(&limits);
        }
    }
    let enough = (0..set.tasks.len()).map(|i| {
        let name = &set.tasks[i].name;
        if analysis.iter().all(|a| a.holds || a.task != *name) {
            return Enough::default();
        }
        enough((&set, &profiles), i, &|set, profiles| {
            let answers = analyse_all(platform, (set, profiles), &limits, &shares);
            answers.iter().all(|a| a.holds || a.task != *name)
        })
    });
    let enough: Vec<Enough> = enough.collect();
    let missing = |a: &Answer| (-a.slack_ps).max(0) as f64 / a.deadline.0.max(1) as f64;
    let badness = analysis.iter().map(missing).fold(0.0, f64::max);
    let holds = analysis.iter().all(|a| a.holds);
    let priorities = set.priorities();
    let servers = match holds && set.order == Order::Edf {
        true => budgets(platform, (&set, &profiles), &limits, &shares),
        false => vec![None; set.tasks.len()],
    };
    let assignments = set.tasks.iter().enumerate().map(|(i, task)| {
        let group = &groups[group_of[i]];
        let colors = &dealt[group_of[i]].0;
        Assignment {
            task: task.name.clone(),
            core: group.core,
            node: group.node,
            group: group.name.clone(),
            bank_sets: colors.sets().map_or_else(String::new, ToString::to_string),
            llc: colors.llc().map_or_else(String::new, ToString::to_string),
            limit: limits[group.core as usize],
            priority: priorities[i],
            server: servers[i],
            wcet: task.wcet,
            jobs_alone: played[i],
            lines: profiles[i].lines,
        }
    });
    let plan = Plan {
        machine: platform.memory.name.clone(),
        holds,
        assignments: assignments.collect(),
        analysis,
        relaxations: Vec::new(),
        costs,
        candidates: 0,
        seed,
        places,
        makers: makers.to_vec(),
        accesses: profiles.iter().map(|p| p.accesses).collect(),
        limits,
        enough,
        set,
    };
    Ok((badness, plan))
}

/// Analyses every core that has deadlines.
pub(crate) fn analyse_all(
    platform: &Platform,
    tasks: (&TaskSet, &[Profile]),
    limits: &[Option<u64>],
    shares: &dyn Fn(u32, u32) -> (Sharing, bool),
) -> Vec<Answer> {
    let answers = by_core(tasks.0).map(|core| {
        let around = surroundings(platform, tasks, core, limits, shares).on_linux();
        analyse(tasks, core, &around)
    });
    answers.flatten().collect()
}

/// What each task has under SCHED_DEADLINE where all of them hold.
fn budgets(
    platform: &Platform,
    tasks: (&TaskSet, &[Profile]),
    limits: &[Option<u64>],
    shares: &dyn Fn(u32, u32) -> (Sharing, bool),
) -> Vec<Option<Server>> {
    let mut found = vec![None; tasks.0.tasks.len()];
    for core in by_core(tasks.0) {
        let around = surroundings(platform, tasks, core, limits, shares).on_linux();
        let (of, all): (Vec<usize>, Vec<Server>) =
            servers(tasks, core, &around).into_iter().unzip();
        for (task, server) in of.into_iter().zip(stretched(&all)) {
            found[task] = Some(server);
        }
    }
    found
}

/// Does every core hold, by processor time and memory alone? The first that does
/// not ends the search.
pub(crate) fn all_hold(
    platform: &Platform,
    tasks: (&TaskSet, &[Profile]),
    limits: &[Option<u64>],
    shares: &dyn Fn(u32, u32) -> (Sharing, bool),
) -> bool {
    by_core(tasks.0).all(|core| {
        let around = surroundings(platform, tasks, core, limits, shares);
        analyse(tasks, core, &around).iter().all(|a| a.holds)
    })
}

/// Cores that have deadlines.
fn by_core(set: &TaskSet) -> impl Iterator<Item = u32> {
    let timed = set.tasks.iter().filter(|t| t.release.is_some());
    let cores: BTreeSet<u32> = timed.filter_map(|t| t.core).collect();
    cores.into_iter()
}

/// Says how little would be enough, task by task, all others being as they are.
/// Times are of the file, not of the task in its colours.
fn relaxed(platform: &Platform, asked: &TaskSet, mut plan: Plan) -> Plan {
    let costs = Costs::of(platform);
    for answer in plan.analysis.iter().filter(|a| !a.holds) {
        let Some(i) = asked.tasks.iter().position(|t| t.name == answer.task) else {
            continue;
        };
        let (task, enough) = (&asked.tasks[i], &plan.enough[i]);
        let Some(release) = task.release else {
            continue;
        };
        let short = (-answer.slack_ps).max(0) as u64;
        let longer = enough.deadline.map(|longer| {
            let what = match longer > release.period {
                true => "a period and deadline",
                false => "a deadline",
            };
            format!("{what} of at least {longer}")
        });
        let quicker = enough.wcet.map(|part| {
            let wcet = Time((task.wcet.0 as f64 * part) as u64);
            format!("a wcet of at most {wcet}")
        });
        let times: Vec<String> = longer.into_iter().chain(quicker).collect();
        let mut ways = Vec::new();
        if !times.is_empty() {
            ways.push(format!("give it {}", times.join(", or ")));
        }
        if answer.others.0 > 0 {
            ways.push(format!(
                "leave more of core {} free: Linux keeps {} of each second for what is not real time (kernel.sched_rt_runtime_us; from 6.12 on the fair server), and lets it wait no longer",
                answer.core, answer.others.min(Time(OTHERS_PS))
            ));
        }
        // No patience helps against what preempts it ever again.
        let mates = plan.set.tasks.iter().filter(|t| t.release.is_some());
        let mates = mates.filter(|t| t.core == Some(answer.core)).count();
        if enough.deadline.is_none() && mates > 1 {
            ways.push("bind it to another core than what preempts it (`core`)".to_owned());
        }
        let others: Vec<&str> = plan
            .assignments
            .iter()
            .filter(|a| a.limit.is_some())
            .map(|a| a.task.as_str())
            .collect();
        if answer.memory.0 > short && !others.is_empty() {
            ways.push(format!(
                "keep {} from running beside it",
                others.join(" and ")
            ));
        } else if answer.memory.0 > short {
            ways.push(format!(
                "give it a controller of its own: waiting for others is {} of its response (a line of theirs costs it up to {})",
                answer.memory,
                Time(costs.other_bank_ps)
            ));
        }
        if ways.is_empty() {
            ways.push("no deadline and no wcet is enough here: take something else from its core or its controller".to_owned());
        }
        plan.relaxations.push(Relaxation {
            change: ways.join(", or "),
            task: answer.task.clone(),
            misses_by: Time(short),
        });
    }
    plan
}

impl Plan {
    /// What `alone` is, in words: nobody looked at later jobs.
    #[must_use]
    pub fn alone_is(&self) -> String {
        let timed = self.assignments.iter().filter(|a| a.jobs_alone > 0);
        let jobs = timed.map(|a| format!("{} {}", a.task, a.jobs_alone));
        format!(
            "`alone`: its wcet, lengthened as its first jobs are in these colours (played: {}); later ones are for its wcet to cover",
            jobs.collect::<Vec<_>>().join(", ")
        )
    }
}

impl Check {
    /// Tasks that took longer, or missed, where the analysis said they can't:
    /// the analysis is wrong there, and nothing that it says can be relied on.
    #[must_use]
    pub fn disproved(&self, analysis: &[Answer]) -> Vec<String> {
        let proved = |name: &str| analysis.iter().find(|a| a.task == name && a.holds);
        let wrong = |(name, played, _, missed): &&(String, Time, u64, u64)| {
            let Some(answer) = proved(name) else {
                return false;
            };
            *missed > 0 || *played > answer.response.unwrap_or(answer.deadline)
        };
        let tasks = self.tasks.iter().filter(wrong);
        tasks.map(|(name, ..)| name.clone()).collect()
    }
}

/// Plays the plan on the model.
///
/// # Errors
/// When the model refuses it.
pub fn simulate(platform: &Platform, plan: &Plan) -> Result<Check, PlanError> {
    let set = &plan.set;
    // Times are not divided here: cold caches would weigh more than they do.
    let played = play(&Setup {
        platform,
        set,
        makers: &plan.makers,
        accesses: &plan.accesses,
        places: &plan.places,
        limits: &plan.limits,
        scale: 1,
        length_ps: check_ps(set),
        seed: plan.seed,
    })?;
    let of = |(i, task): (usize, &Task)| {
        task.release?;
        let f = played.timeline.figures(i, 0);
        Some((task.name.clone(), Time(f.response_ps), f.jobs, f.missed))
    };
    Ok(Check {
        tasks: set.tasks.iter().enumerate().filter_map(of).collect(),
        timeline: played.timeline,
    })
}
