//! Judges command streams by the data sheet's rules.
//!
//! Written from the rules, apart from the scheduler: it shares neither
//! [`crate::timing`] nor [`crate::channel`]'s bookkeeping, keeps plain history
//! (when did each bank last see each command) and asks of every command "what
//! is the latest earlier command that forbids this, and until when?". Slow and
//! obvious on purpose. `soloist sim trace --check` runs it on every command.

use crate::channel::{Command, Geometry, Issued};
use crate::device::{Device, RefreshScheme, Standard};
use crate::error::{Error, Result};
use crate::machine::Machine;

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

/// What one bank last saw; `None`: never.
#[derive(Clone, Debug, Default)]
struct History {
    open: Option<u32>,
    activate: Option<u64>,
    read: Option<u64>,
    write: Option<u64>,
    precharge: Option<u64>,
    refresh: Option<u64>,
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
            self.rules_of(c, bank, &mut rules);
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
        let open = |b: &usize| self.banks[*b].open.is_some();
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

    fn burst(&self) -> u64 {
        u64::from(self.device.burst_length / self.device.transfers_per_cycle)
    }

    /// Cycles from a write command to the point from which tWR and tWTR count.
    fn write_end(&self) -> u64 {
        let late = matches!(self.device.standard, Standard::Lpddr4 | Standard::Lpddr5);
        u64::from(self.device.cwl) + self.burst() + u64::from(late)
    }

    fn read_to_precharge(&self) -> u64 {
        let (burst, trtp) = (self.burst(), u64::from(self.device.trtp));
        match self.device.standard {
            Standard::Ddr2 => burst + trtp.max(2) - 2,
            Standard::Lpddr4 => burst + trtp.max(8) - 8,
            _ => trtp,
        }
    }

    /// Collects what the history of every bank forbids `c` on `bank`.
    fn rules_of(&self, c: &Issued, bank: usize, rules: &mut Rules) {
        match c.command {
            Command::Activate { .. } => self.activate_rules(bank, rules),
            Command::Read { .. } => self.column_rules(bank, false, rules),
            Command::Write { .. } => self.column_rules(bank, true, rules),
            Command::Precharge | Command::PrechargeUnit => {
                if self.banks[bank].open.is_some() {
                    self.precharge_rules(bank, rules);
                }
            }
            Command::Refresh => {
                let b = &self.banks[bank];
                rules.at_least(
                    "tRP before refresh",
                    b.precharge,
                    u64::from(self.device.trp),
                );
                rules.at_least("tRC before refresh", b.activate, u64::from(self.device.trc));
                rules.at_least("tRFC", b.refresh, self.refresh_time());
            }
        }
    }

    fn refresh_time(&self) -> u64 {
        u64::from(match self.device.refresh {
            RefreshScheme::AllBank => self.device.trfc,
            _ => self.device.trfc_pb,
        })
    }

    fn rank(&self, bank: usize) -> usize {
        bank / self.geometry.banks as usize
    }

    fn group(&self, bank: usize) -> u8 {
        self.geometry.group_of[bank % self.geometry.banks as usize]
    }

    fn activate_rules(&self, bank: usize, rules: &mut Rules) {
        let d = &self.device;
        let own = &self.banks[bank];
        rules.at_least("tRC", own.activate, u64::from(d.trc));
        rules.at_least("tRP", own.precharge, u64::from(d.trp));
        rules.at_least("tRFC", own.refresh, self.refresh_time());
        let rank = self.rank(bank);
        for (other, history) in self.banks.iter().enumerate() {
            if self.rank(other) != rank || other == bank {
                continue;
            }
            if self.group(other) == self.group(bank) {
                rules.at_least("tRRD_L", history.activate, u64::from(d.trrd_l));
            } else {
                rules.at_least("tRRD_S", history.activate, u64::from(d.trrd_s));
            }
            rules.at_least("tRRD after refresh", history.refresh, u64::from(d.trrd_l));
        }
        if let [fourth, _, _, _] = self.activates[rank][..] {
            rules.at_least("tFAW", Some(fourth), u64::from(d.tfaw));
        }
    }

    fn precharge_rules(&self, bank: usize, rules: &mut Rules) {
        let d = &self.device;
        let own = &self.banks[bank];
        rules.at_least("tRAS", own.activate, u64::from(d.tras));
        rules.at_least("tRTP", own.read, self.read_to_precharge());
        rules.at_least("tWR", own.write, self.write_end() + u64::from(d.twr));
    }

    fn column_rules(&self, bank: usize, write: bool, rules: &mut Rules) {
        let d = &self.device;
        rules.at_least("tRCD", self.banks[bank].activate, u64::from(d.trcd));
        let (rank, group) = (self.rank(bank), self.group(bank));
        let burst = self.burst();
        let latency = |write: bool| u64::from(if write { d.cwl } else { d.cl });
        for (other, history) in self.banks.iter().enumerate() {
            let same_rank = self.rank(other) == rank;
            let same_group = same_rank && self.group(other) == group;
            let before = [(history.read, false), (history.write, true)];
            for (earlier, was_write) in before {
                // On the data bus: bursts follow each other without overlap,
                // with a gap when direction or rank changes.
                let gap = match (same_rank, was_write, write) {
                    (false, _, _) => u64::from(d.trtrs),
                    (true, false, true) => u64::from(d.trtw_gap),
                    (true, _, _) => 0,
                };
                let end = latency(was_write) + burst + gap;
                if let Some(distance) = end.checked_sub(latency(write)) {
                    rules.at_least("the data bus", earlier, distance);
                }
                if was_write == write && same_rank {
                    let ccd = if same_group { d.tccd_l } else { d.tccd_s };
                    rules.at_least("tCCD", earlier, u64::from(ccd));
                }
                if was_write && !write && same_rank {
                    let wtr = if same_group { d.twtr_l } else { d.twtr_s };
                    rules.at_least("tWTR", earlier, self.write_end() + u64::from(wtr));
                }
            }
        }
    }

    fn remember(&mut self, c: &Issued, targets: &[usize]) {
        self.last = c.at;
        self.bus_busy_until = c.at
            + u64::from(match c.command {
                Command::Activate { .. } => self.device.activate_cycles,
                Command::Read { .. } | Command::Write { .. } => self.device.column_cycles,
                _ => 1,
            });
        for &bank in targets {
            let closing = self.auto_precharge_at(c, bank);
            let b = &mut self.banks[bank];
            match c.command {
                Command::Activate { row } => {
                    b.activate = Some(c.at);
                    b.open = Some(row);
                }
                Command::Read { .. } => b.read = Some(c.at),
                Command::Write { .. } => b.write = Some(c.at),
                Command::Precharge | Command::PrechargeUnit => {
                    if b.open.take().is_some() {
                        b.precharge = Some(c.at);
                    }
                }
                Command::Refresh => b.refresh = Some(c.at),
            }
            if let Some(at) = closing {
                let b = &mut self.banks[bank];
                b.open = None;
                b.precharge = Some(at);
            }
        }
        if let Command::Activate { .. } = c.command {
            let rank = self.rank(usize::from(c.bank));
            let window = &mut self.activates[rank];
            if window.len() == 4 {
                window.remove(0);
            }
            window.push(c.at);
        }
    }

    /// When a column command with auto-precharge closes its row by itself.
    fn auto_precharge_at(&self, c: &Issued, bank: usize) -> Option<u64> {
        let after = match c.command {
            Command::Read { auto: true } => self.read_to_precharge(),
            Command::Write { auto: true } => self.write_end() + u64::from(self.device.twr),
            _ => return None,
        };
        let b = &self.banks[bank];
        let mut rules = Rules::default();
        rules.at_least("tRAS", b.activate, u64::from(self.device.tras));
        rules.at_least("tRTP", b.read, self.read_to_precharge());
        rules.at_least(
            "tWR",
            b.write,
            self.write_end() + u64::from(self.device.twr),
        );
        Some(rules.earliest.max(c.at + after))
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

    /// Commands seen, all legal; or the first that was not.
    pub fn finish(self) -> Result<u64> {
        match self.first {
            Some((channel, violation)) => {
                Err(Error::Machine(format!("channel {channel}: {violation}")))
            }
            None => Ok(self.channels.iter().map(|c| c.seen).sum()),
        }
    }
}
