//! Compiles `core/*/*.c`, the sources that the kernel module is made of too.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let core = here.join("../../core");
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed=src/ffi.h");
    println!("cargo::rerun-if-changed=src/ffi.c");
    let mut build = cc::Build::new();
    build.include(&core).file("src/ffi.c").files(sources(&core));
    build.std("gnu11").warnings(true).extra_warnings(true);
    // Fill, palette and decode run in the simulator's inner loop: optimise
    // them in every profile.
    build.opt_level(2).compile("soloist_core");
}

/// The rooms of core/; its tests are not among them.
const ROOMS: [&str; 6] = ["text", "map", "colors", "frames", "regulator", "lab"];

/// The C files of the rooms in `core`, in a stable order.
fn sources(core: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ROOMS
        .iter()
        .flat_map(|room| fs::read_dir(core.join(room)).expect("core/ lies beside crates/"))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    found.sort();
    found
}
