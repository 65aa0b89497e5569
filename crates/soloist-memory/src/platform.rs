//! Everything around the DRAM: cores, caches, northbridges, links.
//!
//! Read from a machine file: clock, nodes and caches from `[topology]` and
//! `[cache]`, the rest from `[memory]`:
//!
//! ```toml
//! [memory.core]
//! cpi = 0.5             # cycles per instruction when every access hits L1
//! outstanding = 8       # lines on their way to or from memory
//! window = 72           # instructions past the oldest load in flight
//! store_buffer = 16     # stores whose line is on its way
//! prefetch = false      # stride prefetcher
//!
//! [memory.northbridge]
//! request_ps = 10000    # last-level cache to controller
//! response_ps = 10000   # last beat to core
//! bytes_per_us = 14400  # data path of the node's memory, each way
//! victims = 32          # dirty lines of a last-level cache on their way out
//!
//! [[memory.hop]]        # paths of 1 hop, then of 2 ...
//! latency_ps = 20000
//! bytes_per_us = 12800  # each way
//! credits = 16          # requests on a path that await their answer
//! ```

use serde::Deserialize;

use crate::cache::Shape;
use crate::error::{Error, Result};
use crate::machine::{Machine, Section};

/// A core: how much it can have in flight.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            cpi: 0.5,
            outstanding: 10,
            window: 128,
            store_buffer: 32,
            prefetch: false,
        }
    }
}

/// Between the last-level cache and the controllers of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NorthbridgeConfig {
    /// Request, one way, picoseconds.
    pub request_ps: u64,
    /// Data or acknowledgement, one way, picoseconds.
    pub response_ps: u64,
    /// Bandwidth of the data path between memory and everything else, each
    /// direction, bytes per microsecond (MB/s).
    pub bytes_per_us: u64,
    /// Dirty lines of one last-level cache that may be on their way to memory.
    pub victims: u32,
}

impl Default for NorthbridgeConfig {
    fn default() -> Self {
        Self {
            request_ps: 10_000,
            response_ps: 10_000,
            bytes_per_us: 100_000,
            victims: 32,
        }
    }
}

/// The path between two nodes that are so many hops apart.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopConfig {
    /// One way, picoseconds, whole path.
    pub latency_ps: u64,
    /// Bandwidth of each direction, bytes per microsecond (MB/s).
    pub bytes_per_us: u64,
    /// Requests of one node to the other that await their answer.
    pub credits: u32,
}

/// A private cache or the last level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    /// Shape of one instance.
    pub shape: Shape,
    /// Cores that share an instance.
    pub shared_by: usize,
    /// Load to use, picoseconds.
    pub latency_ps: u64,
}

/// A whole machine, ready to be simulated.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Its memory.
    pub memory: Machine,
    /// Node of each core.
    pub node_of_core: Vec<usize>,
    /// Hops between nodes: `hops[from][to]`.
    pub hops: Vec<Vec<usize>>,
    /// Femtoseconds per instruction that misses nothing.
    pub instruction_fs: u64,
    /// Core model.
    pub core: CoreConfig,
    /// Private caches, first level first.
    pub private: Vec<CacheLevel>,
    /// The shared last level.
    pub llc: CacheLevel,
    /// Delays inside a node.
    pub northbridge: NorthbridgeConfig,
    /// Paths of 1 hop, of 2 ...
    pub paths: Vec<HopConfig>,
}

impl Platform {
    /// A machine by name, or by the path of its file.
    pub fn find(name: &str) -> Result<Self> {
        Self::of(&crate::machine::find(name)?)
    }

    /// The same with parts of the model changed: `changes` is merged into the
    /// file's `[memory]` table.
    pub fn find_changed(name: &str, changes: &toml::Table) -> Result<Self> {
        let machine = crate::machine::find(name)?;
        let unchanged = Self::of(&machine)?;
        if changes.is_empty() {
            return Ok(unchanged);
        }
        let section = Section::changed(&machine, changes)?;
        Self::with(&machine, section).map_err(|e| match e {
            // The file itself is right.
            Error::Invalid { what, .. } => Error::Model(what),
            other => other,
        })
    }

    /// The platform of a machine whose file has been read.
    pub fn of(machine: &soloist_map::Machine) -> Result<Self> {
        Self::with(machine, Section::of(machine)?)
    }

    fn with(machine: &soloist_map::Machine, section: Section) -> Result<Self> {
        let invalid = |what: String| Error::Invalid {
            file: machine.file.clone(),
            what,
        };
        let topology = &machine.topology;
        let clock_mhz = u64::from(topology.clock_mhz.unwrap_or(2000)).max(1);
        let cycle_fs = 1_000_000_000 / clock_mhz;
        let node_of_core = nodes_of_cores(&topology.cpus_of_nodes());
        let hops = hops(&topology.distances, topology.nodes());
        let farthest = hops.iter().flatten().copied().max().unwrap_or(0);
        if farthest > section.hop.len() {
            return Err(invalid(format!(
                "nodes are up to {farthest} hops apart: [[memory.hop]] is needed {farthest} times, there are {}",
                section.hop.len()
            )));
        }
        check(&section).map_err(invalid)?;
        let (private, llc) = caches(machine, cycle_fs).map_err(invalid)?;
        Ok(Self {
            memory: Machine::with(machine, &section)?,
            node_of_core,
            hops,
            instruction_fs: (cycle_fs as f64 * section.core.cpi).round() as u64,
            core: section.core,
            private,
            llc,
            northbridge: section.northbridge,
            paths: section.hop,
        })
    }
}

fn check(section: &Section) -> std::result::Result<(), String> {
    let core = &section.core;
    if !(core.cpi > 0.0 && core.cpi <= 1000.0) {
        return Err(format!("[memory.core]: cpi {} must be 0 to 1000", core.cpi));
    }
    for (name, v) in [
        ("outstanding", core.outstanding),
        ("window", core.window),
        ("store_buffer", core.store_buffer),
    ] {
        if v == 0 || v > 4096 {
            return Err(format!("[memory.core]: {name} {v} must be 1 to 4096"));
        }
    }
    if section.northbridge.bytes_per_us == 0 {
        return Err("[memory.northbridge]: bytes_per_us must not be 0".to_owned());
    }
    if section.northbridge.victims == 0 {
        return Err("[memory.northbridge]: victims must not be 0".to_owned());
    }
    for hop in &section.hop {
        if hop.bytes_per_us == 0 || hop.credits == 0 {
            return Err("[[memory.hop]]: bytes_per_us and credits must not be 0".to_owned());
        }
    }
    Ok(())
}

fn nodes_of_cores(cpus: &[Vec<u32>]) -> Vec<usize> {
    let n = cpus.iter().flatten().max().map_or(0, |&m| m as usize + 1);
    let mut nodes = vec![0; n];
    for (node, cpus) in cpus.iter().enumerate() {
        for &cpu in cpus {
            nodes[cpu as usize] = node;
        }
    }
    nodes
}

/// Distances (10 is local) as numbers of hops: the distinct distances of the
/// machine, in order.
fn hops(distances: &[Vec<u32>], nodes: usize) -> Vec<Vec<usize>> {
    let distance = |from: usize, to: usize| match distances.get(from).and_then(|d| d.get(to)) {
        Some(&d) => d,
        None if from == to => 10,
        None => 20,
    };
    let mut steps: Vec<u32> = (0..nodes)
        .flat_map(|from| (0..nodes).map(move |to| (from, to)))
        .map(|(from, to)| distance(from, to))
        .collect();
    steps.sort_unstable();
    steps.dedup();
    let rank = |d: u32| steps.iter().position(|&s| s == d).unwrap_or(0);
    (0..nodes)
        .map(|from| (0..nodes).map(|to| rank(distance(from, to))).collect())
        .collect()
}

/// Private levels and the last level, which is the outermost there is.
fn caches(
    machine: &soloist_map::Machine,
    cycle_fs: u64,
) -> std::result::Result<(Vec<CacheLevel>, CacheLevel), String> {
    let caches = machine
        .cache
        .as_ref()
        .ok_or("no [cache] table: the model needs the cores' caches")?;
    let line = u64::from(caches.line);
    let named = [
        ("l1d", &caches.l1d, 4),
        ("l2", &caches.l2, 12),
        ("l3", &caches.l3, 40),
    ];
    let mut levels = Vec::new();
    for (name, cache, usual_cycles) in named {
        let Some(c) = cache else { continue };
        let sets = c.size.0 / (line * u64::from(c.ways)).max(1);
        if sets == 0 || sets * line * u64::from(c.ways) != c.size.0 {
            return Err(format!(
                "[cache] {name}: {} bytes are no whole number of sets of {} ways of {line} bytes",
                c.size.0, c.ways
            ));
        }
        levels.push(CacheLevel {
            shape: Shape {
                sets,
                ways: c.ways as usize,
                hashed: c.hashed,
            },
            shared_by: c.shared_by.max(1) as usize,
            latency_ps: u64::from(c.latency.unwrap_or(usual_cycles)) * cycle_fs / 1000,
        });
    }
    let llc = levels.pop().ok_or("[cache] names no data cache")?;
    if let Some(shared) = levels.iter().find(|l| l.shared_by > 1) {
        return Err(format!(
            "[cache]: a cache shared by {} cores lies before the last level",
            shared.shared_by
        ));
    }
    Ok((levels, llc))
}
