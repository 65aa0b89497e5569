//! The files of `machines/`, which the library carries with it.

use include_dir::{include_dir, Dir};

/// `machines/` of the source tree; `build.rs` notices a new file.
pub(crate) static MACHINES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../machines");

/// Names of the `.toml` files of a folder, without that ending, ascending.
pub(crate) fn stems(folder: &'static Dir) -> Vec<&'static str> {
    let names = folder
        .files()
        .filter_map(|file| file.path().file_name()?.to_str());
    let mut stems: Vec<_> = names
        .filter_map(|name| name.strip_suffix(".toml"))
        .collect();
    stems.sort_unstable();
    stems
}
