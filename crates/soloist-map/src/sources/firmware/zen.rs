//! Channels of AMD's Zen servers, from Linux' translation library (amd_atl).
//!
//! The library knows how the data fabric deals addresses out over channels, and
//! translates for EDAC: from a channel and an address within it to the address
//! of the system. So addresses within every channel that EDAC lists are
//! translated, and what comes out is a table like any other, from addresses to
//! channels. It says nothing of ranks, banks and rows: such a map holds apart
//! what has channels of its own, and is no whole one, but where registers of the
//! memory controllers say the rest ([`super::umc`]).

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use soloist_machine::ram::RamRange;

use super::channel::Channel;
use super::umc::{Spot, Umc};
use super::{line_of, node_of, Answers, Firmware};
use soloist_host::control::ChannelAddress;
use soloist_host::machine::{edac, Host};

/// What translates addresses within channels to addresses of the system.
pub trait Locator {
    /// Where each place lies; `None`: not translated.
    ///
    /// # Errors
    /// In words.
    fn locate(&mut self, places: &[ChannelAddress]) -> Result<Vec<Option<u64>>, String>;
}

/// The channels that EDAC's driver lists on `host`, and CPUs of theirs.
///
/// # Errors
/// In words.
pub fn channels(host: &Host) -> Result<Vec<Channel>, String> {
    let listed = edac::channels(host);
    if listed.is_empty() {
        return Err(
            "which channels have memory is not known: no EDAC driver lists them \
                    (modprobe amd64_edac)"
                .into(),
        );
    }
    let nodes: BTreeSet<u32> = listed.keys().map(|&(node, _)| node).collect();
    let cpus = cpus_of(host, nodes.len())?;
    let channel_of = |(&(node, number), &bytes): (&(u32, u32), &u64)| {
        let cpu = *cpus
            .get(node as usize)
            .ok_or_else(|| format!("EDAC lists controller {node} of {} nodes", cpus.len()))?;
        Ok(Channel {
            node,
            number,
            cpu,
            bytes,
        })
    };
    listed.iter().map(channel_of).collect()
}

/// The first CPU of each of AMD's nodes: packages, or dies where there are as
/// many of these as nodes.
fn cpus_of(host: &Host, nodes: usize) -> Result<Vec<u32>, String> {
    let folder = host.path("/sys/devices/system/cpu");
    let (mut packages, mut dies) = (BTreeMap::new(), BTreeMap::new());
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
        let Some(Ok(cpu)) = number.map(str::parse::<u32>) else {
            continue;
        };
        let id = |name: &str| {
            let text = std::fs::read_to_string(entry.path().join("topology").join(name)).ok();
            text.and_then(|text| text.trim().parse::<u32>().ok())
        };
        let Some(package) = id("physical_package_id") else {
            continue;
        };
        let first = |known: &mut u32| *known = (*known).min(cpu);
        packages.entry(package).and_modify(first).or_insert(cpu);
        let die = (package, id("die_id").unwrap_or(0));
        dies.entry(die).and_modify(first).or_insert(cpu);
    }
    match (packages.len(), dies.len()) {
        (packages_there, _) if packages_there >= nodes => Ok(packages.into_values().collect()),
        (_, dies_there) if dies_there == nodes => Ok(dies.into_values().collect()),
        (packages, dies) => Err(format!(
            "EDAC lists {nodes} controllers, and there are {packages} packages of {dies} dies"
        )),
    }
}

/// The library, and the channels to ask it for.
#[derive(Debug)]
pub struct Zen<L> {
    /// What translates.
    pub locator: L,
    /// Where to ask.
    pub channels: Vec<Channel>,
    components: Vec<String>,
    /// Registers of every channel, by node and number; empty: not known.
    banks: BTreeMap<(u32, u32), Umc>,
    /// Places that were not translated, and all.
    pub untranslated: (usize, usize),
}

const NEEDED: [&str; 2] = ["ProcessorSocketId", "ChannelId"];
/// What registers of the memory controllers say besides.
const WITHIN: [&str; 7] = [
    "SubChannelId",
    "ChipSelect",
    "ChipId",
    "BankGroup",
    "Bank",
    "Row",
    "Column",
];

impl<L: Locator> Zen<L> {
    /// Asks `locator` for these channels.
    #[must_use]
    pub fn new(locator: L, channels: Vec<Channel>) -> Self {
        Self {
            locator,
            channels,
            components: NEEDED.iter().map(ToString::to_string).collect(),
            banks: BTreeMap::new(),
            untranslated: (0, 0),
        }
    }

    /// Takes registers of every channel, by node and number: then ranks, banks and
    /// rows are known too.
    #[must_use]
    pub fn with_banks(mut self, banks: BTreeMap<(u32, u32), Umc>) -> Self {
        let named = NEEDED.iter().chain(&WITHIN);
        self.components = named.map(ToString::to_string).collect();
        self.banks = banks;
        self
    }

    /// What is known of an address within a channel; `None`: it is in no chip select.
    fn values(&self, channel: Channel, line: u64) -> Option<Vec<Option<u64>>> {
        let (node, number) = (channel.node, channel.number);
        let mut values = vec![node.into(), number.into()];
        if !self.banks.is_empty() {
            let spot = self.banks.get(&(node, number))?.decode(line)?;
            values.extend(within(spot));
        }
        Some(values.into_iter().map(Some).collect())
    }
}

/// In the order of `WITHIN`.
fn within(spot: Spot) -> [u64; 7] {
    [
        spot.sub_channel,
        spot.chip_select,
        spot.multiplier,
        spot.group,
        spot.bank,
        spot.row,
        spot.column,
    ]
}

impl<L: Locator> Firmware for Zen<L> {
    fn components(&self) -> &[String] {
        &self.components
    }

    fn needed(&self) -> &'static [&'static str] {
        &NEEDED
    }

    fn is_seen(&self) -> bool {
        false
    }

    fn sample(
        &mut self,
        memory: &[RamRange],
        each: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Answers, String> {
        let each = (each * memory.len()).div_ceil(self.channels.len().max(1));
        let mut places = Vec::new();
        for (index, channel) in self.channels.iter().enumerate() {
            let lines: BTreeSet<u64> = (0..each)
                .map(|i| line_of(channel.bytes, i, rng) & !63)
                .collect();
            places.extend(lines.into_iter().map(|line| (index, line)));
        }
        let asked: Vec<ChannelAddress> = places
            .iter()
            .map(|&(index, line)| {
                let channel = self.channels[index];
                ChannelAddress {
                    cpu: channel.cpu,
                    channel: channel.number,
                    address: line,
                }
            })
            .collect();
        let located = self.locator.locate(&asked)?;
        self.untranslated.0 += located.iter().filter(|at| at.is_none()).count();
        self.untranslated.1 += located.len();
        let mut answers = Answers::new();
        for (&(index, line), at) in places.iter().zip(located) {
            let channel = self.channels[index];
            // Firmware keeps memory to itself, in no range.
            let Some(at) = at.filter(|&at| node_of(memory, at).is_some()) else {
                continue;
            };
            let Some(values) = self.values(channel, line) else {
                self.untranslated.0 += 1;
                continue;
            };
            if let Some(other) = answers.insert(at, Some(values.clone())) {
                if other != Some(values) {
                    return Err(format!(
                        "{at:#x} is told of two channels, one of them node {} channel {} at {line:#x}",
                        channel.node, channel.number
                    ));
                }
            }
        }
        Ok(answers)
    }
}
