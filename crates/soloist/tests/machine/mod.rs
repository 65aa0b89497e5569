//! A made-up machine: the files that the commands read and write.
#![allow(dead_code, reason = "each test takes what it needs of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
pub fn small() -> TempDir {
    let dir = TempDir::new().unwrap();
    let soloist = dir.path().join("sys/kernel/config/soloist");
    let put = |path: &str, text: &str| {
        let path = soloist.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("map", MAP);
    put("last_cmd_status", "ok\n");
    put("implicit", "\n");
    put("stats", "groups 1\nused 12\n");
    let group = [
        ("id", "1"),
        ("dram_bank", "2-3"),
        ("bank_set", "2-3"),
        ("llc_color", ""),
        ("node", "0"),
        ("mode", "exclusive"),
        ("exhaust", "fail"),
        ("text", "private"),
        ("reserve", "67108864"),
        ("bandwidth", "off\n"),
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
        ("limit", "8 default\n"),
        ("user_limit", "3\n"),
        ("stats", "matched 3\nrefused 0\nlimited 0\nheld 4\n"),
    ];
    for (file, text) in rule {
        put(&format!("rules/video/{file}"), text);
    }
    dir
}

/// The command line on the machine below `root`.
pub fn soloist(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.env("SOLOIST_HOST_ROOT", root).args(args);
    command
}

/// Lets this machine's processes be seen on the made-up one; its root.
pub fn with_real_processes(machine: &TempDir) -> PathBuf {
    std::os::unix::fs::symlink("/proc", machine.path().join("proc")).unwrap();
    machine.path().to_owned()
}
