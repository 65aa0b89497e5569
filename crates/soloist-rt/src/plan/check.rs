//! A plan played on the model: is the analysis disproved?

use serde::Serialize;
use soloist_core::time::Time;
use soloist_memory::Platform;
use soloist_trace::timeline::Timeline;

use super::alone::check_ps;
use super::refusal::PlanError;
use super::Plan;
use crate::analysis::response::Answer;
use crate::model::cores::{play, Setup};
use crate::tasks::Task;

/// The result of a check by simulation.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Tasks with deadlines.
    pub tasks: Vec<PlayedTask>,
    /// The schedule.
    #[serde(skip)]
    pub timeline: Timeline,
}

/// The result for a task with deadlines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "(String, Time, u64, u64)")]
pub struct PlayedTask {
    /// Its name.
    pub task: String,
    /// Longest response of a job that was completed.
    pub response: Time,
    /// Jobs that ended.
    pub jobs: u64,
    /// Those of them that missed their deadline.
    pub missed: u64,
}

impl From<PlayedTask> for (String, Time, u64, u64) {
    fn from(played: PlayedTask) -> Self {
        (played.task, played.response, played.jobs, played.missed)
    }
}

impl Check {
    /// The task of this name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<&PlayedTask> {
        self.tasks.iter().find(|played| played.task == name)
    }

    /// Tasks that took longer, or missed, where the analysis said they can't:
    /// the analysis is wrong there, and nothing that it says can be relied on.
    #[must_use]
    pub fn disproved(&self, analysis: &[Answer]) -> Vec<String> {
        let wrong = |played: &&PlayedTask| {
            let mut proved = analysis.iter().filter(|a| a.holds);
            proved
                .find(|a| a.task == played.task)
                .is_some_and(|answer| {
                    played.missed > 0
                        || played.response > answer.response.unwrap_or(answer.deadline)
                })
        };
        let tasks = self.tasks.iter().filter(wrong);
        tasks.map(|played| played.task.clone()).collect()
    }
}

/// Plays the plan on the model.
///
/// # Errors
/// When the model refuses it.
pub fn simulate(platform: &Platform, plan: &Plan) -> Result<Check, PlanError> {
    let set = &plan.set;
    // Times are not divided here: cold caches would weigh more than they do.
    let played = play(&Setup {
        platform,
        set,
        makers: &plan.makers,
        accesses: &plan.accesses,
        places: &plan.places,
        limits: &plan.limits,
        scale: 1,
        length_ps: check_ps(set),
        seed: plan.seed,
    })?;
    let became = |(i, task): (usize, &Task)| {
        task.release?;
        let figures = played.timeline.figures(i, 0);
        Some(PlayedTask {
            task: task.name.clone(),
            response: Time(figures.response_ps),
            jobs: figures.jobs,
            missed: figures.missed,
        })
    };
    Ok(Check {
        tasks: set.tasks.iter().enumerate().filter_map(became).collect(),
        timeline: played.timeline,
    })
}
