//! The command line against a made-up machine: help, wrong arguments, what
//! is printed and the exit status. Text that changes on purpose is taken over
//! with `TRYCMD=overwrite cargo test -p soloist --test cli`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const MAP: &str = "\
soloist-map 1
name small
line 64
llc 12 13 15
layout
bank 15 16 17
row 18 19 20 21 22 23 24 25
col 3 4 5 6 7 8 9 10 11 12 13 14
range 0x0 0x4000000 node 0
range 0x4000000 0x8000000 node 1
";

/// A machine with the module loaded, one group and one rule.
fn machine() -> TempDir {
    let dir = TempDir::new().unwrap();
    let soloist = dir.path().join("sys/kernel/config/soloist");
    let put = |path: &str, text: &str| {
        let path = soloist.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("map", MAP);
    put("last_cmd_status", "ok\n");
    let group = [
        ("id", "1"),
        ("dram_bank", "2-3"),
        ("bank_set", "2-3"),
        ("llc_color", ""),
        ("node", "0"),
        ("mode", "exclusive"),
        ("exhaust", "fail"),
        ("reserve", "67108864"),
        ("tasks", ""),
        ("members", "100\n101\n"),
        ("procs", ""),
        ("stats", "pages 12\npage_tables 3\n"),
    ];
    for (file, text) in group {
        put(&format!("groups/core0/{file}"), text);
    }
    let rule = [
        ("uid", "any"),
        ("path", "/usr/bin/x264"),
        ("colors", "2"),
        ("exhaust", "grow"),
        ("realtime", "0"),
        ("enabled", "1"),
        ("stats", "matched 3\nrefused 0\n"),
    ];
    for (file, text) in rule {
        put(&format!("rules/video/{file}"), text);
    }
    dir
}

fn soloist(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.env("SOLOIST_HOST_ROOT", root).args(args);
    command
}

fn output(root: &Path, args: &[&str]) -> Output {
    soloist(root, args).output().unwrap()
}

#[test]
fn transcripts() {
    let machine = machine();
    trycmd::TestCases::new()
        .env("SOLOIST_HOST_ROOT", machine.path().display().to_string())
        .env("COLUMNS", "100")
        .case("tests/cmd/*.trycmd");
}

#[test]
fn run_passes_the_status_on() {
    let machine = machine();
    let in_group = |command: &[&str]| {
        let args = [&["run", "--group", "core0", "--"], command].concat();
        output(machine.path(), &args)
    };
    assert_eq!(in_group(&["sh", "-c", "exit 3"]).status.code(), Some(3));
    assert_eq!(
        in_group(&["sh", "-c", "kill -9 $$"]).status.code(),
        Some(137)
    );
    assert_eq!(in_group(&["/no/such/command"]).status.code(), Some(127));
    assert_eq!(in_group(&["/etc/passwd"]).status.code(), Some(126));
    let echo = in_group(&["echo", "--colors", "4"]);
    assert_eq!(echo.stdout, b"--colors 4\n", "{echo:?}");
    assert!(echo.stderr.is_empty(), "not a terminal: {echo:?}");
}

#[test]
fn run_passes_signals_on() {
    let machine = machine();
    let script = "trap 'exit 7' TERM; echo up; for i in $(seq 100); do sleep 0.1; done";
    let mut run = soloist(
        machine.path(),
        &["run", "--group", "core0", "sh", "-c", script],
    )
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut line = [0; 3];
    std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut line).unwrap();
    let pid = run.id().to_string();
    assert!(Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .unwrap()
        .success());
    assert_eq!(run.wait().unwrap().code(), Some(7));
}

#[test]
fn run_reports_as_json_on_standard_error() {
    let machine = machine();
    let args = [
        "run", "--json", "--group", "core0", "--", "sh", "-c", "exit 4",
    ];
    let out = output(machine.path(), &args);
    let report: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(report["exit"], 4);
    assert_eq!(report["group"], "core0");
    assert_eq!(report["stats"]["pages"], "12");
    assert!(out.stdout.is_empty());
}

#[test]
fn json_is_one_document() {
    let machine = machine();
    for args in [
        &["group", "list", "--json"][..],
        &["--json", "group", "show", "core0"],
        &["rule", "list", "--json"],
        &["doctor", "--json"],
        &["top", "-n", "1", "--json"],
    ] {
        let out = output(machine.path(), args);
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&out.stdout);
        assert!(parsed.is_ok(), "{args:?}: {out:?}");
    }
    let wrong = output(machine.path(), &["--json", "group", "show", "nobody"]);
    let error: serde_json::Value = serde_json::from_slice(&wrong.stderr).unwrap();
    assert!(error["error"].as_str().unwrap().contains("nobody"));
}

#[test]
fn manual_pages_and_completions_are_made() {
    let dir = TempDir::new().unwrap();
    let man = output(dir.path(), &["man", &dir.path().display().to_string()]);
    assert!(man.status.success(), "{man:?}");
    let page = fs::read_to_string(dir.path().join("soloist-run.1")).unwrap();
    assert!(
        page.contains("soloist\\-run") && page.contains("bank\\-sets"),
        "{page}"
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = output(dir.path(), &["completions", shell]).stdout;
        assert!(String::from_utf8(script).unwrap().contains("bank-sets"));
    }
}
