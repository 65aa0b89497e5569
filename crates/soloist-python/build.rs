//! Gives `soloist.MODEL`: FNV-1a of all sources that figures depend on. Results of a sweep
//! are of a model; another one's are not taken for them.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The sources on which figures depend.
const SOURCES: [&str; 9] = [
    "core",
    "machines",
    "crates/soloist-core/src",
    "crates/soloist-machine/src",
    "crates/soloist-record/src",
    "crates/soloist-memory/src",
    "crates/soloist-play/src",
    "crates/soloist-lab/src",
    "crates/soloist-python/src",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = here.join("../..");
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for source in SOURCES {
        let folder = top.join(source);
        println!("cargo::rerun-if-changed={}", folder.display());
        add(&folder, &mut hash);
    }
    println!("cargo::rustc-env=SOLOIST_MODEL={hash:016x}");
}

fn add(path: &Path, hash: &mut u64) {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder of the tree");
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort();
        paths.iter().for_each(|path| add(path, hash));
    } else if path
        .extension()
        .is_some_and(|e| ["rs", "c", "h", "toml"].iter().any(|x| e == *x))
    {
        let bytes = fs::read(path).expect("a file of the tree");
        for byte in bytes {
            *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
