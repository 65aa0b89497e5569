//! A folder of outcomes, as `lab run --out` writes it: a file of JSON for each experiment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use soloist_machine::file::{plain, read_text};
use soloist_machine::FileError;

use super::{Experiment, ExperimentOutcome};
use crate::jobs::Options;

/// The file of the experiment with this short name.
#[must_use]
pub fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// All outcomes of a folder, in the order of their names.
///
/// # Errors
/// When a file can't be read, or is no outcome.
pub fn read(folder: &Path) -> Result<Vec<ExperimentOutcome>, FileError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let wrong = |e: io::Error| {
        let what = format!("{e}: name a directory that `soloist lab run --out` wrote");
        FileError::whole(folder.display().to_string(), what)
    };
    let paths = entries
        .map_err(wrong)?
        .into_iter()
        .map(|entry| entry.path());
    let is_json = |path: &PathBuf| path.extension().is_some_and(|e| e == "json");
    let mut paths: Vec<PathBuf> = paths.filter(is_json).collect();
    paths.sort();
    paths.iter().map(|path| read_one(path)).collect()
}

/// What is there already of the same experiment, by the same options.
///
/// # Errors
/// When the file is there, and can't be read or is no outcome.
pub fn known(
    folder: &Path,
    experiment: &Experiment,
    options: Options,
) -> Result<Option<ExperimentOutcome>, FileError> {
    let path = file(folder, experiment.listed().name);
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(read_one(&path)?).filter(|known| known.is_of(experiment, options)))
}

fn read_one(path: &Path) -> Result<ExperimentOutcome, FileError> {
    let (text, file) = read_text(path)?;
    let wrong = |e: serde_json::Error| {
        let why = plain(&e.to_string());
        FileError::whole(file, format!("not an outcome of `lab run`: {why}"))
    };
    ExperimentOutcome::read(&text).map_err(wrong)
}
