//! All other crates play through a stage.
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

/// Outside its own crate, the memory system is made in one place.
#[test]
fn the_stage_alone_calls_the_memory_system() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    sources(crates, &mut found);
    found.retain(|path| {
        let path = path.strip_prefix(crates).unwrap();
        let (own, this) = ("soloist-memory", "soloist-play/tests");
        !path.starts_with(own) && !path.starts_with(this)
    });
    found.retain(|path| fs::read_to_string(path).unwrap().contains("System::new("));
    assert_eq!(found, [crates.join("soloist-play/src/play.rs")]);
}
