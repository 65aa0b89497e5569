//! The rules of each standard: how long after which command another may come,
//! and where.
//!
//! Distances are cycles of the command clock, from command to command. A rule
//! of a scope holds for every pair of commands within it: the same bank, the
//! same bank group (its banks included), the same rank (its groups included),
//! or two different ranks of the channel. That bursts never overlap on the data
//! bus follows from the distances between column commands; the four-activate
//! window and the command bus are apart ([`super::Timing`]).
//!
//! [`crate::checker`] has a table of its own, written from the standards once
//! more.

use soloist_machine::dram::{Device, RefreshScheme, Standard};
use Command::{Act, Pre, PreAll, Read, Ref, Write};
use Scope::{Bank, Group, Other, Rank};

/// Cycles of the command clock since the start.
pub type Cycle = u64;

/// Commands, as rules know them. A refresh acts on the banks of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Activate.
    Act,
    /// Read.
    Read,
    /// Write.
    Write,
    /// Precharge of one bank.
    Pre,
    /// Precharge of all banks of a rank.
    PreAll,
    /// Refresh.
    Ref,
}

/// Where two commands must be for a rule to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The same bank (a bank of the refresh unit).
    Bank,
    /// The same bank group of a rank.
    Group,
    /// The same rank.
    Rank,
    /// Different ranks of the channel.
    Other,
}

/// A minimum distance between two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The earlier command.
    pub from: Command,
    /// The later command.
    pub to: Command,
    /// Where.
    pub scope: Scope,
    /// How far, cycles.
    pub cycles: Cycle,
}

fn rule(from: Command, to: Command, scope: Scope, cycles: Cycle) -> Rule {
    Rule {
        from,
        to,
        scope,
        cycles,
    }
}

/// All rules that hold for a device.
pub fn rules(d: &Device) -> Vec<Rule> {
    let mut rules = rows(d);
    rules.extend(columns(d));
    rules.extend(refreshes(d));
    rules
}

/// Activates and precharges.
fn rows(d: &Device) -> Vec<Rule> {
    let c = |v: u32| Cycle::from(v);
    let burst = c(d.burst_cycles());
    // DDR2 and LPDDR count from the burst: a device's tRTP is the time that stands in the
    // standard, of which so many cycles are in the burst already.
    let read_pre = match d.standard {
        Standard::Ddr2 => burst + c(d.trtp).max(2) - 2,
        Standard::Lpddr4 => burst + c(d.trtp).max(8) - 8,
        Standard::Lpddr5 => burst + c(d.trtp).max(2) - 2,
        _ => c(d.trtp),
    };
    let pre_all = c(d.trp.max(d.trp_ab));
    let mut rules = vec![
        rule(Act, Read, Bank, c(d.trcd)),
        rule(Act, Write, Bank, c(d.trcd)),
        rule(Act, Pre, Bank, c(d.tras)),
        rule(Act, Act, Bank, c(d.trc)),
        rule(Act, Act, Group, c(d.trrd_l)),
        rule(Act, Act, Rank, c(d.trrd_s)),
        rule(Pre, Act, Bank, c(d.trp)),
        rule(Pre, Ref, Bank, c(d.trp)),
        rule(PreAll, Act, Bank, pre_all),
        rule(PreAll, Ref, Bank, pre_all),
        rule(Read, Pre, Bank, read_pre),
        rule(Write, Pre, Bank, after_write(d) + c(d.twr)),
    ];
    match d.standard {
        Standard::Ddr5 | Standard::Lpddr4 | Standard::Lpddr5 => {
            rules.push(rule(Pre, Pre, Rank, c(d.tppd)));
        }
        Standard::Ddr2 | Standard::Ddr3 | Standard::Ddr4 => {}
    }
    rules
}

/// Write command to the point from which tWR and tWTR count: LPDDR data sheets
/// count from one cycle after the last beat.
fn after_write(d: &Device) -> Cycle {
    let late = matches!(d.standard, Standard::Lpddr4 | Standard::Lpddr5);
    Cycle::from(d.cwl + d.burst_cycles() + u32::from(late))
}

/// Reads and writes.
fn columns(d: &Device) -> Vec<Rule> {
    let c = |v: u32| Cycle::from(v);
    let burst = c(d.burst_cycles());
    let (cl, cwl, trtrs) = (c(d.cl), c(d.cwl), c(d.trtrs));
    let write_write = match d.standard {
        Standard::Ddr5 => d.tccd_l_wr.max(d.tccd_l),
        _ => d.tccd_l,
    };
    vec![
        rule(Read, Read, Group, burst.max(c(d.tccd_l))),
        rule(Read, Read, Rank, burst.max(c(d.tccd_s))),
        rule(Read, Read, Other, burst + trtrs),
        rule(Write, Write, Group, burst.max(c(write_write))),
        rule(Write, Write, Rank, burst.max(c(d.tccd_s))),
        rule(Write, Write, Other, burst + trtrs),
        rule(Read, Write, Rank, cl + burst + c(d.trtw_gap) - cwl),
        rule(Read, Write, Other, cl + burst + trtrs - cwl),
        rule(Write, Read, Group, after_write(d) + c(d.twtr_l)),
        rule(Write, Read, Rank, after_write(d) + c(d.twtr_s)),
        rule(
            Write,
            Read,
            Other,
            (cwl + burst + trtrs).saturating_sub(cl).max(1),
        ),
    ]
}

/// Refreshes. One of a bank, or of a bank of every group, is to the other banks
/// of its rank like an activate; it also counts in the four-activate window.
fn refreshes(d: &Device) -> Vec<Rule> {
    let c = |v: u32| Cycle::from(v);
    let (all, one) = (c(d.trfc), c(d.trfc_pb));
    match (d.refresh, d.standard) {
        (RefreshScheme::AllBank, _) => vec![
            rule(Ref, Act, Bank, all),
            rule(Ref, Ref, Bank, all),
            rule(Act, Ref, Bank, c(d.trc)),
        ],
        (_, Standard::Ddr5) => vec![
            rule(Ref, Act, Bank, one),
            rule(Ref, Act, Rank, c(d.trefsbrd)),
            rule(Ref, Ref, Rank, one),
            rule(Act, Ref, Bank, c(d.trc)),
            rule(Act, Ref, Rank, c(d.trrd_l)),
        ],
        (_, Standard::Lpddr5) => vec![
            rule(Ref, Act, Bank, one),
            rule(Ref, Act, Rank, c(d.tpb_r2act)),
            rule(Ref, Ref, Bank, one),
            rule(Ref, Ref, Rank, c(d.tpb_r2pb_r)),
            rule(Act, Ref, Bank, c(d.trc)),
            rule(Act, Ref, Rank, c(d.trrd_l)),
        ],
        _ => vec![
            rule(Ref, Act, Bank, one),
            rule(Ref, Act, Rank, c(d.trrd_l)),
            rule(Ref, Ref, Rank, one),
            rule(Act, Ref, Bank, c(d.trc)),
            rule(Act, Ref, Rank, c(d.trrd_l)),
        ],
    }
}
