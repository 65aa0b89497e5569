//! What can be wrong with standard output and standard error: a reader that
//! has gone, a disk that is full.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Output, Stdio};

/// One command for each way of printing.
const COMMANDS: [&[&str]; 22] = [
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["doctor"],
    &["doctor", "--json"],
    &["group", "list"],
    &["group", "show", "core0"],
    &["group", "list", "--json"],
    &["rule", "list"],
    &["top", "-n", "1"],
    &["verify", "--self", "--bank-sets", "0"],
    &["completions", "bash"],
    &["man"],
    &["map", "list"],
    &["map", "list", "--json"],
    &["map", "show", "-m", "zen2"],
    &["map", "show", "-m", "zen2", "--text"],
    &["map", "show", "-m", "zen2", "--svg", "-"],
    &["map", "show", "-m", "zen2", "--json"],
    &["map", "decode", "-m", "zen2", "0x1000"],
    &["map", "encode", "-m", "zen2"],
    &["map", "convert", "zen2", "--from", "machine", "--to", "hex"],
];

fn with_output(args: &[&str], out: impl Into<Stdio>, err: impl Into<Stdio>) -> Output {
    let machine = machine::small();
    // `verify --self` reads the real process.
    let root = match args[0] {
        "verify" => machine::with_real_processes(&machine),
        _ => machine.path().to_owned(),
    };
    let mut command = machine::soloist(&root, args);
    command.stdout(out).stderr(err).output().unwrap()
}

fn closed() -> OwnedFd {
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> File {
    fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap()
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for args in COMMANDS {
        let out = with_output(args, closed(), Stdio::piped());
        let said = String::from_utf8_lossy(&out.stderr);
        // What it judges stays judged.
        let read = with_output(args, Stdio::null(), Stdio::piped());
        assert_eq!(out.status.code(), read.status.code(), "{args:?}: {out:?}");
        assert!(said.is_empty(), "{args:?}: {said}");
    }
}

/// `set -o pipefail; soloist doctor | head -1` must not say that all is well.
#[test]
fn a_closed_pipe_makes_nothing_good() {
    let nothing = tempfile::tempdir().unwrap();
    let runs = ["--noise", "closed", "--runs", "2"];
    let runs = [&["map", "detect", "--simulate", "skylake"][..], &runs].concat();
    let commands: [&[&str]; 5] = [
        &["doctor"],
        &["doctor", "--json"],
        &runs,
        &["map", "check", "-m", "haswell", "--simulate", "skylake"],
        &[
            "bench",
            "silicon",
            "--simulate",
            "haswell",
            "--only",
            "two-banks",
            "--deadline",
            "0",
        ],
    ];
    for args in commands {
        let mut command = machine::soloist(nothing.path(), args);
        let out = command.stdout(closed()).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
    }
}

#[test]
fn a_full_disk_is_said() {
    for args in COMMANDS {
        let out = with_output(args, full(), Stdio::piped());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
        let words = "standard output: No space left on device";
        assert_eq!(said.matches(words).count(), 1, "{args:?}: {said}");
    }
}

/// A file of this size is as full as a disk.
#[test]
fn a_file_that_does_not_fit_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("map.svg");
    fs::write(&file, "old").unwrap();
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" map show -m zen2 --svg \"$1\"";
    let shell = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        let program = env!("CARGO_BIN_EXE_soloist");
        shell
            .args(["-c", script, program])
            .arg(&file)
            .output()
            .unwrap()
    };
    let out = shell(script);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let out = shell("exec \"$0\" map show -m zen2 --svg \"$1\"");
    assert!(out.status.success(), "{out:?}");
    assert!(fs::read_to_string(&file).unwrap().len() > 1024);
}

#[test]
fn no_place_for_errors_is_no_panic() {
    let machine = machine::small();
    for args in [&["group", "show", "nobody"][..], &["run", "--colors"]] {
        let err: [Stdio; 2] = [closed().into(), full().into()];
        for err in err {
            let mut command = machine::soloist(machine.path(), args);
            let status = command.stdout(Stdio::null()).stderr(err).status().unwrap();
            assert!(matches!(status.code(), Some(0..=2)), "{args:?}: {status:?}");
        }
    }
}

/// `soloist verify PID --strict | head -1 && start` must not start.
#[test]
fn a_closed_pipe_is_no_verdict() {
    for json in [&[][..], &["--json"]] {
        let strict = [&["verify", "--self", "--bank-sets", "0", "--strict"], json].concat();
        let out = with_output(&strict, closed(), Stdio::piped());
        assert_eq!(out.status.code(), Some(1), "{json:?}: {out:?}");
        assert!(out.stderr.is_empty(), "{json:?}: {out:?}");
    }
}

/// Measuring takes a minute.
#[test]
fn a_picture_is_drawn_though_nobody_reads_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("banks.svg");
    let words = "bench silicon --simulate haswell --only slices --blocks 20 --seconds 1 --svg";
    let file = svg.display().to_string();
    let args: Vec<&str> = words.split(' ').chain([file.as_str()]).collect();
    let out = with_output(&args, closed(), Stdio::piped());
    assert!(out.status.success(), "{out:?}");
    assert!(fs::read_to_string(&svg).unwrap().contains("<svg"));
    fs::remove_file(&svg).unwrap();
    let out = with_output(&args, full(), Stdio::piped());
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(fs::read_to_string(&svg).unwrap().contains("<svg"));
}
