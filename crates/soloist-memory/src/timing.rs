//! Command-to-command delays of a channel, derived once from a [`Device`].
//!
//! Every rule is a minimum distance between two commands: same bank, same bank
//! group, same rank, or another rank. The data bus needs no state of its own:
//! that two bursts never overlap follows from the column-to-column distances.

use crate::device::{Device, RefreshScheme, Standard};

/// Cycles of the command clock since the start.
pub type Cycle = u64;

/// Minimum distances between commands, in cycles.
///
/// Suffixes: `_l` same bank group, `_s` other group of the same rank, `_o`
/// other rank of the same channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each name reads "from, to, where"
pub struct Timing {
    pub act_col: Cycle,
    pub act_pre: Cycle,
    pub act_act: Cycle,
    pub act_act_l: Cycle,
    pub act_act_s: Cycle,
    pub faw: Cycle,
    pub pre_act: Cycle,
    pub rd_pre: Cycle,
    pub wr_pre: Cycle,
    /// Column to column of one kind (read-read, write-write).
    pub col_l: Cycle,
    pub col_s: Cycle,
    pub col_o: Cycle,
    pub rd_wr: Cycle,
    pub rd_wr_o: Cycle,
    pub wr_rd_l: Cycle,
    pub wr_rd_s: Cycle,
    pub wr_rd_o: Cycle,
    /// Read command to last beat.
    pub rd_done: Cycle,
    /// Write command to last beat.
    pub wr_done: Cycle,
    /// Refresh to activate of a bank it closed.
    pub ref_act: Cycle,
    /// Refresh interval of one rank.
    pub ref_interval: Cycle,
    /// Command bus: activate, column.
    pub act_bus: Cycle,
    pub col_bus: Cycle,
}

impl Timing {
    /// Derives the delays.
    pub fn new(d: &Device) -> Self {
        let c = |v: u32| Cycle::from(v);
        let burst = c(d.burst_cycles());
        let (cl, cwl) = (c(d.cl), c(d.cwl));
        // LPDDR data sheets count tWR and tWTR from one cycle after the last
        // beat; DDR2 and LPDDR4 stretch tRTP with the burst.
        let after_write = match d.standard {
            Standard::Lpddr4 | Standard::Lpddr5 => cwl + burst + 1,
            _ => cwl + burst,
        };
        let rd_pre = match d.standard {
            Standard::Ddr2 => burst + c(d.trtp).max(2) - 2,
            Standard::Lpddr4 => burst + c(d.trtp).max(8) - 8,
            _ => c(d.trtp),
        };
        Self {
            act_col: c(d.trcd),
            act_pre: c(d.tras),
            act_act: c(d.trc),
            act_act_l: c(d.trrd_l),
            act_act_s: c(d.trrd_s),
            faw: c(d.tfaw),
            pre_act: c(d.trp),
            rd_pre,
            wr_pre: after_write + c(d.twr),
            col_l: burst.max(c(d.tccd_l)),
            col_s: burst.max(c(d.tccd_s)),
            col_o: burst + c(d.trtrs),
            rd_wr: cl + burst + c(d.trtw_gap) - cwl,
            rd_wr_o: cl + burst + c(d.trtrs) - cwl,
            wr_rd_l: after_write + c(d.twtr_l),
            wr_rd_s: after_write + c(d.twtr_s),
            wr_rd_o: (cwl + burst + c(d.trtrs)).saturating_sub(cl).max(1),
            rd_done: cl + burst,
            wr_done: cwl + burst,
            ref_act: match d.refresh {
                RefreshScheme::AllBank => c(d.trfc),
                _ => c(d.trfc_pb),
            },
            ref_interval: c(d.refresh_interval()),
            act_bus: c(d.activate_cycles),
            col_bus: c(d.column_cycles),
        }
    }
}
