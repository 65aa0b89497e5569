//! All other crates play through a stage, and traces of requests through one door.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The files outside soloist-memory's own crate that hold `call`.
fn callers(call: &str) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    sources(crates, &mut found);
    found.retain(|path| {
        let path = path.strip_prefix(crates).unwrap();
        let (own, this) = ("soloist-memory", "soloist-play/tests");
        !path.starts_with(own) && !path.starts_with(this)
    });
    found.retain(|path| fs::read_to_string(path).unwrap().contains(call));
    let names = found.iter().map(|path| path.strip_prefix(crates).unwrap());
    names.map(|path| path.display().to_string()).collect()
}

/// Programs on cores: the memory system is made in one place.
#[test]
fn the_stage_alone_calls_the_memory_system() {
    assert_eq!(callers("System::new("), ["soloist-play/src/play.rs"]);
}

/// Requests without cores: their player is made in one place, too.
#[test]
fn one_door_plays_traces_of_requests() {
    assert_eq!(callers("Replay::new("), ["soloist-play/src/requests.rs"]);
    let mut controllers = callers("Controller::new(");
    // Tests hold bounds against the controller alone.
    controllers.retain(|path| !path.contains("/tests/"));
    assert_eq!(controllers, [""; 0]);
    assert_eq!(callers("Checker::of("), ["soloist-play/src/requests.rs"]);
}
