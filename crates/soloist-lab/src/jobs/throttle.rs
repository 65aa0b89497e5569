//! A static throttle such as Intel's MBA: fills of a core go out no closer to
//! each other than its rate allows, whatever else runs.

use std::collections::VecDeque;

use soloist_memory::system::Governor;

/// Spaces the fills of some cores.
pub(super) struct Throttle {
    /// Between two fills of a core, ps; 0: no limit.
    gap_ps: Vec<u64>,
    /// When its next fill may go.
    next_ps: Vec<u64>,
    /// Fills that wait for it.
    held: Vec<u64>,
    released: VecDeque<usize>,
}

impl Throttle {
    /// Cores by number, with the gap between their fills; 0: no limit.
    pub(super) fn new(gap_ps: Vec<u64>) -> Self {
        Self {
            next_ps: vec![0; gap_ps.len()],
            held: vec![0; gap_ps.len()],
            gap_ps,
            released: VecDeque::new(),
        }
    }
}

impl Governor for Throttle {
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
