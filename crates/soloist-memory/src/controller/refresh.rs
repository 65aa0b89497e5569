//! Refresh: which unit of a channel (all banks of a rank, or some of them) is
//! refreshed when.
//!
//! Refreshes fall due at equal distances. Ranks take turns; inside a rank its
//! units do. One that is due stops its banks at once, closes their rows
//! together as soon as that is legal, and goes before everything else.

use crate::dram::{Channel, Cycle, Geometry};

#[derive(Clone, Debug)]
pub(super) struct Refresh {
    /// Cycles from one that falls due to the next, over all ranks.
    step: Cycle,
    ranks: usize,
    units: usize,
    /// When the next falls due, and of which unit.
    due: Cycle,
    turn: usize,
    /// Units that are due.
    pending: Vec<u16>,
    /// Activates of a bank after which its unit is due out of turn; 0: never.
    management: u32,
    /// By bank: activates, less so many for each refresh.
    activates: Vec<u32>,
}

/// The next step of a refresh that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefreshStep {
    pub at: Cycle,
    pub unit: u16,
    /// Closes the unit's rows; else it is the refresh itself.
    pub closes: bool,
}

impl Refresh {
    pub fn new(channel: &Channel, geometry: &Geometry, management: u32) -> Self {
        let step = channel.timing.ref_interval / Cycle::from(geometry.ranks);
        let units = channel.units().len();
        Self {
            step,
            ranks: geometry.ranks as usize,
            units,
            due: step,
            turn: 0,
            pending: Vec::with_capacity(units),
            management,
            activates: vec![0; channel.banks.len()],
        }
    }

    /// When the next falls due.
    #[inline]
    pub fn due(&self) -> Cycle {
        self.due
    }

    /// Cycles in which every unit falls due once.
    pub fn round(&self) -> Cycle {
        self.step * self.units as Cycle
    }

    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The next falls due; returns its unit.
    pub fn fall_due(&mut self) -> usize {
        let unit = self.turn;
        let per_rank = self.units / self.ranks;
        let rank = (unit / per_rank + 1) % self.ranks;
        let next = usize::from(rank == 0);
        self.turn = rank * per_rank + (unit % per_rank + next) % per_rank;
        self.due += self.step;
        if !self.pending.contains(&(unit as u16)) {
            self.pending.push(unit as u16);
        }
        unit
    }

    /// A row of `bank` is opened.
    #[inline]
    pub fn activated(&mut self, bank: u16) {
        self.activates[usize::from(bank)] += u32::from(self.management > 0);
    }

    /// The unit of `bank` falls due out of turn if the bank has been activated too often; returns
    /// the unit.
    #[inline]
    pub fn manage(&mut self, bank: u16, units: &[Vec<u16>]) -> Option<usize> {
        if self.management == 0 || self.activates[usize::from(bank)] < self.management {
            return None;
        }
        let unit = units.iter().position(|unit| unit.contains(&bank))?;
        if self.pending.contains(&(unit as u16)) {
            return None;
        }
        self.pending.push(unit as u16);
        Some(unit)
    }

    /// The first step of those that are due, none before `floor`, if that is
    /// by `before`.
    #[inline]
    pub fn first_step(
        &self,
        channel: &Channel,
        floor: Cycle,
        mut before: Cycle,
    ) -> Option<RefreshStep> {
        let mut first = None;
        for &unit in &self.pending {
            let (at, closes) = channel.refresh_at(usize::from(unit));
            let at = at.max(floor);
            if at <= before {
                before = at;
                first = Some(RefreshStep { at, unit, closes });
            }
        }
        first
    }

    /// The unit, which is of these banks, has been refreshed.
    pub fn issued(&mut self, unit: u16, banks: &[u16]) {
        self.pending.retain(|&p| p != unit);
        for &bank in banks {
            let activates = &mut self.activates[usize::from(bank)];
            *activates = activates.saturating_sub(self.management);
        }
    }

    /// Skips whole rounds that end by `until`, all but the last, in which
    /// nothing else happens; returns how many refreshes and cycles that is.
    pub fn skip_rounds(&mut self, until: Cycle) -> (u64, Cycle) {
        let rounds = (until.saturating_sub(self.due) / self.round()).saturating_sub(1);
        let cycles = rounds * self.round();
        self.due += cycles;
        (rounds * self.units as u64, cycles)
    }
}
