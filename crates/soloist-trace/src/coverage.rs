//! Does a record have every task that was asked for?

use crate::measured::{Measured, Task};

/// The tasks that a record must have before it says anything of deadlines.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Each of these.
    Each(Vec<ExpectedTask>),
    /// Anybody; whether there is a period.
    Anybody(bool),
}

/// A task that was asked for.
#[derive(Debug, Clone)]
pub struct ExpectedTask {
    /// The property that it is known by.
    pub identity: Identity,
    /// Whether it has a period.
    pub timed: bool,
}

/// The property that a task is known by.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Its name.
    Name(String),
    /// Its thread id.
    Id(u32),
}

/// The tasks that were asked for, and what a record has of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Tasks that were asked for and of which no job was seen: whether they kept a
    /// deadline is not known.
    pub unseen: Vec<String>,
    /// Whether what was seen is enough to speak of deadlines. A task that has none can't
    /// miss one.
    pub enough: bool,
}

impl Identity {
    fn is(&self, task: &Task) -> bool {
        match self {
            Self::Id(id) => task.pid == *id,
            Self::Name(name) => task.is_named(name),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Id(id) => id.to_string(),
        }
    }
}

impl Measured {
    /// Returns which of the expected tasks the record lacks.
    #[must_use]
    pub fn coverage(&self, expected: &Expected) -> Coverage {
        let shown = |task: &Task, timed: bool| task.jobs > 0 || !timed;
        let each = match expected {
            Expected::Anybody(timed) => {
                return Coverage {
                    unseen: Vec::new(),
                    enough: self.tasks.iter().any(|t| shown(t, *timed)),
                }
            }
            Expected::Each(each) => each,
        };
        let seen = |wanted: &ExpectedTask| {
            let mut tasks = self.tasks.iter();
            tasks.any(|task| wanted.identity.is(task) && shown(task, wanted.timed))
        };
        let unseen: Vec<&ExpectedTask> = each.iter().filter(|wanted| !seen(wanted)).collect();
        Coverage {
            enough: !unseen.iter().any(|wanted| wanted.timed) && unseen.len() < each.len(),
            unseen: unseen.iter().map(|wanted| wanted.identity.text()).collect(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::measured::Task;

    fn task(name: &str, pid: u32, jobs: u64) -> Task {
        Task {
            task: name.to_owned(),
            pid,
            cores: vec![0],
            period_ns: None,
            deadline_ns: None,
            jobs,
            missed: 0,
            miss_rate: 0.0,
            response_p50_ns: None,
            response_p999_ns: None,
            response_worst_ns: None,
            worst_is_cut_off: false,
            execution_max_ns: 0,
            preempted: 0,
            yielded: 0,
            migrated: 0,
            throttled_ns: 0,
            held_ns: 0,
        }
    }

    fn seen(tasks: Vec<Task>, expected: &Expected) -> (Vec<String>, bool) {
        let report = Measured {
            length_ns: 1,
            lost_events: 0,
            unread_lines: 0,
            tasks,
        };
        let coverage = report.coverage(expected);
        (coverage.unseen, coverage.enough)
    }

    /// A task that was started again, or has several threads: none hides another's misses.
    #[test]
    fn threads_of_one_name_count_together() {
        let of = |pid, missed, worst| Task {
            missed,
            response_worst_ns: worst,
            worst_is_cut_off: worst == Some(9),
            ..task(&format!("control-{pid}"), pid, 5)
        };
        let all = Measured {
            length_ns: 1,
            lost_events: 0,
            unread_lines: 0,
            tasks: vec![of(1, 0, Some(9)), of(2, 3, Some(7)), of(3, 0, None)],
        };
        let seen = all.task("control").unwrap();
        assert_eq!((seen.jobs, seen.missed), (15, 3));
        assert_eq!(seen.response_worst_ns, Some(9));
        assert!(seen.worst_is_cut_off);
        assert_eq!(all.task("control-"), None);
        assert_eq!(all.task("contro"), None);
    }

    #[test]
    fn nothing_is_known_of_whom_nobody_saw() {
        let name = |name: &str, timed| ExpectedTask {
            identity: Identity::Name(name.to_owned()),
            timed,
        };
        let pair = Expected::Each(vec![name("control", true), name("logger", false)]);
        let said = |tasks| seen(tasks, &pair);
        assert_eq!(
            said(vec![]),
            (vec!["control".to_owned(), "logger".to_owned()], false)
        );
        // It ran, and no job of it is known from begin to end.
        assert!(!said(vec![task("control", 1, 0), task("logger", 2, 0)]).1);
        assert_eq!(
            said(vec![task("control", 1, 3)]),
            (vec!["logger".to_owned()], true)
        );
        assert!(said(vec![task("control-1", 1, 3), task("control-9", 9, 3)]).1);
        assert!(!said(vec![task("control-9", 1, 3)]).1);
        let long = Expected::Each(vec![name("a-name-of-twenty-two", true)]);
        assert!(seen(vec![task("a-name-of-twent", 1, 1)], &long).1);
        let by_id = |(id, timed)| ExpectedTask {
            identity: Identity::Id(id),
            timed,
        };
        let ids = Expected::Each([(7, false), (8, true)].map(by_id).to_vec());
        assert_eq!(
            seen(vec![task("x", 7, 0)], &ids),
            (vec!["8".to_owned()], false)
        );
        assert!(seen(vec![task("x", 7, 0), task("x", 8, 1)], &ids).1);
        assert!(!seen(vec![], &Expected::Anybody(false)).1);
        assert!(!seen(vec![task("sh", 1, 0)], &Expected::Anybody(true)).1);
        assert!(seen(vec![task("sh", 1, 0)], &Expected::Anybody(false)).1);
        // A task without a deadline is enough where no task has one.
        let free = Expected::Each(vec![name("a", false), name("b", false)]);
        assert!(seen(vec![task("a", 1, 0)], &free).1);
        assert!(!seen(vec![], &free).1);
    }
}
