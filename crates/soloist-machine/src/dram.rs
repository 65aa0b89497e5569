//! DRAM device: the parameters that a data sheet prints.
//!
//! A device file (`machines/dram/NAME.toml`) holds the figures of one speed
//! grade, in cycles of the command clock as the data sheet rounds them, under
//! the data sheet's own names. Nothing has a default that could hide a
//! misspelling: unknown keys are refused, and so is a missing one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::built_in;
use crate::file::{read_text, FileError, FileText};

/// The devices that are built in, for a sentence.
#[must_use]
pub fn names() -> String {
    built_in::MACHINES
        .get_dir("dram")
        .map(|folder| built_in::stems(folder).join(", "))
        .unwrap_or_default()
}

/// No figure of a device is greater, so that sums of a few never overflow.
const MOST: i64 = 1 << 24;

/// DRAM generation. It decides the few rules whose *form* differs between
/// standards (read to precharge, write to read); all numbers are in [`Device`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the documentation
pub enum Standard {
    #[serde(rename = "DDR2")]
    Ddr2,
    #[serde(rename = "DDR3")]
    Ddr3,
    #[serde(rename = "DDR4")]
    Ddr4,
    #[serde(rename = "DDR5")]
    Ddr5,
    #[serde(rename = "LPDDR4")]
    Lpddr4,
    #[serde(rename = "LPDDR5")]
    Lpddr5,
}

/// Which banks one refresh command closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshScheme {
    /// All banks of a rank (REF, REFab); ranks take turns.
    AllBank,
    /// One bank (LPDDR's REFpb); banks take turns.
    PerBank,
    /// The same bank of every bank group (DDR5's REFsb).
    SameBank,
}

/// One speed grade of one device, as wired to a channel.
///
/// Times are in cycles of the command clock unless the name says otherwise.
/// `#[serde(rename)]` gives each field the data sheet's spelling in files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name for people, e.g. `DDR3-1600K`.
    pub name: String,
    /// Where the figures come from.
    pub source: String,
    /// Generation.
    pub standard: Standard,
    /// Period of the command clock, picoseconds.
    #[serde(rename = "tCK_ps")]
    pub tck_ps: u32,
    /// Width of the data bus of one channel (sub-channel), bits.
    pub bus_bits: u32,
    /// Transfers of one burst.
    pub burst_length: u32,
    /// Transfers per cycle of the command clock: 2, or 8 for LPDDR5 at 4:1.
    pub transfers_per_cycle: u32,
    /// Bank groups per rank; 1 where the standard has none.
    pub bank_groups: u32,
    /// Banks per rank, over all groups.
    pub banks: u32,
    /// Bytes of a row over the whole bus.
    pub row_bytes: u32,
    /// Rows of a bank, which with its size say the density; 0: not given.
    #[serde(default)]
    pub rows: u32,
    /// Read latency: column command to first beat.
    #[serde(rename = "CL")]
    pub cl: u32,
    /// Write latency.
    #[serde(rename = "CWL")]
    pub cwl: u32,
    /// Activate to column command.
    #[serde(rename = "tRCD")]
    pub trcd: u32,
    /// Precharge to activate.
    #[serde(rename = "tRP")]
    pub trp: u32,
    /// Activate to precharge.
    #[serde(rename = "tRAS")]
    pub tras: u32,
    /// Activate to activate, same bank.
    #[serde(rename = "tRC")]
    pub trc: u32,
    /// Column to column, other bank group (or no groups).
    #[serde(rename = "tCCD_S")]
    pub tccd_s: u32,
    /// Column to column, same bank group.
    #[serde(rename = "tCCD_L")]
    pub tccd_l: u32,
    /// Activate to activate, other bank group.
    #[serde(rename = "tRRD_S")]
    pub trrd_s: u32,
    /// Activate to activate, same bank group.
    #[serde(rename = "tRRD_L")]
    pub trrd_l: u32,
    /// Window that holds at most four activates of a rank.
    #[serde(rename = "tFAW")]
    pub tfaw: u32,
    /// Last write beat to precharge.
    #[serde(rename = "tWR")]
    pub twr: u32,
    /// Last write beat to read, other bank group.
    #[serde(rename = "tWTR_S")]
    pub twtr_s: u32,
    /// Last write beat to read, same bank group.
    #[serde(rename = "tWTR_L")]
    pub twtr_l: u32,
    /// Read to precharge.
    #[serde(rename = "tRTP")]
    pub trtp: u32,
    /// Gap on the data bus when another rank drives it.
    #[serde(rename = "tRTRS")]
    pub trtrs: u32,
    /// Gap on the data bus between a read and a write of one rank, beyond the
    /// difference of the latencies (2 on DDR3: "RL + tCCD + 2tCK - WL"; 4 on DDR5).
    #[serde(rename = "tRTW_gap")]
    pub trtw_gap: u32,
    /// Mean interval of the refresh commands of one rank (all-bank).
    #[serde(rename = "tREFI")]
    pub trefi: u32,
    /// Duration of a refresh of all banks.
    #[serde(rename = "tRFC")]
    pub trfc: u32,
    /// Refresh command in use.
    pub refresh: RefreshScheme,
    /// Duration of a refresh of one bank (per-bank, same-bank); 0 if unused.
    #[serde(rename = "tRFCpb")]
    pub trfc_pb: u32,
    /// Precharge to precharge of the same rank; 0 where the standard has none.
    #[serde(rename = "tPPD", default)]
    pub tppd: u32,
    /// Precharge of all banks to activate, where it is longer than tRP (DDR2
    /// with 8 banks: tRPA; LPDDR: tRPab); 0 where it isn't.
    #[serde(rename = "tRPab", default)]
    pub trp_ab: u32,
    /// Write to write, same bank group, where it is longer than tCCD_L (DDR5);
    /// 0 where it isn't.
    #[serde(rename = "tCCD_L_WR", default)]
    pub tccd_l_wr: u32,
    /// Refresh of one bank of each group to activate of another bank (DDR5).
    #[serde(rename = "tREFSBRD", default)]
    pub trefsbrd: u32,
    /// Refresh of a bank to activate of another bank (LPDDR5).
    #[serde(rename = "tpbR2act", default)]
    pub tpb_r2act: u32,
    /// Refresh of a bank to refresh of another bank (LPDDR5).
    #[serde(rename = "tpbR2pbR", default)]
    pub tpb_r2pb_r: u32,
    /// Cycles that an activate occupies the command bus.
    pub activate_cycles: u32,
    /// Cycles that a read or write occupies the command bus.
    pub column_cycles: u32,
}

impl Device {
    /// A device by name: beside the machine file, or built in.
    ///
    /// # Errors
    /// When there is none, or its file is wrong.
    pub fn find(name: &str, machine_file: &str) -> Result<Self, FileError> {
        let beside = Path::new(machine_file)
            .parent()
            .unwrap_or(Path::new("."))
            .join("dram")
            .join(format!("{name}.toml"));
        if beside.is_file() {
            return Self::load(&beside);
        }
        let built_in = built_in::MACHINES.get_file(format!("dram/{name}.toml"));
        match built_in.and_then(|file| file.contents_utf8()) {
            Some(text) => Self::parse(text, &format!("machines/dram/{name}.toml")),
            None => Err(FileError::whole(
                machine_file,
                format!(
                    "no DRAM device `{name}`: neither {} nor one of {}",
                    beside.display(),
                    names()
                ),
            )),
        }
    }

    /// Reads a device file.
    ///
    /// # Errors
    /// With file and line, what was wrong.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let (text, file) = read_text(path)?;
        Self::parse(&text, &file)
    }

    /// Parses the text of a device file; `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let place = FileText { file, text };
        let device: Self = toml::from_str(text).map_err(|e| place.toml(&e))?;
        device
            .validate()
            .map_err(|what| FileError::whole(file, what))?;
        Ok(device)
    }

    /// Cycles that one burst occupies the data bus.
    pub fn burst_cycles(&self) -> u32 {
        self.burst_length / self.transfers_per_cycle
    }

    /// Bytes that one burst moves.
    pub fn burst_bytes(&self) -> u32 {
        self.bus_bits / 8 * self.burst_length
    }

    /// Bandwidth of the data bus without gaps, bytes per second.
    pub fn peak_bandwidth(&self) -> f64 {
        f64::from(self.bus_bits / 8) * f64::from(self.transfers_per_cycle) * 1e12
            / f64::from(self.tck_ps)
    }

    /// Bandwidth when every request opens another row of one bank, bytes per
    /// second: one burst per tRC (MemGuard 4.1), refresh aside.
    pub fn one_bank_bandwidth(&self) -> f64 {
        f64::from(self.burst_bytes()) * 1e12 / (f64::from(self.trc) * f64::from(self.tck_ps))
    }

    /// Checks that the figures can belong to one device.
    fn validate(&self) -> Result<(), String> {
        self.validate_ranges()?;
        self.validate_sizes()?;
        self.validate_timing()?;
        self.validate_refresh()
    }

    /// No figure is zero that may not be, and none is beyond what the model computes with.
    fn validate_ranges(&self) -> Result<(), String> {
        let positive = [
            ("tCK_ps", self.tck_ps),
            ("bus_bits", self.bus_bits / 8),
            ("CL", self.cl),
            ("CWL", self.cwl),
            ("tRCD", self.trcd),
            ("tRP", self.trp),
            ("tRAS", self.tras),
            ("tRC", self.trc),
            ("tCCD_S", self.tccd_s),
            ("tRRD_S", self.trrd_s),
            ("tFAW", self.tfaw),
            ("tREFI", self.trefi),
            ("tRFC", self.trfc),
            ("row_bytes", self.row_bytes),
            ("activate_cycles", self.activate_cycles),
            ("column_cycles", self.column_cycles),
            ("transfers_per_cycle", self.transfers_per_cycle),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, v)| *v == 0) {
            return Err(format!("{name} must be greater than 0"));
        }
        let all = toml::Table::try_from(self).map_err(|e| e.to_string())?;
        let beyond = |v: &toml::Value| v.as_integer().is_some_and(|v| v > MOST);
        if let Some((name, v)) = all.iter().find(|(_, v)| beyond(v)) {
            return Err(format!("{name} {v} is more than {MOST}"));
        }
        Ok(())
    }

    /// Bursts are of whole cycles, bank groups of equally many banks.
    fn validate_sizes(&self) -> Result<(), String> {
        if self.burst_length == 0 || self.burst_length % self.transfers_per_cycle != 0 {
            return Err(format!(
                "burst_length {} must be a multiple of transfers_per_cycle {}",
                self.burst_length, self.transfers_per_cycle
            ));
        }
        if self.bank_groups == 0 || self.banks % self.bank_groups != 0 || self.banks == 0 {
            return Err(format!(
                "banks {} must be a multiple of bank_groups {}",
                self.banks, self.bank_groups
            ));
        }
        Ok(())
    }

    /// Of two times, the one that the standard makes longer is not shorter.
    fn validate_timing(&self) -> Result<(), String> {
        for (long, l, short, s) in [
            ("tCCD_L", self.tccd_l, "tCCD_S", self.tccd_s),
            ("tRRD_L", self.trrd_l, "tRRD_S", self.trrd_s),
            ("tWTR_L", self.twtr_l, "tWTR_S", self.twtr_s),
            ("tRC", self.trc, "tRAS", self.tras),
        ] {
            if l < s {
                return Err(format!("{long} {l} is less than {short} {s}"));
            }
        }
        if self.cl + self.burst_cycles() < self.cwl {
            return Err(format!(
                "CWL {} is more than CL + burst {}",
                self.cwl,
                self.cl + self.burst_cycles()
            ));
        }
        Ok(())
    }

    /// The scheme of refresh has the times that it needs, and leaves time for requests.
    fn validate_refresh(&self) -> Result<(), String> {
        if self.refresh != RefreshScheme::AllBank && self.trfc_pb == 0 {
            return Err("tRFCpb must be given for per-bank refresh".to_owned());
        }
        let needed: &[(&str, u32)] = match (self.standard, self.refresh) {
            (Standard::Ddr5, RefreshScheme::SameBank) => &[("tREFSBRD", self.trefsbrd)],
            (Standard::Lpddr5, RefreshScheme::PerBank) => {
                &[("tpbR2act", self.tpb_r2act), ("tpbR2pbR", self.tpb_r2pb_r)]
            }
            _ => &[],
        };
        if let Some((name, _)) = needed.iter().find(|(_, v)| *v == 0) {
            return Err(format!("{name} must be given for this standard's refresh"));
        }
        let unit = match self.refresh {
            RefreshScheme::AllBank => self.trfc + self.trp + self.tras,
            _ => self.trfc_pb,
        };
        if self.refresh_interval() <= unit {
            return Err(format!(
                "a refresh every {} cycles leaves no time beside its duration {unit}",
                self.refresh_interval()
            ));
        }
        Ok(())
    }

    /// The same device, refreshed by this scheme.
    ///
    /// # Errors
    /// What its file lacks for that.
    pub fn refreshed_by(mut self, scheme: RefreshScheme) -> Result<Self, String> {
        self.refresh = scheme;
        self.validate().map(|()| self)
    }

    /// Refresh commands that together refresh one rank once: 1, or the banks
    /// (per-bank), or the banks of a group (same-bank).
    pub fn refresh_units(&self) -> u32 {
        match self.refresh {
            RefreshScheme::AllBank => 1,
            RefreshScheme::PerBank => self.banks,
            RefreshScheme::SameBank => self.banks / self.bank_groups,
        }
    }

    /// Cycles between refresh commands to one rank.
    ///
    /// DDR5 takes a refresh of the same bank of each group in its fine granularity mode only, in
    /// which every bank is due twice in tREFI (JESD79-5, 4.13: tREFI2 = tREFI1 / 2).
    pub fn refresh_interval(&self) -> u32 {
        let rounds = match (self.standard, self.refresh) {
            (Standard::Ddr5, RefreshScheme::SameBank) => 2,
            _ => 1,
        };
        self.trefi / (rounds * self.refresh_units())
    }
}
