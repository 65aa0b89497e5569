//! Where the source tree is.

use std::path::{Path, PathBuf};

/// The source tree: `SOLOIST_ROOT`, else the first directory above
/// the current one, or above this program, that looks like it.
pub fn source_root() -> Option<PathBuf> {
    let looks_like =
        |dir: &Path| dir.join("scripts/kernels").exists() && dir.join("kernel").is_dir();
    if let Some(root) = std::env::var_os("SOLOIST_ROOT") {
        return Some(root.into());
    }
    let here = std::env::current_dir().ok();
    let exe = std::env::current_exe().ok();
    here.iter()
        .chain(exe.iter())
        .flat_map(|path| path.ancestors())
        .find(|dir| looks_like(dir))
        .map(Path::to_path_buf)
}
