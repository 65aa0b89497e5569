//! What holds a stage's cores back, and who looks on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use soloist_memory::system::Guard;

use crate::guard::{ModelGuard, Regulated};

/// What holds cores back.
pub(crate) enum StageGuard {
    /// Nothing.
    Free,
    /// The regulator, whose counts are wanted.
    Regulator(ModelGuard),
    /// What the policy has of its own.
    Policy(Box<dyn Guard>),
}

impl StageGuard {
    /// What the regulator counted of each core, up to its end.
    pub(crate) fn counts(&self, ends_ps: &[u64]) -> Option<Vec<Regulated>> {
        match self {
            Self::Regulator(guard) => Some(guard.counts(ends_ps)),
            Self::Free | Self::Policy(_) => None,
        }
    }

    fn guard(&mut self) -> Option<&mut dyn Guard> {
        match self {
            Self::Free => None,
            Self::Regulator(guard) => Some(guard),
            Self::Policy(guard) => Some(guard.as_mut()),
        }
    }
}

impl Guard for StageGuard {
    fn miss(&mut self, core: usize, now_ps: u64, write: bool) -> bool {
        self.guard().is_none_or(|g| g.miss(core, now_ps, write))
    }

    fn alarm_ps(&self) -> u64 {
        match self {
            Self::Free => u64::MAX,
            Self::Regulator(guard) => guard.alarm_ps(),
            Self::Policy(guard) => guard.alarm_ps(),
        }
    }

    fn alarm(&mut self, now_ps: u64) {
        if let Some(guard) = self.guard() {
            guard.alarm(now_ps);
        }
    }

    fn released(&mut self) -> Option<usize> {
        self.guard()?.released()
    }
}

/// Looks on while cores are held back, and counts the lines that they move.
pub(crate) struct Watch {
    guard: StageGuard,
    /// By core.
    moved: Arc<Vec<AtomicU64>>,
    since: Vec<Option<u64>>,
    stopped: Vec<Vec<(u64, u64)>>,
    now_ps: u64,
}

impl Watch {
    pub(crate) fn new(guard: StageGuard, moved: Arc<Vec<AtomicU64>>) -> Self {
        let cores = moved.len();
        Self {
            guard,
            moved,
            since: vec![None; cores],
            stopped: vec![Vec::new(); cores],
            now_ps: 0,
        }
    }

    /// When each core was held back.
    pub(crate) fn stops(self) -> Vec<Vec<(u64, u64)>> {
        self.stopped
    }
}

impl Guard for Watch {
    fn miss(&mut self, core: usize, now_ps: u64, write: bool) -> bool {
        self.now_ps = now_ps;
        self.moved[core].fetch_add(1, Ordering::Relaxed);
        let goes = self.guard.miss(core, now_ps, write);
        if !goes {
            self.since[core].get_or_insert(now_ps);
        }
        goes
    }

    fn alarm_ps(&self) -> u64 {
        self.guard.alarm_ps()
    }

    fn alarm(&mut self, now_ps: u64) {
        self.now_ps = now_ps;
        self.guard.alarm(now_ps);
    }

    fn released(&mut self) -> Option<usize> {
        let core = self.guard.released()?;
        if let Some(since) = self.since[core].take() {
            self.stopped[core].push((since, self.now_ps));
        }
        Some(core)
    }
}
