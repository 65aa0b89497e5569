//! What Linux gives out through resctrl in the place of colours: ways of the
//! last-level cache (Intel CAT, AMD L3 QoS) and a static throttle (Intel MBA).

use std::collections::VecDeque;

use soloist_core::Refusal;
use soloist_memory::system::Guard;
use soloist_memory::Platform;

use super::Policy;

pub(super) static POLICIES: &[&dyn Policy] = &[&CAT, &MBA];

/// Under `throttle` a core gets one of so many parts of what a node's memory path
/// carries: about the least that MBA allows.
const PARTS: u64 = 20;

/// Linux, an even share of the last-level cache's ways each.
pub static CAT: Cat = Cat;

/// Linux, programs in the background held to a fixed rate of lines.
pub static MBA: Mba = Mba;

/// See [`CAT`].
pub struct Cat;

impl Policy for Cat {
    fn name(&self) -> &'static str {
        "cat"
    }

    fn title(&self) -> &'static str {
        "Linux, cache ways each"
    }

    /// Even shares for the busy cores of each last level.
    fn ways(&self, platform: &Platform, busy: &[usize]) -> Option<Vec<usize>> {
        let llc = |core: usize| platform.llc_of_core[core];
        let mates = |core: usize| busy.iter().filter(|&&b| llc(b) == llc(core)).count();
        let share = |core| (platform.llc.shape.ways / mates(core).max(1)).max(1);
        Some((0..platform.llc_of_core.len()).map(share).collect())
    }
}

/// See [`MBA`].
pub struct Mba;

impl Policy for Mba {
    fn name(&self) -> &'static str {
        "throttle"
    }

    fn title(&self) -> &'static str {
        "Linux, others throttled"
    }

    fn is_regulated(&self) -> bool {
        true
    }

    fn guard(
        &self,
        platform: &Platform,
        _front: &[usize],
        back: &[usize],
    ) -> Result<Option<Box<dyn Guard>>, Refusal> {
        Ok(Some(Box::new(FixedRate::new(platform, back))))
    }
}

/// Fills of some cores go out no closer to each other than a fixed rate allows,
/// whatever else runs.
struct FixedRate {
    /// Between two fills of a core, ps; 0: no limit.
    gap_ps: Vec<u64>,
    /// When its next fill may go.
    next_ps: Vec<u64>,
    /// Fills that wait for it.
    held: Vec<u64>,
    released: VecDeque<usize>,
}

impl FixedRate {
    /// Holds these cores, one of [`PARTS`] parts each.
    fn new(platform: &Platform, cores: &[usize]) -> Self {
        let rate = platform.northbridge.bytes_per_us / PARTS;
        let line = u64::from(platform.memory.map.line_size());
        let mut gap_ps = vec![0; platform.llc_of_core.len()];
        for &core in cores {
            gap_ps[core] = line * 1_000_000 / rate.max(1);
        }
        Self {
            next_ps: vec![0; gap_ps.len()],
            held: vec![0; gap_ps.len()],
            gap_ps,
            released: VecDeque::new(),
        }
    }
}

impl Guard for FixedRate {
    fn miss(&mut self, core: usize, now_ps: u64, write: bool) -> bool {
        if self.gap_ps[core] == 0 || write {
            return true;
        }
        if now_ps < self.next_ps[core] || self.held[core] > 0 {
            self.held[core] += 1;
            return false;
        }
        self.next_ps[core] = now_ps + self.gap_ps[core];
        true
    }

    fn alarm_ps(&self) -> u64 {
        let waiting = self.next_ps.iter().zip(&self.held);
        let times = waiting.filter(|(_, &held)| held > 0).map(|(&at, _)| at);
        times.min().unwrap_or(u64::MAX)
    }

    fn alarm(&mut self, now_ps: u64) {
        for core in 0..self.held.len() {
            if self.held[core] > 0 && self.next_ps[core] <= now_ps {
                // All that was held goes at once; the next waits for all of it.
                let held = std::mem::take(&mut self.held[core]);
                self.released.push_back(core);
                self.next_ps[core] = now_ps + held * self.gap_ps[core];
            }
        }
    }

    fn released(&mut self) -> Option<usize> {
        self.released.pop_front()
    }
}
