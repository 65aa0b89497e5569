//! What policies do to the tasks of a scenario without claims: each beside the
//! others against itself alone.

use serde::Serialize;
use soloist_core::statistics::mean;

use super::interval::Estimate;
use crate::measurements::{CaseResult, TaskResult, Waits};

/// A task under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The case.
    pub case: String,
    /// Its policy.
    pub policy: String,
    /// The task.
    pub task: String,
    /// Its time, ms; of a program of several threads, that of the last one to end.
    pub time_ms: f64,
    /// Its time over its time alone under Linux, of several copies the mean of both.
    pub slowdown: Estimate,
    /// 99th percentile of the latency of its lines, ns.
    pub p99_ns: f64,
    /// What its time has beyond that alone: adds up to the difference, ns.
    pub beyond: Waits,
    /// Whom it waited for most, why, and how long, ns.
    pub culprit: Option<(String, String, f64)>,
}

/// An answer for each case and task that has a run by itself.
pub fn answers(results: &[CaseResult]) -> Vec<Answer> {
    let mut all = Vec::new();
    for case in results.iter().filter(|c| !c.case.starts_with("alone_")) {
        let mut names: Vec<&str> = Vec::new();
        for task in case.runs.iter().flat_map(|r| &r.tasks) {
            if !names.contains(&task.name.as_str()) {
                names.push(&task.name);
            }
        }
        for name in names {
            all.extend(answer(case, name, &alone(case, name, results)));
        }
    }
    all
}

/// The time of this task by itself under Linux, on the same cpu, ms: the mean over seeds.
/// `None`: it ran in the background, or no run was by itself.
#[must_use]
pub fn alone_ms(results: &[CaseResult], case: &CaseResult, task: &TaskResult) -> Option<f64> {
    let alone = alone_of(results, case, task)?;
    let tasks = alone.runs.iter().flat_map(|run| &run.tasks);
    let same = tasks.filter(|t| t.name == task.name && t.cpu == task.cpu);
    Some(mean_ms(same))
}

/// The case in which the copy of a task that a run of `case` has was by itself.
fn alone_of<'a>(
    results: &'a [CaseResult],
    case: &CaseResult,
    task: &TaskResult,
) -> Option<&'a CaseResult> {
    // What runs for as long as the others do has no time of its own.
    task.half_ns?;
    let same = |t: &TaskResult| t.name == task.name && t.cpu == task.cpu;
    let mut alone = results.iter().filter(|c| c.case.starts_with("alone_"));
    alone.find(|alone| {
        let run = alone.runs.first();
        alone.point() == case.point() && run.is_some_and(|run| run.tasks.iter().any(same))
    })
}

/// The cases of the copies of a task by themselves, each once.
fn alone<'a>(case: &CaseResult, name: &str, results: &'a [CaseResult]) -> Vec<&'a CaseResult> {
    let tasks = case.runs.first().map_or(&[][..], |run| &run.tasks);
    let copies = tasks.iter().filter(|task| task.name == name);
    let mut all: Vec<&CaseResult> = Vec::new();
    for alone in copies.filter_map(|copy| alone_of(results, case, copy)) {
        if !all.iter().any(|known| known.case == alone.case) {
            all.push(alone);
        }
    }
    all
}

/// The threads that end last, one for each run of `case` and copy of the task: their times are
/// the programs'. Each copy has a case by itself, on its cpus.
fn last<'a>(case: &'a CaseResult, name: &str, alone: &[&CaseResult]) -> Vec<&'a TaskResult> {
    let of_copy = |copy: &&CaseResult| {
        let threads = copy.runs.first().map_or(&[][..], |run| &run.tasks);
        let is_of = |t: &&TaskResult| t.name == name && threads.iter().any(|o| o.cpu == t.cpu);
        let runs = case.runs.iter();
        let last = runs.filter_map(|run| {
            let threads = run.tasks.iter().filter(is_of);
            threads.max_by(|a, b| a.time_ns.total_cmp(&b.time_ns))
        });
        last.collect::<Vec<_>>()
    };
    alone.iter().flat_map(of_copy).collect()
}

/// The same of the runs by themselves.
fn last_alone<'a>(name: &str, alone: &[&'a CaseResult]) -> Vec<&'a TaskResult> {
    let of_copy = |copy: &&'a CaseResult| last(copy, name, &[copy]);
    alone.iter().flat_map(of_copy).collect()
}

fn answer(case: &CaseResult, name: &str, alone: &[&CaseResult]) -> Option<Answer> {
    let tasks = last(case, name, alone);
    let beside = mean_waits(&tasks)?;
    let beyond = beside.less(&mean_waits(&last_alone(name, alone))?);
    let seeds = alone.iter().map(|alone| alone.runs.len()).min()?;
    let seeds = seeds.min(case.runs.len());
    let without = |i: usize| {
        let alone: Vec<CaseResult> = alone.iter().map(|alone| alone.without(i)).collect();
        slowdown(&case.without(i), name, &alone.iter().collect::<Vec<_>>())
    };
    let without: Vec<f64> = (0..if seeds > 1 { seeds } else { 0 })
        .map(without)
        .collect();
    let culprits = beyond.culprits();
    let first = culprits
        .into_iter()
        .find(|(who, ns)| who != name && *ns > 0.0);
    let culprit = first.map(|(who, ns)| {
        let cause = beyond.main_cause(&who).unwrap_or_default().to_owned();
        (who, cause, ns)
    });
    Some(Answer {
        case: case.case.clone(),
        policy: case.policy.clone(),
        task: name.to_owned(),
        time_ms: mean_ms(tasks.into_iter()),
        slowdown: Estimate::jackknife(slowdown(case, name, alone), &without),
        p99_ns: beside.latency_ns[2],
        beyond,
        culprit,
    })
}

/// A task's time over its time by itself.
fn slowdown(case: &CaseResult, name: &str, alone: &[&CaseResult]) -> f64 {
    let beside = mean_ms(last(case, name, alone).into_iter());
    beside / mean_ms(last_alone(name, alone).into_iter())
}

fn mean_ms<'a>(tasks: impl Iterator<Item = &'a TaskResult>) -> f64 {
    mean(&tasks.map(|task| task.time_ns / 1e6).collect::<Vec<_>>())
}

fn mean_waits(tasks: &[&TaskResult]) -> Option<Waits> {
    let all: Vec<&Waits> = tasks.iter().filter_map(|t| t.waits.as_ref()).collect();
    (!all.is_empty()).then(|| Waits::mean(&all))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::measurements::Run;

    /// What `prog` took on a cpu, ms; `true`: in the foreground.
    type Took = (u32, f64, bool);

    fn case(name: &str, took: &[Took]) -> CaseResult {
        let task = |&(cpu, ms, waited_for): &Took| TaskResult {
            name: "prog".into(),
            cpu,
            time_ns: 1e6 * ms,
            half_ns: waited_for.then_some(5e5 * ms),
            accesses: 10,
            idle_ns: 0.0,
            instructions: 100,
            memory_bytes: 640,
            whole_ns: 1e6 * ms,
            spilled: 0,
            remote: 0.0,
            p99_ns: 0.0,
            waits: Some(Waits {
                compute_ns: 1e6 * ms,
                ..Waits::default()
            }),
            regulated: None,
        };
        let run = |seed| Run {
            seed,
            tasks: took.iter().map(task).collect(),
        };
        CaseResult {
            case: name.into(),
            policy: "buddy".into(),
            value: None,
            others: Vec::new(),
            runs: vec![run(1), run(2)],
        }
    }

    /// Two copies of a program of two threads: one thread has more to do than the other.
    #[test]
    fn a_thread_is_held_against_itself_and_a_program_by_its_last_thread() {
        let results = [
            case(
                "buddy",
                &[
                    (0, 2.0, true),
                    (1, 6.0, true),
                    (2, 2.5, true),
                    (3, 7.0, true),
                ],
            ),
            case("alone_prog_0", &[(0, 2.0, true), (1, 6.0, true)]),
            case("alone_prog_2", &[(2, 2.0, true), (3, 7.0, true)]),
        ];
        let tasks = &results[0].runs[0].tasks;
        let alone: Vec<f64> = tasks
            .iter()
            .map(|task| alone_ms(&results, &results[0], task).unwrap())
            .collect();
        assert_eq!(alone, [2.0, 6.0, 2.0, 7.0]);
        let [answer] = &answers(&results)[..] else {
            panic!("one task under one policy");
        };
        assert_eq!((answer.time_ms, answer.slowdown.value), (6.5, 1.0));
        assert_eq!(answer.slowdown.half, Some(0.0));
        assert_eq!(answer.beyond.total_ns(), 0.0);
    }

    /// It runs for as long as the others do; by itself it was in another mode.
    #[test]
    fn a_task_in_the_background_has_no_slowdown() {
        let results = [
            case("buddy_vanilla", &[(1, 300.0, false)]),
            case("buddy_vanilla_prog", &[(1, 0.2, true)]),
            case("alone_prog_1", &[(1, 0.1, true)]),
        ];
        let alone = |n: usize| alone_ms(&results, &results[n], &results[n].runs[0].tasks[0]);
        assert_eq!((alone(0), alone(1)), (None, Some(0.1)));
        let answers = answers(&results);
        let answered: Vec<_> = answers.iter().map(|a| a.case.as_str()).collect();
        assert_eq!(answered, ["buddy_vanilla_prog"]);
    }
}
