//! A program compared: alone, beside its neighbours by Linux, and beside them by policies.

use std::ops::Add;
use std::time::{Duration, Instant};

use soloist_memory::Platform;
use soloist_record::Step;

use super::{jobs, Job, Part, PartResult, Placement, Replay, ReplayError, Replayed, WORN};

/// Lines of a program that tell how much work its others are; see [`Pilot`].
pub const PILOT_LINES: usize = 20_000;

/// What a line of a program takes in all runs together, by a trial of few.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pilot {
    /// Requests of all cores.
    requests: f64,
    /// While all processors play, s.
    seconds: f64,
}

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

    /// Lines of the foreground.
    pub(super) fn lines(&self) -> usize {
        let program = &self.parts[0].program;
        let lanes = program.lanes();
        let steps = lanes.iter().flat_map(|lane| program.steps(lane));
        steps.filter(|step| matches!(step, Step::Access(_))).count()
    }

    /// What these few lines of the foreground ([`PILOT_LINES`]) take in all of `jobs`. Runs
    /// of one kind are equal enough to play one of them.
    ///
    /// # Errors
    /// When they can't be played.
    pub(super) fn pilot(&self, jobs: &[Job]) -> Result<Pilot, ReplayError> {
        let lines = self.lines().max(1);
        let mut kinds: Vec<(Job, u64, Duration)> = Vec::new();
        let mut pilot = Pilot::default();
        for job in jobs {
            let is_like = |(kind, ..): &&(Job, u64, Duration)| {
                (kind.alone, kind.blame) == (job.alone, job.blame)
            };
            let (requests, took) = match kinds.iter().find(is_like) {
                Some(&(_, requests, took)) => (requests, took),
                None => {
                    // As many at once as later: how they share processors is the host's.
                    let copies = vec![*job; rayon::current_num_threads()];
                    let since = Instant::now();
                    let runs = self.play(&copies, &|| {})?;
                    let took = since.elapsed() / copies.len() as u32;
                    let requests = runs[0].requests();
                    kinds.push((*job, requests, took));
                    (requests, took)
                }
            };
            pilot.requests += requests as f64 / lines as f64;
            pilot.seconds += took.as_secs_f64() / lines as f64;
        }
        Ok(pilot)
    }
}

impl Pilot {
    /// How many lines can be played within so many requests of all cores together: the same
    /// everywhere, for a request takes half a microsecond or so of a processor.
    #[must_use]
    pub fn lines_within(&self, requests: u64) -> usize {
        (requests as f64 / self.requests.max(f64::MIN_POSITIVE)) as usize
    }

    /// How long so many lines will take on all processors, s, loaded as they were.
    #[must_use]
    pub fn seconds(&self, lines: usize) -> f64 {
        self.seconds * lines as f64
    }
}

impl Add for Pilot {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            seconds: self.seconds + other.seconds,
        }
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
