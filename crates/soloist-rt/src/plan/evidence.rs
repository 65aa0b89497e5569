//! A plan as one document for those who must argue that it is safe: every
//! channel of interference of AMC 20-193 (CAST-32A) with its mitigation, the
//! analysis, the play, and what it takes to repeat them. It claims no compliance.

use std::fmt::Write;

use super::check::Check;
use super::grounds::Grounds;
use super::inputs::Input;
use super::Plan;
use crate::time::Time;
use soloist_trace::gantt;
use soloist_trace::measured::Measured;

/// What the plan was made from.
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
    /// What of the machine the proof rests on.
    pub grounds: &'a Grounds,
    /// What speaks against the event that counts the limits' lines, if any.
    pub event: Option<&'a str>,
    /// What was measured under the plan.
    pub measured: Option<&'a Measured>,
    /// The command that writes the document.
    pub command: &'a str,
    /// Version of the tool.
    pub version: &'a str,
    /// Seed of the play.
    pub seed: u64,
}

/// The document.
#[must_use]
pub fn html(plan: &Plan, check: &Check, source: &Source) -> String {
    let mut out = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Evidence of a plan</title><style>\
         body{font:15px/1.5 sans-serif;max-width:64em;margin:2em auto;padding:0 1em}\
         table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #999;padding:.3em .6em;text-align:left;vertical-align:top}\
         pre{background:#f4f4f4;padding:1em;white-space:pre-wrap;overflow-wrap:anywhere}svg{max-width:100%;height:auto}\
         @media print{body{margin:0}h2{break-after:avoid}table,svg{break-inside:avoid}}</style>\n",
    );
    let verdict = if plan.holds {
        "Every deadline is proved"
    } else {
        "Not every deadline could be proved"
    };
    let _ = writeln!(
        out,
        "<h1>{} on {}</h1><p><strong>{verdict}</strong> under the assumptions below. This document claims no compliance with AMC 20-193; it gives what an argument can start from, and says what remains to be argued.</p>",
        escape(source.file), escape(&plan.machine)
    );
    let _ = writeln!(
        out,
        "<p>It holds between the tasks of this plan: all else that runs on the machine, the kernel included, is in no bound. {}.</p>",
        escape(&sentence(source.grounds))
    );
    if let Some(event) = source.event {
        let _ = writeln!(
            out,
            "<p><strong>Limits of bandwidth may not hold</strong>: {}.</p>",
            escape(event)
        );
    }
    channels(&mut out, plan);
    analysis(&mut out, plan, check, source.measured);
    let _ = writeln!(out, "<h2>The play</h2><p>On the timing model, {}, seed {}; a play is one run and proves nothing by itself.</p>{}",
        Time(check.timeline.end_ps), source.seed, gantt::svg(&check.timeline, "As played", 1));
    remains(&mut out, source.measured.is_some());
    let _ = writeln!(
        out,
        "<h2>To repeat it</h2><p>soloist {}, seed {}</p><pre>{}</pre>",
        escape(source.version),
        source.seed,
        escape(source.command)
    );
    inputs(&mut out, source);
    let _ = writeln!(
        out,
        "<h3>Task file</h3><pre>{}</pre><h3>Configuration (soloist apply)</h3><pre>{}</pre></html>",
        escape(source.tasks),
        escape(source.config)
    );
    out
}

fn sentence(grounds: &Grounds) -> String {
    let text = grounds.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn inputs(out: &mut String, source: &Source) {
    let own = [
        Input::of("task file", source.file, source.tasks.as_bytes()),
        Input::of("configuration", "(below)", source.config.as_bytes()),
    ];
    out.push_str("<table><tr><th>What<th>File<th>SHA-256 (sha256sum)\n");
    for input in own.iter().chain(source.inputs) {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td><code>{}</code>",
            escape(&input.what),
            escape(&input.file),
            input.sha256
        );
    }
    out.push_str("</table>\n");
}

fn channels(out: &mut String, plan: &Plan) {
    let limited = plan.assignments.iter().any(|a| a.limit.is_some());
    let bandwidth = if limited {
        "cores without deadlines are limited; their lines count in the job-driven bound"
    } else {
        "no limit was needed"
    };
    let llc = if plan.assignments.iter().all(|a| !a.llc.is_empty()) {
        "each core has colours of its own"
    } else {
        "shared by cores of one last level that have no colours of their own: every request of a private cache counts as a miss"
    };
    let c = &plan.costs;
    let rows = [
        ("DRAM banks", "each core has banks of its own", "none can arise between cores by this plan's tasks; what is in no group, and the kernel, may have pages in these banks (<code>soloist plan --rest</code> keeps most of it on other controllers)".to_owned()),
        ("Memory controller", "tasks with deadlines apart from others where there are controllers enough", format!("a line of another core in another bank costs at most {}; request-driven or job-driven, whichever is less", Time(c.other_bank_ps))),
        ("Write draining", "counted", "each fill of another core may push out one line, and each may turn the bus round twice".to_owned()),
        ("Refresh", "cannot be mitigated", format!("{} every {}, one more for each interval of delay", Time(c.refresh_ps.1), Time(c.refresh_ps.0))),
        ("Last-level cache", llc, "a job is played alone in its colours, from cold caches; what is in no group, and the kernel, may fill sets of any colour".to_owned()),
        ("Private caches", "tasks of one core share them", "after a preemption everything is fetched again".to_owned()),
        ("Bandwidth", bandwidth, "read and write budgets of a period of 1 ms, one period more at the edges".to_owned()),
        ("Interconnect", "pages of a task with deadlines lie on its core's node", "the path of a node's data is part of a line's cost".to_owned()),
        ("TLB and page walks", "page tables are in colour", "walks are in the time alone; shared walkers are <strong>not covered</strong>".to_owned()),
        ("Devices' DMA", "none", "<strong>not covered</strong>".to_owned()),
        ("System management interrupts, firmware", "none", "<strong>not covered</strong>".to_owned()),
        ("Interrupts and kernel code that can't be preempted, on a task's own core", "none", "<strong>not covered</strong>; what the kernel keeps of each second for ordinary tasks is counted where tasks with deadlines may be busy for longer".to_owned()),
        ("Kernel data and locks that cores share", "none", "<strong>not covered</strong>; see <code>soloist verify</code> for what is not in colour".to_owned()),
        ("Cache slots for misses (MSHR), coherence", "none", "<strong>not covered</strong>: tasks are taken to share no data".to_owned()),
    ];
    out.push_str("<h2>Channels of interference</h2><table><tr><th>Channel<th>Mitigation<th>In the analysis\n");
    for (channel, mitigation, bound) in rows {
        let _ = writeln!(out, "<tr><td>{channel}<td>{mitigation}<td>{bound}");
    }
    out.push_str("</table>\n");
}

fn analysis(out: &mut String, plan: &Plan, check: &Check, measured: Option<&Measured>) {
    out.push_str("<h2>Analysis and play</h2><table><tr><th>Task<th>Core<th>Banks<th>Cache colours<th>Deadline<th>Alone<th>Its core's others<th>Memory<th>Response at most<th>Longest played<th>Longest measured\n");
    for answer in &plan.analysis {
        let Some(a) = plan.assignments.iter().find(|a| a.task == answer.task) else {
            continue;
        };
        let played = check.task(&answer.task);
        let played = played.map_or_else(String::new, |p| {
            format!("{}; {} of {} jobs missed", p.response, p.missed, p.jobs)
        });
        let response = match (answer.response, answer.holds) {
            (Some(r), _) => r.to_string(),
            (None, true) => "demand holds (EDF)".to_owned(),
            (None, false) => "<strong>not bounded by the deadline</strong>".to_owned(),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{response}<td>{played}<td>{}",
            escape(&a.task),
            a.core,
            a.bank_sets,
            a.llc,
            answer.deadline,
            answer.alone,
            answer.preempted,
            answer.memory,
            longest(measured, &a.task)
        );
    }
    out.push_str("</table>\n");
    let _ = writeln!(out, "<p>{}.</p>", escape(&plan.alone_is()));
    if let Some(m) = measured {
        let length = Time(m.length_ns.saturating_mul(1000));
        let lost = match m.lost_events + m.unread_lines {
            0 => String::new(),
            n => format!(
                "; <strong>{n} events of it are lost, so jobs may be missing or joined</strong>"
            ),
        };
        let _ = writeln!(
            out,
            "<p>Measured in {length} by soloist trace, from wake-up to completion{lost}.</p>"
        );
    }
    for r in &plan.relaxations {
        let _ = writeln!(
            out,
            "<p>{} misses by {} or more: {}.</p>",
            escape(&r.task),
            r.misses_by,
            escape(&r.change)
        );
    }
}

/// What was measured of a task.
fn longest(measured: Option<&Measured>, task: &str) -> String {
    let seen = measured.and_then(|m| m.task(task));
    let Some((seen, worst)) = seen.and_then(|t| Some((t, t.response_worst_ns?))) else {
        return "not measured".to_owned();
    };
    let over = if seen.worst_is_cut_off { "&gt; " } else { "" };
    format!(
        "{over}{}; {} of {} jobs missed",
        Time(worst.saturating_mul(1000)),
        seen.missed,
        seen.jobs
    )
}

fn remains(out: &mut String, measured: bool) {
    let measured = match measured {
        true => "what was measured is a sample, and of response times only",
        false => "nothing here was measured on the target",
    };
    let _ = writeln!(
        out,
        "<h2>What remains to be argued</h2><ul>\
         <li>that <code>wcet</code> of each task is its longest execution alone: it is taken from the task file, and that colours lengthen no job more than those that were played is not proved;</li>\
         <li>that the modelled machine is the real one: the figures that are guessed are named above, others of the model in docs/design/memory-model.md, and {measured};</li>\
         <li>that nothing else runs where the plan's tasks do: nothing of it is in a bound;</li>\
         <li>that the behaviour given for each task (its lines, or the program in its likeness) is no less demanding than the task;</li>\
         <li>every channel that is marked as not covered;</li>\
         <li>the tools themselves: none is qualified (DO-330).</li></ul>",
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
