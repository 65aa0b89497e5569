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
