//! The experiments of the source tree, one for each table or figure.

use crate::run::RunError;
use crate::scenario::{line_of, Scenario, ScenarioError};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

/// Name and text of each, in the order of the papers.
pub const EXPERIMENTS: &[(&str, &str)] = built_in![
    "camc-table-2",
    "camc-table-3",
    "camc-figure-7",
    "camc-figure-9-canneal",
    "camc-figure-9-x264",
    "camc-figure-9-streamcluster",
    "camc-figure-9-ferret",
    "camc-figure-9-fluidanimate",
    "camc-figure-9-swaptions",
    "camc-figure-10",
    "camc-table-4",
    "camc-table-5",
    "camc-figure-11",
    "camc-figure-12",
    "camc-figure-13",
    "camc-figure-13-single",
    "camc-figure-14",
    "camc-figure-14-single",
    "camc-figure-14-llc",
    "camc-figure-17",
    "camc-figure-18-gcc",
    "camc-figure-18-libquantum",
    "camc-figure-18-milc",
    "camc-figure-18-soplex",
    "report-controllers",
    "report-contention",
    "report-threads",
    "report-sizes",
    "tintmalloc-figure-10",
    "tintmalloc-16-threads-4-nodes",
    "tintmalloc-8-threads-4-nodes",
    "tintmalloc-8-threads-2-nodes",
    "tintmalloc-4-threads-4-nodes",
    "tintmalloc-4-threads-1-node",
    "memguard-table-1",
    "memguard-figure-1",
    "memguard-figure-2",
    "memguard-figure-10",
    "memguard-figure-11",
    "memguard-figure-12",
    "memguard-figure-15a",
    "memguard-figure-15b",
    "memguard-figure-16",
    "memguard-figure-17",
    "memguard-colors-4-readers",
    "memguard-colors-4-writers",
    "memguard-colors-16-writers",
    "palloc-banks-p4080",
    "palloc-banks-xeon",
    "palloc-isolation-libquantum",
    "palloc-isolation-soplex",
    "palloc-peak",
    "palloc-one-bank",
    "palloc-solo-lbm",
    "palloc-solo-soplex",
    "tintmalloc-art",
    "tintmalloc-art-compact",
    "tintmalloc-blackscholes",
    "tintmalloc-blackscholes-compact",
    "tintmalloc-bodytrack",
    "tintmalloc-bodytrack-compact",
    "tintmalloc-equake",
    "tintmalloc-equake-compact",
    "tintmalloc-freqmine",
    "tintmalloc-freqmine-compact",
    "ablation-queue-table-3",
    "ablation-queue-figure-10",
    "ablation-matrix-figure-17",
    "ablation-banks-figure-7",
    "ablation-parts-figure-11",
];

/// An experiment by name, or a scenario by the path of its file.
pub fn find(name: &str) -> Result<Scenario, ScenarioError> {
    let (text, file) = text(name)?;
    Scenario::parse(&text, &file)
}

/// Where in the file of `name` the reason of a failed run stands.
pub fn locate(name: &str, scenario: &Scenario, error: &RunError) -> ScenarioError {
    let (text, file) = match text(name) {
        Ok(found) => found,
        Err(gone) => return gone,
    };
    ScenarioError {
        file,
        line: line_of(&text, &error.word(scenario)),
        message: error.to_string(),
    }
}

/// Text and name of the file.
fn text(name: &str) -> Result<(String, String), ScenarioError> {
    let wrong = |message| ScenarioError {
        file: name.to_owned(),
        line: 0,
        message,
    };
    if name.contains('/') || name.ends_with(".toml") {
        let text = std::fs::read_to_string(name).map_err(|e| wrong(e.to_string()))?;
        return Ok((text, name.to_owned()));
    }
    match EXPERIMENTS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(((*text).to_owned(), format!("experiments/{name}.toml"))),
        None => Err(wrong(
            "no such experiment; `soloist lab list` names them, \
             and a path to a .toml file is taken too"
                .to_owned(),
        )),
    }
}
