//! A plan as one document for those who must argue that it is safe: every
//! channel of interference of AMC 20-193 (CAST-32A) with its mitigation, the
//! analysis, the play, and what it takes to repeat them. It claims no compliance.

use maud::{html, Markup, PreEscaped, DOCTYPE};
use soloist_core::time::Time;
use soloist_trace::gantt;
use soloist_trace::measured::Measured;

use super::check::Check;
use super::grounds::Grounds;
use super::inputs::Input;
use super::{Assignment, Plan};
use crate::analysis::response::Answer;

/// The inputs of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name of the task file.
    pub file: &'a str,
    /// Its text.
    pub tasks: &'a str,
    /// The configuration that came of it.
    pub config: &'a str,
    /// Other files that it was made from.
    pub inputs: &'a [Input],
    /// The part of the machine that the proof rests on.
    pub grounds: &'a Grounds,
    /// An objection to the event that counts the limits' lines, if any.
    pub event: Option<&'a str>,
    /// Figures that were measured under the plan.
    pub measured: Option<&'a Measured>,
    /// The command that writes the document.
    pub command: &'a str,
    /// Version of the tool.
    pub version: &'a str,
    /// Seed of the play.
    pub seed: u64,
}

const STYLE: &str = "\
body{font:15px/1.5 sans-serif;max-width:64em;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #999;padding:.3em .6em;text-align:left;vertical-align:top}\
pre{background:#f4f4f4;padding:1em;white-space:pre-wrap;overflow-wrap:anywhere}svg{max-width:100%;height:auto}\
@media print{body{margin:0}h2{break-after:avoid}table,svg{break-inside:avoid}}";

/// The document.
#[must_use]
pub fn html(plan: &Plan, check: &Check, source: &Source) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Evidence of a plan" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (verdict(plan, source))
                (channels(plan))
                (analysis(plan, check, source.measured))
                h2 { "The play" }
                p {
                    "On the timing model, " (time(Time(check.timeline.end_ps))) ", seed " (source.seed)
                    "; a play is one run and proves nothing by itself."
                }
                (PreEscaped(gantt::svg(&check.timeline, "As played", 1)))
                (remains(source.measured.is_some()))
                h2 { "To repeat it" }
                p { "soloist " (source.version) ", seed " (source.seed) }
                pre { (source.command) }
                (inputs(source))
                h3 { "Task file" }
                pre { (source.tasks) }
                h3 { "Configuration (soloist apply)" }
                pre { (source.config) }
            }
        }
    };
    page.into_string()
}

/// A time in words.
fn time(time: Time) -> String {
    time.to_string()
}

fn verdict(plan: &Plan, source: &Source) -> Markup {
    let verdict = match (plan.holds, plan.refuted.is_empty()) {
        (true, _) => "Every deadline is proved",
        (false, true) => "Not every deadline could be proved",
        (false, false) => "What was measured refutes the proof",
    };
    html! {
        h1 { (source.file) " on " (plan.machine) }
        p {
            strong { (verdict) }
            " under the assumptions below. This document claims no compliance with AMC 20-193; it gives what an argument can start from, and says what remains to be argued."
        }
        p {
            "It covers the tasks of this plan only. It does not bound the interference of anything else that runs on the machine, the kernel included. "
            (sentence(source.grounds)) "."
        }
        @for refuted in &plan.refuted {
            p { strong { (refuted) } "." }
        }
        @if let Some(event) = source.event {
            p { strong { "Limits of bandwidth may not hold" } ": " (event) "." }
        }
    }
}

fn sentence(grounds: &Grounds) -> String {
    let text = grounds.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn inputs(source: &Source) -> Markup {
    let own = [
        Input::of("task file", source.file, source.tasks.as_bytes()),
        Input::of("configuration", "(below)", source.config.as_bytes()),
    ];
    html! {
        table {
            tr { th { "What" } th { "File" } th { "SHA-256 (sha256sum)" } }
            @for input in own.iter().chain(source.inputs) {
                tr { td { (input.what) } td { (input.file) } td { code { (input.sha256) } } }
            }
        }
    }
}

fn channels(plan: &Plan) -> Markup {
    let stop = time(plan.set.stop);
    let limited = plan.assignments.iter().any(|a| a.limit.is_some());
    let bandwidth = match limited {
        true => "cores without deadlines are limited; their lines count in the job-driven bound",
        false => "no limit was needed",
    };
    let llc = match plan.assignments.iter().all(|a| !a.llc.is_empty()) {
        true => "each core has colours of its own",
        false => "shared by cores of one last level that have no colours of their own: every request of a private cache counts as a miss",
    };
    let line = time(Time(plan.costs.other_bank_ps));
    let refresh = &plan.costs.refresh;
    let (interval, once) = (time(Time(refresh.interval_ps)), time(Time(refresh.time_ps)));
    let row = time(Time(refresh.reopen_ps));
    let not_covered = html! { strong { "not covered" } };
    let apart = "tasks with deadlines apart from others where there are controllers enough";
    html! {
        h2 { "Channels of interference" }
        table {
            tr { th { "Channel" } th { "Mitigation" } th { "In the analysis" } }
            (channel("DRAM banks", "each core has banks of its own", html! {
                "none can arise between cores by this plan's tasks; what is in no group, and the kernel, may have pages in these banks ("
                code { "soloist plan --rest" } " keeps most of it on other controllers)"
            }))
            (channel("Memory controller", apart, html! {
                "a line of another core in another bank costs at most " (line)
                "; request-driven or job-driven, whichever is less"
            }))
            (channel("Write draining", "counted", html! {
                "each fill of another core may push out one line, and each may turn the bus round twice"
            }))
            (channel("Refresh", "cannot be mitigated", html! {
                (once) " every " (interval) " for each of " (refresh.ranks) " ranks: one at the start, one more for each interval of delay; "
                (row) " for each other row that it closed"
            }))
            (channel("Last-level cache", llc, html! {
                "a job is played alone in its colours, from cold caches; what is in no group, and the kernel, may fill sets of any colour"
            }))
            (channel("Private caches", "tasks of one core share them", html! {
                "after a preemption everything is fetched again"
            }))
            (channel("Bandwidth", bandwidth, html! {
                "a budget of lines read in each period of 1 ms, each of which may push a dirty line out of each cache; one period more at the edges; no store may go past the caches; a core that has used its budget up is in the way for " (stop) " more, and then with what it has under way: a longer stop is " (not_covered)
            }))
            (channel("Interconnect", "pages of a task with deadlines lie on its core's node", html! {
                "the path of a node's data is part of a line's cost"
            }))
            (channel("TLB and page walks", "page tables are in colour", html! {
                "walks are in the time alone; shared walkers are " (not_covered)
            }))
            (channel("Devices' DMA", "none", html! { (not_covered) }))
            (channel("System management interrupts, firmware", "none", html! { (not_covered) }))
            (channel("Interrupts and kernel code that can't be preempted, on a task's own core", "none", html! {
                (not_covered)
                "; what the kernel keeps of each second for ordinary tasks is counted where tasks with deadlines may be busy for longer, and its servers of ordinary tasks must be off there (the plan's commands turn them off)"
            }))
            (channel("Kernel data and locks that cores share", "none", html! {
                (not_covered) "; see " code { "soloist verify" } " for what is not in colour"
            }))
            (channel("Cache slots for misses (MSHR), coherence", "none", html! {
                (not_covered) ": tasks are taken to share no data"
            }))
        }
    }
}

fn channel(name: &str, mitigation: &str, bound: Markup) -> Markup {
    html! { tr { td { (name) } td { (mitigation) } td { (bound) } } }
}

const HEAD: [&str; 11] = [
    "Task",
    "Core",
    "Banks",
    "Cache colours",
    "Deadline",
    "Alone",
    "Its core's others",
    "Memory",
    "Response at most",
    "Longest played",
    "Longest measured",
];

fn analysis(plan: &Plan, check: &Check, measured: Option<&Measured>) -> Markup {
    let assigned = |answer: &Answer| plan.assignments.iter().find(|a| a.task == answer.task);
    let answers = plan.analysis.iter();
    let rows = answers.filter_map(|answer| Some((answer, assigned(answer)?)));
    html! {
        h2 { "Analysis and play" }
        table {
            tr { @for name in HEAD { th { (name) } } }
            @for (answer, assignment) in rows {
                (row(answer, assignment, check, measured))
            }
        }
        p { (plan.alone_is()) "." }
        @if let Some(measured) = measured {
            (sample(measured))
        }
        @for r in &plan.relaxations {
            p { (r) "." }
        }
    }
}

fn row(answer: &Answer, of: &Assignment, check: &Check, measured: Option<&Measured>) -> Markup {
    let played = check.task(&of.task).map(|played| {
        let response = played.response;
        format!(
            "{response}; {} of {} jobs missed",
            played.missed, played.jobs
        )
    });
    html! {
        tr {
            td { (of.task) }
            td { (of.core) }
            td { (of.bank_sets) }
            td { (of.llc) }
            td { (time(answer.deadline)) }
            td { (time(answer.alone)) }
            td { (time(answer.preempted)) }
            td { (answer.waits()) }
            td {
                @match (answer.response, answer.holds) {
                    (Some(response), _) => { (time(response)) }
                    (None, true) => { "demand holds (EDF)" }
                    (None, false) => { strong { "not bounded by the deadline" } }
                }
            }
            td { (played.unwrap_or_default()) }
            td { (longest(measured, &of.task)) }
        }
    }
}

/// How long was measured, and what the record lacks.
fn sample(measured: &Measured) -> Markup {
    let lost = measured.lost_events + measured.unread_lines;
    html! {
        p {
            "Measured in " (time(Time(measured.length_ns.saturating_mul(1000))))
            " by soloist trace, from wake-up to completion"
            @if lost > 0 {
                "; " strong { (lost) " events of it are lost, so jobs may be missing or joined" }
            }
            "."
        }
    }
}

/// What was measured of a task.
fn longest(measured: Option<&Measured>, task: &str) -> String {
    let seen = measured.and_then(|m| m.task(task));
    let Some((seen, worst)) = seen.and_then(|t| Some((t, t.response_worst_ns?))) else {
        return "not measured".to_owned();
    };
    let over = if seen.worst_is_cut_off { "> " } else { "" };
    format!(
        "{over}{}; {} of {} jobs missed",
        Time(worst.saturating_mul(1000)),
        seen.missed,
        seen.jobs
    )
}

fn remains(measured: bool) -> Markup {
    let measured = match measured {
        true => "what was measured is a sample, and of response times only",
        false => "nothing here was measured on the target",
    };
    html! {
        h2 { "What remains to be argued" }
        ul {
            li {
                "that " code { "wcet" }
                " of each task is its longest execution alone: it is taken from the task file, and that colours lengthen no job more than those that were played is not proved;"
            }
            li {
                "that the modelled machine is the real one: the figures that are guessed are named above, others of the model in docs/design/memory-model.md, and "
                (measured) ";"
            }
            li { "that nothing else runs where the plan's tasks do: nothing of it is in a bound;" }
            li { "that the behaviour given for each task (its lines, or the program in its likeness) is no less demanding than the task;" }
            li { "every channel that is marked as not covered;" }
            li { "the tools themselves: none is qualified (DO-330)." }
        }
    }
}
