//! How much other cores can lengthen a task by what they ask of memory.
//!
//! After H. Kim et al., "Bounding memory interference delay in COTS-based
//! multi-core systems" (RTAS 2014), two bounds of what one other core can do, of
//! which the lesser holds:
//!
//! - *request driven*: each line of the task waits for what that core can have
//!   in flight;
//! - *job driven*: each line that the core moves while the task runs is in the
//!   way once.
//!
//! What one line costs follows from the data sheet's distances
//! ([`soloist_memory::dram::Timing`]). Beyond the paper, since its machine has neither:
//!
//! - *several misses in flight* on either side: a core's time is a longest path
//!   over its lines, so that what lengthens one line by d lengthens the job by at
//!   most d;
//! - *writes*: each fill may push one dirty line out, and each of these may turn
//!   the bus round twice (write draining); a task whose cache others fill
//!   writes back lines of theirs;
//! - *heads of queues*: requests of a node go to its controllers in order, so
//!   that a private bank does not keep a task from waiting behind others' row
//!   conflicts where the queue can fill;
//! - *a shared last level*: all that private caches ask for may miss, and each
//!   fill may have to wait until a line of another core, and of another node, is
//!   written back;
//! - *victim buffers*: they belong to a last level and not to a core, so that what
//!   they hold is in the way once for all cores of that level;
//! - *lines that leave elsewhere*: a victim buffer whose lines wait at another node lets none
//!   of the task's out, whatever colours keep them apart, so that what crowds that node counts
//!   too; a core also moves the lines of others that it pushes out, on their nodes;
//! - *turns of the bus*: what needs no turn of it, to another direction or rank, goes first.
//!   Where no cap ends that, a stream starves a line for as long as it lasts, and only the
//!   job-driven bound holds, and so with several ranks, of which one may be read and the other
//!   written in turn, and on several channels, one of which may be drained for as long; else each
//!   line waits for a turn (`direction_cap`);
//! - *row hits*: of all cores together at most `hit_cap` pass each request that a
//!   bank's queue holds, and a hit costs a column command, not a row;
//! - *a core that is being stopped*: when a limited core has read its budget, an interrupt comes,
//!   a thread wakes, and the core goes on meanwhile. For so long ([`crate::tasks::STOP`]) it may
//!   be in the way all the time, and then what it has under way;
//! - *tasks of the core itself*: it looks up who runs after so many instructions of the one that
//!   has it, and when the line is here that this one waits for; what a preempted task had in the caches is
//!   fetched again, and each fill may push out a dirty line that another task of
//!   the core left, be it never preempted; pages are walked to again that others
//!   put out of the TLB; what the task that had the core before has on its way goes first;
//! - *writes that wait already*: a controller answers a write when it has taken it, and may keep
//!   as many as its queues hold until a job is there that they are in the way of; by the
//!   request-driven bound each of its lines may find as many;
//! - *rows that close by themselves*: a line that is late may find its row closed;
//! - *refresh*: of each rank one more at the start, and one for each interval of delay,
//!   that of other refreshes included; each also closes rows, which are opened again.
//!
//! # Assumptions
//! Everything in DRAM, all pages of a task on its core's node, no DMA, no SMI,
//! no shared data; no stores past the caches where a core is limited, whose reads alone are
//! counted, nor a longer time until it is stopped; no refreshes beyond the usual
//! (`refresh_management`); FR-FCFS in which a bank's oldest request is passed at most `hit_cap`
//! times; caches whose misses don't get more by being late; by the request-driven bound, no core
//! that goes on writing without reading (it could, where its last level has fewer ways than its
//! private caches), since a drain would not end; nor by a limit, which is of reads, and which a
//! plan does not give there. The private caches' prefetcher may add to what is in flight and is
//! counted there.

use serde::Serialize;
use soloist_memory::Platform;

use super::costs::MOVED;
pub use super::costs::{Costs, Refresh};
use super::ProfiledSet;
use crate::model::profile::Profile;
use crate::schedule::scheduler::NEVER;

/// The memory that a core shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Banks.
    Banks,
    /// A controller, banks apart.
    Controller,
    /// Neither.
    Nothing,
}

/// The hardware that two cores share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// The memory that they share.
    pub memory: Sharing,
    /// Each can push the other's lines out of the last level.
    pub llc: bool,
    /// The second has memory of a node of which the first has none.
    pub elsewhere: bool,
}

/// By which way dirty lines of a core leave, as those of another see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By another victim buffer.
    Apart,
    /// By the same one, to the same nodes.
    Same,
    /// By the same one to other nodes, or it keeps nodes busy to which such lines go.
    Elsewhere,
}

/// Under what tasks run.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// Bytes a second that each core may read, by number; `None`: no limit.
    pub limits: &'a [Option<u64>],
    /// The hardware that two cores share.
    pub shared: &'a dyn Fn(u32, u32) -> Shared,
}

/// A core as others see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoRunner {
    /// Its number.
    pub core: u32,
    /// The memory that it shares with the core that is looked at, or with lines that leave by
    /// that core's victim buffer.
    pub sharing: Sharing,
    /// By which way its dirty lines leave.
    pub way: Way,
    /// It can push lines out of the same last-level sets.
    pub shares_llc: bool,
    /// Its last level.
    pub llc: usize,
    /// Lines a second that it may read; `None`: no limit.
    pub limit: Option<u64>,
    /// So long it may go on when it has read them, ps.
    pub stop_ps: u64,
    /// Its tasks with deadlines.
    pub tasks: Vec<CoRunnerTask>,
    /// Best-effort tasks run on it.
    pub best_effort: bool,
}

/// A task with deadlines as other cores see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CoRunnerTask {
    /// Time from release to release.
    pub period_ps: u64,
    /// Time from release to deadline.
    pub deadline_ps: u64,
    /// Time by which a release may be late.
    pub jitter_ps: u64,
    /// Lines that a job moves, both ways.
    pub lines: u64,
}

/// Period of the regulator, ps.
pub const PERIOD_PS: u64 = 1_000_000_000;

impl CoRunner {
    /// The longest that a line of it is in the way, ps.
    fn line_ps(&self, costs: &Costs) -> u64 {
        let leaving = match self.way {
            Way::Apart => 0,
            Way::Same => costs.leaving_ps,
            Way::Elsewhere => costs.leaving_ps + costs.leaving_far_ps,
        };
        match self.sharing {
            Sharing::Banks => costs.same_bank_ps + leaving,
            Sharing::Controller => costs.other_bank_ps + leaving,
            Sharing::Nothing if self.way == Way::Apart => 0,
            // The way out of the last level is shared with what is in it.
            Sharing::Nothing => costs.same_bank_ps + leaving,
        }
    }

    /// Lines that it moves in any window of so long, both ways, but for those that it moves while
    /// it is being stopped; `None`: no bound.
    #[must_use]
    pub fn lines(&self, costs: &Costs, window_ps: u64) -> Option<u64> {
        let limited = self.limited(costs, window_ps);
        match (limited, self.demanded(costs, window_ps)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Lines that it moves so by its limit; `None`: it has none.
    fn limited(&self, costs: &Costs, window_ps: u64) -> Option<u64> {
        self.limit.map(|rate| {
            let budget = (u128::from(rate) * u128::from(PERIOD_PS)).div_ceil(1_000_000_000_000);
            // The guard counts its reads alone, and each line may push out a dirty one of each
            // cache. Lines that it holds when it stops leave when the next period begins. Lines
            // on their way push others out, whatever the budget; so do lines that it gives up
            // until it has no room.
            let each = 1 + costs.pushes;
            let beyond = costs.reads * each + costs.room;
            let all = (budget as u64).saturating_mul(each).saturating_add(beyond);
            all.saturating_mul(self.periods(window_ps))
                .saturating_add(costs.in_flight)
        })
    }

    /// Periods of the regulator that a window of so long can touch. They begin late where
    /// interrupts are off on the core whose timer begins them.
    fn periods(&self, window_ps: u64) -> u64 {
        window_ps.saturating_add(self.stop_ps).div_ceil(PERIOD_PS) + 1
    }

    /// The longest that it is in the way while it is being stopped: whatever it moves then, for
    /// no longer than that lasts, and with what it leaves under way and in the controllers.
    fn past_ps(&self, costs: &Costs, line_ps: u64) -> u64 {
        let nodes = match self.way {
            Way::Elsewhere => costs.nodes,
            Way::Apart | Way::Same => 1,
        };
        // A row that it leaves open is closed for a line of another.
        let left = match self.sharing {
            Sharing::Banks => costs.in_flight + costs.in_banks,
            Sharing::Controller | Sharing::Nothing => costs.in_flight,
        };
        match self.stop_ps {
            0 => 0,
            stop_ps => stop_ps
                .saturating_add(left.saturating_mul(line_ps))
                .saturating_add(nodes.saturating_mul(costs.kept_ps(line_ps))),
        }
    }

    /// Lines that its tasks move in any window of so long, both ways; `None`: no bound.
    fn demanded(&self, costs: &Costs, window_ps: u64) -> Option<u64> {
        (!self.best_effort).then(|| {
            let lines = self.tasks.iter().map(|task| {
                let reach = window_ps.saturating_add(task.deadline_ps + task.jitter_ps);
                reach.div_ceil(task.period_ps).saturating_mul(task.lines)
            });
            lines.fold(costs.in_flight, u64::saturating_add)
        })
    }

    /// The longest that what it moves in a window of so long is in the way, if each
    /// line is so once, ps; [`NEVER`]: no bound.
    #[must_use]
    pub fn job_ps(&self, costs: &Costs, window_ps: u64) -> u64 {
        let line = self.line_ps(costs);
        if line == 0 {
            return 0;
        }
        let demanded = self.demanded(costs, window_ps);
        let demanded = demanded.map_or(NEVER, |lines| lines.saturating_mul(line));
        let stops = self
            .periods(window_ps)
            .saturating_mul(self.past_ps(costs, line));
        let limited = self.limited(costs, window_ps);
        let limited = limited.map_or(NEVER, |lines| {
            lines.saturating_mul(line).saturating_add(stops)
        });
        demanded.min(limited)
    }

    /// The longest that what it has in flight is in the way of `own` lines, its write-backs
    /// on their way out of the last level apart.
    fn request_ps(&self, costs: &Costs, own: u64) -> u64 {
        if own > 0 && self.sharing != Sharing::Nothing && costs.turn_ps.is_none() {
            return NEVER;
        }
        // Those that it gave up wait for places before those of the task.
        let waiting = match self.way {
            Way::Apart => 0,
            Way::Same | Way::Elsewhere => costs.room,
        };
        let lines = own.saturating_mul(2 * costs.reads + waiting);
        lines.saturating_mul(self.line_ps(costs))
    }
}

/// What lines wait for, and what by request-driven bounds comes on top, once for all cores.
#[derive(Default)]
struct Waits {
    ps: u64,
    /// Some of it is request driven, and in the same banks.
    banks: bool,
    /// Some of it is request driven, and in the same controller.
    controller: bool,
    /// The dearest line of what is request driven, ps.
    line_ps: u64,
    /// The same of what may be behind a drain.
    drained_ps: u64,
}

/// What each of `own` lines waits for at most, by the lesser bound of each of the
/// cores of one last level.
fn of_level(costs: &Costs, level: &[&CoRunner], own: u64, window_ps: u64) -> Waits {
    let (mut all, mut jobs) = (Waits::default(), 0u64);
    let mut asked = 0u64;
    for co_runner in level {
        let job = co_runner.job_ps(costs, window_ps);
        let request = co_runner.request_ps(costs, own);
        jobs = jobs.saturating_add(job);
        if job <= request {
            all.ps = all.ps.saturating_add(job);
            continue;
        }
        all.ps = all.ps.saturating_add(request);
        let line_ps = co_runner.line_ps(costs);
        all.line_ps = all.line_ps.max(line_ps);
        // A drain at another node holds up what is behind a read that finds no room there.
        if co_runner.sharing != Sharing::Nothing || costs.reads > costs.read_queue {
            all.drained_ps = all.drained_ps.max(line_ps);
        }
        all.banks |= co_runner.sharing == Sharing::Banks;
        all.controller |= co_runner.sharing != Sharing::Nothing;
        asked += costs.in_flight - costs.reads;
    }
    let victims = 2 * asked.min(costs.victims);
    let more = own.saturating_mul(victims).saturating_mul(all.line_ps);
    all.ps = all.ps.saturating_add(more);
    match jobs <= all.ps {
        true => Waits {
            ps: jobs,
            ..Waits::default()
        },
        false => all,
    }
}

/// A core's surroundings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surroundings {
    /// Costs on this machine.
    pub costs: Costs,
    /// All other cores that do something.
    #[serde(rename = "neighbours")]
    pub co_runners: Vec<CoRunner>,
    /// The kernel keeps a part of each second for what is not real time.
    pub kernel: bool,
}

impl Surroundings {
    /// Nobody else.
    #[must_use]
    pub fn alone(costs: Costs) -> Self {
        Self {
            costs,
            co_runners: Vec::new(),
            kernel: false,
        }
    }

    /// Returns the same as Linux runs tasks with deadlines ([`crate::analysis::linux`]).
    #[must_use]
    pub fn on_linux(self) -> Self {
        Self {
            kernel: true,
            ..self
        }
    }

    /// Lines of a job here, the last level being shared or not.
    #[must_use]
    pub fn lines(&self, profile: &Profile) -> u64 {
        if self.co_runners.iter().any(|n| n.shares_llc) {
            profile.lines.max(all_missed(profile))
        } else {
            profile.lines
        }
    }

    /// Returns the time that a job takes longer because others fill the last level.
    #[must_use]
    pub fn evicted_ps(&self, profile: &Profile) -> u64 {
        if !self.co_runners.iter().any(|n| n.shares_llc) {
            return 0;
        }
        let missed = profile.requests.saturating_mul(self.costs.miss_ps);
        let pushed = profile
            .requests
            .saturating_mul((MOVED - 1) * self.costs.pushed_ps);
        missed.saturating_add(pushed)
    }

    /// The longest that all others delay `own` lines in a window of so long,
    /// refreshes included.
    #[must_use]
    pub fn delay(&self, own: u64, window_ps: u64) -> u64 {
        let mut levels: Vec<usize> = self.co_runners.iter().map(|n| n.llc).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut all = Waits::default();
        for llc in levels {
            let level: Vec<_> = self.co_runners.iter().filter(|n| n.llc == llc).collect();
            let waits = of_level(&self.costs, &level, own, window_ps);
            all.ps = all.ps.saturating_add(waits.ps);
            all.banks |= waits.banks;
            all.controller |= waits.controller;
            all.drained_ps = all.drained_ps.max(waits.drained_ps);
        }
        // Each line may find all the writes that controllers keep being drained.
        let mut each = match all.drained_ps {
            0 => 0,
            line_ps => self.nodes().saturating_mul(self.costs.drain_ps(line_ps)),
        };
        if all.banks {
            each = each.saturating_add(self.costs.passed_ps);
        }
        // Without a turn nothing that has to do with the controller is request driven.
        if let (true, Some(turn_ps)) = (all.controller, self.costs.turn_ps) {
            each = each.saturating_add(turn_ps);
        }
        let all = all.ps.saturating_add(own.saturating_mul(each));
        let jobs = self
            .co_runners
            .iter()
            .map(|n| n.job_ps(&self.costs, window_ps));
        let all = all.min(jobs.fold(0, u64::saturating_add));
        let all = all.saturating_add(self.kept_ps(own));
        all.saturating_add(self.costs.refresh.added(all, own))
    }

    /// The longest that writes of all others that the controllers keep already are in the way
    /// of a job of `own` lines: once, whoever made them.
    fn kept_ps(&self, own: u64) -> u64 {
        let lines = self.co_runners.iter().map(|n| n.line_ps(&self.costs));
        match (own, lines.max()) {
            (0, _) | (_, None | Some(0)) => 0,
            (_, Some(line_ps)) => self.nodes().saturating_mul(self.costs.kept_ps(line_ps)),
        }
    }

    /// Nodes whose controllers keep writes that are in the way.
    fn nodes(&self) -> u64 {
        let elsewhere = self.co_runners.iter().any(|n| n.way == Way::Elsewhere);
        if elsewhere {
            self.costs.nodes
        } else {
            1
        }
    }
}

/// Lines of a job all of whose requests miss in a last level that others fill.
fn all_missed(profile: &Profile) -> u64 {
    profile.requests.saturating_mul(MOVED)
}

/// Cores that do something, as `core` sees them.
#[must_use]
pub fn surroundings(tasks: ProfiledSet, core: u32, conditions: Conditions) -> Surroundings {
    let mut cores: Vec<u32> = tasks.set.tasks.iter().filter_map(|t| t.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let view = View {
        tasks,
        costs: Costs::of(conditions.platform),
        conditions,
        cores: &cores,
    };
    let others = cores.iter().filter(|&&other| other != core);
    Surroundings {
        co_runners: others.map(|&other| view.co_runner(core, other)).collect(),
        costs: view.costs,
        kernel: false,
    }
}

/// What cores do to each other.
struct View<'a> {
    tasks: ProfiledSet<'a>,
    conditions: Conditions<'a>,
    costs: Costs,
    /// Those that do something.
    cores: &'a [u32],
}

impl View<'_> {
    fn shared(&self, a: u32, b: u32) -> Shared {
        (self.conditions.shared)(a, b)
    }

    /// What lines of `b` share with those of `a`, lines of others included that `b` pushes out
    /// of its last level.
    fn meet(&self, a: u32, b: u32) -> Sharing {
        let pushed = self.cores.iter().filter(|&&mate| mate != a && mate != b);
        let pushed = pushed.filter(|&&mate| self.shared(b, mate).llc);
        let pushed = pushed.map(|&mate| self.shared(a, mate).memory);
        pushed.fold(self.shared(a, b).memory, Ord::min)
    }

    /// Do dirty lines of both leave by one victim buffer?
    fn leave_alike(&self, a: u32, b: u32) -> bool {
        let llc_of = &self.conditions.platform.llc_of_core;
        llc_of[a as usize] == llc_of[b as usize]
    }

    /// What lines of `other` share with those of `core`, or with those of others that leave by
    /// its victim buffer: a full one lets no line of `core` out.
    fn sharing(&self, core: u32, other: u32) -> (Sharing, Way) {
        let direct = self.meet(core, other);
        let mates = self.cores.iter().filter(|&&m| m != core && m != other);
        let mates = mates.filter(|&&mate| self.leave_alike(core, mate));
        let behind = mates.map(|&mate| self.meet(mate, other));
        let all = behind.fold(direct, Ord::min);
        let elsewhere = direct == Sharing::Nothing || self.shared(core, other).elsewhere;
        let way = match (self.leave_alike(core, other), elsewhere) {
            (true, true) => Way::Elsewhere,
            (true, false) => Way::Same,
            (false, _) if direct == Sharing::Nothing && all != direct => Way::Elsewhere,
            (false, _) => Way::Apart,
        };
        (all, way)
    }

    /// Core `other` as `core` sees it.
    fn co_runner(&self, core: u32, other: u32) -> CoRunner {
        let line = u64::from(self.conditions.platform.memory.map.line_size());
        let mine = self.tasks.set.tasks.iter().enumerate();
        let mine = mine.filter(|(_, t)| t.core == Some(other));
        let mine: Vec<_> = mine
            .map(|(i, t)| (t, self.tasks.profile(i, &self.costs)))
            .collect();
        // A core that has a last level of its own writes back its own lines only, and
        // they were counted; else each fill may push out one of anybody's.
        let mut mates = self.cores.iter().filter(|&&c| c != other);
        let invaded = mates.any(|&c| self.shared(other, c).llc);
        let alone = mine.len() == 1;
        let kept = mine
            .iter()
            .map(|(t, _)| self.costs.again((t.bytes / line).min(self.costs.cached)));
        let again = if alone { 0 } else { kept.max().unwrap_or(0) };
        let timed = mine.iter().filter_map(|(task, profile)| {
            let release = task.release?;
            let stale = match alone {
                true => 0,
                false => self
                    .costs
                    .stale(profile.requests, task.bytes.div_ceil(line)),
            };
            let lines = match invaded {
                true => profile.lines.max(all_missed(profile)),
                false => profile.lines,
            };
            Some(CoRunnerTask {
                period_ps: release.period.0,
                deadline_ps: release.deadline.0,
                jitter_ps: release.jitter.0,
                lines: lines + again + stale,
            })
        });
        let limit = self.conditions.limits.get(other as usize);
        let (sharing, way) = self.sharing(core, other);
        CoRunner {
            core: other,
            sharing,
            way,
            shares_llc: self.shared(core, other).llc,
            llc: self.conditions.platform.llc_of_core[other as usize],
            limit: limit.copied().flatten().map(|bytes| bytes.div_ceil(line)),
            stop_ps: self.tasks.set.stop.0,
            tasks: timed.collect(),
            best_effort: mine.iter().any(|(t, _)| t.release.is_none()),
        }
    }
}
