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
//! - *turns of the bus*: what needs no turn of it, to another direction or rank, goes first.
//!   Where no cap ends that, a stream starves a line for as long as it lasts, and only the
//!   job-driven bound holds, and so on several channels, one of which may be drained for as
//!   long; else each line waits for a turn (`direction_cap`, `rank_cap`);
//! - *row hits*: of all cores together at most `hit_cap` pass each request that a
//!   bank's queue holds, and a hit costs a column command, not a row;
//! - *tasks of the core itself*: it looks up who runs after so many instructions of the one that
//!   has it; what a preempted task had in the caches is
//!   fetched again, and each fill may push out a dirty line that another task of
//!   the core left, be it never preempted; pages are walked to again that others
//!   put out of the TLB; what the task that had the core before has on its way goes first;
//! - *writes that wait already*: a controller answers a write when it has taken it, and may keep
//!   as many as its queues hold until a job is there that they are in the way of;
//! - *refresh*: of each rank one more at the start, and one for each interval of delay,
//!   that of other refreshes included; each also closes rows, which are opened again.
//!
//! # Assumptions
//! Everything in DRAM, all pages of a task on its core's node, no DMA, no SMI,
//! no shared data; no refreshes beyond the usual (`refresh_management`); FR-FCFS in which a
//! bank's oldest request is passed at most `hit_cap` times; caches whose misses don't get
//! more by being late. The private caches' prefetcher may add to what is in flight and is
//! counted there.

use serde::Serialize;
use soloist_memory::dram::Timing;
use soloist_memory::Platform;

use super::ProfiledSet;
use crate::model::profile::Profile;
use crate::model::program::CHUNK;
use crate::schedule::scheduler::NEVER;

const PAGE: u64 = 4096;

/// The memory that a core shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
}

/// Under what tasks run.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// Bytes a second that each core may read, and write, by number; `None`: no
    /// limit.
    pub limits: &'a [Option<u64>],
    /// The hardware that two cores share.
    pub shared: &'a dyn Fn(u32, u32) -> Shared,
}

/// Refresh of the ranks of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Refresh {
    /// From one of a rank to its next, ps.
    pub interval_ps: u64,
    /// A line that finds its row closed by one waits so much longer, ps.
    pub time_ps: u64,
    /// A line of another row that it closed waits so much longer, ps.
    pub reopen_ps: u64,
    /// Number of these rows.
    pub rows: u64,
    /// Ranks of the node's channels, each of which is refreshed for itself.
    pub ranks: u64,
    /// The least time that a line of others is in the way, ps.
    pub line_ps: u64,
}

impl Refresh {
    fn new(platform: &Platform, t: &Timing, line_ps: u64) -> Self {
        let memory = &platform.memory;
        let ps = |cycles: u64| cycles * u64::from(memory.device.tck_ps);
        // It stops its banks at once, and closes their rows when they may be closed: after what
        // was sent last. The line then opens its row again.
        let closes = t.act_pre.max(t.rd_pre).max(t.wr_pre) + t.pre_all_act;
        let ranks = u64::from(memory.geometry.ranks);
        Self {
            interval_ps: ps((t.ref_interval / ranks * ranks).max(1)),
            time_ps: ps(closes + t.ref_act.max(t.ref_ref) + t.act_col),
            // A row that is opened late may be closed late too.
            reopen_ps: ps(t.act_col.max(t.act_pre)),
            rows: u64::from(memory.device.banks / memory.device.refresh_units()) - 1,
            ranks: ranks * u64::from(memory.map.n_channels()),
            line_ps: line_ps.max(1),
        }
    }

    /// Returns what refreshes add to a job of `own` lines that is delayed by so much: others
    /// may come in the time that they add.
    #[must_use]
    pub fn added(&self, delay_ps: u64, own: u64) -> u64 {
        // Each holds up another line, of the job or in its way; no job has none.
        let own = own.max(1);
        let most = own.saturating_add(delay_ps.div_ceil(self.line_ps));
        let mut added = 0u64;
        loop {
            let each = delay_ps.saturating_add(added).div_ceil(self.interval_ps);
            let all = (each + 1).saturating_mul(self.ranks).min(most);
            let next = self.of(all, own);
            if next <= added {
                return next;
            }
            // Where ranks are so many that one is refreshed nearly always, no time is enough.
            added = match self.ranks.saturating_mul(self.time_ps) < self.interval_ps / 10 * 9 {
                true => next,
                false => return self.of(most, own),
            };
        }
    }

    /// Time that so many refreshes add to a job of `own` lines, ps.
    fn of(&self, refreshes: u64, own: u64) -> u64 {
        let rows = refreshes.saturating_mul(self.rows).min(own);
        let reopened = rows.saturating_mul(self.reopen_ps);
        reopened.saturating_add(refreshes.saturating_mul(self.time_ps))
    }
}

/// The cost of one line of another core, and the lines that it can have in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// Cost of a line in the same bank, ps.
    pub same_bank_ps: u64,
    /// Cost of a line in another bank of the controller, ps.
    pub other_bank_ps: u64,
    /// A line that is pushed out of a shared last level to another node, ps.
    pub pushed_ps: u64,
    /// A line from memory when nobody is in the way, ps.
    pub miss_ps: u64,
    /// Refresh.
    pub refresh: Refresh,
    /// Lines that a core can have in flight, write-backs of its cache included.
    pub in_flight: u64,
    /// Those of them that it waits for.
    pub reads: u64,
    /// Writes that the controllers of a node keep, from whenever they were made.
    pub kept: u64,
    /// Lines that a task has on their way when another gets its core: those in flight, and
    /// writes that wait to be drained.
    pub handed_over: u64,
    /// Lines on their way out that a last level has room for.
    pub victims: u64,
    /// Row hits that may pass a request from when it enters its bank's queue, all
    /// together, ps.
    pub passed_ps: u64,
    /// What goes first since it need not turn the bus, for each line, ps; `None`: any number of
    /// lines, so that they starve it.
    pub turn_ps: Option<u64>,
    /// Lines that all caches of a core, and its last level, hold.
    pub cached: u64,
    /// A line from the last level, ps.
    pub hit_ps: u64,
    /// Pages that a core's TLB holds, and a page walk, ps.
    pub tlb: (u64, u64),
    /// Instructions after which a core looks up who runs, ps.
    pub chunk_ps: u64,
}

impl Costs {
    /// Returns the costs on a machine.
    #[must_use]
    pub fn of(platform: &Platform) -> Self {
        let t = Timing::new(&platform.memory.device);
        let ps = |cycles: u64| cycles * u64::from(platform.memory.device.tck_ps);
        let line = u64::from(platform.memory.map.line_size());
        let nb = &platform.northbridge;
        let policy = &platform.memory.policy;
        let path = line * 1_000_000 / nb.bytes_per_us.max(1);
        // A column command of the other direction turns the bus round, and back.
        let around = t.rd_wr.max(t.rd_wr_o) + t.wr_rd_l.max(t.wr_rd_s).max(t.wr_rd_o);
        let column = around + t.rd_rd_l.max(t.wr_wr_l).max(t.rd_rd_o).max(t.wr_wr_o);
        let row = t
            .act_act
            .max(t.act_col + t.wr_pre.max(t.rd_pre) + t.pre_act);
        let activate = (t.act_act_l.max(t.act_act_s)).max(t.faw.saturating_sub(3 * t.act_act_s));
        let core = &platform.core;
        let prefetches = if core.prefetch {
            core.prefetch_slots
        } else {
            0
        };
        let reads = u64::from(core.outstanding + prefetches);
        let in_flight =
            reads + u64::from(nb.victims).min(2 * reads + u64::from(policy.write_queue));
        let inter = activate + t.pre_pre_s.max(1) + column;
        // Where the queue can fill, the head of the line waits for its own rows.
        let queue = u64::from(policy.read_queue);
        let other = if in_flight > queue {
            inter.max(row)
        } else {
            inter
        };
        let far = platform.paths.iter();
        let far = far.map(|p| line * 1_000_000 / p.bytes_per_us.max(1) + p.latency_ps);
        let levels = platform.private.iter().chain([&platform.llc]);
        let channels = u64::from(platform.memory.map.n_channels());
        let kept = (u64::from(policy.write_queue) + in_banks(platform)) * channels;
        Self {
            same_bank_ps: ps(2 * row + column) + path,
            other_bank_ps: ps(other) + path,
            pushed_ps: ps(row + column) + path + far.max().unwrap_or(0),
            miss_ps: platform.llc.latency_ps
                + nb.request_ps
                + nb.response_ps
                + ps(t.pre_act + t.act_col + t.rd_done + around)
                + path,
            refresh: Refresh::new(platform, &t, ps(column)),
            in_flight,
            reads,
            kept,
            handed_over: in_flight + u64::from(policy.write_queue) * channels,
            victims: u64::from(nb.victims),
            passed_ps: u64::from(policy.bank_queue) * u64::from(policy.hit_cap) * ps(column),
            turn_ps: turn(platform).map(|columns| columns * ps(column)),
            cached: levels.map(|l| l.shape.sets * l.shape.ways as u64).sum(),
            hit_ps: platform.llc.latency_ps,
            tlb: (u64::from(core.tlb), platform.walk_ps),
            chunk_ps: (u64::from(CHUNK + 1) * platform.instruction_fs).div_ceil(1000),
        }
    }

    /// Lines that private caches can ask the last level for in so much time of a job alone:
    /// each is on its way for as long as a hit takes at least.
    #[must_use]
    pub fn requests_in(&self, time_ps: u64) -> u64 {
        let rounds = time_ps.div_ceil(self.hit_ps.max(1));
        rounds.saturating_add(1).saturating_mul(self.reads)
    }

    fn line_ps(&self, co_runner: &CoRunner) -> u64 {
        match co_runner.sharing {
            Sharing::Banks => self.same_bank_ps,
            Sharing::Controller => self.other_bank_ps,
            // The way out of the last level is shared with what is in it.
            Sharing::Nothing if co_runner.shares_llc => self.pushed_ps,
            Sharing::Nothing => 0,
        }
    }

    /// Walks to the pages of a task of so many bytes that are not in the TLB any
    /// more once another task of its core ran.
    #[must_use]
    pub fn walks_ps(&self, bytes: u64) -> u64 {
        let (pages, walk_ps) = self.tlb;
        // A piece of memory may begin and end within a page.
        (bytes.div_ceil(PAGE) + 1).min(pages) * walk_ps
    }
}

/// Requests that the queues of a controller's banks hold.
fn in_banks(platform: &Platform) -> u64 {
    let shape = &platform.memory.geometry;
    u64::from(shape.ranks * shape.banks) * u64::from(platform.memory.policy.bank_queue)
}

/// Column commands that go before another since they need no turn of the bus; `None`: nothing
/// bounds them.
fn turn(platform: &Platform) -> Option<u64> {
    let (policy, shape) = (&platform.memory.policy, &platform.memory.geometry);
    // A drain lasts as long as writes come, and reads wait for its end before they are held to
    // any turn. On one channel none comes without a read that waits too; of several, lines that
    // are read on one push out those of another.
    if platform.memory.map.n_channels() > 1 {
        return None;
    }
    // In its own turn each other bank may go before it; if that is longer than a turn, others
    // come between.
    let banks = u64::from(shape.ranks * shape.banks);
    let until = |cap: u32| (cap > 0).then_some(u64::from(cap) + banks);
    let ranks = match shape.ranks {
        1 => 0,
        _ => until(policy.rank_cap)?,
    };
    Some(until(policy.direction_cap)? + ranks)
}

/// A core as others see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoRunner {
    /// Its number.
    pub core: u32,
    /// The memory that it shares with the core that is looked at.
    pub sharing: Sharing,
    /// It can push lines out of the same last-level sets.
    pub shares_llc: bool,
    /// Its last level.
    pub llc: usize,
    /// Lines a second that it may read, and write; `None`: no limit.
    pub limit: Option<u64>,
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
    /// Lines that it moves in any window of so long, both ways; `None`: no bound.
    #[must_use]
    pub fn lines(&self, costs: &Costs, window_ps: u64) -> Option<u64> {
        let limited = self.limit.map(|rate| {
            let budget = (u128::from(rate) * u128::from(PERIOD_PS)).div_ceil(1_000_000_000_000);
            let periods = window_ps.div_ceil(PERIOD_PS) + 1;
            (2 * budget as u64).saturating_mul(periods) + costs.in_flight
        });
        let demanded = (!self.best_effort).then(|| {
            let lines = self.tasks.iter().map(|task| {
                let reach = window_ps.saturating_add(task.deadline_ps + task.jitter_ps);
                reach.div_ceil(task.period_ps).saturating_mul(task.lines)
            });
            lines.fold(costs.in_flight, u64::saturating_add)
        });
        match (limited, demanded) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The longest that what it moves in a window of so long is in the way, if each
    /// line is so once.
    fn job_ps(&self, costs: &Costs, window_ps: u64) -> u64 {
        let line = costs.line_ps(self);
        let job = self.lines(costs, window_ps).map(|n| n.saturating_mul(line));
        if line == 0 {
            return 0;
        }
        job.unwrap_or(NEVER)
    }

    /// The longest that what it has in flight is in the way of `own` lines, its write-backs
    /// on their way out of the last level apart.
    fn request_ps(&self, costs: &Costs, own: u64) -> u64 {
        if own > 0 && self.sharing != Sharing::Nothing && costs.turn_ps.is_none() {
            return NEVER;
        }
        let lines = own.saturating_mul(2 * costs.reads);
        lines.saturating_mul(costs.line_ps(self))
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
}

/// What each of `own` lines waits for at most, by the lesser bound of each of the
/// cores of one last level.
fn of_level(costs: &Costs, level: &[&CoRunner], own: u64, window_ps: u64) -> Waits {
    let (mut all, mut jobs) = (Waits::default(), 0u64);
    let (mut dearest, mut asked) = (0, 0u64);
    for co_runner in level {
        let line = costs.line_ps(co_runner);
        let job = co_runner.job_ps(costs, window_ps);
        let request = co_runner.request_ps(costs, own);
        jobs = jobs.saturating_add(job);
        if job <= request {
            all.ps = all.ps.saturating_add(job);
            continue;
        }
        all.ps = all.ps.saturating_add(request);
        dearest = line.max(dearest);
        all.banks |= co_runner.sharing == Sharing::Banks;
        all.controller |= co_runner.sharing != Sharing::Nothing;
        asked += costs.in_flight - costs.reads;
    }
    let victims = 2 * asked.min(costs.victims);
    let more = own.saturating_mul(victims).saturating_mul(dearest);
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
            // All may miss, and each fill may push out a line of others'.
            profile.lines.max(2 * profile.requests)
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
        let more = self.lines(profile).saturating_sub(profile.lines);
        let missed = more.saturating_mul(self.costs.miss_ps);
        missed.saturating_add(profile.requests.saturating_mul(self.costs.pushed_ps))
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
        }
        let mut each = 0u64;
        if all.banks {
            each = self.costs.passed_ps;
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
        let lines = self.co_runners.iter().map(|n| self.costs.line_ps(n));
        match (own, lines.max()) {
            (0, _) | (_, None) => 0,
            (_, Some(line_ps)) => self.costs.kept.saturating_mul(line_ps),
        }
    }
}

/// Cores that do something, as `core` sees them.
#[must_use]
pub fn surroundings(tasks: ProfiledSet, core: u32, conditions: Conditions) -> Surroundings {
    let mut cores: Vec<u32> = tasks.set.tasks.iter().filter_map(|t| t.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let costs = Costs::of(conditions.platform);
    let others = cores.iter().filter(|&&other| other != core);
    let co_runners = others.map(|&other| {
        // A core that has a last level of its own writes back its own lines only, and
        // they were counted; else each fill may push out one of anybody's.
        let mut mates = cores.iter().filter(|&&c| c != other);
        let invaded = mates.any(|&c| (conditions.shared)(other, c).llc);
        let shared = (conditions.shared)(core, other);
        co_runner(tasks, other, shared, invaded, &costs, conditions)
    });
    Surroundings {
        costs,
        co_runners: co_runners.collect(),
        kernel: false,
    }
}

/// Core `other` as a core sees it with which it shares `shared`; `invaded`: others
/// fill its last level.
fn co_runner(
    tasks: ProfiledSet,
    other: u32,
    shared: Shared,
    invaded: bool,
    costs: &Costs,
    conditions: Conditions,
) -> CoRunner {
    let line = u64::from(conditions.platform.memory.map.line_size());
    let mine = tasks.set.tasks.iter().enumerate();
    let mine = mine.filter(|(_, t)| t.core == Some(other));
    let mine: Vec<_> = mine.map(|(i, t)| (t, tasks.profile(i, costs))).collect();
    let alone = mine.len() == 1;
    let kept = mine
        .iter()
        .map(|(t, _)| 2 * (t.bytes / line).min(costs.cached));
    let again = if alone { 0 } else { kept.max().unwrap_or(0) };
    let timed = mine.iter().filter_map(|(task, profile)| {
        let release = task.release?;
        let stale = if alone {
            0
        } else {
            profile.requests.min(costs.cached)
        };
        let lines = if invaded {
            2 * profile.lines.max(profile.requests)
        } else {
            profile.lines
        };
        Some(CoRunnerTask {
            period_ps: release.period.0,
            deadline_ps: release.deadline.0,
            jitter_ps: release.jitter.0,
            lines: lines + again + stale,
        })
    });
    let limit = conditions.limits.get(other as usize).copied().flatten();
    CoRunner {
        core: other,
        sharing: shared.memory,
        shares_llc: shared.llc,
        llc: conditions.platform.llc_of_core[other as usize],
        limit: limit.map(|bytes| bytes / line),
        tasks: timed.collect(),
        best_effort: mine.iter().any(|(t, _)| t.release.is_none()),
    }
}
