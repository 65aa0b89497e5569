//! Plans of tasks with deadlines: what `soloist plan --json` prints.

use pyo3::prelude::*;
use serde_json::json;
use soloist_machine::{known, FileError};
use soloist_memory::Platform;
use soloist_rt::plan::check::simulate;
use soloist_rt::plan::config::config;
use soloist_rt::plan::event::Event;
use soloist_rt::plan::grounds::{machine_text, Grounds};
use soloist_rt::tasks::{file, TaskSet};

use crate::error::Refused;
use crate::work::work;

fn made(set: &TaskSet, machine: Option<&str>, seed: u64) -> Result<String, Refused> {
    let named = machine.or(set.machine.as_deref());
    let name = named.ok_or_else(|| {
        let what = "no machine is named: add `machine = \"NAME\"` here, or call plan(tasks, NAME)";
        FileError::in_line(&set.file, 1, what)
    })?;
    let machine = known::find(name)?;
    let platform = Platform::of(&machine)?;
    let plan = soloist_rt::plan::plan(&platform, set, seed)?;
    let check = simulate(&platform, &plan)?;
    let wrong = check.disproved(&plan.analysis);
    if !wrong.is_empty() {
        return Err(Refused::from(format!(
            "the play took longer than the analysis says is possible ({}): the analysis is wrong \
             here, so rely on none of it; please report it with the task file",
            wrong.join(", ")
        )));
    }
    let event = Event::of(None, &machine, &plan);
    let text = machine_text(&machine)?;
    let mut all = json!(plan);
    all["grounds"] = json!(Grounds::of(&machine, &text));
    all["event"] = json!(event);
    all["simulation"] = json!(check);
    all["config"] = json!(config(&plan, &platform, &machine.file, event.as_ref()));
    Ok(all.to_string())
}

/// Plans the tasks of a file's text; JSON.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    text: String,
    file: String,
    made_of_dict: bool,
    machine: Option<String>,
    seed: u64,
) -> PyResult<String> {
    let quote = (file.clone(), text.clone());
    let planned = work(py, None, move |_| {
        let set = file::parse(&text, &file)?;
        made(&set, machine.as_deref(), seed)
    })?;
    let planned = planned.map_err(|e| match made_of_dict {
        true => e.quoting(&quote.0, &quote.1),
        false => e,
    });
    Ok(planned?)
}
