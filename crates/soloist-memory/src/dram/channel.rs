//! State of the DRAM behind one channel: which rows are open, and from which
//! cycle on each command is legal.
//!
//! Nothing ticks. Issuing a command pushes forward the earliest cycles of the
//! commands that it constrains; asking for a command's earliest cycle takes the
//! maximum of three numbers (bank, bank group of the rank, four-activate
//! window). A bank is addressed by its flat index `rank * banks + bank`.

use super::timing::{Cycle, Timing};
use soloist_machine::dram::{Device, RefreshScheme};

/// `open_row` of a precharged bank.
pub const NO_ROW: u32 = u32::MAX;

/// Shape of a channel: what its address map says about ranks and banks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Ranks on the channel.
    pub ranks: u32,
    /// Banks per rank.
    pub banks: u32,
    /// Bank group of each bank of a rank, `banks` entries.
    pub group_of: Vec<u8>,
}

impl Geometry {
    /// `ranks` ranks of the device; the low bits of the bank are the group.
    pub fn of_device(device: &Device, ranks: u32) -> Self {
        Self {
            ranks,
            banks: device.banks,
            group_of: (0..device.banks)
                .map(|b| (b % device.bank_groups) as u8)
                .collect(),
        }
    }
}

/// DRAM commands. `auto` closes the row by itself when the access is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a row.
    Activate {
        /// The row.
        row: u32,
    },
    /// Read a burst of the open row.
    Read {
        /// Auto-precharge.
        auto: bool,
    },
    /// Write a burst to the open row.
    Write {
        /// Auto-precharge.
        auto: bool,
    },
    /// Close the row.
    Precharge,
    /// Close every row of a refresh unit. The bank names the unit's first bank.
    PrechargeUnit,
    /// Refresh a unit (all banks of the rank, or one).
    Refresh,
}

/// A command as it went over the command bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Cycle of issue.
    pub at: Cycle,
    /// Flat bank: `rank * banks + bank`.
    pub bank: u16,
    /// The command.
    pub command: Command,
}

/// Timers of one bank.
#[derive(Clone, Debug)]
pub(crate) struct Bank {
    pub open_row: u32,
    pub group: u16,
    pub rank: u16,
    pub next_act: Cycle,
    pub next_col: Cycle,
    pub next_pre: Cycle,
}

/// Timers of one bank group of one rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Activates: tRRD, tFAW, and what refresh leaves to its neighbours.
    pub next_act: Cycle,
    /// Column commands: reads, writes.
    pub next_col: [Cycle; 2],
}

/// What the banks of a rank share beside their groups.
#[derive(Clone, Debug, Default)]
struct RankState {
    /// When the last four activates leave the four-activate window.
    leaves: [Cycle; 4],
    at: usize,
    /// Refreshes of single banks.
    next_ref: Cycle,
}

/// DRAM behind one channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The delays in force.
    pub timing: Timing,
    pub(crate) banks: Vec<Bank>,
    pub(crate) groups: Vec<Group>,
    ranks: Vec<RankState>,
    n_groups: usize,
    units: Vec<Vec<u16>>,
    bus: Cycle,
}

impl Channel {
    /// All banks precharged, nothing issued yet.
    pub fn new(device: &Device, geometry: &Geometry) -> Self {
        let n_groups = geometry
            .group_of
            .iter()
            .map(|&g| usize::from(g) + 1)
            .max()
            .unwrap_or(1);
        let mut banks = Vec::new();
        for rank in 0..geometry.ranks {
            for bank in 0..geometry.banks {
                let group =
                    rank as usize * n_groups + usize::from(geometry.group_of[bank as usize]);
                banks.push(Bank {
                    open_row: NO_ROW,
                    group: group as u16,
                    rank: rank as u16,
                    next_act: 0,
                    next_col: 0,
                    next_pre: 0,
                });
            }
        }
        Self {
            timing: Timing::new(device),
            units: refresh_units(device.refresh, geometry, n_groups),
            banks,
            // One more for each rank, which limits its precharges.
            groups: vec![Group::default(); (n_groups + 1) * geometry.ranks as usize],
            ranks: vec![RankState::default(); geometry.ranks as usize],
            n_groups,
            bus: 0,
        }
    }

    /// Refresh units: the banks that each refresh command closes, rank by rank.
    pub(crate) fn units(&self) -> &[Vec<u16>] {
        &self.units
    }

    /// Number of the group whose limit on activates is that on precharges of
    /// `rank`.
    pub(crate) fn precharges_of(&self, rank: u16) -> u16 {
        (self.n_groups * self.ranks.len()) as u16 + rank
    }

    /// First cycle at which the command bus is free.
    #[inline]
    pub(crate) fn bus_free(&self) -> Cycle {
        self.bus
    }

    /// Earliest cycle for the next step of refreshing `unit`: precharge its
    /// open rows (`true`), or the refresh itself (`false`).
    pub(crate) fn refresh_at(&self, unit: usize) -> (Cycle, bool) {
        let rank = self.banks[usize::from(self.units[unit][0])].rank;
        let open = self.units[unit]
            .iter()
            .map(|&b| &self.banks[usize::from(b)])
            .filter(|b| b.open_row != NO_ROW)
            .map(|b| b.next_pre)
            .max();
        if let Some(at) = open {
            let rank = &self.groups[usize::from(self.precharges_of(rank))];
            return (at.max(rank.next_act), true);
        }
        let at = self.units[unit]
            .iter()
            .map(|&b| self.banks[usize::from(b)].next_act)
            .max()
            .unwrap_or(0);
        (at.max(self.ranks[usize::from(rank)].next_ref), false)
    }

    #[inline]
    pub(crate) fn activate(&mut self, bank: usize, row: u32, t: Cycle) {
        let tm = &self.timing;
        let b = &mut self.banks[bank];
        b.open_row = row;
        b.next_col = t + tm.act_col;
        b.next_pre = t + tm.act_pre;
        b.next_act = t + tm.act_act;
        let (own, rank) = (usize::from(b.group), usize::from(b.rank));
        let (act_act_l, act_act_s) = (tm.act_act_l, tm.act_act_s);
        let (act_ref_s, act_bus) = (tm.act_ref_s, tm.act_bus);
        let window = self.enter_window(rank, t);
        self.delay_activates(rank, window.max(t + act_act_s));
        let group = &mut self.groups[own];
        group.next_act = group.next_act.max(t + act_act_l);
        let r = &mut self.ranks[rank];
        r.next_ref = r.next_ref.max(t + act_ref_s).max(window);
        self.bus = t + act_bus;
    }

    /// An activate enters the four-activate window; returns when it has room
    /// for the next.
    #[inline]
    fn enter_window(&mut self, rank: usize, t: Cycle) -> Cycle {
        let r = &mut self.ranks[rank];
        r.leaves[r.at] = t + self.timing.faw;
        r.at = (r.at + 1) & 3;
        r.leaves[r.at]
    }

    /// No bank of `rank` is activated before `t`.
    #[inline]
    fn delay_activates(&mut self, rank: usize, t: Cycle) {
        for group in &mut self.groups[rank * self.n_groups..(rank + 1) * self.n_groups] {
            group.next_act = group.next_act.max(t);
        }
    }

    #[inline]
    pub(crate) fn precharge(&mut self, bank: usize, t: Cycle) {
        self.close(bank, t, self.timing.pre_act);
        self.precharged(bank, t);
    }

    /// The command bus and the rank's next precharge after one at `t`.
    #[inline]
    fn precharged(&mut self, bank: usize, t: Cycle) {
        let group = usize::from(self.precharges_of(self.banks[bank].rank));
        self.groups[group].next_act = t + self.timing.pre_pre_s;
        self.bus = t + self.timing.row_bus;
    }

    #[inline]
    fn close(&mut self, bank: usize, t: Cycle, to_act: Cycle) {
        let b = &mut self.banks[bank];
        b.open_row = NO_ROW;
        b.next_act = b.next_act.max(t + to_act);
    }

    pub(crate) fn precharge_unit(&mut self, unit: usize, t: Cycle) {
        let all = if self.timing.ref_in_window {
            self.timing.pre_act
        } else {
            self.timing.pre_all_act
        };
        for i in 0..self.units[unit].len() {
            let bank = usize::from(self.units[unit][i]);
            if self.banks[bank].open_row != NO_ROW {
                self.close(bank, t, all);
            }
        }
        self.precharged(usize::from(self.units[unit][0]), t);
    }

    pub(crate) fn refresh(&mut self, unit: usize, t: Cycle) {
        let tm = &self.timing;
        let again = tm.ref_act.max(tm.ref_ref);
        for &bank in &self.units[unit] {
            self.banks[usize::from(bank)].next_act = t + again;
        }
        let first = usize::from(self.units[unit][0]);
        let rank = usize::from(self.banks[first].rank);
        let (ref_act_s, ref_ref_s) = (tm.ref_act_s, tm.ref_ref_s);
        if tm.ref_in_window {
            // To its neighbours, a refresh of one bank is like an activate.
            let window = self.enter_window(rank, t);
            self.delay_activates(rank, window.max(t + ref_act_s));
            let r = &mut self.ranks[rank];
            r.next_ref = r.next_ref.max(t + ref_ref_s).max(window);
        }
        self.bus = t + self.timing.row_bus;
    }

    /// Issues a read or write at `t`. Returns the cycle of the last beat.
    #[inline]
    pub(crate) fn column(&mut self, bank: usize, write: bool, auto: bool, t: Cycle) -> Cycle {
        let tm = &self.timing;
        let b = &mut self.banks[bank];
        let to_pre = if write { tm.wr_pre } else { tm.rd_pre };
        b.next_pre = b.next_pre.max(t + to_pre);
        let (own, first) = (usize::from(b.group), usize::from(b.rank) * self.n_groups);
        let (same, other) = if write {
            ((tm.wr_rd_s, tm.wr_wr_s), (tm.wr_rd_o, tm.wr_wr_o))
        } else {
            ((tm.rd_rd_s, tm.rd_wr), (tm.rd_rd_o, tm.rd_wr_o))
        };
        let last = first + self.n_groups;
        let real = self.groups.len() - self.ranks.len();
        for (g, group) in self.groups[..real].iter_mut().enumerate() {
            let (rd, wr) = if (first..last).contains(&g) {
                same
            } else {
                other
            };
            group.delay_columns(t + rd, t + wr);
        }
        let (rd_l, wr_l) = if write {
            (tm.wr_rd_l, tm.wr_wr_l)
        } else {
            (tm.rd_rd_l, tm.rd_wr)
        };
        self.groups[own].delay_columns(t + rd_l, t + wr_l);
        self.bus = t + tm.col_bus;
        let done = t + if write { tm.wr_done } else { tm.rd_done };
        if auto {
            let start = self.banks[bank].next_pre;
            self.close(bank, start, self.timing.pre_act);
        }
        done
    }
}

impl Group {
    #[inline]
    fn delay_columns(&mut self, read: Cycle, write: Cycle) {
        self.next_col[0] = self.next_col[0].max(read);
        self.next_col[1] = self.next_col[1].max(write);
    }
}

/// Banks of each refresh unit: for every rank, for every turn.
fn refresh_units(scheme: RefreshScheme, g: &Geometry, n_groups: usize) -> Vec<Vec<u16>> {
    let flat = |rank: u32, bank: u32| (rank * g.banks + bank) as u16;
    let mut units = Vec::new();
    for rank in 0..g.ranks {
        match scheme {
            RefreshScheme::AllBank => units.push((0..g.banks).map(|b| flat(rank, b)).collect()),
            RefreshScheme::PerBank => units.extend((0..g.banks).map(|b| vec![flat(rank, b)])),
            RefreshScheme::SameBank => {
                for turn in 0..g.banks as usize / n_groups {
                    let nth = |group: usize| {
                        (0..g.banks)
                            .filter(|&b| usize::from(g.group_of[b as usize]) == group)
                            .nth(turn)
                    };
                    units.push(
                        (0..n_groups)
                            .filter_map(nth)
                            .map(|b| flat(rank, b))
                            .collect(),
                    );
                }
            }
        }
    }
    units
}
