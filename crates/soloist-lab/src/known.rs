//! The experiments of the source tree, one for each table or figure.

use std::path::Path;

use crate::scenario::{Scenario, ScenarioError};

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
    "camc-figure-10",
    "camc-table-4",
    "camc-table-5",
    "camc-figure-11",
    "camc-figure-12",
    "camc-figure-13",
    "camc-figure-14",
    "camc-figure-14-llc",
    "camc-figure-17",
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
];

/// An experiment by name, or a scenario by the path of its file.
pub fn find(name: &str) -> Result<Scenario, ScenarioError> {
    if name.contains('/') || name.ends_with(".toml") {
        return Scenario::read(Path::new(name));
    }
    match EXPERIMENTS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Scenario::parse(text, &format!("experiments/{name}.toml")),
        None => Err(ScenarioError {
            file: name.to_owned(),
            line: 0,
            message: "no such experiment; `soloist lab list` names them, \
                      and a path to a .toml file is taken too"
                .to_owned(),
        }),
    }
}
