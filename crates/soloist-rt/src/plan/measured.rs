//! A plan and what was measured under it: is the proof refuted?

use soloist_core::time::Time;
use soloist_trace::measured::{Measured, Task as Thread};

use super::Plan;
use crate::analysis::response::Answer;
use crate::tasks::Release;

/// Says in which way the record is of another task than the plan's; `None`: in none.
#[must_use]
pub fn unlike(plan: &Plan, seen: &Measured) -> Option<String> {
    timed(plan, seen).find_map(|(answer, release, thread)| {
        let (name, core) = (&answer.task, answer.core);
        let ns = |time: Option<u64>| time.map_or("none".to_owned(), |ns| Time(ns.saturating_mul(1000)).to_string());
        // A job is seen from its wake-up on, which may be late.
        let deadline = release.deadline.0.saturating_sub(release.jitter.0);
        for (what, planned, seen) in [
            ("period", release.period.0, thread.period_ns),
            ("deadline", deadline, thread.deadline_ns),
        ] {
            if seen != Some(planned / 1000) {
                return Some(format!(
                    "{name} was traced with another {what} ({}) than the plan's ({}): trace it with --tasks and this task file",
                    ns(seen),
                    Time(planned)
                ));
            }
        }
        let other = thread.cores.iter().find(|&&ran| ran != core)?;
        Some(format!(
            "{name} ran on core {other} and the plan has it on core {core}: start it as the plan says"
        ))
    })
}

/// Adds what of a record that is like the plan its proof calls impossible: the plan then does
/// not hold.
pub fn hold_against(plan: &mut Plan, seen: &Measured) {
    let proved = timed(plan, seen).filter(|(answer, ..)| answer.holds);
    let refuted: Vec<String> = proved
        .filter_map(|(answer, release, thread)| refuted(answer, release, thread))
        .collect();
    plan.holds &= refuted.is_empty();
    plan.refuted = refuted;
}

/// How a thread took longer than its task's proof says.
fn refuted(answer: &Answer, release: &Release, thread: &Thread) -> Option<String> {
    let bound = answer.response.unwrap_or(answer.deadline);
    let bound = Time(bound.0.saturating_sub(release.jitter.0));
    let worst = Time(thread.response_worst_ns.unwrap_or(0).saturating_mul(1000));
    if thread.missed == 0 && worst <= bound {
        return None;
    }
    Some(format!(
        "the measurement refutes the proof: {} took {worst} from its wake-up, where at most {bound} is proved; {} of {} jobs missed",
        answer.task, thread.missed, thread.jobs
    ))
}

/// The threads that have the name of a task with a deadline.
fn timed<'a>(
    plan: &'a Plan,
    seen: &'a Measured,
) -> impl Iterator<Item = (&'a Answer, &'a Release, &'a Thread)> {
    plan.analysis.iter().flat_map(move |answer| {
        let task = plan.set.tasks.iter().find(|t| t.name == answer.task);
        let release = task.and_then(|t| t.release.as_ref());
        let threads = seen.tasks.iter().filter(|t| t.is_named(&answer.task));
        threads.filter_map(move |thread| Some((answer, release?, thread)))
    })
}
