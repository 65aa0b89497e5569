//! A recorded program is a task of a scenario, beside generators.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use soloist_lab::jobs::{run, Options};
use soloist_lab::known::parse;
use soloist_lab::measurements::CaseResult;
use soloist_memory::Platform;
use soloist_play::placement::buddy::History;
use soloist_play::programs::order::Wakes;
use soloist_play::programs::recorded::{Playback, Recorded, Span};
use soloist_play::programs::step::Step;
use soloist_play::programs::Program as _;
use soloist_play::replay::{limited, load, Job, Limit, Replay, Replayed, WORN};
use soloist_record::meta::{Stream, Thread};
use soloist_record::{Access, Kind, Lines, Meta, Recording, Writer};

const PAGES: u64 = 2048;
/// Of them, the kernel's own.
const KERNELS: u64 = 64;

/// A program that goes through its pages again and again, one line of each.
struct Walk {
    rounds: u64,
    /// Lines of a page that it comes to, one a round, before the first comes again.
    lines: u64,
    /// Instructions before each.
    work: u32,
    /// Each does all of it, on a processor of its own; they are the first to touch
    /// a page in turn.
    threads: u32,
    /// Physical number of the kernel's first page.
    kernel_at: u64,
}

const WALK: Walk = Walk {
    rounds: 8,
    lines: 1,
    work: 20,
    threads: 1,
    kernel_at: 5000,
};

/// Records it; every other page is written, and its line leaves the caches.
fn record(dir: &Path, walk: &Walk) {
    std::fs::create_dir(dir).unwrap();
    let threads = walk.threads;
    let streams = (0..threads).map(|cpu| {
        let file = format!("cpu-{cpu}.rec");
        let mut writer = Writer::create(&dir.join(&file), cpu).unwrap();
        writer.switch(cpu, u64::from(cpu), 0).unwrap();
        let mut at = |kind, round: u64, page: u64| {
            let access = Access {
                kind,
                page: 0,
                line: ((page + round % walk.lines) % 64) as u8,
                work: if kind == Kind::WriteBack {
                    0
                } else {
                    walk.work
                },
                kernel: false,
                dependent: false,
            };
            let (virt, phys) = match page < KERNELS {
                true => ((1 << 51) + page, walk.kernel_at + page),
                false => (1000 + page, 5000 + page),
            };
            let late = if page % u64::from(threads) == u64::from(cpu) {
                0
            } else {
                PAGES
            };
            writer.access(access, virt, phys, || late + page).unwrap();
        };
        for (round, page) in (0..walk.rounds).flat_map(|r| (0..PAGES).map(move |p| (r, p))) {
            match page % 2 {
                0 => at(Kind::Read, round, page),
                _ => {
                    at(Kind::Write, round, page);
                    at(Kind::WriteBack, round, page);
                }
            }
        }
        writer.flush().unwrap();
        Stream {
            cpu,
            file,
            lines: writer.lines(),
            bytes: writer.bytes,
            looked_at: 0,
            instructions: 0,
        }
    });
    let meta = Meta {
        machine: "opteron-6128".into(),
        ..Meta::of_program("walk", streams.collect())
    };
    meta.write(dir).unwrap();
}

const SCENARIO: &str = r#"
policies = ["same_bank", "diff_controller"]

[experiment]
id = "mine"
title = "Mine"
machine = "opteron-6128"
repeats = 1

[[task]]
name = "walk"
kind = "recorded"
recording = "walk.rec"
cpus = "0"

[[task]]
name = "writer"
kind = "bandwidth-write"
cpus = "1-3"
bytes = "16M"
work = 1
background = true
"#;

fn results(dir: &Path, text: &str) -> Vec<CaseResult> {
    let file = dir.join("mine.toml");
    let scenario = parse(text, file.to_str().unwrap()).unwrap();
    run(&scenario, Options::default(), &|_| {}).unwrap()
}

fn walk(case: &CaseResult) -> &soloist_lab::measurements::TaskResult {
    case.runs[0]
        .tasks
        .iter()
        .find(|t| t.name == "walk")
        .unwrap()
}

#[test]
fn it_plays_its_lines_in_its_pages_and_colors() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("walk.rec");
    record(&made, &WALK);
    let scenario = parse(SCENARIO, dir.path().join("f").to_str().unwrap()).unwrap();
    let recorded = scenario.tasks[0].recorded.as_ref().unwrap();
    let playback = Playback::new(recorded, 0, Span::Middle(1), &Wakes::default());
    let plain = (0..PAGES).filter(|&page| !playback.colored(page)).count() as u64;
    assert_eq!((plain, playback.bytes()), (KERNELS, PAGES * 4096));

    // Few lines are those of the middle: as much is left out before as behind.
    let begins = |recorded: &Recorded, span: Span| {
        let mut playback = Playback::new(recorded, 0, span, &Wakes::default());
        loop {
            match playback.step() {
                Step::Access(access) | Step::Fetch(access) => return access.at / 4096,
                Step::WriteBack(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(begins(recorded, Span::Middle(8 * PAGES)), 0);
    assert_eq!(begins(recorded, Span::Middle(7 * PAGES)), PAGES / 2);
    assert_eq!(begins(recorded, Span::Middle(8 * PAGES - 64)), 32);
    let once = dir.path().join("once.rec");
    record(&once, &Walk { rounds: 1, ..WALK });
    assert_eq!(
        begins(&Recorded::load(&once).unwrap(), Span::EndlessFromMiddle),
        PAGES / 2
    );

    let cases = results(dir.path(), SCENARIO);
    for case in &cases {
        assert_eq!(walk(case).accesses, 8 * PAGES, "{}", case.case);
        assert_eq!(walk(case).instructions, 8 * PAGES * 20, "{}", case.case);
    }
    let (shared, own) = (walk(&cases[0]).time_ns, walk(&cases[1]).time_ns);
    assert!(shared > 1.5 * own, "shared banks {shared} ns, own {own} ns");

    // Half of the lines, half of the instructions.
    let half = SCENARIO.replace("cpus = \"0\"", "cpus = \"0\"\nwork = 8192");
    let cases = results(dir.path(), &half);
    assert_eq!(walk(&cases[0]).accesses, 4 * PAGES);
    // As a neighbour it goes round for as long as the others run.
    let neighbour = SCENARIO
        .replace("work = 1\nbackground = true", "work = 400000")
        .replace("cpus = \"0\"", "cpus = \"0\"\nbackground = true");
    let cases = results(dir.path(), &neighbour);
    assert!(walk(&cases[0]).accesses > 8 * PAGES);
}

#[test]
fn what_cannot_be_played_is_said_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    let (made, two) = (dir.path().join("walk.rec"), dir.path().join("two.rec"));
    record(&made, &WALK);
    record(&two, &Walk { threads: 2, ..WALK });
    for (from, to, words) in [
        ("walk.rec", "none.rec", "none.rec"),
        ("walk.rec", "two.rec", "2 threads: give it 2 cpus"),
        ("recording = \"walk.rec\"", "", "needs `recording`"),
        ("recording =", "bytes = \"1M\"\nrecording =", "has its own"),
        ("\"recorded\"", "\"latency\"", "is for kind \"recorded\""),
        ("bytes = \"16M\"", "", "`bytes` is missing"),
        ("work = 1\n", "", "`work` is missing"),
    ] {
        let text = SCENARIO.replace(from, to);
        let e = parse(&text, file.to_str().unwrap()).unwrap_err();
        assert!(e.message.contains(words), "{e}");
        let task = text.lines().nth(e.line - 1).unwrap();
        assert!(task.starts_with("name = "), "{e}: {task}");
    }
}

/// The recording was read with the file: another one is another file's.
#[test]
fn a_recording_is_no_input_that_changes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    record(&dir.path().join("walk.rec"), &WALK);
    let scenario = parse(SCENARIO, file.to_str().unwrap()).unwrap();
    for (change, words) in [
        ("walk.recording=nowhere", "`recording` can't be changed"),
        ("walk.kind=stream", "is for kind \"recorded\""),
        ("writer.kind=recorded", "needs `recording`"),
    ] {
        let why = scenario.with_change(change).unwrap_err();
        assert!(why.contains(words), "{change}: {why}");
    }
    let ranged = format!("{SCENARIO}[range]\nwalk.recording = [\"walk.rec\", \"walk.rec\"]\n");
    let e = parse(&ranged, file.to_str().unwrap()).unwrap_err();
    assert!(e.message.contains("can't be changed"), "{e}");
    scenario.with_change("walk.work=100").unwrap();
}

/// What stock Linux offers is played too, not taken for plain Linux.
#[test]
fn replay_knows_what_linux_has_instead_of_colors() {
    let dir = tempfile::tempdir().unwrap();
    let (own, others) = (dir.path().join("own.rec"), dir.path().join("others.rec"));
    let own_walk = Walk {
        rounds: 40,
        lines: 8,
        work: 400,
        ..WALK
    };
    let other_walk = Walk {
        rounds: 64,
        lines: 64,
        ..WALK
    };
    record(&own, &own_walk);
    record(&others, &other_walk);
    let mut parts = vec![load(&own, 0, Lines::ALL).unwrap()];
    for core in 1..4 {
        let mut other = load(&others, 0, Lines::ALL).unwrap();
        other.cores = vec![core];
        parts.push(other);
    }
    let replay = Replay {
        platform: Platform::find("opteron-6128").unwrap(),
        parts,
        sets: 1,
        history: WORN,
    };
    let job = |name: &str| Job {
        placement: name.parse().unwrap(),
        alone: false,
        limit: None,
        seed: 1,
        blame: false,
    };
    let names = [
        "buddy",
        "membind",
        "interleave",
        "cat",
        "throttle",
        "memguard",
    ];
    let played = replay.play(&names.map(job), &|| {}).unwrap();
    let [buddy, membind, interleave, cat, throttle, memguard] = played.as_slice() else {
        unreachable!("one a job");
    };
    // Pages of the first task and of the second that lie on other nodes.
    let remote = |outcome: &Replayed| (outcome.played[0].remote, outcome.played[1].remote);
    assert_eq!(remote(buddy), (0.0, 0.0));
    assert_eq!(remote(membind), (0.0, 100.0));
    assert!(remote(interleave).0 > 60.0 && remote(interleave).1 > 60.0);
    let misses = |outcome: &Replayed| outcome.played[0].llc_misses as f64;
    assert!(
        misses(cat) < 0.5 * misses(buddy),
        "{} {}",
        misses(cat),
        misses(buddy)
    );
    let rate = |outcome: &Replayed| outcome.played[1].llc_misses as f64 / outcome.played[0].time_ns;
    // A twentieth of 14.4 GB/s is 0.01125 lines a nanosecond.
    assert!(rate(buddy) > 0.015, "{}", rate(buddy));
    assert!(rate(throttle) < 0.0114, "{}", rate(throttle));
    // Of what is guaranteed they have a sixth together, and of the rest in proportion.
    assert!(rate(memguard) < 0.5 * rate(buddy), "{}", rate(memguard));
    let time = |outcome: &Replayed| outcome.played[0].time_ns;
    assert!(time(memguard) < 0.9 * time(buddy), "{}", time(memguard));
    let limit = Limit {
        bytes_per_second: 500_000_000,
        period_us: 100,
    };
    // In one bank set of its own the first waits most for itself.
    for (placement, most) in [("buddy", 0.9), ("diff_bank", 1.0)] {
        let jobs = limited(vec![job(placement)], &[limit]);
        let played = replay.play(&jobs, &|| {}).unwrap();
        let [free, held] = played.as_slice() else {
            unreachable!("one as it is, one under the limit");
        };
        // 500 MB/s are 0.0078 lines a nanosecond; the last period may be used up at once.
        assert!((0.007..0.009).contains(&rate(held)), "{}", rate(held));
        assert!(
            time(held) < most * time(free),
            "{placement}: {}",
            time(held)
        );
    }
}

fn job(name: &str, alone: bool) -> Job {
    Job {
        placement: name.parse().unwrap(),
        alone,
        limit: None,
        seed: 1,
        blame: false,
    }
}

/// Pages of user space out of the colours of a recorded placement, by the map itself.
#[test]
fn pages_out_of_a_recorded_placements_colors_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("walk.rec");
    record(&made, &WALK);
    let platform = Platform::find("opteron-6128").unwrap();
    let map = &platform.memory.map;
    let color = |page: u64| map.color_of_frame(5000 + page).unwrap();
    let (set, llc) = (color(PAGES - 1).bank_set, color(PAGES - 1).llc);
    let play = |settings: &[String], placement: &str| {
        let mut meta = Meta::read(&made).unwrap();
        meta.programs[0].colors = settings.to_vec();
        meta.write(&made).unwrap();
        let replay = Replay {
            platform: platform.clone(),
            parts: vec![load(&made, 0, Lines::First(100)).unwrap()],
            sets: 1,
            history: WORN,
        };
        let played = replay.play(&[job(placement, true)], &|| {});
        played.map(|runs| runs[0].played[0].spilled)
    };
    let out = |inside: &dyn Fn(u64) -> bool| (KERNELS..PAGES).filter(|&p| !inside(p)).count();
    let spill = "exhaust=spill".to_owned();
    let banks = [spill.clone(), format!("bank_set={set}")];
    let expected = out(&|page| color(page).bank_set == set) as u64;
    assert!(expected > 100 && expected < PAGES - KERNELS);
    assert_eq!(play(&banks, "recorded").unwrap(), expected);
    let both = [spill.clone(), banks[1].clone(), format!("llc_color={llc}")];
    let expected = out(&|page| color(page).bank_set == set && color(page).llc == llc) as u64;
    assert_eq!(play(&both, "recorded").unwrap(), expected);
    // Without colours nothing is out of them; placed anew all fit.
    assert_eq!(play(&[], "recorded").unwrap(), 0);
    assert_eq!(play(&banks, "buddy").unwrap(), 0);
    assert_eq!(play(&banks, "diff_controller").unwrap(), 0);
    let error = play(&["bank_set=x".to_owned()], "recorded").unwrap_err();
    assert!(error.to_string().contains("bank_set=x"), "{error}");
}

/// What the kernel alone touched stays where it was, and nobody else's page comes there: lines
/// that are all asked for once meet nobody in the last level.
#[test]
fn pages_placed_anew_are_not_the_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let hits = |kernel_at: u64| {
        let made = dir.path().join(format!("{kernel_at:x}.rec"));
        let walk = Walk {
            rounds: 64,
            lines: 64,
            kernel_at,
            ..WALK
        };
        record(&made, &walk);
        let replay = Replay {
            platform: Platform::find("opteron-6128").unwrap(),
            parts: vec![load(&made, 0, Lines::ALL).unwrap()],
            sets: 1,
            history: History::FRESH,
        };
        let runs = replay.play(&[job("controller", true)], &|| {}).unwrap();
        runs[0].played[0].llc_hits
    };
    // Where the module, and the lab, begin to take frames of node 0.
    assert_eq!((hits(5000), hits(0x22_7c00)), (0, 0));
}

/// Uncoloured pages come from the node of the thread that touched them first, as in a
/// scenario.
#[test]
fn pages_lie_near_the_thread_that_touched_them() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("walk.rec");
    record(&made, &Walk { threads: 2, ..WALK });
    let mut part = load(&made, 0, Lines::ALL).unwrap();
    part.cores = vec![0, 4];
    let replay = Replay {
        platform: Platform::find("opteron-6128").unwrap(),
        parts: vec![part],
        sets: 1,
        history: WORN,
    };
    let runs = replay.play(&[job("buddy", true)], &|| {}).unwrap();
    let remote = runs[0].played[0].remote;
    assert!((45.0..=50.0).contains(&remote), "{remote} %");
}

/// Two threads that meet after each of their rounds: the first one's lines have
/// `work` instructions before each, the second's 20.
fn record_threads(dir: &Path, work: u32) {
    const ROUNDS: u32 = 20;
    std::fs::create_dir(dir).unwrap();
    let streams = (0..2u32).map(|cpu| {
        let file = format!("cpu-{cpu}.rec");
        let mut writer = Writer::create(&dir.join(&file), cpu).unwrap();
        let mut order = u64::from(cpu);
        writer.switch(cpu, order, 0).unwrap();
        for round in 0..ROUNDS {
            for page in 0..50 {
                let access = Access {
                    kind: Kind::Read,
                    page: 0,
                    line: (round % 64) as u8,
                    work: [work, 20][cpu as usize],
                    kernel: false,
                    dependent: false,
                };
                let page = 1000 + u64::from(cpu) * 1000 + page;
                writer.access(access, page, page, || page).unwrap();
            }
            if cpu == 0 {
                writer.wake(round, 0).unwrap();
            } else {
                // Its processor is idle meanwhile.
                for thread in [2, 1] {
                    order += 2;
                    writer.switch(thread, order, 0).unwrap();
                }
                writer.wait(round).unwrap();
            }
        }
        // Whoever ends this wait is not recorded.
        writer.wait(1000).unwrap();
        writer.flush().unwrap();
        Stream {
            cpu,
            file,
            lines: writer.lines(),
            bytes: writer.bytes,
            looked_at: 0,
            instructions: 0,
        }
    });
    let streams: Vec<Stream> = streams.collect();
    record(&dir.join("like"), &Walk { threads: 2, ..WALK });
    let mut meta = Meta::read(&dir.join("like")).unwrap();
    meta.streams.streams = streams;
    meta.streams.threads.push(Thread {
        program: 0,
        user: false,
    });
    meta.write(dir).unwrap();
}

/// The same threads as tasks of a scenario, alone and beside writers.
fn as_tasks(dir: &Path) {
    let play = |rec: &str, policy: &str, work: &str| {
        let text = SCENARIO
            .replace(
                "\"same_bank\", \"diff_controller\"",
                &format!("\"{policy}\""),
            )
            .replace("walk.rec", rec)
            .replace("cpus = \"0\"", &format!("cpus = \"0,4\"{work}"));
        results(dir, &text).remove(0)
    };
    let threads = |case: &CaseResult| {
        let tasks = case.runs[0].tasks.iter();
        tasks
            .filter(|t| t.name == "walk")
            .cloned()
            .collect::<Vec<_>>()
    };
    for policy in ["buddy", "diff_bank"] {
        let (even, slow) = (play("even.rec", policy, ""), play("slow.rec", policy, ""));
        let (even, slow) = (threads(&even), threads(&slow));
        assert_eq!(
            (even.len(), slow[0].accesses, slow[1].accesses),
            (2, 1000, 1000)
        );
        let more = slow[0].time_ns - even[0].time_ns;
        assert!(more > 1e6, "{policy}: {more}");
        assert_eq!((even[0].idle_ns, slow[0].idle_ns), (0.0, 0.0), "{policy}");
        // It ends with its wait for the last wake. What it takes itself longer than the
        // other is part of its waits, so they are less than what the other takes longer.
        let (ends, its) = (slow[0].time_ns, slow[1].time_ns);
        assert!(
            its > ends - 1e3 && its < 1.01 * ends,
            "{policy}: {its} and {ends} ns"
        );
        let waited = slow[1].idle_ns - even[1].idle_ns;
        assert!(
            waited > 0.8 * more && waited < 1.05 * more,
            "{policy}: {waited} of {more} ns"
        );
        // Each thread's pages lie with the thread, which has a node of its own.
        let away = even.iter().any(|t| t.remote > 10.0);
        assert!(policy != "buddy" || !away, "{even:?}");
    }
    // Of the lines in the middle only waits hold that a wake among them ends.
    let some = play("slow.rec", "buddy", "\nwork = 125");
    let some = threads(&some);
    assert_eq!((some[0].accesses, some[1].accesses), (125, 125));
    assert!(some[1].idle_ns > 0.3 * some[0].time_ns, "{some:?}");
    // As neighbours they go round.
    let text = SCENARIO
        .replace("\"same_bank\", \"diff_controller\"", "\"buddy\"")
        .replace("walk.rec", "even.rec")
        .replace("cpus = \"0\"", "cpus = \"0,4\"\nbackground = true")
        .replace("work = 1\nbackground = true", "work = 400000");
    let all = threads(&results(dir, &text)[0]);
    assert!(all.iter().all(|t| t.accesses > 2000), "{all:?}");
}

/// Played, it would wait for ever.
#[test]
fn a_lane_that_waits_for_a_wake_behind_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("walk.rec");
    record(&made, &Walk { rounds: 1, ..WALK });
    let mut writer = Writer::create(&made.join("cpu-0.rec"), 0).unwrap();
    writer.switch(0, 0, 0).unwrap();
    writer.wait(7).unwrap();
    let access = Access {
        kind: Kind::Read,
        page: 0,
        line: 1,
        work: 1,
        kernel: false,
        dependent: false,
    };
    writer.access(access, 1, 1, || 0).unwrap();
    writer.wake(7, 1).unwrap();
    writer.flush().unwrap();
    let mut meta = Meta::read(&made).unwrap();
    let stream = &mut meta.streams.streams[0];
    (stream.lines, stream.bytes) = (writer.lines(), writer.bytes);
    meta.write(&made).unwrap();
    let why = load(&made, 0, Lines::ALL).err().unwrap().to_string();
    assert!(why.contains("waits for its wake 7"), "{why}");
    assert!(why.contains("the recording is wrong"), "{why}");
}

#[test]
fn a_thread_waits_for_the_one_that_wakes_it() {
    let dir = tempfile::tempdir().unwrap();
    let (even, slow) = (dir.path().join("even.rec"), dir.path().join("slow.rec"));
    let others = dir.path().join("others.rec");
    record_threads(&even, 20);
    record_threads(&slow, 4000);
    record(&others, &WALK);
    let play = |dir: &Path, jobs: &[Job]| {
        let mut parts = vec![load(dir, 0, Lines::ALL).unwrap()];
        for core in 2..4 {
            let mut other = load(&others, 0, Lines::ALL).unwrap();
            other.cores = vec![core];
            parts.push(other);
        }
        // And threads go round as neighbours too.
        let mut threads = load(&even, 0, Lines::ALL).unwrap();
        threads.cores = vec![4, 5];
        parts.push(threads);
        let replay = Replay {
            platform: Platform::find("opteron-6128").unwrap(),
            parts,
            sets: 1,
            history: WORN,
        };
        replay.play(jobs, &|| {}).unwrap()
    };
    let jobs = [job("buddy", true), job("buddy", false)];
    let (even, slow) = (play(&even, &jobs), play(&slow, &jobs));
    for (even, slow) in even.iter().zip(&slow) {
        let (even, slow) = (&even.played[0], &slow.played[0]);
        // 20 rounds of 50 lines, 3980 instructions each more.
        let more = slow.time_ns - even.time_ns;
        assert!(more > 1e6, "{more}");
        assert_eq!((even.idle_ns[0], slow.idle_ns[0]), (0.0, 0.0));
        let waited = slow.idle_ns[1] - even.idle_ns[1];
        assert!((waited / more - 1.0).abs() < 0.05, "{waited} of {more} ns");
        assert!(even.idle_ns[1] < 0.3 * even.time_ns, "{even:?}");
    }
    // Beside others it takes longer, and so does the wait for it.
    assert!(slow[1].played[0].time_ns > slow[0].played[0].time_ns);
    as_tasks(dir.path());
    let program = Recording::open(&dir.path().join("even.rec")).unwrap();
    let program = program.load(0, Lines::ALL).unwrap();
    let waits = |lane: &soloist_record::Lane| {
        let wait = |s: &soloist_record::Step| matches!(s, soloist_record::Step::Wait(_));
        program.steps(lane).filter(wait).count()
    };
    let all: Vec<usize> = program.lanes().iter().map(waits).collect();
    assert_eq!(all, [0, 20], "a wait without its wake holds nobody up");
}
