//! A program compared: alone, beside its neighbours by Linux, and beside them by policies.

use soloist_memory::Platform;

use super::{jobs, Job, Part, PartResult, Placement, Replay, WORN};

/// The first placement, which is Linux', alone; then each beside the neighbours. Of each
/// condition one run a seed, the first with who waited for whom.
pub fn jobs_beside(placements: &[Placement], seeds: u64) -> Vec<Job> {
    let alone = placements.first().map(|&first| (first, true));
    let beside = placements.iter().map(|&placement| (placement, false));
    jobs(alone.into_iter().chain(beside), seeds, |_, seed| seed == 1)
}

impl Replay {
    /// A program on core 0, and a number of neighbours that do all the same on the next ones.
    pub fn beside(platform: &Platform, program: &Part, neighbour: (&Part, usize)) -> Self {
        let seat = |part: &Part, name: String, core: usize| Part {
            name,
            cores: vec![core],
            ..part.clone()
        };
        let (neighbour, number) = neighbour;
        let mut parts = vec![seat(program, program.name.clone(), 0)];
        parts.extend((1..=number).map(|core| seat(neighbour, format!("neighbour {core}"), core)));
        Self {
            platform: platform.clone(),
            parts,
            sets: 1,
            history: WORN,
        }
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
