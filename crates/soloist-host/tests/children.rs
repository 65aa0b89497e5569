//! Children of this process, which has no other test for that reason.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use soloist_host::run::kill_children;

#[test]
fn what_a_killed_child_started_ends_too() {
    // In a session of its own, and one that is a grandchild of the other.
    let script = "setsid sleep 60 & echo $!; sh -c 'sleep 60 & echo $!; wait' & echo $!; wait";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut all: Vec<i32> = lines
        .take(3)
        .map(|line| line.unwrap().parse().unwrap())
        .collect();
    all.push(child.id() as i32);
    kill_children().unwrap();
    for pid in all {
        // SAFETY: asks whether there is such a process.
        assert_eq!(unsafe { libc::kill(pid, 0) }, -1, "{pid}");
    }
    assert!(child.wait().is_err(), "it was waited for");
}
