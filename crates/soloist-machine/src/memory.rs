//! What the timing model needs of a machine: `[memory]`.
//!
//! ```toml
//! [memory]
//! device = "ddr3-1600k" # a file of machines/dram/
//!
//! [memory.controller]
//! page = "closed"       # or "open", or { idle = 64 }: cycles until a row that is not used closes
//!
//! [memory.core]
//! cpi = 0.5             # cycles per instruction when every access hits L1
//! outstanding = 8       # lines on their way to or from memory
//! window = 72           # instructions past the oldest load in flight
//! store_buffer = 16     # stores whose line is on its way
//! prefetch = false      # stride prefetcher
//! prefetch_slots = 8    # lines that it may have on their way
//! prefetch_distance = 4 # strides that it runs ahead
//! tlb = 512             # pages whose translation is at hand; 0: all
//! walk = 20             # cycles of a page walk
//!
//! [memory.northbridge]
//! request_ps = 10000    # last-level cache to controller
//! response_ps = 10000   # last beat to core
//! bytes_per_us = 14400  # data path of the node's memory, each way
//! shared = false        # both ways share it
//! victims = 32          # dirty lines of a last-level cache on their way out
//! in_order = 0          # requests that are answered in their order at a time; 0: in any
//! deferred = 0          # of those, how many may step aside
//!
//! [[memory.hop]]        # paths of 1 hop, then of 2 ...
//! latency_ps = 20000
//! bytes_per_us = 12800  # each way
//! credits = 16          # requests on a path that await their answer
//!
//! [memory.range]        # what no document says: least and greatest that it could be
//! "core.store_buffer" = [4, 8]
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dram::RefreshScheme;
use crate::file::plain;

/// Most requests in one bank's queue.
pub const MAX_BANK_QUEUE: u32 = 16;

/// Longest delay on a request's way, a millisecond.
const MAX_DELAY_PS: u64 = 1_000_000_000;
/// The model counts femtoseconds of a byte.
const MAX_BYTES_PER_US: u64 = 1_000_000_000;

/// `[memory]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name of the DRAM device on every channel.
    pub device: String,
    /// The controllers' policy.
    #[serde(default)]
    pub controller: Policy,
    /// The cores.
    #[serde(default)]
    pub core: CoreConfig,
    /// Between cores and controllers of a node.
    #[serde(default)]
    pub northbridge: NorthbridgeConfig,
    /// Paths of 1 hop, of 2 ...
    #[serde(default)]
    pub hop: Vec<HopConfig>,
    /// By dotted key, the least and the greatest that a value which no document
    /// gives could be.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub range: BTreeMap<String, [toml::Value; 2]>,
}

impl Memory {
    /// The same with some values changed: `changes` is merged into the table. They need not
    /// fit the ends of the ranges.
    ///
    /// # Errors
    /// What is wrong with the changes.
    pub fn changed(&self, changes: &toml::Table) -> Result<Self, String> {
        let message = |text: &str| text.replace('\n', " ");
        let mut table = toml::Table::try_from(self).map_err(|e| message(&e.to_string()))?;
        merge(&mut table, changes);
        let changed: Self = table
            .try_into()
            .map_err(|e: toml::de::Error| plain(&message(e.message())))?;
        changed.check_values().map(|()| changed)
    }

    /// Whether all values of the file are in range, and the ends of its ranges.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_values()?;
        self.check_ranges()
    }

    /// Whether all values are in range.
    fn check_values(&self) -> Result<(), String> {
        self.controller
            .check()
            .map_err(|what| format!("[memory.controller]: {what}"))?;
        let core = &self.core;
        if !(core.cpi > 0.0 && core.cpi <= 1000.0) {
            let cpi = core.cpi;
            return Err(format!(
                "[memory.core]: cpi {cpi} must be above 0, and 1000 at most"
            ));
        }
        for (name, v) in [
            ("outstanding", core.outstanding),
            ("window", core.window),
            ("store_buffer", core.store_buffer),
            ("prefetch_slots", core.prefetch_slots),
        ] {
            if v == 0 || v > 4096 {
                return Err(format!("[memory.core]: {name} {v} must be 1 to 4096"));
            }
        }
        if !(1..=64).contains(&core.prefetch_distance) {
            return Err(format!(
                "[memory.core]: prefetch_distance {} must be 1 to 64",
                core.prefetch_distance
            ));
        }
        if core.tlb > 1 << 20 || core.walk > 100_000 || (core.walk > 0) != (core.tlb > 0) {
            return Err(format!(
                "[memory.core]: tlb {} (up to 2^20 pages) and walk {} (up to 100000 cycles) must both be given, or neither",
                core.tlb, core.walk
            ));
        }
        let paths = self.hop.iter();
        let paths = paths.map(|hop| ("[[memory.hop]]", hop.bytes_per_us));
        let own = ("[memory.northbridge]", self.northbridge.bytes_per_us);
        let mut paths = std::iter::once(own).chain(paths);
        if let Some((table, rate)) = paths.find(|path| !(1..=MAX_BYTES_PER_US).contains(&path.1)) {
            return Err(format!(
                "{table}: bytes_per_us {rate} must be 1 to {MAX_BYTES_PER_US}"
            ));
        }
        let bus = &self.northbridge;
        let (queue, deferred) = (bus.in_order, bus.deferred);
        if queue > 4096 {
            return Err(format!(
                "[memory.northbridge]: in_order {queue} must be 0 to 4096"
            ));
        }
        if deferred > queue {
            return Err(format!(
                "[memory.northbridge]: deferred {deferred} must be in_order ({queue}) at most"
            ));
        }
        if self.northbridge.victims == 0 {
            return Err("[memory.northbridge]: victims must not be 0".to_owned());
        }
        let hops = self.hop.iter();
        let hops = hops.map(|hop| ("[[memory.hop]]: latency_ps", hop.latency_ps));
        let ways = [
            ("[memory.northbridge]: request_ps", bus.request_ps),
            ("[memory.northbridge]: response_ps", bus.response_ps),
        ];
        if let Some((name, ps)) = ways.into_iter().chain(hops).find(|w| w.1 > MAX_DELAY_PS) {
            return Err(format!("{name} {ps} must be 0 to {MAX_DELAY_PS}"));
        }
        for hop in &self.hop {
            if hop.credits == 0 {
                return Err("[[memory.hop]]: credits must not be 0".to_owned());
            }
        }
        Ok(())
    }

    /// Both ends of each range could stand in the file.
    fn check_ranges(&self) -> Result<(), String> {
        for (key, ends) in &self.range {
            for end in ends {
                let table = format!("{key} = {end}").parse::<toml::Table>();
                table
                    .map_err(|e| e.message().to_owned())
                    .and_then(|change| self.changed(&change))
                    .map_err(|what| format!("[memory.range]: {key}: {what}"))?;
            }
        }
        Ok(())
    }
}

/// Puts the values of `changes` into `table`, tables into tables.
fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, change) in changes {
        match (table.get_mut(key), change) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(change)) => merge(inner, change),
            _ => {
                table.insert(key.clone(), change.clone());
            }
        }
    }
}

/// What happens to a row after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Page {
    /// It stays open until another row is needed.
    Open,
    /// It closes with the last queued access to it (auto-precharge).
    Closed,
    /// As `open`, but it closes when nobody has used it for so many cycles of the DRAM,
    /// 1 to 65536: `page = { idle = 64 }`.
    Idle(u32),
}

/// Which of several banks goes first when their commands are legal at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The banks take turns, after the one served last.
    RoundRobin,
    /// Column commands before others, then the oldest request.
    Oldest,
}

/// Policy of a controller. Every field may be left out of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Reads that may wait for room in a bank queue, 1 to 4096.
    pub read_queue: u32,
    /// Writes that may wait to be drained, 1 to 4096.
    pub write_queue: u32,
    /// Requests in each bank's queue, 1 to 16.
    pub bank_queue: u32,
    /// Order within a bank: the name of a scheduler of the timing model, which says what
    /// names there are.
    pub scheduler: String,
    /// Order among banks.
    pub order: Order,
    /// Accesses to an open row from which on the oldest request of its bank
    /// may close it though more would hit, if closing is legal first.
    pub hit_limit: u32,
    /// Row hits that may pass an older request of their bank at all; after
    /// them the row is closed.
    pub hit_cap: u32,
    /// Column commands of one direction, read or write, in a row while one of the other waits in a
    /// bank's queue, up to 4096; then the bus turns. Reads that wait before these queues for a
    /// drain's end turn nothing. 0: any number, so that a stream starves who must turn the bus.
    pub direction_cap: u32,
    /// Column commands of one rank in a row while another rank waits, up to 4096; then the others
    /// have their turn. 0: any number, so that a stream starves other ranks.
    pub rank_cap: u32,
    /// Row policy.
    pub page: Page,
    /// Writes waiting at which a drain begins.
    pub drain_high: u32,
    /// Writes waiting at which a drain ends.
    pub drain_low: u32,
    /// Writes waiting at which a drain begins when no read is waiting.
    pub drain_idle: u32,
    /// Which banks one refresh command closes, of what the device can do (default:
    /// as the device's file says).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<RefreshScheme>,
    /// Activates of a bank after which its unit is refreshed once more (DDR5's refresh management,
    /// JESD79-5 4.41: RAAIMT), up to 4096; a refresh takes as many off. 0: never.
    pub refresh_management: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            read_queue: 32,
            write_queue: 32,
            bank_queue: 8,
            scheduler: "fr-fcfs".to_owned(),
            order: Order::RoundRobin,
            hit_limit: 4,
            hit_cap: 128,
            direction_cap: 0,
            rank_cap: 0,
            page: Page::Open,
            drain_high: 26,
            drain_low: 6,
            drain_idle: 8,
            refresh: None,
            refresh_management: 0,
        }
    }
}

impl Policy {
    /// Checks ranges and order of the marks.
    fn check(&self) -> Result<(), String> {
        let range = |name: &str, v: u32, max: u32| {
            if (1..=max).contains(&v) {
                Ok(())
            } else {
                Err(format!("{name} {v} must be 1 to {max}"))
            }
        };
        range("read_queue", self.read_queue, 4096)?;
        range("write_queue", self.write_queue, 4096)?;
        range("bank_queue", self.bank_queue, MAX_BANK_QUEUE)?;
        for (name, v) in [
            ("direction_cap", self.direction_cap),
            ("rank_cap", self.rank_cap),
            ("refresh_management", self.refresh_management),
        ] {
            if v > 4096 {
                return Err(format!("{name} {v} must be 0 to 4096"));
            }
        }
        if let Page::Idle(cycles) = self.page {
            range("page.idle", cycles, 1 << 16)?;
        }
        range("hit_limit", self.hit_limit, 1 << 20)?;
        range("hit_cap", self.hit_cap, 1 << 20)?;
        range("drain_high", self.drain_high, self.write_queue)?;
        range("drain_idle", self.drain_idle, self.write_queue)?;
        if self.drain_low >= self.drain_high {
            return Err(format!(
                "drain_low {} must be below drain_high {}",
                self.drain_low, self.drain_high
            ));
        }
        Ok(())
    }
}

/// A core: how much it can have in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoreConfig {
    /// Cycles per instruction when nothing misses L1.
    pub cpi: f64,
    /// Line fills that one core may have in flight.
    pub outstanding: u32,
    /// Instructions that may pass the oldest load in flight.
    pub window: u32,
    /// Stores whose line may be on its way.
    pub store_buffer: u32,
    /// Stride prefetcher into the last private cache.
    pub prefetch: bool,
    /// Lines that the prefetcher may have on their way, 1 to 4096.
    pub prefetch_slots: u32,
    /// Strides that it runs ahead, 1 to 64.
    pub prefetch_distance: u32,
    /// Pages of 4 KiB whose translation the core holds (its last TLB); 0: all
    /// that there are.
    pub tlb: u32,
    /// Cycles that a translation takes which it does not hold.
    pub walk: u32,
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            cpi: 0.5,
            outstanding: 10,
            window: 128,
            store_buffer: 32,
            prefetch: false,
            prefetch_slots: 8,
            prefetch_distance: 4,
            tlb: 0,
            walk: 0,
        }
    }
}

/// Between the last-level cache and the controllers of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NorthbridgeConfig {
    /// Request, one way, picoseconds.
    pub request_ps: u64,
    /// Data or acknowledgement, one way, picoseconds.
    pub response_ps: u64,
    /// Bandwidth of the data path between memory and everything else, each
    /// direction, bytes per microsecond (MB/s).
    pub bytes_per_us: u64,
    /// Both directions share that bandwidth.
    pub shared: bool,
    /// Dirty lines of one last-level cache that may be on their way to memory.
    pub victims: u32,
    /// Answers come in the order of requests, of which so many are on their way at a
    /// time, as on a front-side bus; 0: in any order.
    pub in_order: u32,
    /// Of those, the oldest ones that may wait aside while younger ones are answered.
    pub deferred: u32,
}

impl Default for NorthbridgeConfig {
    fn default() -> Self {
        Self {
            request_ps: 10_000,
            response_ps: 10_000,
            bytes_per_us: 100_000,
            shared: false,
            victims: 32,
            in_order: 0,
            deferred: 0,
        }
    }
}

/// The path between two nodes that are so many hops apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopConfig {
    /// One way, picoseconds, whole path.
    pub latency_ps: u64,
    /// Bandwidth of each direction, bytes per microsecond (MB/s).
    pub bytes_per_us: u64,
    /// Requests of one node to the other that await their answer.
    pub credits: u32,
}
