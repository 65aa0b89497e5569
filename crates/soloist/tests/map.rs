//! `soloist map`: how it writes, and files of conflict classes from detection
//! to check.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

fn soloist(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.args(args);
    command
}

fn output(args: &[&str]) -> Output {
    soloist(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_map_text_is_one_write() {
    // Every write to a datagram socket is one message.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let status = soloist(&["map", "show", "-m", "opteron-6128", "--text"])
        .stdout(OwnedFd::from(theirs))
        .status()
        .unwrap();
    assert!(status.success());
    let mut message = [0; 1 << 16];
    let length = ours.recv(&mut message).unwrap();
    let whole = output(&["map", "show", "-m", "opteron-6128", "--text"]);
    assert_eq!(text(&message[..length]), text(&whole.stdout));
}

#[test]
fn classes_go_from_detection_to_check() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("guest.toml").display().to_string();
    let detect = output(&[
        "map",
        "detect",
        "--simulate",
        "skylake",
        "--unprivileged",
        "--deadline",
        "600",
        "--class-pages",
        "20",
        "-o",
        &file,
    ]);
    assert!(detect.status.success(), "{detect:?}");
    let said = text(&detect.stdout);
    assert!(said.contains("conflict classes") && said.contains("very pages measured"));

    let show = text(&output(&["map", "show", "-m", &file]).stdout);
    assert!(show.contains("`soloist up` takes no such file"), "{show}");
    let drawn = output(&["map", "show", "-m", &file, "--svg", "-"]);
    assert_eq!(drawn.status.code(), Some(2), "{drawn:?}");

    let json = output(&["map", "show", "-m", &file, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["kind"], "conflict-classes");

    let written = std::fs::read_to_string(&file).unwrap();
    let page = written.split("\"0x").nth(1).unwrap();
    let page = format!("0x{}", page.split(['"', '-']).next().unwrap());
    let place = output(&["map", "decode", "-m", &file, &page]);
    assert!(text(&place.stdout).contains("bank number"), "{place:?}");
    let elsewhere = output(&["map", "decode", "-m", &file, "0x0fffffff0000"]);
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(text(&elsewhere.stderr).contains("was not measured"));

    let check = |machine: &str| {
        output(&[
            "map",
            "check",
            "-m",
            &file,
            "--simulate",
            machine,
            "--deadline",
            "600",
        ])
    };
    assert!(check("skylake").status.success(), "{:?}", check("skylake"));
    let other = check("i7-6700k");
    assert_eq!(other.status.code(), Some(1), "{other:?}");

    // What needs a map says what the file is instead.
    for args in [
        &["map", "encode", "-m", &file][..],
        &["map", "detect", "--simulate", &file],
    ] {
        let refused = output(args);
        assert!(!refused.status.success());
        assert!(
            text(&refused.stderr).contains("conflict classes"),
            "{refused:?}"
        );
    }
}
