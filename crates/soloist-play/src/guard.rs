//! MemGuard on the modelled machine: core/regulator, the code that the kernel
//! module runs, driven by modelled misses.
//!
//! The kernel's counters are two numbers per core here, its overflow interrupt
//! is the miss at which a number comes to its limit, its timer is the model's
//! alarm. A stopped core's fills are held back, and so is the room of dirty lines
//! that it gives up, so that it stands still as soon as its window, its slots or
//! its room are full; what it has in flight comes home, and lines that this pushes
//! out go to memory. Held fills are counted when they
//! go. Interrupts take no time: the paper's figure 9 is measured on guests.
//!
//! As in the paper, proportional sharing moves the timer: the next period ends
//! a whole period after a restart. Where there are several domains each has its
//! own restarts and the timer stays.
//!
//! Counting begins when all tasks have begun, and the first period with it. It
//! ends with the last whole period: a stopped core has all of its budget behind
//! it in a period that is cut off. A run of less than a period counts where nobody
//! is regulated.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use soloist_core::{
    Answer, Order, Refusal, Regulation, Regulator, Reservation, Sharing, NO_LIMIT, TRAFFICS,
};
use soloist_memory::system::Guard;
use soloist_memory::Platform;

/// MemGuard's period, microseconds.
pub const PERIOD_US: u32 = 1000;

/// Weight of the newest period in the prediction, in 1/256: the paper's example
/// needs more than two thirds.
pub const EWMA: u16 = 180;

/// The bandwidth that one core may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Bytes of lines that it reads from memory, a second.
    pub bytes_per_second: u64,
    /// Length of a period, microseconds, 10 to 1,000,000.
    pub period_us: u32,
}

/// What was counted of one core since all tasks had begun.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Regulated {
    /// Instructions.
    pub instructions: u64,
    /// Lines filled.
    pub reads: u64,
    /// Lines pushed out.
    pub writes: u64,
    /// How long it was counted, ns; 0: it was regulated, and no whole period had ended.
    pub time_ns: f64,
    /// Periods that the core began.
    pub periods: u64,
    /// Of these, with a reclaim under-run error.
    pub underruns: u64,
    /// How long it stood still, ns.
    pub stopped_ns: f64,
    /// Standard deviation of the reads in a period over their mean; `None`: fewer than two
    /// whole periods.
    pub unevenness: Option<f64>,
}

/// What a task has done after its initialisation, as it runs.
#[derive(Debug, Default)]
pub struct Counts {
    /// It is done with initialisation.
    pub begun: AtomicBool,
    /// Loads and stores.
    pub accesses: AtomicU64,
    /// Instructions.
    pub instructions: AtomicU64,
}

/// What a core had done at some time.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    lines: [u64; TRAFFICS],
    instructions: u64,
    stopped_ps: u64,
}

/// A core as the guard sees it.
struct Core {
    /// What its task does; `None`: it has none.
    task: Option<Arc<Counts>>,
    /// When all had begun, and at the end of the last whole period.
    first: Sum,
    last: Sum,
    used: [u32; TRAFFICS],
    limit: [u32; TRAFFICS],
    held: u32,
    stopped_since: Option<u64>,
    stopped_ps: u64,
    total: [u64; TRAFFICS],
    /// Reads of the timer's period, whatever restarts there are.
    in_tick: u64,
    ticks: u64,
    sum: f64,
    squares: f64,
}

impl Core {
    fn new(task: Option<Arc<Counts>>) -> Self {
        Self {
            task,
            first: Sum::default(),
            last: Sum::default(),
            used: [0; TRAFFICS],
            limit: [NO_LIMIT; TRAFFICS],
            held: 0,
            stopped_since: None,
            stopped_ps: 0,
            total: [0; TRAFFICS],
            in_tick: 0,
            ticks: 0,
            sum: 0.0,
            squares: 0.0,
        }
    }

    fn has_begun(&self) -> bool {
        let begun = |t: &Arc<Counts>| t.begun.load(Ordering::Relaxed);
        self.task.as_ref().is_none_or(begun)
    }

    fn instructions(&self) -> u64 {
        let so_far = |t: &Arc<Counts>| t.instructions.load(Ordering::Relaxed);
        self.task.as_ref().map_or(0, so_far)
    }

    fn sum(&self, now_ps: u64) -> Sum {
        let still = self.stopped_since.map_or(0, |at| now_ps.saturating_sub(at));
        Sum {
            lines: self.total,
            instructions: self.instructions(),
            stopped_ps: self.stopped_ps + still,
        }
    }

    fn tick(&mut self) {
        let reads = std::mem::take(&mut self.in_tick) as f64;
        self.ticks += 1;
        self.sum += reads;
        self.squares += reads * reads;
    }

    fn unevenness(&self) -> Option<f64> {
        let n = self.ticks as f64;
        let mean = self.sum / n;
        let deviation = || (self.squares / n - mean * mean).max(0.0).sqrt();
        let relative = || match mean == 0.0 {
            true => 0.0,
            false => deviation() / mean,
        };
        (self.ticks > 1).then(relative)
    }
}

/// Counts, and regulates where there is a regulator.
pub struct ModelGuard {
    regulator: Option<Regulator>,
    cores: Vec<Core>,
    period_ps: u64,
    /// One domain: a restart moves the timer.
    one_domain: bool,
    /// When all had begun.
    began_ps: Option<u64>,
    /// End of the last whole period.
    whole_ps: Option<u64>,
    next_ps: u64,
    released: VecDeque<usize>,
}

impl ModelGuard {
    /// Counts only; `tasks`: what runs on each core.
    pub fn counting(period_us: u32, tasks: Vec<Option<Arc<Counts>>>) -> Self {
        Self {
            regulator: None,
            cores: tasks.into_iter().map(Core::new).collect(),
            period_ps: u64::from(period_us) * 1_000_000,
            one_domain: true,
            began_ps: None,
            whole_ps: None,
            next_ps: u64::MAX,
            released: VecDeque::new(),
        }
    }

    /// Regulates cores that have a reservation. `pools`: who shares banks with
    /// whom; `None`: all with all.
    pub fn regulating(
        set: &Regulation,
        reservations: &[Option<Reservation>],
        pools: Option<&[u64]>,
        tasks: Vec<Option<Arc<Counts>>>,
    ) -> Result<Self, Refusal> {
        let mut regulator = Regulator::new(set, tasks.len() as u32)?;
        if let Some(pools) = pools {
            regulator.set_pools(pools)?;
        }
        for (core, want) in reservations.iter().enumerate() {
            if want.is_some() {
                regulator.reserve(core as u32, want.as_ref())?;
            }
        }
        Ok(Self {
            regulator: Some(regulator),
            one_domain: pools.is_none(),
            ..Self::counting(set.period_us, tasks)
        })
    }

    /// Holds each of `limited` to what it may use. What one leaves nobody else gets.
    ///
    /// # Errors
    /// When less than a line fits into a period, or the limits together are beyond the
    /// regulator.
    pub fn limiting(platform: &Platform, limited: &[usize], limit: Limit) -> Result<Self, Refusal> {
        let rate = limit.bytes_per_second;
        let sum = rate.saturating_mul(limited.len().max(1) as u64);
        let settings = Regulation {
            period_us: limit.period_us,
            line: platform.memory.map.line_size(),
            r_min: [sum, 0],
            peak: sum,
            q_min: 0,
            ewma: EWMA,
            sharing: Sharing::None,
        };
        let mut reservations = vec![None; platform.node_of_core.len()];
        for &core in limited {
            reservations[core] = Some(Reservation {
                rate: [rate, 0],
                weight: 0,
                reclaim: false,
            });
        }
        let tasks = vec![None; reservations.len()];
        Self::regulating(&settings, &reservations, None, tasks)
    }

    /// What was counted of each core up to the last whole period, or to the
    /// end of its task, which may be earlier; where a regulator may have stopped it and no
    /// period was whole, nothing.
    pub fn counts(&self, ends_ps: &[u64]) -> Vec<Regulated> {
        let counted = |(i, (c, &end)): (usize, (&Core, &u64))| {
            let began = self.began_ps.unwrap_or(end);
            let (until, sum) = match self.whole_ps {
                Some(whole) if whole < end => (whole, c.last),
                None if self.regulator.is_some() => (began, c.first),
                _ => (end, c.sum(end)),
            };
            let counts = self.regulator.as_ref().map(|r| r.counts(i as u32));
            Regulated {
                instructions: sum.instructions - c.first.instructions,
                reads: sum.lines[0],
                writes: sum.lines[1],
                time_ns: until.saturating_sub(began) as f64 / 1000.0,
                periods: counts.map_or(0, |c| c.periods),
                underruns: counts.map_or(0, |c| c.underruns),
                stopped_ns: sum.stopped_ps as f64 / 1000.0,
                unevenness: c.unevenness(),
            }
        };
        self.cores
            .iter()
            .zip(ends_ps)
            .enumerate()
            .map(counted)
            .collect()
    }

    /// A period has ended for all.
    fn whole_period(&mut self, now_ps: u64) {
        self.whole_ps = Some(now_ps);
        for c in &mut self.cores {
            c.last = c.sum(now_ps);
        }
    }

    /// The first period begins once every task has.
    fn try_begin(&mut self, now_ps: u64) {
        if !self.cores.iter().all(Core::has_begun) {
            return;
        }
        for c in &mut self.cores {
            c.first = c.sum(now_ps);
        }
        self.began_ps = Some(now_ps);
        self.begin_all(now_ps);
    }

    fn begin_all(&mut self, now_ps: u64) {
        self.next_ps = now_ps + self.period_ps;
        if let Some(r) = &mut self.regulator {
            r.begin();
        }
        self.begin_cores(now_ps, None);
    }

    /// A period begins for the cores of a domain, or for all.
    fn begin_cores(&mut self, now_ps: u64, domain: Option<u32>) {
        for core in 0..self.cores.len() {
            let Some(r) = &mut self.regulator else { return };
            if domain.is_some_and(|d| r.domain(core as u32) != d) {
                continue;
            }
            let used = std::mem::take(&mut self.cores[core].used);
            let answer = r.core(core as u32, used);
            self.let_go(core, now_ps);
            self.obey(core, answer, now_ps);
        }
    }

    fn let_go(&mut self, core: usize, now_ps: u64) {
        let c = &mut self.cores[core];
        let Some(since) = c.stopped_since.take() else {
            return;
        };
        c.stopped_ps += now_ps - since;
        let held = std::mem::take(&mut c.held);
        c.used[0] += held;
        c.total[0] += u64::from(held);
        c.in_tick += u64::from(held);
        self.released.push_back(core);
    }

    fn obey(&mut self, core: usize, answer: Answer, now_ps: u64) {
        self.cores[core].limit = answer.limit;
        match answer.order {
            Order::Run => {}
            Order::Stop => {
                self.cores[core].stopped_since.get_or_insert(now_ps);
            }
            Order::Free(domain) => self.free(domain, now_ps),
            Order::Restart(domain) => {
                if let Some(r) = &mut self.regulator {
                    r.restart(domain);
                }
                if self.one_domain {
                    self.whole_period(now_ps);
                    self.next_ps = now_ps + self.period_ps;
                }
                self.begin_cores(now_ps, Some(domain));
            }
        }
    }

    fn free(&mut self, domain: u32, now_ps: u64) {
        for core in 0..self.cores.len() {
            let theirs = self.regulator.as_ref().map(|r| r.domain(core as u32));
            if theirs == Some(domain) {
                self.cores[core].limit = [NO_LIMIT; TRAFFICS];
                self.let_go(core, now_ps);
            }
        }
    }
}

impl Guard for ModelGuard {
    fn miss(&mut self, core: usize, now_ps: u64, write: bool) -> bool {
        if self.began_ps.is_none() {
            self.try_begin(now_ps);
            return true;
        }
        let c = &mut self.cores[core];
        if c.stopped_since.is_some() && !write {
            c.held += 1;
            return false;
        }
        let kind = usize::from(write);
        c.used[kind] += 1;
        c.total[kind] += 1;
        c.in_tick += u64::from(!write);
        if c.used[kind] >= c.limit[kind] && c.stopped_since.is_none() {
            let used = c.used;
            if let Some(r) = &mut self.regulator {
                let answer = r.used(core as u32, used);
                self.obey(core, answer, now_ps);
            }
        }
        !write || self.cores[core].stopped_since.is_none()
    }

    fn alarm_ps(&self) -> u64 {
        self.next_ps
    }

    fn alarm(&mut self, now_ps: u64) {
        self.whole_period(now_ps);
        self.cores.iter_mut().for_each(Core::tick);
        self.begin_all(now_ps);
    }

    fn released(&mut self) -> Option<usize> {
        self.released.pop_front()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const SETTINGS: Regulation = Regulation {
        period_us: PERIOD_US,
        line: 64,
        r_min: [1_000_000_000, 0],
        peak: 1_000_000_000,
        q_min: 0,
        ewma: EWMA,
        sharing: Sharing::None,
    };

    /// Counted in so many tenths of a period of a core that fills a line in each of them.
    fn counted(regulated: bool, tenths: u64) -> Regulated {
        let mut guard = match regulated {
            true => ModelGuard::regulating(&SETTINGS, &[None], None, vec![None]).unwrap(),
            false => ModelGuard::counting(PERIOD_US, vec![None]),
        };
        let at = |tenth| tenth * u64::from(PERIOD_US) * 100_000;
        for tenth in 0..tenths {
            while guard.alarm_ps() <= at(tenth) {
                guard.alarm(guard.alarm_ps());
            }
            guard.miss(0, at(tenth), false);
        }
        guard.counts(&[at(tenths)]).remove(0)
    }

    /// A period that is cut off has all of a stopped core's budget: it is no rate.
    #[test]
    fn what_is_cut_off_is_not_counted() {
        let half = counted(true, 5);
        assert_eq!((half.reads, half.time_ns, half.unevenness), (0, 0.0, None));
        let one = counted(true, 15);
        assert_eq!((one.reads, one.time_ns, one.unevenness), (9, 1e6, None));
        let two = counted(true, 25);
        assert_eq!((two.reads, two.time_ns), (19, 2e6));
        assert!(two.unevenness.is_some_and(|share| share < 0.1), "{two:?}");
        // Nobody is stopped: part of a period has the same rate.
        let free = counted(false, 5);
        assert_eq!((free.reads, free.time_ns, free.unevenness), (4, 5e5, None));
    }
}
