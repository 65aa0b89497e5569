//! The machine's virtual form: `[vm]`, which `soloist vm` boots.

use serde::Deserialize;

use crate::cache::Bytes;

/// Nodes of a virtual machine.
pub const MOST_NODES: usize = 32;

/// `[vm]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Memory of each node, from node 0 up; 0: it has CPUs alone.
    pub memory: Vec<Bytes>,
    /// CPUs: where `[topology]` has them if there are as many, else dealt in order and
    /// as evenly as can be to the nodes that have some there; one a node if not said.
    pub cpus: Option<u32>,
    /// Where memory below 4 GiB ends; what is above it continues at 4 GiB.
    pub max_ram_below_4g: Option<Bytes>,
}

impl Vm {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.memory.is_empty() || self.memory.len() > MOST_NODES {
            return Err(format!(
                "[vm] memory: expected 1 to {MOST_NODES} sizes, such as [\"1G\", \"1G\"]"
            ));
        }
        if self.memory.iter().all(|size| size.0 == 0) {
            return Err("[vm] memory: no node has any".into());
        }
        if self.memory.iter().any(|size| size.0 % (2 << 20) != 0) {
            return Err("[vm] memory: sizes must be multiples of 2M".into());
        }
        match self.cpus {
            Some(cpus) if !(1..=64).contains(&cpus) => {
                Err(format!("[vm] cpus: {cpus} is outside 1 to 64"))
            }
            _ => Ok(()),
        }
    }
}
