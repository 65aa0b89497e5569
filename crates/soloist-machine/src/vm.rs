//! The machine's virtual form: `[vm]`, which `soloist vm` boots.

use serde::Deserialize;

use crate::cache::Bytes;

/// `[vm]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Memory of each node, from node 0 up.
    pub memory: Vec<Bytes>,
    /// CPUs, dealt to the nodes in order and as evenly as can be; one a node
    /// if not said.
    pub cpus: Option<u32>,
    /// Where memory below 4 GiB ends; what is above it continues at 4 GiB.
    pub max_ram_below_4g: Option<Bytes>,
}

impl Vm {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.memory.is_empty() || self.memory.len() > 8 {
            return Err("[vm] memory: expected 1 to 8 sizes, such as [\"1G\", \"1G\"]".into());
        }
        let odd = |size: &Bytes| size.0 % (2 << 20) != 0 || size.0 == 0;
        if self.memory.iter().any(odd) {
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
