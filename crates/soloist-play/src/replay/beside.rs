//! A program compared: alone, beside its neighbours by Linux, and beside them by policies.

use soloist_memory::Platform;

use super::{jobs, Job, Part, PartResult, Placement, Replay, ReplayError, Replayed, WORN};

/// Lines of a program that tell how much work its others are; see [`Replay::lines_within`].
pub const PILOT_LINES: usize = 20_000;

/// The first placement, which is Linux', alone; then each beside the neighbours. Of each
/// condition one run a seed, the first with who waited for whom.
pub(super) fn jobs_beside(placements: &[Placement], seeds: u64) -> Vec<Job> {
    let alone = placements.first().map(|&first| (first, true));
    let beside = placements.iter().map(|&placement| (placement, false));
    jobs(alone.into_iter().chain(beside), seeds, |_, seed| seed == 1)
}

impl Replay {
    /// A program on core 0, and `number` neighbours that do all the same on the next ones.
    pub fn beside(platform: &Platform, program: &Part, neighbour: &Part, number: usize) -> Self {
        let seat = |part: &Part, name: String, core: usize| Part {
            name,
            cores: vec![core],
            ..part.clone()
        };
        let mut parts = vec![seat(program, program.name.clone(), 0)];
        parts.extend((1..=number).map(|core| seat(neighbour, format!("co-runner {core}"), core)));
        Self {
            platform: platform.clone(),
            parts,
            sets: 1,
            history: WORN,
        }
    }

    /// The same with the foreground, and its memory, on the first node with memory where nobody
    /// else runs, as `numactl -N` has it, and that node; `None`: there is no such node.
    pub fn on_a_free_node(&self) -> Option<(Self, u32)> {
        let nodes = &self.platform.node_of_core;
        let memory = self.platform.memory.map.memory_nodes();
        let taken: Vec<usize> = (self.parts.iter())
            .flat_map(|part| part.cores.iter().map(|&core| nodes[core]))
            .collect();
        let is_free =
            |&core: &usize| !taken.contains(&nodes[core]) && memory.contains(&(nodes[core] as u32));
        let core = (0..nodes.len()).find(is_free)?;
        let mut parts = self.parts.clone();
        parts[0].cores = vec![core];
        // Of a machine without a name: there what the kernel used for it would be elsewhere, too.
        parts[0].machine.clear();
        let moved = Self {
            platform: self.platform.clone(),
            parts,
            sets: self.sets,
            history: self.history,
        };
        Some((moved, nodes[core] as u32))
    }

    /// How many lines of the foreground can be played in all of `jobs` within so many requests
    /// of all cores together, by what these few lines of it ([`PILOT_LINES`]) take. The same
    /// everywhere: a request takes half a microsecond or so of a processor.
    ///
    /// # Errors
    /// When they can't be played.
    pub fn lines_within(&self, requests: u64, jobs: &[Job]) -> Result<usize, ReplayError> {
        let Some(&first) = jobs.first() else {
            return Ok(usize::MAX);
        };
        let pilots = [true, false].map(|alone| Job {
            alone,
            blame: false,
            ..first
        });
        let runs = self.play(&pilots, &|| {})?;
        let lines = self.parts[0].program.lanes().len().max(1) * PILOT_LINES;
        let requests_of = |job: &Job| runs[usize::from(!job.alone)].requests();
        let each: u64 = jobs.iter().map(requests_of).sum();
        let within = requests as f64 / each.max(1) as f64 * lines as f64;
        Ok(within as usize)
    }
}

impl Replayed {
    /// What all programs asked the last level for, and what was written back.
    fn requests(&self) -> u64 {
        let of_part = |p: &PartResult| p.llc_hits + p.llc_misses + p.write_backs;
        self.played.iter().map(of_part).sum()
    }
}

impl PartResult {
    /// The share of its time that it spent waiting for others, and why mostly; `None`: it
    /// waited for nobody, or nobody asked.
    pub fn waited(&self) -> Option<String> {
        let is_other = |culprit: &String| *culprit != self.name;
        let others = self.blame.iter();
        let others = others.filter(|s| s.culprit.as_ref().is_some_and(is_other));
        let total: f64 = others.clone().map(|s| s.ns).sum();
        if total <= 0.0 {
            return None;
        }
        let mut causes: Vec<(&str, f64)> = Vec::new();
        for share in others {
            match causes.iter_mut().find(|(cause, _)| *cause == share.cause) {
                Some((_, ns)) => *ns += share.ns,
                None => causes.push((share.cause, share.ns)),
            }
        }
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        let why = causes.first().map_or("", |(cause, _)| cause);
        let share = 100.0 * total / self.time_ns;
        Some(format!("others {share:.0} % of the time, mostly {why}"))
    }
}
