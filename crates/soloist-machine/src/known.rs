//! The machines that Soloist knows: those built in, and files.

use std::path::{Path, PathBuf};

use crate::built_in::{self, MACHINES};
use crate::classmap::ClassMap;
use crate::file::{read_text, FileError};
use crate::machine::Machine;
use crate::similar::did_you_mean;

/// Where the administrator's machine files lie, `soloist map detect`'s too.
pub const MACHINE_DIR: &str = "/etc/soloist/machines";

/// Names of the machines that are built in, ascending.
pub fn names() -> impl Iterator<Item = &'static str> {
    built_in::stems(&MACHINES).into_iter()
}

/// The text of a machine that is built in.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    MACHINES.get_file(format!("{name}.toml"))?.contents_utf8()
}

/// Conflict classes, if `name` is a file of them (see [`find`] for how names
/// are looked up).
///
/// # Errors
/// When the file is one, but wrong.
pub fn find_classes(name: &str) -> Result<Option<ClassMap>, FileError> {
    let in_folder = || {
        let mut paths = folders().map(|folder| folder.join(format!("{name}.toml")));
        paths.find(|path| path.is_file())
    };
    let path = match name.contains('/') || name.ends_with(".toml") {
        true => Some(PathBuf::from(name)),
        false => in_folder().or_else(|| text(name).is_none().then(|| PathBuf::from(name))),
    };
    // Of a file that can't be read, who looks for a machine in it says why.
    match path.and_then(|path| read_text(&path).ok()) {
        Some((text, file)) if ClassMap::is_one(&text) => ClassMap::parse(&text, &file).map(Some),
        _ => Ok(None),
    }
}

/// A machine by name or by the path of its file. A name is looked for in
/// `SOLOIST_MACHINES` (a folder), in [`MACHINE_DIR`], then among those built in, and last it
/// may be a file's.
///
/// # Errors
/// When there is no such machine, or its file is wrong.
pub fn find(name: &str) -> Result<Machine, FileError> {
    let (text, file) = find_text(name)?;
    Machine::parse(&text, &file)
}

/// The text of a machine's file, and what the file is called in messages; names as of [`find`].
///
/// # Errors
/// When there is no such file, or it can't be read.
pub fn find_text(name: &str) -> Result<(String, String), FileError> {
    if name.contains('/') || name.ends_with(".toml") {
        return read_text(Path::new(name));
    }
    for folder in folders() {
        let path = folder.join(format!("{name}.toml"));
        if path.is_file() {
            return read_text(&path);
        }
    }
    match text(name) {
        Some(text) => Ok((text.to_owned(), format!("machines/{name}.toml"))),
        None if Path::new(name).exists() => read_text(Path::new(name)),
        None => Err(FileError::whole(
            name,
            format!(
                "no such machine{}; `soloist map list` names them, and the path of a file is taken too",
                did_you_mean(name, names())
            ),
        )),
    }
}

/// Every machine, files of the administrator first; files that are wrong are
/// returned as their errors.
#[must_use]
pub fn all() -> Vec<Result<Machine, FileError>> {
    let mut machines = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for folder in folders() {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let (Some(stem), Some("toml")) = (stem, path.extension().and_then(|e| e.to_str())) {
                if seen.insert(stem.to_owned()) {
                    machines.push(Machine::read(&path));
                }
            }
        }
    }
    machines.extend(names().filter(|name| !seen.contains(*name)).map(find));
    machines
}

fn folders() -> impl Iterator<Item = PathBuf> {
    std::env::var_os("SOLOIST_MACHINES")
        .map(PathBuf::from)
        .into_iter()
        .chain([PathBuf::from(MACHINE_DIR)])
}
