//! Judges command streams by the data sheet's rules.
//!
//! It shares nothing with the scheduler: `RULES` is a table of its own, typed
//! in from the standards, with their names and, where it exists, the number of
//! the document. It keeps plain history (when did each bank last see each
//! command) and asks of every command "what is the latest earlier command that
//! forbids this, and until when?". Slow and obvious on purpose. `soloist sim
//! trace --check` runs it on every command.

use crate::controller::Completion;
use crate::dram::{Command, Geometry, Issued};
use crate::error::{Error, Result};
use crate::platform::Machine;
use crate::replay::{Replay, Report};
use soloist_machine::dram::{Device, RefreshScheme, Standard};

/// A rule that a command broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Rule, in the data sheet's words.
    pub rule: String,
    /// The command.
    pub command: Issued,
    /// First cycle at which it would have been legal; 0 if never.
    pub legal_at: u64,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} to bank {} in cycle {} breaks {}",
            self.command.command, self.command.bank, self.command.at, self.rule
        )?;
        if self.legal_at > 0 {
            write!(f, " (legal from cycle {})", self.legal_at)?;
        }
        Ok(())
    }
}

/// What a bank can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Act,
    Rd,
    Wr,
    Pre,
    /// As a part of a precharge of all banks.
    PreAll,
    /// A row closes by itself after a read or write with auto-precharge.
    Auto,
    Ref,
}

/// Where the earlier command was, seen from the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    SameBank,
    /// Another bank of the same group.
    SameGroup,
    /// A bank of another group of the same rank.
    OtherGroup,
    /// Any bank of the same rank but its own.
    OtherBank,
    /// Any bank of the same rank.
    SameRank,
    OtherRank,
}

/// For which devices a rule is.
type Holds = fn(&Device) -> bool;

/// Cycles; nothing where it is less than none.
type Distance = fn(&Device) -> i64;

/// Name, for which devices, earlier command, later command, where, distance.
type Row = (&'static str, Holds, What, What, Where, Distance);

fn all(_: &Device) -> bool {
    true
}
fn ddr2(d: &Device) -> bool {
    d.standard == Standard::Ddr2
}
fn ddr5(d: &Device) -> bool {
    d.standard == Standard::Ddr5
}
fn lpddr4(d: &Device) -> bool {
    d.standard == Standard::Lpddr4
}
fn lpddr5(d: &Device) -> bool {
    d.standard == Standard::Lpddr5
}
/// DDR3 and DDR4.
fn ddr3_4(d: &Device) -> bool {
    matches!(d.standard, Standard::Ddr3 | Standard::Ddr4)
}
fn lpddr(d: &Device) -> bool {
    lpddr4(d) || lpddr5(d)
}
fn not_ddr5(d: &Device) -> bool {
    !ddr5(d)
}
/// Standards with a minimum between precharges.
fn ppd(d: &Device) -> bool {
    ddr5(d) || lpddr(d)
}
fn plain_trtp(d: &Device) -> bool {
    !ddr2(d) && !lpddr(d)
}
fn ref_ab(d: &Device) -> bool {
    d.refresh == RefreshScheme::AllBank
}
fn ref_pb4(d: &Device) -> bool {
    lpddr4(d) && d.refresh == RefreshScheme::PerBank
}
fn ref_pb5(d: &Device) -> bool {
    lpddr5(d) && d.refresh == RefreshScheme::PerBank
}
fn ref_sb(d: &Device) -> bool {
    ddr5(d) && d.refresh == RefreshScheme::SameBank
}
fn ref_one(d: &Device) -> bool {
    !ref_ab(d)
}

/// Beats of a burst in cycles: BL/2, or BL/8 where the data clock is four times
/// the command clock.
fn bl(d: &Device) -> i64 {
    i64::from(d.burst_length / d.transfers_per_cycle)
}
fn rl(d: &Device) -> i64 {
    i64::from(d.cl)
}
fn wl(d: &Device) -> i64 {
    i64::from(d.cwl)
}
/// From a write to the point from which tWR and tWTR count: the LPDDR standards
/// add a cycle (JESD209-4: "WL + 1 + BL/2 + RU(tWTR/tCK)").
fn written(d: &Device) -> i64 {
    wl(d) + bl(d) + i64::from(lpddr(d))
}

use What::{Act, Auto, Pre, PreAll, Rd, Ref, Wr};
use Where::{OtherBank, OtherGroup, OtherRank, SameBank, SameGroup, SameRank};

/// The standards' minimum distances.
#[rustfmt::skip]
const RULES: &[Row] = &[
    ("tRCD", all, Act, Rd, SameBank, |d| d.trcd.into()),
    ("tRCD", all, Act, Wr, SameBank, |d| d.trcd.into()),
    ("tRAS", all, Act, Pre, SameBank, |d| d.tras.into()),
    ("tRC", all, Act, Act, SameBank, |d| d.trc.into()),
    ("tRRD_L", all, Act, Act, SameGroup, |d| d.trrd_l.into()),
    ("tRRD_S", all, Act, Act, OtherGroup, |d| d.trrd_s.into()),
    ("tRP", all, Pre, Act, SameBank, |d| d.trp.into()),
    ("tRP", all, Auto, Act, SameBank, |d| d.trp.into()),
    ("tRP before refresh", all, Auto, Ref, SameBank, |d| d.trp.into()),
    ("tRP before refresh", all, Pre, Ref, SameBank, |d| d.trp.into()),
    // DDR2 with 8 banks (JESD79-2: tRPA = tRP + 1 tCK), LPDDR (tRPab).
    ("tRPab", all, PreAll, Act, SameBank, |d| d.trp.max(d.trp_ab).into()),
    ("tRPab before refresh", all, PreAll, Ref, SameBank, |d| d.trp.max(d.trp_ab).into()),
    ("tPPD", ppd, Pre, Pre, SameRank, |d| d.tppd.into()),
    // JESD79-2: AL + BL/2 + max(tRTP, 2) - 2; JESD209-4: BL/2 + max(8, tRTP) - 8;
    // JESD209-5: BL/n + tRBTP, which is max(7.5 ns, 2) - 2 with the data clock at 4:1.
    ("tRTP", ddr2, Rd, Pre, SameBank, |d| bl(d) + i64::from(d.trtp).max(2) - 2),
    ("tRTP", lpddr4, Rd, Pre, SameBank, |d| bl(d) + i64::from(d.trtp).max(8) - 8),
    ("tRBTP", lpddr5, Rd, Pre, SameBank, |d| bl(d) + i64::from(d.trtp).max(2) - 2),
    ("tRTP", plain_trtp, Rd, Pre, SameBank, |d| d.trtp.into()),
    ("tWR", all, Wr, Pre, SameBank, |d| written(d) + i64::from(d.twr)),
    // Reads and writes, by rule and by the data bus.
    ("tCCD_L", all, Rd, Rd, SameBank, |d| d.tccd_l.into()),
    ("tCCD_L", all, Rd, Rd, SameGroup, |d| d.tccd_l.into()),
    ("tCCD_S", all, Rd, Rd, OtherGroup, |d| d.tccd_s.into()),
    ("tCCD_L", not_ddr5, Wr, Wr, SameBank, |d| d.tccd_l.into()),
    ("tCCD_L", not_ddr5, Wr, Wr, SameGroup, |d| d.tccd_l.into()),
    ("tCCD_L_WR", ddr5, Wr, Wr, SameBank, |d| d.tccd_l.max(d.tccd_l_wr).into()),
    ("tCCD_L_WR", ddr5, Wr, Wr, SameGroup, |d| d.tccd_l.max(d.tccd_l_wr).into()),
    ("tCCD_S", all, Wr, Wr, OtherGroup, |d| d.tccd_s.into()),
    ("tWTR_L", all, Wr, Rd, SameBank, |d| written(d) + i64::from(d.twtr_l)),
    ("tWTR_L", all, Wr, Rd, SameGroup, |d| written(d) + i64::from(d.twtr_l)),
    ("tWTR_S", all, Wr, Rd, OtherGroup, |d| written(d) + i64::from(d.twtr_s)),
    ("the data bus", all, Rd, Rd, SameRank, bl),
    ("the data bus", all, Wr, Wr, SameRank, bl),
    // JESD79-2: BL/2 + 2. JESD79-3: RL + tCCD + 2 - WL. JESD79-4: RL + BL/2 - WL + 1 and the
    // preamble, a cycle. JESD79-5: CL - CWL + BL/2 + 2 and the preamble, two cycles, where
    // the strobe is not early and its postamble is half a cycle.
    ("tRTW", ddr2, Rd, Wr, SameRank, |d| bl(d) + 2),
    ("tRTW", ddr3_4, Rd, Wr, SameRank, |d| rl(d) + bl(d) + 2 - wl(d)),
    ("tRTW", ddr5, Rd, Wr, SameRank, |d| rl(d) + bl(d) + 2 + 2 - wl(d)),
    // The LPDDR standards add tDQSCK, which is nanoseconds: as the device's file has it.
    ("tRTW", lpddr, Rd, Wr, SameRank, |d| rl(d) + bl(d) + i64::from(d.trtw_gap) - wl(d)),
    ("the data bus", all, Rd, Rd, OtherRank, |d| bl(d) + i64::from(d.trtrs)),
    ("the data bus", all, Wr, Wr, OtherRank, |d| bl(d) + i64::from(d.trtrs)),
    ("the data bus", all, Rd, Wr, OtherRank, |d| rl(d) + bl(d) + i64::from(d.trtrs) - wl(d)),
    ("the data bus", all, Wr, Rd, OtherRank, |d| wl(d) + bl(d) + i64::from(d.trtrs) - rl(d)),
    // Refresh of all banks of a rank.
    ("tRFC", ref_ab, Ref, Act, SameBank, |d| d.trfc.into()),
    ("tRFC", ref_ab, Ref, Ref, SameBank, |d| d.trfc.into()),
    ("tRC before refresh", all, Act, Ref, SameBank, |d| d.trc.into()),
    // Of one (JESD209-4, JESD209-5: scheduling separation of refresh commands), of one
    // of each group (JESD79-5: REFsb).
    ("tRFCpb", ref_one, Ref, Act, SameBank, |d| d.trfc_pb.into()),
    ("tRFCpb", ref_pb4, Ref, Ref, SameRank, |d| d.trfc_pb.into()),
    ("tRFCpb", ref_pb5, Ref, Ref, SameBank, |d| d.trfc_pb.into()),
    ("tpbR2pbR", ref_pb5, Ref, Ref, OtherBank, |d| d.tpb_r2pb_r.into()),
    ("tRFCsb", ref_sb, Ref, Ref, SameRank, |d| d.trfc_pb.into()),
    ("tRRD after refresh", ref_pb4, Ref, Act, OtherBank, |d| d.trrd_l.into()),
    ("tpbR2act", ref_pb5, Ref, Act, OtherBank, |d| d.tpb_r2act.into()),
    ("tREFSBRD", ref_sb, Ref, Act, OtherBank, |d| d.trefsbrd.into()),
    ("tRRD before refresh", ref_one, Act, Ref, OtherBank, |d| d.trrd_l.into()),
];

/// What one bank last saw; `None`: never.
#[derive(Clone, Debug, Default)]
struct History {
    open: bool,
    last: [Option<u64>; 7],
}

/// Checks the command stream of one channel.
pub struct ChannelChecker {
    device: Device,
    geometry: Geometry,
    banks: Vec<History>,
    /// Activates of each rank, the last four.
    activates: Vec<Vec<u64>>,
    bus_busy_until: u64,
    last: u64,
    /// Commands seen.
    pub seen: u64,
}

impl ChannelChecker {
    /// A channel with all banks precharged.
    pub fn new(device: &Device, geometry: &Geometry) -> Self {
        Self {
            device: device.clone(),
            banks: vec![History::default(); (geometry.ranks * geometry.banks) as usize],
            activates: vec![Vec::new(); geometry.ranks as usize],
            geometry: geometry.clone(),
            bus_busy_until: 0,
            last: 0,
            seen: 0,
        }
    }

    /// Takes the next command, or says which rule it breaks.
    pub fn see(&mut self, c: &Issued) -> std::result::Result<(), Violation> {
        let mut rules = Rules::default();
        rules.at_least("the order of the stream", Some(self.last), 0);
        rules.at_least("the command bus", Some(self.bus_busy_until), 0);
        let targets = self.targets(c);
        for &bank in &targets {
            self.rules_of(self.what(c), bank, &mut rules);
        }
        if let Some(state) = self.wrong_state(c, &targets) {
            return Err(Violation {
                rule: state.to_owned(),
                command: *c,
                legal_at: 0,
            });
        }
        if c.at < rules.earliest {
            return Err(Violation {
                rule: rules.name,
                command: *c,
                legal_at: rules.earliest,
            });
        }
        self.remember(c, &targets);
        self.seen += 1;
        Ok(())
    }

    /// Banks that a command acts on.
    fn targets(&self, c: &Issued) -> Vec<usize> {
        let bank = usize::from(c.bank);
        let per_rank = self.geometry.banks as usize;
        let rank = bank / per_rank;
        let unit = matches!(c.command, Command::Refresh | Command::PrechargeUnit);
        match self.device.refresh {
            _ if !unit => vec![bank],
            RefreshScheme::AllBank => (rank * per_rank..(rank + 1) * per_rank).collect(),
            RefreshScheme::PerBank => vec![bank],
            RefreshScheme::SameBank => {
                // The bank's number within its group, in every group.
                let groups = &self.geometry.group_of;
                let nth = |b: usize| groups[..b].iter().filter(|&&g| g == groups[b]).count();
                let own = nth(bank % per_rank);
                (0..per_rank)
                    .filter(|&b| nth(b) == own)
                    .map(|b| rank * per_rank + b)
                    .collect()
            }
        }
    }

    fn wrong_state(&self, c: &Issued, targets: &[usize]) -> Option<&'static str> {
        let open = |b: &usize| self.banks[*b].open;
        match c.command {
            Command::Activate { .. } if targets.iter().any(open) => {
                Some("\"activate only a precharged bank\"")
            }
            Command::Read { .. } | Command::Write { .. } if !targets.iter().all(open) => {
                Some("\"read and write only an active bank\"")
            }
            Command::Refresh if targets.iter().any(open) => {
                Some("\"refresh only precharged banks\"")
            }
            _ => None,
        }
    }

    /// What a command is to the banks that it acts on.
    fn what(&self, c: &Issued) -> What {
        match c.command {
            Command::Activate { .. } => Act,
            Command::Read { .. } => Rd,
            Command::Write { .. } => Wr,
            Command::PrechargeUnit if ref_ab(&self.device) => PreAll,
            Command::Precharge | Command::PrechargeUnit => Pre,
            Command::Refresh => Ref,
        }
    }

    fn rank(&self, bank: usize) -> usize {
        bank / self.geometry.banks as usize
    }

    fn group(&self, bank: usize) -> u8 {
        self.geometry.group_of[bank % self.geometry.banks as usize]
    }

    /// Is `other` where a rule says, seen from `bank`?
    fn is(&self, other: usize, place: Where, bank: usize) -> bool {
        let same_rank = self.rank(other) == self.rank(bank);
        let same_group = same_rank && self.group(other) == self.group(bank);
        match place {
            SameBank => other == bank,
            SameGroup => same_group && other != bank,
            OtherGroup => same_rank && !same_group,
            OtherBank => same_rank && other != bank,
            SameRank => same_rank,
            OtherRank => !same_rank,
        }
    }

    /// Collects what the history of every bank forbids `what` on `bank`.
    fn rules_of(&self, what: What, bank: usize, rules: &mut Rules) {
        let precharge = |w: What| if w == PreAll { Pre } else { w };
        let closed = !self.banks[bank].open;
        if matches!(what, Pre | PreAll) && closed {
            return;
        }
        for &(name, holds, from, to, place, distance) in RULES {
            if to != precharge(what) || !holds(&self.device) {
                continue;
            }
            let Ok(distance) = u64::try_from(distance(&self.device)) else {
                continue;
            };
            for (other, history) in self.banks.iter().enumerate() {
                if self.is(other, place, bank) {
                    rules.at_least(name, history.last[from as usize], distance);
                }
            }
        }
        if what == Act || (what == Ref && ref_one(&self.device)) {
            if let [fourth, _, _, _] = self.activates[self.rank(bank)][..] {
                rules.at_least("tFAW", Some(fourth), u64::from(self.device.tfaw));
            }
        }
    }

    fn remember(&mut self, c: &Issued, targets: &[usize]) {
        self.last = c.at;
        self.bus_busy_until = c.at
            + u64::from(match c.command {
                Command::Activate { .. } => self.device.activate_cycles,
                Command::Read { .. } | Command::Write { .. } => self.device.column_cycles,
                // JESD209-4: each command is two edges of the clock.
                _ if lpddr4(&self.device) => 2,
                _ => 1,
            });
        let what = self.what(c);
        for &bank in targets {
            let b = &mut self.banks[bank];
            match what {
                Pre | PreAll => {
                    if std::mem::take(&mut b.open) {
                        b.last[what as usize] = Some(c.at);
                    }
                    continue;
                }
                Act => b.open = true,
                Rd | Wr | Auto | Ref => {}
            }
            b.last[what as usize] = Some(c.at);
            if let Command::Read { auto: true } | Command::Write { auto: true } = c.command {
                self.closes_itself(bank);
            }
        }
        // JESD209-4, JESD79-5: a refresh of one bank counts as an activate.
        if what == Act || (what == Ref && ref_one(&self.device)) {
            let rank = self.rank(usize::from(c.bank));
            let window = &mut self.activates[rank];
            if window.len() == 4 {
                window.remove(0);
            }
            window.push(c.at);
        }
    }

    /// A column command with auto-precharge closes its row as soon as a
    /// precharge would be legal, whatever other banks do.
    fn closes_itself(&mut self, bank: usize) {
        let mut rules = Rules::default();
        for &(name, holds, from, to, place, distance) in RULES {
            if to == Pre && place == SameBank && holds(&self.device) {
                let distance = u64::try_from(distance(&self.device)).unwrap_or(0);
                rules.at_least(name, self.banks[bank].last[from as usize], distance);
            }
        }
        let b = &mut self.banks[bank];
        b.open = false;
        b.last[Auto as usize] = Some(rules.earliest);
    }
}

/// The strictest of a set of "not before" rules.
#[derive(Default)]
struct Rules {
    earliest: u64,
    name: String,
}

impl Rules {
    fn at_least(&mut self, name: &str, since: Option<u64>, distance: u64) {
        let Some(since) = since else { return };
        if since + distance > self.earliest {
            self.earliest = since + distance;
            self.name = name.to_owned();
        }
    }
}

/// Checks all channels of a machine; keeps the first violation.
pub struct Checker {
    channels: Vec<ChannelChecker>,
    first: Option<(usize, Violation)>,
}

impl Checker {
    /// For every channel of `machine`.
    pub fn of(machine: &Machine) -> Self {
        let n = machine.map.n_nodes() * machine.map.n_channels();
        Self {
            channels: (0..n)
                .map(|_| ChannelChecker::new(&machine.device, &machine.geometry))
                .collect(),
            first: None,
        }
    }

    /// Takes commands of one channel, in order.
    pub fn see(&mut self, channel: usize, commands: &[Issued]) {
        for c in commands {
            if self.first.is_none() {
                self.first = self.channels[channel].see(c).err().map(|v| (channel, v));
            }
        }
    }

    /// Plays everything, and checks each command: what came of it, and how many there were.
    ///
    /// # Errors
    /// Those of the replay, and the first command that is not legal.
    pub fn play<R: std::io::Read>(
        mut self,
        replay: &mut Replay<R>,
        see: impl FnMut(usize, &Completion),
    ) -> Result<(Report, u64)> {
        let report = replay.run(see, Some(&mut |channel, log| self.see(channel, log)))?;
        Ok((report, self.finish()?))
    }

    /// Commands seen, all legal; or the first that was not.
    pub fn finish(self) -> Result<u64> {
        match self.first {
            Some((channel, violation)) => {
                Err(Error::Rules(format!("channel {channel}: {violation}")))
            }
            None => Ok(self.channels.iter().map(|c| c.seen).sum()),
        }
    }
}
