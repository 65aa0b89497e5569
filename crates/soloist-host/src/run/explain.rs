//! Why a command died, or is out of colour, by what its group counted.

use soloist_core::{format_size, NumList};

use crate::control::{Exhaust, KeyValues};
use crate::run::job::Exit;

/// What is known of the colours of a command that ended.
#[derive(Debug)]
pub struct Explained<'a> {
    /// What becomes of requests where they have no page left.
    pub how: Exhaust,
    /// What they hold, bytes.
    pub capacity: u64,
    /// The nodes that they are on.
    pub nodes: &'a NumList,
    /// Bytes on these nodes that are no good for page tables.
    pub movable: u64,
}

impl Explained<'_> {
    /// Sentences that say why a command with exhausted colours died, and how much of
    /// its memory is out of colour.
    #[must_use]
    pub fn sentences(&self, outcome: &Exit, stats: &KeyValues) -> Vec<String> {
        let mut said = Vec::new();
        let count = |key: &str| stats.get(key).and_then(|v| v.parse::<u64>().ok());
        let count = |key: &str| count(key).unwrap_or(0);
        let contradicted = count("contradicted");
        let killed = match outcome.signal {
            Some(libc::SIGBUS | libc::SIGKILL) => true,
            // What the kernel sends where execve can't have a stack.
            Some(libc::SIGSEGV) => contradicted > 0 && self.how != Exhaust::Spill,
            _ => false,
        };
        if killed && count("exhausted") > 0 {
            said.push(format!(
                "the command was killed: {}",
                self.reason(contradicted)
            ));
        }
        match (count("spilled"), self.how) {
            (0, _) => {}
            (pages, Exhaust::Spill) if contradicted > 0 => said.push(format!(
                "{pages} pages are out of colour, {contradicted} of them since {}",
                self.contradiction()
            )),
            (pages, Exhaust::Spill) => said.push(format!(
                "{pages} pages are out of colour: its colours, {} in all, had no page left (--exhaust spill)",
                format_size(self.capacity)
            )),
            // The kernel's own allocations never fail for want of a colour.
            (pages, _) => said.push(format!(
                "{pages} of its page tables are out of colour: {}",
                self.why_no_table()
            )),
        }
        said
    }

    fn reason(&self, contradicted: u64) -> String {
        if contradicted > 0 {
            return self.contradiction();
        }
        let size = format_size(self.capacity);
        let other = match self.how {
            Exhaust::Grow => "and no other colour was free; take some from other groups (`soloist group list`), or let it go on out of colour with --exhaust spill",
            _ => "give it more with --mem or --colors, or let it take more with --exhaust grow",
        };
        format!("its colours, {size} in all, had no page left; {other}")
    }

    fn contradiction(&self) -> String {
        let nodes = self.nodes;
        format!("its memory policy or cpuset.mems (numactl --membind, mbind) allows no memory on node {nodes}, where its colours are; take colours there with --node, or leave the policy out")
    }

    fn why_no_table(&self) -> String {
        match self.movable {
            0 => "no colour had a page left for them".to_owned(),
            bytes => format!(
                "none can be in movable memory, which {} of node {} are (kernelcore=, movablecore=, hotplug)",
                format_size(bytes),
                self.nodes
            ),
        }
    }
}
