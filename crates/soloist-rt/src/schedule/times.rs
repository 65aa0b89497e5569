//! Plays a task set over given execution times: no machine underneath.

use soloist_trace::timeline::{Row, Timeline};

use super::scheduler::{Scheduler, NEVER};
use crate::tasks::TaskSet;

/// Plays the set for `length_ps`; `time(task, job)` is how long a job executes
/// in all, picoseconds. Tasks that are bound to no core don't run.
pub fn play(
    set: &TaskSet,
    length_ps: u64,
    seed: u64,
    time: &mut dyn FnMut(usize, u64) -> u64,
) -> Timeline {
    let mut cores: Vec<u32> = set.tasks.iter().filter_map(|t| t.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let mut jobs = Vec::new();
    for core in cores {
        jobs.extend(play_core(set, core, length_ps, seed, time));
    }
    jobs.sort_by_key(|j| (j.release_ps, j.task));
    Timeline {
        rows: rows(set),
        jobs,
        end_ps: length_ps,
    }
}

/// A row for each task.
#[must_use]
pub fn rows(set: &TaskSet) -> Vec<Row> {
    let row = |t: &crate::tasks::Task| Row {
        name: t.name.clone(),
        cores: t.core.into_iter().collect(),
        throttled: Vec::new(),
    };
    set.tasks.iter().map(row).collect()
}

fn play_core(
    set: &TaskSet,
    core: u32,
    length_ps: u64,
    seed: u64,
    time: &mut dyn FnMut(usize, u64) -> u64,
) -> Vec<soloist_trace::timeline::Job> {
    let mut scheduler = Scheduler::new(set, core, 1, seed);
    let mut left: Vec<Option<(u64, u64)>> = vec![None; set.tasks.len()];
    let mut now = 0;
    while now < length_ps {
        let running = scheduler.advance(now);
        let next = scheduler.next_event().min(length_ps);
        let Some((task, job)) = running else {
            now = next;
            continue;
        };
        let (_, rest) = match left[task] {
            Some((known, rest)) if known == job => (job, rest),
            _ if set.tasks[task].release.is_none() => (job, NEVER),
            _ => (job, time(task, job)),
        };
        let end = now.saturating_add(rest);
        if end <= next {
            scheduler.complete(end);
            left[task] = None;
            now = end;
        } else {
            left[task] = Some((job, rest - (next - now)));
            now = next;
        }
    }
    scheduler.finish(length_ps)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::tasks::file::parse;
    use soloist_core::time::MS;
    use soloist_trace::timeline::End;

    fn set(order: &str, tasks: &[(&str, u64, u64)]) -> TaskSet {
        let mut text = format!("order = {order:?}\n");
        for (name, period, wcet) in tasks {
            text += &format!("[[task]]\nname = {name:?}\ncore = 0\nperiod = \"{period} ms\"\nwcet = \"{wcet} ms\"\n");
        }
        parse(&text, "t").unwrap()
    }

    /// The papers' figure 16: what it says of each job, from the execution
    /// times that it prints.
    #[test]
    fn figure_16_of_camc_comes_out_of_its_execution_times() {
        let set = set("rm", &[("synthetic", 150, 60), ("is", 200, 54)]);
        let synthetic = [107, 107, 90, 107];
        // What IS would have needed at its first two jobs is not printed; more
        // than it got.
        let is = [87, 87, 87];
        let timeline = play(&set, 600 * MS, 0, &mut |task, job| {
            MS * if task == 0 {
                synthetic[job as usize]
            } else {
                is[job as usize]
            }
        });
        let jobs = |task| {
            let mine = timeline.jobs.iter().filter(move |j| j.task == task);
            mine.cloned().collect::<Vec<_>>()
        };
        assert!(jobs(0).iter().all(|j| matches!(j.end, End::Completed(_))));
        let is = jobs(1);
        assert_eq!(is[0].end, End::Missed);
        assert_eq!(is[0].runs, [(107 * MS, 150 * MS)]);
        assert_eq!(is[1].end, End::Missed);
        assert_eq!(is[1].runs, [(257 * MS, 300 * MS), (390 * MS, 400 * MS)]);
        // The paper: "has enough time (50+37=87ms) to just finish by 594".
        assert_eq!(is[2].runs, [(400 * MS, 450 * MS), (557 * MS, 594 * MS)]);
        assert_eq!(is[2].end, End::Completed(594 * MS));
    }

    #[test]
    fn edf_meets_what_rate_monotonic_misses() {
        let tasks = [("a", 50, 25), ("b", 70, 34)];
        for (order, misses) in [("rm", true), ("edf", false)] {
            let set = set(order, &tasks);
            let wcet: Vec<u64> = set.tasks.iter().map(|t| t.wcet.0).collect();
            let timeline = play(&set, 350 * MS, 0, &mut |task, _| wcet[task]);
            let missed = timeline.jobs.iter().any(|j| j.end == End::Missed);
            assert_eq!(missed, misses, "{order}");
        }
    }

    #[test]
    fn best_effort_runs_in_what_is_left() {
        let text = "[[task]]\nname = \"a\"\ncore = 0\nperiod = \"10 ms\"\nwcet = \"4 ms\"\n\
                    [[task]]\nname = \"b\"\ncore = 0\n";
        let set = parse(text, "t").unwrap();
        let timeline = play(&set, 20 * MS, 0, &mut |_, _| 4 * MS);
        let rest = timeline.jobs.iter().find(|j| j.task == 1).unwrap();
        assert_eq!(rest.runs, [(4 * MS, 10 * MS), (14 * MS, 20 * MS)]);
        assert_eq!(timeline.figures(0, 0).miss_rate(), 0.0);
    }
}
