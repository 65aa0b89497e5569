//! `soloist plan` as a user types it: what is refused and in which words, and
//! what stands in its files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// One task with a deadline, which leaves controllers for all else.
const TASKS: &str = r#"machine = "opteron-6128"

[[task]]
name = "control"
period = "5 ms"
wcet = "200 us"
memory = "1M"
"#;

fn plan(dir: &Path, args: &[&str]) -> Output {
    fs::write(dir.join("tasks.toml"), TASKS).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.current_dir(dir).args(["plan", "tasks.toml"]);
    command.args(args).output().unwrap()
}

fn refused(dir: &Path, args: &[&str]) -> String {
    let out = plan(dir, args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?}");
    said
}

#[test]
fn an_option_without_effect_is_refused() {
    let dir = TempDir::new().unwrap();
    let said = refused(dir.path(), &["--rest"]);
    assert!(
        said.contains("--rest") && said.contains("--apply"),
        "{said}"
    );
    let with = plan(dir.path(), &["--rest", "--config", "-"]);
    let text = String::from_utf8(with.stdout).unwrap();
    assert!(text.contains("rest-system"), "{text}");
    let said = refused(dir.path(), &["--measured", "trace.json"]);
    assert!(said.contains("--report"), "{said}");
}

#[test]
fn the_report_says_what_was_measured_and_of_what_it_was_made() {
    let dir = TempDir::new().unwrap();
    let words = ["--report", "e.html", "--measured", "trace.json"];
    fs::write(dir.path().join("trace.json"), "{}").unwrap();
    let said = refused(dir.path(), &words);
    assert!(said.contains("soloist trace --json"), "{said}");
    let trace = |name: &str| {
        let text = format!(
            r#"{{"length_ns":1000000000,"lost_events":0,"unread_lines":0,"tasks":[
            {{"task":"{name}","pid":7,"cores":[0],"period_ns":5000000,"deadline_ns":5000000,
            "jobs":199,"missed":0,"miss_rate":0.0,"response_p50_ns":210000,
            "response_p999_ns":300000,"response_worst_ns":345000,"worst_is_cut_off":false,
            "execution_max_ns":1,"preempted":0,"yielded":0,"migrated":0,"throttled_ns":0,
            "held_ns":0}}]}}"#
        );
        fs::write(dir.path().join("trace.json"), text).unwrap();
    };
    trace("somebody");
    let said = refused(dir.path(), &words);
    assert!(said.contains("none of its tasks"), "{said}");
    trace("control");
    let out = plan(dir.path(), &words);
    assert!(out.status.success(), "{out:?}");
    let page = fs::read_to_string(dir.path().join("e.html")).unwrap();
    let sum = |file: &Path| {
        let out = Command::new("sha256sum").arg(file).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.split(' ').next().unwrap().to_owned()
    };
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/opteron-6128.toml");
    for words in [
        "345 us; 0 of 199 jobs missed",
        "--measured trace.json",
        &sum(&dir.path().join("trace.json")),
        &sum(&dir.path().join("tasks.toml")),
        &sum(&machine),
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// Refused with the line, by the status of what is written wrong.
#[test]
fn a_file_that_can_t_be_meant_is_a_misuse() {
    let dir = TempDir::new().unwrap();
    let refused = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        let out = command
            .current_dir(dir.path())
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(out.stdout.is_empty(), "{words:?}");
        said
    };
    for words in [
        ["plan", "nosuch.toml"].as_slice(),
        &["lab", "check", "nosuch.toml"],
        &["trace", "--tasks", "nosuch.toml"],
    ] {
        let said = refused(words);
        assert!(said.contains("nosuch.toml: No such file"), "{said}");
    }
    for (from, to, says) in [
        ("5 ms", "0 ms", "5: period must be above 0"),
        ("5 ms", "5 ms 3 us", "5: \"5 ms 3 us\" has two units"),
        ("200 us", "6 ms", "6: wcet 6 ms is longer than the deadline"),
        ("\"1M\"", "\"900G\"", "3: task \"control\" needs"),
        (
            "\"1M\"",
            "\"1M\"\ncore = 99",
            "3: task \"control\" is bound to core 99",
        ),
        (
            "opteron-6128",
            "optron-6128",
            "1: optron-6128: no such machine",
        ),
        (
            "period = \"5 ms\"\nwcet = \"200 us\"\n",
            "",
            "3: no task has a period",
        ),
    ] {
        let text = TASKS.replacen(from, to, 1);
        assert_ne!(text, TASKS);
        fs::write(dir.path().join("bad.toml"), text).unwrap();
        let said = refused(&["plan", "bad.toml"]);
        assert!(said.contains(&format!("bad.toml:{says}")), "{said}");
    }
    let said = refused(&["plan", "bad.toml", "--machine", "nowhere"]);
    assert!(said.contains("nowhere: no such machine"), "{said}");
}

/// What docs/real-time.md shows of a plan is printed, number by number.
#[test]
fn the_page_shows_what_is_printed() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(top.join("docs/real-time.md")).unwrap();
    let blocks = page.split("```console\n").skip(1);
    let mut compared = 0;
    for block in blocks.map(|b| b.split("\n```").next().unwrap()) {
        let Some((words, shown)) = block
            .strip_prefix("$ soloist plan ")
            .and_then(|b| b.split_once('\n'))
        else {
            continue;
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.current_dir(&top).arg("plan").args(words.split(' '));
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let mut printed = out.lines().map(str::trim_end);
        for line in shown.lines().filter(|line| *line != "...") {
            assert!(printed.any(|p| p == line), "{words}: {line:?} in\n{out}");
        }
        compared += 1;
    }
    assert_eq!(compared, 3);
}
