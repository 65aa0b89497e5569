//! For build scripts: each file of a folder is a module, without a word elsewhere.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Writes `$OUT_DIR/NAME.rs`, NAME being the folder's: a `pub mod` for each file of
/// `folder` (relative to the crate), and a call of the macro `each_file`, which the place
/// that includes the text defines. Of `fr_fcfs.rs` the macro gets `(fr_fcfs, FrFcfs)`.
pub fn of(folder: &str) {
    println!("cargo:rerun-if-changed={folder}");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&root).join(folder);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect();
    files.sort();
    let mut text = String::new();
    let mut list = String::new();
    for path in files {
        let module = path.file_stem().and_then(|stem| stem.to_str());
        let module = module.expect("a module's name is ASCII");
        writeln!(text, "#[path = {path:?}]\npub mod {module};").expect("a string has room");
        write!(list, "({module}, {})", camel(module)).expect("a string has room");
    }
    writeln!(text, "each_file! {{ {list} }}").expect("a string has room");
    let name = folder.file_name().expect("the folder has a name");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out).join(name).with_extension("rs");
    fs::write(out, text).expect("OUT_DIR can be written");
}

/// `fr_fcfs` as the name of a type: `FrFcfs`.
fn camel(module: &str) -> String {
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    module
        .split('_')
        .filter(|w| !w.is_empty())
        .map(upper)
        .collect()
}
