//! Tasks whose counters come from recordings of a program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use soloist_memory::Platform;
use soloist_record::meta::{Program, Stream, Streams, Thread};
use soloist_record::{frame, Access, Kind, Meta, Writer};
use soloist_rt::recorded::fill;
use soloist_rt::task::{Behaviour, TaskSet};
use soloist_rt::{file, program::Maker};

/// More pages than the last level has room for, so that each line is missed.
const PAGES: u64 = 4096;
/// Lines of a page that are gone through.
const LINES: u64 = 64;
/// Instructions before each line.
const WORK: u32 = 50;

/// Records a program that goes through its memory once, every third line written.
fn record(dir: &Path, threads: u32) {
    std::fs::create_dir_all(dir).unwrap();
    let streams = (0..threads).map(|cpu| {
        let file = format!("cpu-{cpu}.rec");
        let mut writer = Writer::create(&dir.join(&file), cpu).unwrap();
        writer.switch(cpu, u64::from(cpu), 0).unwrap();
        for (page, line) in (0..PAGES).flat_map(|p| (0..LINES).map(move |l| (p, l))) {
            let mut at = |kind, work| {
                let access = Access {
                    kind,
                    page: 0,
                    line: line as u8,
                    work,
                    kernel: false,
                    dependent: false,
                };
                writer
                    .access(access, 1000 + page, 5000 + page, || page)
                    .unwrap();
            };
            match line % 3 {
                0 => {
                    at(Kind::Write, WORK);
                    at(Kind::WriteBack, 0);
                }
                _ => at(Kind::Read, WORK),
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
            threads: (0..threads)
                .map(|_| Thread {
                    program: 0,
                    user: true,
                })
                .collect(),
            limited: false,
        },
    };
    meta.write(dir).unwrap();
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
    file::read_to_fill(&path).unwrap()
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
    let path = dir.path().join("known.toml");
    std::fs::write(&path, known.replace("\"walk\"", "\"run\"")).unwrap();
    let mut set = file::read_to_fill(&path).unwrap();
    let why = fill(&mut set, &platform, dir.path())
        .unwrap_err()
        .to_string();
    assert!(why.contains("by the task's name"), "{why}");
}
