//! Which cores the lanes of recorded programs play on.

use super::{Part, Replay};

impl Replay {
    /// Cores that all parts need: one a lane.
    pub fn lanes(&self) -> usize {
        self.parts
            .iter()
            .map(|part| part.program.lanes().len())
            .sum()
    }

    /// Seats the lanes on these cores, in order; there must be [`Self::lanes`] of them.
    pub fn seat_on(&mut self, cores: Vec<usize>) {
        let mut next = cores.into_iter();
        for part in &mut self.parts {
            part.cores = next.by_ref().take(part.program.lanes().len()).collect();
        }
    }

    /// Seats each lane on a free core: of the node that it was recorded on, by the
    /// recording's `node_of_cpu`, else of node 0; of any other where that has none left.
    pub fn seat_near(&mut self, node_of_cpu: Option<&Vec<u32>>) {
        let node_of_core = &self.platform.node_of_core;
        let mut free: Vec<usize> = (0..node_of_core.len()).collect();
        let mut take = |node: u32| {
            let is_on_node = |&core: &usize| node_of_core[core] as u32 == node;
            let at = free.iter().position(is_on_node);
            (!free.is_empty()).then(|| free.remove(at.unwrap_or(0)))
        };
        let node = |part: &Part, lane: usize| {
            let recorded = node_of_cpu.and_then(|nodes| nodes.get(part.cores[lane]));
            recorded.copied().unwrap_or(0)
        };
        for part in &mut self.parts {
            let nodes = (0..part.program.lanes().len()).map(|lane| node(part, lane));
            part.cores = nodes.map_while(&mut take).collect();
        }
    }
}
