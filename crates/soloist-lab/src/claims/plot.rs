//! Whether `[plot]` can be drawn, before anything runs.

use soloist_machine::KeyError;

use crate::cases::Case;
use crate::measurements::METRICS;
use crate::spec::{Plot, Scenario};

/// A plot of what this scenario measures.
///
/// # Errors
/// Names the task, metric or case that this scenario does not measure.
pub fn check_plot(scenario: &Scenario, cases: &[Case]) -> Result<(), KeyError> {
    let Some(plot) = &scenario.plot else {
        return Ok(());
    };
    let wrong = |key: &str, what: String| Err(KeyError::at(&["plot", key], what));
    let tasks: Vec<&str> = scenario.tasks.iter().map(|t| t.name.as_str()).collect();
    if !tasks.contains(&plot.task.as_str()) {
        let what = format!("no task `{}`; there are: {}", plot.task, tasks.join(", "));
        return wrong("task", what);
    }
    let metrics: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
    if !metrics.contains(&plot.metric.as_str()) {
        let what = format!(
            "no metric `{}`; there are: {}",
            plot.metric,
            metrics.join(", ")
        );
        return wrong("metric", what);
    }
    if let Some(case) = printed_of_none(plot, cases) {
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let what = format!("no case `{case}`; there are: {}", names.join(", "));
        return wrong("printed", what);
    }
    Ok(())
}

/// A printed figure of a case that is not there.
fn printed_of_none<'a>(plot: &'a Plot, cases: &[Case]) -> Option<&'a String> {
    let mut printed = plot.printed.keys();
    printed.find(|name| !cases.iter().any(|case| case.name == **name))
}
