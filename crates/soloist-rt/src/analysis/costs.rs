//! What a line of another core costs, and how many it can have on their way: what follows from
//! the machine alone.

use serde::Serialize;
use soloist_machine::memory::{Page, Policy};
use soloist_memory::dram::Timing;
use soloist_memory::platform::CacheLevel;
use soloist_memory::Platform;

use crate::model::program::CHUNK;

const PAGE: u64 = 4096;

/// Lines that a request to a last level moves at most, where all may be missed and all that is
/// pushed out may be dirty: its own, one that it pushes out there, and later one that it pushes
/// out of the private caches, or itself.
pub(super) const MOVED: u64 = 3;

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
    /// A line that is pushed out of a shared last level, wherever it goes, ps.
    pub pushed_ps: u64,
    /// What a line of another core costs by its place in the last level's victim buffer, on its
    /// way to its own node, ps.
    pub leaving_ps: u64,
    /// And so much more on its way to another node, ps.
    pub leaving_far_ps: u64,
    /// A line from memory when nobody is in the way, ps.
    pub miss_ps: u64,
    /// Refresh.
    pub refresh: Refresh,
    /// Lines that a core can have in flight, dirty ones that leave included.
    pub in_flight: u64,
    /// Of these, those that it gave up, for which its last level has no place.
    pub room: u64,
    /// Those of them that it waits for.
    pub reads: u64,
    /// Reads that a controller has room for before those of its banks.
    pub read_queue: u64,
    /// Writes that the controllers of a node keep, from whenever they were made.
    pub kept: u64,
    /// Of these, those before banks' queues, and what the queue of one bank holds.
    pub queued: u64,
    /// Those in the queues of all banks.
    pub in_banks: u64,
    /// A write to a bank all of whose writes open another row, ps.
    pub row_ps: u64,
    /// From the opening of a row to that of one in another bank, ps.
    pub activate_ps: u64,
    /// Nodes that have such controllers.
    pub nodes: u64,
    /// Lines that a task has on their way when another gets its core: those in flight, and
    /// writes that controllers keep.
    pub handed_over: u64,
    /// The longest that they are in the way, ps.
    pub handed_over_ps: u64,
    /// The longest that a core waits for an access that it has begun, when nobody is in the way
    /// of its line, ps.
    pub begun_ps: u64,
    /// Dirty lines that a line may push out when it enters the caches.
    pub pushes: u64,
    /// A core may go on writing without reading: its last level has fewer ways than its private
    /// caches.
    pub writes_alone: bool,
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
    /// Lines that those before its last private one hold.
    pub inner: u64,
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
        let room = u64::from(platform.room());
        // Those that have a place in the victim buffer.
        let placed = u64::from(nb.victims).min(2 * reads + room + u64::from(policy.write_queue));
        let in_flight = reads + placed + room;
        let inter = activate + t.pre_pre_s.max(1) + column;
        let queue = u64::from(policy.read_queue);
        let other = match nb.in_order {
            // Where the queue can fill, the head of the line waits for its own rows.
            0 if reads + placed > queue => inter.max(row),
            0 => inter,
            // Who asked before is answered before.
            _ => inter.max(row + t.rd_done),
        };
        let other = other + reopened(policy, row);
        // There, and an answer back.
        let far = platform.paths.iter();
        let far = far.map(|p| 2 * (line * 1_000_000 / p.bytes_per_us.max(1) + p.latency_ps));
        let far_ps = far.max().unwrap_or(0);
        let away_ps = nb.request_ps + nb.response_ps;
        let levels = platform.private.iter().chain([&platform.llc]);
        let inner = platform.private.iter().rev().skip(1);
        let channels = u64::from(platform.memory.map.n_channels());
        let waiting = u64::from(policy.write_queue) * channels;
        let queued = waiting + u64::from(policy.bank_queue);
        let in_banks = in_banks(platform) * channels;
        let kept = waiting + in_banks;
        let other_bank_ps = ps(other) + path;
        let same_bank_ps = ps(2 * row + column) + path;
        let miss_ps = platform.llc.latency_ps
            + away_ps
            + ps(t.pre_act + t.act_col + t.rd_done + around)
            + path;
        Self {
            same_bank_ps,
            other_bank_ps,
            pushed_ps: same_bank_ps + away_ps + far_ps,
            // Lines of a burst of its own may take all places but one.
            leaving_ps: away_ps,
            leaving_far_ps: far_ps,
            miss_ps,
            begun_ps: miss_ps + far_ps + platform.walk_ps,
            pushes: platform.private.len() as u64 + 1,
            writes_alone: platform.llc.shape.ways < ways(&platform.private),
            nodes: platform.memory.map.memory_nodes().len() as u64,
            refresh: Refresh::new(platform, &t, ps(column)),
            in_flight,
            room,
            reads,
            read_queue: queue,
            kept,
            handed_over: in_flight + kept,
            // Of those that banks' queues hold one queue's are in one bank.
            handed_over_ps: (in_flight + queued) * same_bank_ps + in_banks * other_bank_ps,
            queued,
            in_banks,
            row_ps: ps(row) + path,
            activate_ps: ps(activate),
            victims: u64::from(nb.victims),
            passed_ps: u64::from(policy.bank_queue) * u64::from(policy.hit_cap) * ps(column),
            turn_ps: turn(platform).map(|columns| columns * ps(column)),
            inner: inner.map(|l| l.shape.sets * l.shape.ways as u64).sum(),
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

    /// Dirty lines of others that so many requests of a job may push out: of each cache that a
    /// line enters, and of the private ones as lines move in between them. From each cache a task
    /// of `own` lines pushes no more than so many, since they are the younger ones.
    #[must_use]
    pub fn stale(&self, requests: u64, own: u64) -> u64 {
        let pushed = requests.saturating_mul(self.pushes);
        let most = own.saturating_mul(self.pushes).min(self.cached);
        pushed.saturating_add(self.inner).min(most)
    }

    /// The longest that writes which the controllers of a node keep are in the way of a job, once,
    /// where a line of theirs costs so much, ps.
    #[must_use]
    pub fn kept_ps(&self, line_ps: u64) -> u64 {
        self.writes_ps(line_ps, self.other_bank_ps)
    }

    /// The longest that a drain is in the way of one line: until the last write is in its bank's
    /// queue, where all may be of one bank. Then the banks' writes, which are older, open rows;
    /// to let them go first is the bus's turn.
    #[must_use]
    pub fn drain_ps(&self, line_ps: u64) -> u64 {
        self.writes_ps(line_ps, self.activate_ps)
    }

    /// All writes that a node's controllers have room for, where one in the banks' queues costs
    /// `in_bank_ps`, ps.
    fn writes_ps(&self, line_ps: u64, in_bank_ps: u64) -> u64 {
        let queued = self.queued * line_ps.max(self.row_ps);
        queued.saturating_add(self.in_banks * in_bank_ps)
    }

    /// Lines that move when so many are fetched again: these, and dirty ones that they push out,
    /// of which there are no more than the caches hold.
    #[must_use]
    pub fn again(&self, lines: u64) -> u64 {
        let pushed = lines.saturating_mul(self.pushes).min(self.cached);
        lines.saturating_add(pushed)
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

fn ways(caches: &[CacheLevel]) -> usize {
    caches.iter().map(|level| level.shape.ways).sum()
}

/// What a line waits for its row that closed because the line came late.
fn reopened(policy: &Policy, row: u64) -> u64 {
    match policy.page {
        Page::Open => 0,
        Page::Closed | Page::Idle(_) => row,
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
    // Reads of one rank and writes of the other take turns by either cap, and each write puts off
    // the reads of its own rank for longer than those of the other.
    if shape.ranks > 1 {
        return None;
    }
    // A drain lasts as long as writes come, and reads wait for its end before they are held to
    // any turn. On one channel none comes without a read that waits too; of several, lines that
    // are read on one push out those of another.
    if platform.memory.map.n_channels() > 1 {
        return None;
    }
    // In its own turn each other bank may go before it; if that is longer than a turn, others
    // come between.
    let cap = policy.direction_cap;
    (cap > 0).then_some(u64::from(cap) + u64::from(shape.banks))
}
