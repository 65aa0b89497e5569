//! The command line of the lab: help, wrong arguments, what a shell completes, and
//! a standard output that takes nothing. Text that changes on purpose is taken over
//! with `TRYCMD=overwrite cargo test -p soloist-lab-cli --test cli`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_soloist-lab");

fn soloist(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words);
    command
}

#[test]
fn transcripts() {
    let dir = TempDir::new().unwrap();
    trycmd::TestCases::new()
        .register_bin("soloist", Path::new(PROGRAM))
        .env("SOLOIST_HOST_ROOT", dir.path().display().to_string())
        .env("COLUMNS", "100")
        .case("tests/cmd/*.trycmd");
}

/// The model's cores and seeds are none of a machine's.
#[test]
fn a_replay_on_silicon_takes_no_option_of_the_model_alone() {
    for option in ["--cores", "--seeds"] {
        let words = ["sim", "replay", "--on-silicon", option, "3", "a.rec"];
        let out = soloist(&words).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{option}: {said}");
        assert!(said.contains("cannot be used with"), "{option}: {said}");
    }
}

/// A guest takes half a minute to find that out.
#[test]
fn a_program_that_is_not_there_is_recorded_by_nobody() {
    for (more, named) in [
        (&["--", "no-such-program"][..], "no-such-program"),
        (&["--", "./no/such"], "./no/such"),
        (&["--corun", "no-such-one 3", "--", "true"], "no-such-one"),
    ] {
        let out = soloist(&[&["compare", "--model"], more].concat())
            .output()
            .unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{more:?}: {said}");
        assert!(
            said.contains(&format!("{named}: no such program")),
            "{said}"
        );
        assert!(!said.contains("records"), "{said}");
    }
}

/// What a shell is offered when `words` are typed, the last not finished.
fn completed(words: &[&str]) -> String {
    let mut shell = soloist(&["--"]);
    shell.args(words).env("COMPLETE", "bash");
    shell.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let out = shell.env("_CLAP_IFS", "\n").output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn names_are_completed() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("mine.toml"), "").unwrap();
    let place = dir.path().join("mi").display().to_string();
    let file = dir.path().join("mine.toml").display().to_string();
    for (words, wanted) in [
        (&["soloist", "lab", "check", &place][..], file.as_str()),
        (
            &["soloist", "vm", "record", "--", "ls", "x", "--", "basenam"],
            "basename",
        ),
    ] {
        assert_eq!(completed(words).trim(), wanted, "{words:?}");
    }
    let first = completed(&["soloist", "lab", "run", ""]);
    let known = soloist(&["lab", "list", "--json"]).output().unwrap();
    let known: serde_json::Value = serde_json::from_slice(&known.stdout).unwrap();
    let name = known[0]["name"].as_str().unwrap();
    assert!(first.lines().any(|line| line == name), "{first}");
}

#[test]
fn manual_pages_are_made_of_its_own_commands() {
    let dir = TempDir::new().unwrap();
    let man = soloist(&["man", dir.path().to_str().unwrap()]).output();
    assert!(man.unwrap().status.success());
    let entries = fs::read_dir(dir.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.len() > 15, "{names:?}");
    for name in &names {
        let page = fs::read_to_string(dir.path().join(name)).unwrap();
        let lines = page.lines().filter_map(|line| line.strip_suffix("(1)"));
        for other in lines.filter(|line| line.starts_with("soloist\\-")) {
            let other = other.replace('\\', "") + ".1";
            assert!(names.contains(&other), "{name} refers to {other}");
        }
    }
    for page in ["soloist-lab.1", "soloist-plan.1", "soloist-vm-run.1"] {
        assert!(names.iter().any(|name| name == page), "{page}: {names:?}");
    }
    let own = ["lab", "vm", "sim", "sweep", "plan", "trace"];
    let others = names.iter().filter(|name| {
        let name = name.strip_prefix("soloist-").unwrap_or_default();
        !own.iter().any(|own| name.starts_with(own))
    });
    assert_eq!(others.count(), 0, "{names:?}");
}

/// One command for each way of printing.
const COMMANDS: [&[&str]; 4] = [
    &["--help"],
    &["lab", "list"],
    &["lab", "list", "--json"],
    &["vm", "list", "--json"],
];

fn with_output(args: &[&str], out: impl Into<Stdio>) -> Output {
    soloist(args).stdout(out).output().unwrap()
}

fn closed() -> OwnedFd {
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> fs::File {
    let mut options = fs::OpenOptions::new();
    options.write(true).open("/dev/full").unwrap()
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for args in COMMANDS {
        let out = with_output(args, closed());
        assert!(out.status.success(), "{args:?}: {out:?}");
        assert!(out.stderr.is_empty(), "{args:?}: {out:?}");
    }
}

#[test]
fn a_full_disk_is_said() {
    for args in COMMANDS {
        let out = with_output(args, full());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
        let words = "standard output: No space left on device";
        assert_eq!(said.matches(words).count(), 1, "{args:?}: {said}");
    }
}

#[test]
fn no_place_for_errors_is_no_panic() {
    let errors: [Stdio; 2] = [closed().into(), full().into()];
    for err in errors {
        let mut command = soloist(&["vm", "list"]);
        let status = command.stdout(Stdio::null()).stderr(err).status().unwrap();
        assert!(matches!(status.code(), Some(0..=2)), "{status:?}");
    }
}

/// `soloist --help` names its commands though it has none of them.
#[test]
fn soloist_says_the_same_of_them() {
    let names = include_str!("../../soloist/src/cmd.rs");
    let help = soloist(&["--help"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    for command in soloist_cli::lab::COMMANDS {
        let lines = help.lines().map(str::trim_start);
        let about = lines.filter_map(|line| line.strip_prefix(command));
        let about = about.map(str::trim).next().unwrap();
        assert!(names.contains(&format!("/// {about}.\n")), "{about}");
    }
}
