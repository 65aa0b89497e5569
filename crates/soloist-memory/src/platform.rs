//! Everything around the DRAM: cores, caches, northbridges, links.
//!
//! Read from a machine file: clock, nodes and caches from `[topology]` and
//! `[cache]`, the rest from `[memory]` ([`soloist_machine::memory`]).

mod decoder;
mod machine;

use soloist_machine::memory::{CoreConfig, HopConfig, Memory, NorthbridgeConfig};
use soloist_machine::{known, Cache, Caches, FileError};

use crate::cache::Shape;
use crate::error::{Error, Result};

pub use decoder::{Decoder, DramAddress};
pub use machine::Machine;

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
    /// Last-level cache of each core.
    pub llc_of_core: Vec<usize>,
    /// Hops between nodes: `hops[from][to]`.
    pub hops: Vec<Vec<usize>>,
    /// Femtoseconds per instruction that misses nothing.
    pub instruction_fs: u64,
    /// A page walk, picoseconds.
    pub walk_ps: u64,
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

/// Of a core's clock, MHz.
const FASTEST_MHZ: u32 = 100_000;

impl Platform {
    /// A machine by name, or by the path of its file.
    pub fn find(name: &str) -> Result<Self> {
        Self::of(&known::find(name)?)
    }

    /// The same with parts of the model changed: `changes` is merged into the
    /// file's `[memory]` table.
    pub fn find_changed(name: &str, changes: &toml::Table) -> Result<Self> {
        let machine = known::find(name)?;
        let unchanged = Self::of(&machine)?;
        if changes.is_empty() {
            return Ok(unchanged);
        }
        let changed = machine
            .memory_table()?
            .changed(changes)
            .map_err(Error::Model)?;
        Self::with(&machine, &changed).map_err(|e| match e {
            // The file itself is right.
            Error::File(wrong) => Error::Model(wrong.message),
            other => other,
        })
    }

    /// Dirty lines that a core can give up before the last level has one of them, or, where that
    /// is full, memory: four times as many as its fills push out.
    pub fn room(&self) -> u32 {
        4 * self.core.outstanding
    }

    /// Last-level caches.
    pub fn llcs(&self) -> usize {
        self.llc_of_core.iter().max().map_or(0, |&last| last + 1)
    }

    /// The node whose memory is nearest to a core: its own, where that has any.
    pub fn home(&self, core: usize) -> u32 {
        let hops = &self.hops[self.node_of_core[core]];
        let far = |node: &u32| hops.get(*node as usize).copied().unwrap_or(usize::MAX);
        let nodes = self.memory.map.memory_nodes().into_iter();
        nodes.min_by_key(far).unwrap_or(0)
    }

    /// The platform of a machine whose file has been read.
    pub fn of(machine: &soloist_machine::Machine) -> Result<Self> {
        let platform = Self::with(machine, machine.memory_table()?)?;
        platform.memory.has_its_rows(&machine.file)?;
        Ok(platform)
    }

    fn with(machine: &soloist_machine::Machine, section: &Memory) -> Result<Self> {
        let invalid = |what: String| Error::File(FileError::whole(&machine.file, what));
        let topology = &machine.topology;
        let cycle_fs = cycle_fs(topology.clock_mhz.unwrap_or(USUAL_CLOCK_MHZ)).map_err(invalid)?;
        let cpus = topology.cpus_of_nodes();
        let node_of_core = nodes_of_cores(&cpus).map_err(invalid)?;
        let hops = hops(&topology.distances, topology.nodes());
        let farthest = hops.iter().flatten().copied().max().unwrap_or(0);
        if farthest > section.hop.len() {
            return Err(invalid(format!(
                "nodes are up to {farthest} hops apart: [[memory.hop]] is needed {farthest} times, there are {}",
                section.hop.len()
            )));
        }
        let (private, llc) = caches(machine, cycle_fs).map_err(invalid)?;
        Ok(Self {
            memory: Machine::with(machine, section)?,
            node_of_core,
            llc_of_core: llcs_of_cores(&cpus, llc.shared_by),
            hops,
            instruction_fs: (cycle_fs as f64 * section.core.cpi).round() as u64,
            walk_ps: u64::from(section.core.walk) * cycle_fs / 1000,
            core: section.core.clone(),
            private,
            llc,
            northbridge: section.northbridge.clone(),
            paths: section.hop.clone(),
        })
    }
}

/// Femtoseconds of a clock.
fn cycle_fs(clock_mhz: u32) -> std::result::Result<u64, String> {
    match clock_mhz {
        1..=FASTEST_MHZ => Ok(1_000_000_000 / u64::from(clock_mhz)),
        _ => Err(format!(
            "[topology]: clock_mhz {clock_mhz} must be 1 to {FASTEST_MHZ}"
        )),
    }
}

/// Cores are numbered from 0 on: a task on a CPU that is not there would run nowhere.
fn nodes_of_cores(cpus: &[Vec<u32>]) -> std::result::Result<Vec<usize>, String> {
    let of_node = |(node, cpus): (usize, &Vec<u32>)| -> Vec<(u32, usize)> {
        cpus.iter().map(|&cpu| (cpu, node)).collect()
    };
    let mut all: Vec<(u32, usize)> = cpus.iter().enumerate().flat_map(of_node).collect();
    all.sort_unstable();
    match all.iter().zip(0..).find(|((cpu, _), number)| cpu != number) {
        Some(((cpu, _), gap)) => Err(format!(
            "[topology] cpus: there is a CPU {cpu} and no CPU {gap}: \
             the model plays CPUs that are numbered from 0 on without a gap"
        )),
        None => Ok(all.into_iter().map(|(_, node)| node).collect()),
    }
}

/// Last-level cache of each core: those of a node in order, `shared_by` to a
/// cache; a cache of more cores than a node has takes nodes in order.
fn llcs_of_cores(cpus: &[Vec<u32>], shared_by: usize) -> Vec<usize> {
    let all: Vec<u32> = cpus.concat();
    let mut llcs = vec![0; all.iter().max().map_or(0, |&m| m as usize + 1)];
    // A node of memory alone has none.
    let spans = cpus
        .iter()
        .any(|node| !node.is_empty() && node.len() < shared_by);
    let groups: Vec<&[u32]> = if spans {
        all.chunks(shared_by).collect()
    } else {
        cpus.iter()
            .flat_map(|node| node.chunks(shared_by))
            .collect()
    };
    for (llc, group) in groups.iter().enumerate() {
        for &cpu in *group {
            llcs[cpu as usize] = llc;
        }
    }
    llcs
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

/// The clock that a machine is taken to have whose file gives none, MHz.
pub const USUAL_CLOCK_MHZ: u32 = 2000;

/// The data caches of a machine, each with its key and the latency that it is taken to have
/// where the file gives none, cycles.
pub fn data_caches(of: &Caches) -> impl Iterator<Item = (&'static str, &Cache, u32)> {
    let named = [("l1d", &of.l1d, 4), ("l2", &of.l2, 12), ("l3", &of.l3, 40)];
    let named = named.into_iter();
    named.filter_map(|(name, cache, usual)| Some((name, cache.as_ref()?, usual)))
}

/// Private levels and the last level, which is the outermost there is.
fn caches(
    machine: &soloist_machine::Machine,
    cycle_fs: u64,
) -> std::result::Result<(Vec<CacheLevel>, CacheLevel), String> {
    let caches = machine
        .cache
        .as_ref()
        .ok_or("no [cache] table: the model needs the cores' caches")?;
    let line = u64::from(caches.line);
    // The caches take whole lines of the map.
    let lines = machine.addr_map().line_size();
    if caches.line != lines {
        return Err(format!(
            "[cache]: line {line}: those of the map have {lines} bytes"
        ));
    }
    let mut levels = Vec::new();
    for (name, c, usual_cycles) in data_caches(caches) {
        if c.shared_by == 0 {
            return Err(format!("[cache] {name}: shared_by must not be 0"));
        }
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
            shared_by: c.shared_by as usize,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// It is no gap, and no cache spans nodes because of it.
    #[test]
    fn a_node_of_memory_alone_changes_no_cores() {
        let cpus = [vec![0, 1, 2], vec![], vec![3, 4, 5]];
        assert_eq!(nodes_of_cores(&cpus), Ok(vec![0, 0, 0, 2, 2, 2]));
        assert_eq!(llcs_of_cores(&cpus, 2), [0, 0, 1, 2, 2, 3]);
    }
}
