//! Tasks that play a recorded program, or take their counters from one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod recording;

use std::path::Path;

use soloist_core::time::MS;
use soloist_memory::Platform;
use soloist_record::Kind;
use soloist_rt::model::cores::{play, PageSource, Played, Setup};
use soloist_rt::model::profile::profiles;
use soloist_rt::model::program::Maker;
use soloist_rt::model::recorded::fill;
use soloist_rt::plan::check::simulate;
use soloist_rt::plan::inputs::recordings;
use soloist_rt::plan::{plan, Plan};
use soloist_rt::tasks::file;
use soloist_rt::tasks::{Behaviour, TaskSet};
use soloist_trace::timeline::End;

/// More pages than the last level has room for, so that each line is missed.
const PAGES: u64 = 4096;
/// Lines of a page that are gone through.
const LINES: u64 = 64;
/// Instructions before each line.
const WORK: u32 = 50;

/// Records a program that goes through its memory once, every third line written.
fn record(dir: &Path, threads: u32) {
    record_of(dir, threads, |_| WORK);
}

/// The same with so many instructions before each line of a page.
fn record_of(dir: &Path, threads: u32, work: fn(u64) -> u32) {
    let lines = (0..PAGES).flat_map(|page| (0..LINES).map(move |line| (page, line)));
    let steps = lines.flat_map(move |(page, line)| {
        let at = |kind, work| Some((kind, page, line as u8, work));
        let (first, then) = match line % 3 {
            0 => (Kind::Write, at(Kind::WriteBack, 0)),
            _ => (Kind::Read, None),
        };
        at(first, work(page)).into_iter().chain(then)
    });
    recording::record(dir, threads, steps);
}

/// Two programs, of which the file knows the misses of the second.
const TASKS: &str = r#"
[[task]]
name = "walk"
period = "10 ms"
wcet = "1 ms"
memory = "1M"
kind = "program"
ipc = 0.5

[[task]]
name = "other"
kind = "program"
ipc = 0.5
mpki = 2
memory = "4M"
"#;

fn tasks(dir: &Path, text: &str) -> TaskSet {
    let path = dir.join("tasks.toml");
    std::fs::write(&path, text).unwrap();
    // Without recordings it is refused.
    assert!(file::read(&path)
        .unwrap_err()
        .to_string()
        .contains("--profile"));
    file::parse_to_fill(text, &path.display().to_string()).unwrap()
}

#[test]
fn counters_and_memory_come_from_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let mut set = tasks(dir.path(), TASKS);
    record(&dir.path().join("walk"), 1);
    let platform = Platform::find("opteron-6128").unwrap();
    let found = fill(&mut set, &platform, dir.path()).unwrap();
    assert_eq!(found.len(), 1);
    // One line in fifty instructions, all missed; a third of them comes back out.
    let Behaviour::Program {
        mpki, writes, ipc, ..
    } = set.tasks[0].behaviour
    else {
        panic!("{:?}", set.tasks[0]);
    };
    assert!((mpki - 1000.0 / f64::from(WORK)).abs() < 0.1, "{mpki}");
    assert!((0.2..0.35).contains(&writes), "{writes}");
    assert!((ipc - 0.5).abs() < 1e-9);
    assert_eq!(set.tasks[0].bytes, PAGES * 4096);
    assert_eq!(recordings(&set).unwrap().len(), 2);
    assert_eq!(
        (found[0].bytes, set.tasks[1].bytes),
        (PAGES * 4096, 4 << 20)
    );
    assert!(Maker::new(&platform, &set.tasks[0]).is_ok());
}

#[test]
fn what_has_no_counters_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::find("opteron-6128").unwrap();
    let refused = |text: &str| {
        let mut set = tasks(dir.path(), text);
        fill(&mut set, &platform, dir.path())
            .unwrap_err()
            .to_string()
    };
    let why = refused(TASKS);
    assert!(why.contains("tasks.toml:2: \"walk\" needs `mpki`"), "{why}");
    record(&dir.path().join("walk"), 2);
    let why = refused(TASKS);
    assert!(
        why.contains("tasks.toml:2") && why.contains("2 threads"),
        "{why}"
    );
    std::fs::write(dir.path().join("walk/recording.json"), "{}").unwrap();
    let why = refused(TASKS);
    assert!(
        why.contains("tasks.toml:2") && why.contains("walk"),
        "{why}"
    );
    // Recordings of nobody: likely the wrong folder.
    let known = TASKS.replace("ipc = 0.5\n\n", "ipc = 0.5\nmpki = 3\n\n");
    let known = known.replace("\"walk\"", "\"run\"");
    let mut set = file::parse_to_fill(&known, "known.toml").unwrap();
    let why = fill(&mut set, &platform, dir.path())
        .unwrap_err()
        .to_string();
    assert!(why.contains("by the task's name"), "{why}");
}

/// The recorded program as it is, below a task that fits its private caches.
const PLAYED: &str = r#"
[[task]]
name = "walk"
core = 0
period = "10 ms"
wcet = "2 ms"
kind = "recorded"
recording = "rec/walk"

[[task]]
name = "quick"
core = 0
period = "1 ms"
wcet = "200 us"
memory = "32K"
kind = "bandwidth-read"
"#;

fn read(dir: &Path, text: &str) -> Result<TaskSet, soloist_machine::FileError> {
    let path = dir.join("tasks.toml");
    std::fs::write(&path, text).unwrap();
    file::read(&path)
}

fn played(platform: &Platform, set: &TaskSet) -> (Vec<u64>, Played) {
    let (makers, profiles) = profiles(platform, set, 1).unwrap();
    let accesses: Vec<u64> = profiles.iter().map(|p| p.accesses).collect();
    let setup = Setup {
        platform,
        set,
        makers: &makers,
        accesses: &accesses,
        places: &vec![PageSource::default(); set.tasks.len()],
        limits: &[],
        scale: 1,
        length_ps: 10 * MS,
        seed: 1,
    };
    let played = play(&setup).unwrap();
    (accesses, played)
}

#[test]
fn a_task_plays_what_was_recorded_below_one_that_preempts_it() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("rec/walk"), 1);
    let set = read(dir.path(), PLAYED).unwrap();
    assert_eq!(set.tasks[0].bytes, PAGES * 4096);
    // The plan's evidence names each of its files.
    let files = recordings(&set).unwrap();
    let names: Vec<&str> = files.iter().map(|f| f.file.as_str()).collect();
    for name in ["recording.json", "cpu-0.rec"] {
        assert!(names.iter().any(|n| n.ends_with(name)), "{names:?}");
    }
    let platform = Platform::find("opteron-6128").unwrap();
    let only = |i: usize| TaskSet {
        tasks: vec![set.tasks[i].clone()],
        ..set.clone()
    };
    let (walk_alone, quick_alone) = (played(&platform, &only(0)), played(&platform, &only(1)));
    let lines = walk_alone.0[0];
    // Each of its lines is asked of the last level, and one more, by which it
    // computes; a third leaves again.
    let asked = |of: &Played| of.stats[0].llc_hits + of.stats[0].llc_misses;
    assert_eq!(walk_alone.1.accesses[0], lines);
    let once = asked(&walk_alone.1);
    assert!((lines..lines + 9).contains(&once), "{lines} {once}");
    let maker = Maker::new(&platform, &set.tasks[0]).unwrap();
    let out = maker.recorded().unwrap().write_backs(lines);
    assert!(
        (out as f64 / lines as f64 - 0.33).abs() < 0.02,
        "{out} of {lines}"
    );
    // Under preemption it asks for the same, and the other keeps its caches.
    let (accesses, both) = played(&platform, &set);
    assert_eq!((accesses[0], both.accesses[0]), (lines, lines));
    let (all, alone) = (asked(&both), once + asked(&quick_alone.1));
    assert!((alone - 9..alone + 2000).contains(&all), "{all} {alone}");
    let hits = |of: &Played| of.stats[0].private_hits.iter().sum::<u64>();
    assert!(hits(&both) >= hits(&quick_alone.1));
    let job = both.timeline.jobs.iter().find(|j| j.task == 0).unwrap();
    assert!(job.runs.len() > 1, "{job:?}");
    assert!(matches!(job.end, End::Completed(_)), "{job:?}");
}

#[test]
fn a_plan_of_a_recording_knows_all_its_jobs() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("rec/walk"), 1);
    let mut set = read(dir.path(), &PLAYED.replace("core = 0\n", "")).unwrap();
    set.tasks.truncate(1);
    let platform = Platform::find("opteron-6128").unwrap();
    let plan = plan(&platform, &set, 1).unwrap();
    assert!(plan.holds, "{:?}", plan.analysis);
    let check = simulate(&platform, &plan).unwrap();
    assert!(check.disproved(&plan.analysis).is_empty());
    // Within a third more than its lines: what leaves comes on top.
    let played = &check.tasks[0];
    assert_eq!((played.jobs, played.missed), (4, 0));
    assert_eq!(played.task, "walk");
    assert!(
        played.response.0 > MS && plan.assignments[0].lines > 8000,
        "{plan:?}"
    );
}

/// A program that computes a hundred times as long from line to line at its start
/// as in its middle, of which its job is made.
fn slow_start(period: &str, wcet: &str) -> Plan {
    let dir = tempfile::tempdir().unwrap();
    let work = |page| if page < PAGES / 4 { 100 * WORK } else { WORK };
    record_of(&dir.path().join("rec/walk"), 1, work);
    let text = PLAYED
        .replace("core = 0\n", "")
        .replace("\"2 ms\"", wcet)
        .replace("\"10 ms\"", period);
    let mut set = read(dir.path(), &text).unwrap();
    set.tasks.truncate(1);
    let platform = Platform::find("opteron-6128").unwrap();
    plan(&platform, &set, 1).unwrap()
}

#[test]
fn a_job_that_is_far_longer_than_its_time_is_known_if_it_ends() {
    let plan = slow_start("\"1 s\"", "\"2 ms\"");
    assert!(plan.holds, "{:?}", plan.analysis);
    let alone = plan.analysis[0].alone;
    assert!(alone.0 > 10 * 2 * MS, "{alone:?}");
}

/// Of a longer job parts are played, for ten times their time.
#[test]
fn a_job_that_does_not_end_is_not_proved() {
    for (period, wcet) in [("\"40 ms\"", "\"2 ms\""), ("\"1 s\"", "\"5 ms\"")] {
        let plan = slow_start(period, wcet);
        assert!(!plan.holds, "{period} {wcet}: {:?}", plan.analysis);
    }
}

#[test]
fn what_is_wrong_with_a_recording_has_its_line() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("rec/walk"), 2);
    for (from, to, line, words) in [
        ("rec/walk", "rec/run", 8, "recording"),
        ("rec/walk", "rec/walk", 8, "2 threads"),
        ("recording = \"rec/walk\"", "", 7, "needs `recording`"),
        ("\"recorded\"", "\"is\"", 8, "is for kind = \"recorded\""),
        (
            "\"recorded\"",
            "\"recorded\"\nmpki = 3.0",
            8,
            "is for kind = \"program\"",
        ),
    ] {
        let error = read(dir.path(), &PLAYED.replacen(from, to, 1)).unwrap_err();
        assert!(error.message.contains(words), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
}
