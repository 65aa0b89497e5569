//! A device's rules in the form that the scheduler reads.

use soloist_machine::dram::{Device, RefreshScheme, Standard};

pub use super::rules::Cycle;
use super::rules::{rules, Command, Rule, Scope};

/// Minimum distances between commands, in cycles; 0 where no rule is.
///
/// Suffixes: `_l` same bank group, `_s` other group of the same rank, `_o`
/// other rank of the same channel; none: the same bank.
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
    /// After a precharge of all banks.
    pub pre_all_act: Cycle,
    pub pre_pre_s: Cycle,
    pub rd_pre: Cycle,
    pub wr_pre: Cycle,
    pub rd_rd_l: Cycle,
    pub rd_rd_s: Cycle,
    pub rd_rd_o: Cycle,
    pub wr_wr_l: Cycle,
    pub wr_wr_s: Cycle,
    pub wr_wr_o: Cycle,
    pub rd_wr: Cycle,
    pub rd_wr_o: Cycle,
    pub wr_rd_l: Cycle,
    pub wr_rd_s: Cycle,
    pub wr_rd_o: Cycle,
    /// Read command to last beat.
    pub rd_done: Cycle,
    /// Write command to last beat.
    pub wr_done: Cycle,
    pub ref_act: Cycle,
    pub ref_act_s: Cycle,
    pub ref_ref: Cycle,
    pub ref_ref_s: Cycle,
    pub act_ref_s: Cycle,
    /// A refresh counts in the four-activate window.
    pub ref_in_window: bool,
    /// Refresh interval of one rank.
    pub ref_interval: Cycle,
    /// Command bus: activate, column, precharge or refresh.
    pub act_bus: Cycle,
    pub col_bus: Cycle,
    pub row_bus: Cycle,
}

impl Timing {
    /// Derives the delays.
    pub fn new(d: &Device) -> Self {
        use Command::{Act, Pre, PreAll, Read, Ref, Write};
        use Scope::{Bank, Group, Other, Rank};
        let rules = rules(d);
        let distance = |from: Command, to: Command, scope: Scope| {
            let wanted = |r: &&Rule| (r.from, r.to, r.scope) == (from, to, scope);
            rules
                .iter()
                .filter(wanted)
                .map(|r| r.cycles)
                .max()
                .unwrap_or(0)
        };
        Self {
            act_col: distance(Act, Read, Bank).max(distance(Act, Write, Bank)),
            act_pre: distance(Act, Pre, Bank),
            act_act: distance(Act, Act, Bank),
            act_act_l: distance(Act, Act, Group),
            act_act_s: distance(Act, Act, Rank),
            faw: Cycle::from(d.tfaw),
            pre_act: distance(Pre, Act, Bank).max(distance(Pre, Ref, Bank)),
            pre_all_act: distance(PreAll, Act, Bank).max(distance(PreAll, Ref, Bank)),
            pre_pre_s: distance(Pre, Pre, Rank),
            rd_pre: distance(Read, Pre, Bank),
            wr_pre: distance(Write, Pre, Bank),
            rd_rd_l: distance(Read, Read, Group),
            rd_rd_s: distance(Read, Read, Rank),
            rd_rd_o: distance(Read, Read, Other),
            wr_wr_l: distance(Write, Write, Group),
            wr_wr_s: distance(Write, Write, Rank),
            wr_wr_o: distance(Write, Write, Other),
            rd_wr: distance(Read, Write, Rank),
            rd_wr_o: distance(Read, Write, Other),
            wr_rd_l: distance(Write, Read, Group),
            wr_rd_s: distance(Write, Read, Rank),
            wr_rd_o: distance(Write, Read, Other),
            rd_done: Cycle::from(d.cl + d.burst_cycles()),
            wr_done: Cycle::from(d.cwl + d.burst_cycles()),
            ref_act: distance(Ref, Act, Bank),
            ref_act_s: distance(Ref, Act, Rank),
            ref_ref: distance(Ref, Ref, Bank),
            ref_ref_s: distance(Ref, Ref, Rank),
            act_ref_s: distance(Act, Ref, Rank),
            ref_in_window: d.refresh != RefreshScheme::AllBank,
            ref_interval: Cycle::from(d.refresh_interval()),
            act_bus: Cycle::from(d.activate_cycles),
            col_bus: Cycle::from(d.column_cycles),
            // An activate of LPDDR4 is two commands of two cycles each.
            row_bus: match d.standard {
                Standard::Lpddr4 => 2,
                _ => 1,
            },
        }
    }
}
