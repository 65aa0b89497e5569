//! What the kernel is asked to record of those who are watched.

use anyhow::Result;
use soloist_trace::observer::Watch;

use crate::cmd::tracefs::Instance;

/// The kernel takes a page.
const LONGEST_FILTER: usize = 4000;
/// Events of the module.
const STOPS: [&str; 2] = ["soloist/soloist_cpu_stop", "soloist/soloist_cpu_go"];

/// Begins to record what is told of those who are watched.
pub fn begin(instance: &Instance, watch: &Watch) -> Result<()> {
    instance.enable("sched/sched_switch", filter(watch, &["prev", "next"]))?;
    instance.enable("sched/sched_wakeup", filter(watch, &[""]))?;
    instance.enable("sched/sched_wakeup_new", filter(watch, &[""]))?;
    instance.enable("sched/sched_process_exit", filter(watch, &[""]))?;
    // Who begins is told from who was there.
    instance.enable("sched/sched_process_fork", None)?;
    for event in STOPS {
        // Without the module nobody stops a processor.
        if instance.has(event) {
            instance.enable(event, None)?;
        }
    }
    instance.start()
}

/// Those events only in which one of them takes part, as the kernel's filters say
/// it; `None`: all. `sides`: how fields of the event begin.
fn filter(watch: &Watch, sides: &[&str]) -> Option<String> {
    if watch.children {
        return None;
    }
    let field = |side: &str, name: &str| match side {
        "" => name.to_owned(),
        _ => format!("{side}_{name}"),
    };
    let mut parts = Vec::new();
    for side in sides {
        let pid = field(side, "pid");
        parts.extend(watch.threads.keys().map(|id| format!("{pid}=={id}")));
        let comm = field(side, "comm");
        let names = watch.names.keys();
        parts.extend(
            names.map(|name| format!("{comm}==\"{}\"", soloist_trace::observer::cut(name))),
        );
    }
    let text = parts.join("||");
    (text.len() <= LONGEST_FILTER).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn filters_let_through_who_is_watched() {
        let mut watch = Watch {
            threads: BTreeMap::from([(7, None), (9, None)]),
            names: BTreeMap::from([("a-name-of-18-bytes".to_owned(), None)]),
            ..Watch::default()
        };
        let made = filter(&watch, &[""]);
        assert_eq!(
            made.as_deref(),
            Some("pid==7||pid==9||comm==\"a-name-of-18-by\"")
        );
        let made = filter(&watch, &["prev", "next"]).unwrap_or_default();
        assert!(made.starts_with("prev_pid==7||prev_pid==9||prev_comm==\"a-"));
        assert!(made.contains("||next_pid==7||"));
        watch.children = true;
        assert_eq!(filter(&watch, &[""]), None);
        watch.children = false;
        watch.threads = (1000..2000).map(|pid| (pid, None)).collect();
        assert_eq!(filter(&watch, &[""]), None);
    }
}
