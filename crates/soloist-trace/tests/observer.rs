//! A record of a guest (6.12): a periodic program with 50 ms and 5 ms of work under
//! SCHED_FIFO, a loop beside it on processor 1; from 9.43 s on that processor has
//! 10 of each 20 ms.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use soloist_core::time::MS;
use soloist_trace::event::text_of;
use soloist_trace::measured::Measured;
use soloist_trace::observer::{Observer, Record};
use soloist_trace::timeline::End;
use soloist_trace::track::Timing;
use soloist_trace::watch::Watch;

const TRACE: &str = include_str!("traces/periodic-6.12.txt");
const ORIGIN: u64 = 9_200 * MS;

fn observed(watch: Watch) -> Record {
    let mut observer = Observer::new(watch, ORIGIN);
    for line in TRACE.lines() {
        observer.read(line);
    }
    observer.finish(9_730 * MS)
}

fn by_name(name: &str, timing: Option<Timing>) -> Watch {
    Watch {
        names: BTreeMap::from([(name.to_owned(), timing)]),
        ..Watch::default()
    }
}

fn periodic(deadline_ms: u64) -> Option<Timing> {
    Some(Timing {
        period_ps: 50 * MS,
        deadline_ps: deadline_ms * MS,
    })
}

#[test]
fn jobs_of_a_recorded_program() {
    let record = observed(by_name("perl", periodic(12)));
    assert_eq!((record.lost, record.unread), (0, 0));
    assert_eq!(record.timeline.rows.len(), 1);
    let row = &record.timeline.rows[0];
    assert_eq!((row.name.as_str(), &row.cores[..]), ("perl", &[1][..]));
    // The first is left out: it could have begun before.
    let releases: Vec<_> = record
        .timeline
        .jobs
        .iter()
        .map(|j| (j.release_ps + ORIGIN) / 1_000_000)
        .collect();
    assert_eq!(
        releases,
        [
            9_255_306, 9_304_355, 9_356_256, 9_404_846, 9_455_936, 9_504_165, 9_554_073, 9_604_110,
            9_654_071
        ]
    );
    let ends: Vec<_> = record
        .timeline
        .jobs
        .iter()
        .map(|j| j.response_ps().map(|r| r / 1_000_000))
        .collect();
    assert_eq!(
        ends,
        [
            Some(7_117),
            Some(5_367),
            Some(6_366),
            Some(10_358),
            Some(14_415),
            Some(6_215),
            Some(15_145),
            Some(10_129),
            None
        ]
    );
    // 9.456: it was stopped for 7.2 ms of it, 9.554 for 9.7; it ended in the last,
    // which had been due at 9.666.
    let missed = record.timeline.jobs.iter().map(|j| j.missed());
    let missed: Vec<_> = missed.collect();
    assert_eq!(
        missed,
        [false, false, false, false, true, false, true, false, true]
    );
    assert_eq!(record.timeline.jobs[8].end, End::Missed);
    let parts = |at_ms: u64| {
        let at = (at_ms * MS) - ORIGIN;
        let near = row.throttled.iter().find(|t| t.0 >= at);
        near.map(|t| ((t.0 + ORIGIN) / 1_000_000, (t.1 + ORIGIN) / 1_000_000))
    };
    assert_eq!(parts(9_440), Some((9_457_840, 9_465_032)));
    assert_eq!(parts(9_550), Some((9_555_189, 9_564_938)));
}

#[test]
fn without_a_period_nothing_is_late_and_every_job_is_there() {
    let record = observed(by_name("perl", None));
    assert_eq!(record.timeline.jobs.len(), 10);
    assert!(record.timeline.jobs.iter().all(|j| !j.missed()));
}

#[test]
fn a_loop_is_preempted_and_never_done() {
    let record = observed(by_name("sh", None));
    let row = record.timeline.rows.iter().position(|r| r.name == "sh-169");
    let row = row.unwrap_or_else(|| panic!("{:?}", record.timeline.rows));
    let mine = record.timeline.jobs.iter().filter(|j| j.task == row);
    let mine: Vec<_> = mine.collect();
    assert_eq!(mine.len(), 1);
    assert_eq!(mine[0].end, End::Open);
    let switches = TRACE
        .matches("prev_pid=169 prev_prio=120 prev_state=R")
        .count();
    assert_eq!(record.tasks[row].preempted, switches as u64);
}

#[test]
fn children_are_followed_and_losses_counted() {
    let mut watch = Watch::default();
    watch.threads.insert(166, None);
    // The shell itself does nothing in these lines but to make sleep(1).
    assert!(observed(watch.clone()).tasks.is_empty());
    watch.children = true;
    let pids: Vec<_> = observed(watch.clone())
        .tasks
        .iter()
        .map(|t| t.pid)
        .collect();
    assert_eq!(pids, [172]);
    watch.except = ["soloist", "sh"].map(str::to_owned).into();
    assert!(observed(watch.clone()).tasks.is_empty());
    // Who takes that name later is forgotten.
    let renamed = ["perl", "sh"].map(|name| {
        format!("{}{name}-7       [001] d..2.     1.000000: sched_wakeup: comm={name} pid=7 prio=49 target_cpu=001", " ".repeat(16 - name.len()))
    });
    watch.threads.insert(7, None);
    let mut observer = Observer::new(watch, 0);
    renamed.iter().for_each(|line| observer.read(line));
    assert!(observer.finish(2_000 * MS).tasks.is_empty());
    let mut observer = Observer::new(Watch::default(), 0);
    observer.read("CPU:1 [LOST 12 EVENTS]");
    observer.read("not a line");
    let record = observer.finish(1);
    assert_eq!((record.lost, record.unread), (12, 1));
}

/// A task that is known by its name only, and comes to it after the begin of the
/// record.
#[test]
fn a_program_that_begins_while_it_is_watched_misses_nothing_by_that() {
    let missed = |born: &str| {
        let mut observer = Observer::new(by_name("perl", periodic(50)), 0);
        let line = |at: &str, event: &str| {
            format!("              sh-1       [001] d..2.     {at}: {event}")
        };
        observer.read(&line("1.000000", born));
        observer.read(&line("1.000100", "sched_switch: prev_comm=perl prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=1 next_prio=120"));
        let record = observer.finish(1_400 * MS);
        record.timeline.jobs.iter().filter(|j| j.missed()).count()
    };
    assert_eq!(
        missed("sched_process_fork: comm=sh pid=1 child_comm=sh child_pid=7"),
        0
    );
    assert!(missed("sched_process_fork: comm=sh pid=1 child_comm=sh child_pid=8") > 0);
}

/// The recorded program names itself at 9.5 s: `then` changes its later lines.
fn renamed(watch: Watch, then: impl Fn(&str) -> Option<String>) -> Record {
    let mut observer = Observer::new(watch, ORIGIN);
    let mut named = false;
    for line in TRACE.lines() {
        let time = line
            .split(": ")
            .next()
            .and_then(|head| head.split(' ').next_back());
        let later = time
            .and_then(|time| time.parse().ok())
            .is_some_and(|at: f64| at > 9.5);
        if later && !named {
            named = true;
            observer.read("            perl-168     [001] .....     9.500000: task_rename: pid=168 oldcomm=perl newcomm=worker oom_score_adj=0");
        }
        match later && line.contains("=perl ") {
            true => then(line).iter().for_each(|line| observer.read(line)),
            false => observer.read(line),
        }
    }
    observer.finish(9_730 * MS)
}

#[test]
fn a_thread_that_is_watched_by_its_id_keeps_its_jobs_under_another_name() {
    let mut by_id = Watch::default();
    by_id.threads.insert(168, periodic(12));
    let before = observed(by_id.clone());
    assert_eq!(before.timeline.jobs.len(), 9);
    let record = renamed(by_id, |line| Some(line.replace("=perl ", "=worker ")));
    assert_eq!(record.timeline.jobs, before.timeline.jobs);
    assert_eq!(record.timeline.rows[0].name, "worker");
}

/// So does a command that takes another name, or executes another program: what it missed until
/// then stays.
#[test]
fn what_a_command_missed_under_another_name_counts() {
    let mut by_id = Watch::default();
    by_id.threads.insert(168, periodic(12));
    by_id.children = true;
    let record = renamed(by_id, |line| Some(line.replace("=perl ", "=worker ")));
    let rows: Vec<_> = record.timeline.rows.iter().map(|r| &r.name[..]).collect();
    assert_eq!(rows, ["perl", "worker"]);
    assert_eq!(record.tasks[0].ended_ps, Some(9_500 * MS - ORIGIN));
    let missed = |row: usize| -> Vec<bool> {
        let jobs = record.timeline.jobs.iter();
        jobs.filter(|j| j.task == row).map(|j| j.missed()).collect()
    };
    assert_eq!(missed(0), [false, false, false, false, true]);
    assert_eq!(missed(1), [true, false, true]);
}

/// Between fork(2) and execve(2) there is no job of anybody.
#[test]
fn what_has_done_nothing_under_its_name_has_no_row() {
    let mut watch = Watch::default();
    watch.threads.insert(7, None);
    watch.children = true;
    let mut observer = Observer::new(watch, 0);
    for (at, event) in [
        ("1.000000", "sched_wakeup_new: comm=sh pid=7 prio=49 target_cpu=001"),
        ("1.000100", "sched_switch: prev_comm=sh prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=sh next_pid=7 next_prio=49"),
        ("1.000200", "task_rename: pid=7 oldcomm=sh newcomm=loop oom_score_adj=0"),
        ("1.000300", "sched_switch: prev_comm=loop prev_pid=7 prev_prio=49 prev_state=S ==> next_comm=sh next_pid=1 next_prio=120"),
    ] {
        observer.read(&format!("              sh-7       [001] d..2.     {at}: {event}"));
    }
    let record = observer.finish(2_000 * MS);
    let rows: Vec<_> = record.timeline.rows.iter().map(|r| &r.name[..]).collect();
    assert_eq!(rows, ["loop"]);
}

/// The kernel keeps 15 bytes of a name, here half of its last letter.
#[test]
fn a_name_that_was_cut_within_a_letter_is_read_and_found() {
    let replaced = |text: &[u8], from: &[u8], to: &[u8]| -> Vec<u8> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
            parts.extend([&rest[..at], to].concat());
            rest = &rest[at + from.len()..];
        }
        [&parts[..], rest].concat()
    };
    let text = replaced(
        TRACE.as_bytes(),
        b"            perl-",
        b" Bildverarbeits\xc3-",
    );
    let text = text_of(&replaced(&text, b"=perl ", b"=Bildverarbeits\xc3 "));
    let name = "Bildverarbeits\u{e4}tze";
    let mut observer = Observer::new(by_name(name, periodic(12)), ORIGIN);
    text.lines().for_each(|line| observer.read(line));
    let record = observer.finish(9_730 * MS);
    let named = observed(by_name("perl", periodic(12)));
    assert_eq!(record.unread, 0);
    assert_eq!(record.timeline.jobs, named.timeline.jobs);
    assert!(Measured::of(&record, 0).task(name).is_some());
}

/// The kernel lets through events of the watched name only.
#[test]
fn a_task_that_takes_another_name_misses_nothing_from_then_on() {
    let record = renamed(by_name("perl", periodic(12)), |_| None);
    let jobs = &record.timeline.jobs;
    assert!(jobs.iter().all(|j| j.release_ps + ORIGIN < 9_500 * MS));
    let missed: Vec<_> = jobs.iter().map(|j| j.missed()).collect();
    assert_eq!(missed, [false, false, false, false, true]);
    // It has its name again: another job begins there, and the first is still counted.
    let again = renamed(by_name("perl", periodic(12)), |line| Some(line.to_owned()));
    assert!(again.timeline.jobs.len() > jobs.len());
}

/// What is late when its thread ends was seen until then, and not until the record ends.
#[test]
fn a_late_job_of_a_thread_that_ends_is_cut_off_there() {
    let mut lines: Vec<String> = TRACE.lines().map(str::to_owned).collect();
    let at = |line: &str| -> Option<f64> {
        let head = line.split(": ").next()?;
        head.split(' ').next_back()?.parse().ok()
    };
    // The last job begins at 9.654 s, and is due at 9.666.
    let dies = lines.iter().position(|line| at(line) > Some(9.68)).unwrap();
    lines.truncate(dies);
    lines.push("            perl-168     [001] .....     9.680000: sched_process_exit: comm=perl pid=168 prio=49".to_owned());
    let measured = |until_ms: u64| {
        let mut observer = Observer::new(by_name("perl", periodic(12)), ORIGIN);
        lines.iter().for_each(|line| observer.read(line));
        Measured::of(&observer.finish(until_ms * MS), 0).tasks[0].clone()
    };
    let (soon, late) = (measured(9_681), measured(60_000));
    assert_eq!(soon.response_worst_ns, Some(25_929_000));
    assert!(soon.worst_is_cut_off);
    assert_eq!(late, soon);
}
