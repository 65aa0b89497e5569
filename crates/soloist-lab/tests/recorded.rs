//! A recorded program is a task of a scenario, beside generators.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use soloist_lab::jobs::{run, Options};
use soloist_lab::known::parse;
use soloist_lab::measurements::CaseResult;
use soloist_lab::programs::recorded::Playback;
use soloist_lab::programs::Program as _;
use soloist_record::meta::{Program, Stream, Streams, Thread};
use soloist_record::{frame, Access, Kind, Meta, Writer};

const PAGES: u64 = 2048;
/// Of them, the kernel's own.
const KERNELS: u64 = 64;

/// A program that goes through its pages, one line of each, `rounds` times; every
/// other line is written and leaves the private caches. On cpus 0 to `threads` - 1.
fn record(dir: &Path, rounds: u64, threads: u32) {
    let streams = (0..threads).map(|cpu| {
        let file = format!("cpu-{cpu}.rec");
        let mut writer = Writer::create(&dir.join(&file), cpu).unwrap();
        writer.switch(cpu, u64::from(cpu), 0).unwrap();
        let mut at = |kind, page: u64| {
            let access = Access {
                kind,
                page: 0,
                line: (page % 64) as u8,
                work: if kind == Kind::WriteBack { 0 } else { 20 },
                kernel: false,
                dependent: false,
            };
            let virt = match page < KERNELS {
                true => (1 << 51) + page,
                false => 1000 + page,
            };
            writer.access(access, virt, 5000 + page, || page).unwrap();
        };
        for page in (0..rounds).flat_map(|_| 0..PAGES) {
            match page % 2 {
                0 => at(Kind::Read, page),
                _ => {
                    at(Kind::Write, page);
                    at(Kind::WriteBack, page);
                }
            }
        }
        writer.flush().unwrap();
        Stream {
            cpu,
            file,
            lines: 0,
            bytes: 0,
            looked_at: 0,
            instructions: 0,
        }
    });
    let user = || Thread {
        program: 0,
        user: true,
    };
    let meta = Meta {
        version: frame::VERSION,
        machine: "opteron-6128".into(),
        map: String::new(),
        node_of_cpu: vec![0; threads as usize],
        kernel: "6".into(),
        policy: "buddy".into(),
        line: 64,
        caches: Vec::new(),
        programs: vec![Program {
            name: "walk".into(),
            argv: vec!["walk".into()],
            cpus: (0..threads).collect(),
            colors: Vec::new(),
        }],
        streams: Streams {
            streams: streams.collect(),
            threads: (0..threads).map(|_| user()).collect(),
            limited: false,
        },
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
    std::fs::create_dir(&made).unwrap();
    record(&made, 8, 1);
    let scenario = parse(SCENARIO, dir.path().join("f").to_str().unwrap()).unwrap();
    let recorded = scenario.tasks[0].recorded.as_ref().unwrap();
    let playback = Playback::new(recorded, 1, false);
    let plain = (0..PAGES).filter(|&page| !playback.colored(page)).count() as u64;
    assert_eq!((plain, playback.bytes()), (KERNELS, PAGES * 4096));

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
    for dir in [&made, &two] {
        std::fs::create_dir(dir).unwrap();
    }
    record(&made, 1, 1);
    record(&two, 1, 2);
    for (from, to, words) in [
        ("walk.rec", "none.rec", "none.rec"),
        ("walk.rec", "two.rec", "2 threads"),
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
