//! Compiles `core/*.c`, the sources that the kernel module is made of too.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let core = here.join("../../core");
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed=src/layout.c");
    let mut build = cc::Build::new();
    build
        .include(&core)
        .file("src/layout.c")
        .files(sources(&core));
    build.std("gnu11").warnings(true).extra_warnings(true);
    // Fill, palette and decode run in the simulator's inner loop: optimise
    // them in every profile.
    build.opt_level(2).compile("soloist_core");
}

/// The C files of `dir`, in a stable order.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .expect("core/ lies beside crates/")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    found.sort();
    found
}
