//! One self-contained HTML page of outcomes: a plot and a table of claims for
//! each experiment.
//!
//! A plot has the paper's axes. Theirs appears only where the scenario holds a
//! printed figure; the papers' own curves are lost and are not redrawn.

pub mod comparison;
pub mod matrix;
pub mod plot;
pub mod summary;

use std::fmt::Write as _;

pub use plot::{svg, DrawError};

use self::matrix::matrix;
use crate::judgement::{answers, Answer, Estimate, Judged, ScenarioOutcome, Totals, Verdict};

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:64em;margin:2em auto;padding:0 1em;\
color:#222}table{border-collapse:collapse;margin:1em 0}th,td{padding:.25em .8em;text-align:right;\
border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}.misses{color:#a84300}\
.holds{color:#0072b2}code{background:#f3f3f3;padding:.1em .3em}figure{overflow-x:auto;margin:1em 0}\
.note{color:#555}td+td:not(:last-child){white-space:nowrap}";

/// An experiment that is no scenario of the lab.
#[derive(Debug)]
pub struct Other<'a> {
    /// Its name and claims.
    pub judged: Judged<'a>,
    /// One line for people.
    pub title: &'a str,
    /// Where the printed figures stand.
    pub source: &'a str,
    /// Name of the machine.
    pub machine: &'a str,
    /// What repeats it.
    pub command: String,
    /// Head, and rows.
    pub tables: Vec<Vec<Vec<String>>>,
    /// Pictures, SVG.
    pub pictures: Vec<String>,
}

/// The page.
pub fn html(outcomes: &[ScenarioOutcome], others: &[Other]) -> Result<String, DrawError> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>Soloist: experiments</title><style>{STYLE}</style></head><body>\n\
         <h1>Experiments over the memory model</h1>\n\
         <p>Version {}. <em>Theirs</em> is what the paper prints in text or tables, and nothing \
         else; <em>ours</em> is computed by the model. A prediction holds within 15&nbsp;% of \
         the effect; ± is a 95&nbsp;% interval over seeds.</p>\n",
        env!("CARGO_PKG_VERSION")
    );
    let all = outcomes.iter().map(Judged::from);
    let all: Vec<Judged> = all.chain(others.iter().map(|o| o.judged)).collect();
    let totals = Totals::of(all.iter().flat_map(|j| j.verdicts));
    let _ = writeln!(
        page,
        "<p>{} experiments: {}.</p>",
        all.len(),
        totals.sentence()
    );
    page.push_str(&figure_of(&summary::summary(&all)));
    page.push_str("<h2>Contents</h2>\n<ul>\n");
    let about = outcomes.iter().map(|o| &o.scenario.experiment);
    let named = about.map(|about| (about.id.as_str(), about.title.as_str()));
    for (id, title) in named.chain(others.iter().map(|o| (o.judged.id, o.title))) {
        let _ = writeln!(
            page,
            "<li><a href=\"#{0}\">{0}</a>: {1}</li>",
            escape(id),
            escape(title)
        );
    }
    page.push_str("</ul>\n");
    for outcome in outcomes {
        section(&mut page, outcome)?;
    }
    for other in others {
        other_section(&mut page, other);
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn section(page: &mut String, outcome: &ScenarioOutcome) -> Result<(), DrawError> {
    let about = &outcome.scenario.experiment;
    let runs = outcome.cases.first().map_or(0, |c| c.runs.len());
    let _ = writeln!(
        page,
        "<h2 id=\"{}\">{}</h2>\n<p>{} Machine <code>{}</code>, {} run{} a case, seed {}. \
         <code>{}</code></p>",
        escape(&about.id),
        escape(&about.title),
        if about.source.is_empty() {
            String::new()
        } else {
            format!("{}.", escape(&about.source))
        },
        escape(&about.machine),
        runs,
        if runs == 1 { "" } else { "s" },
        outcome.seed,
        escape(&outcome.command()),
    );
    if let Some(plot) = &outcome.scenario.plot {
        page.push_str(&figure_of(&svg(outcome, plot)?));
    }
    let answers = answers(&outcome.cases);
    if !answers.is_empty() {
        answer_table(page, &answers);
        let picture = matrix(&answers, |a| format!("{}, {}", a.task, a.case));
        page.push_str(&figure_of(&picture));
    }
    claims(page, &outcome.verdicts);
    if !about.note.is_empty() {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(&about.note));
    }
    Ok(())
}

fn other_section(page: &mut String, other: &Other) {
    let _ = writeln!(
        page,
        "<h2 id=\"{}\">{}</h2>\n<p>{}. Machine <code>{}</code>. <code>{}</code></p>",
        escape(other.judged.id),
        escape(other.title),
        escape(other.source),
        escape(other.machine),
        escape(&other.command),
    );
    for table in &other.tables {
        page.push_str("<table>");
        for (n, row) in table.iter().enumerate() {
            let cell = if n == 0 { "th" } else { "td" };
            page.push_str("<tr>");
            for text in row {
                let _ = write!(page, "<{cell}>{}</{cell}>", escape(text));
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</table>\n");
    }
    for picture in &other.pictures {
        page.push_str(&figure_of(picture));
    }
    claims(page, other.judged.verdicts);
}

fn claims(page: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    page.push_str(
        "<table><tr><th>Claim</th><th>Theirs</th><th>Ours</th><th>Effect, ours / theirs</th><th>Kind</th><th></th></tr>\n",
    );
    for verdict in verdicts {
        row(page, verdict);
    }
    page.push_str("</table>\n");
}

fn figure_of(svg: &str) -> String {
    format!("<figure>{svg}</figure>\n")
}

fn answer_table(page: &mut String, answers: &[Answer]) {
    page.push_str(
        "<table><tr><th>Task</th><th>Policy</th><th>Slowdown</th><th>p99</th>\
         <th>Waits most for</th></tr>\n",
    );
    for a in answers {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&a.task),
            escape(&a.case),
            estimate(Some(a.slowdown), ""),
            figure(Some(a.p99_ns), "ns"),
            escape(&first_culprit(a)),
        );
    }
    page.push_str("</table>\n");
}

/// Whom a task waited for most, and why.
pub fn first_culprit(a: &Answer) -> String {
    a.culprit.as_ref().map_or_else(
        || "nobody".to_owned(),
        |(who, cause, ns)| format!("{who}: {} ({cause})", figure(Some(ns / 1000.0), "us")),
    )
}

fn row(page: &mut String, v: &Verdict) {
    let class = match v.holds {
        Some(true) => "holds",
        _ => "misses",
    };
    let _ = writeln!(
        page,
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
        escape(&v.what),
        figure(v.theirs, &v.unit),
        estimate(v.ours, &v.unit),
        figure(v.effect, ""),
        v.worth(),
        escape(&word(v)),
    );
}

/// A verdict in words.
pub fn word(v: &Verdict) -> String {
    let judged = match &v.error {
        Some(error) => format!("not judged: {error}"),
        None => v.word().to_owned(),
    };
    let moving = match (v.converged(), v.half) {
        (Some(false), Some(half)) => format!(
            "; not converged: {:+.0} % from half of the work to all",
            100.0 * (1.0 / half - 1.0)
        ),
        _ => String::new(),
    };
    let other = v.contradicted.as_deref();
    let other = other.map_or_else(String::new, |o| format!("; the papers contradict it: {o}"));
    format!("{judged}{moving}{other}")
}

/// A figure with its 95 per cent interval.
pub fn estimate(e: Option<Estimate>, unit: &str) -> String {
    let Some(e) = e else {
        return "-".to_owned();
    };
    let half = e
        .half
        .map_or_else(String::new, |h| format!(" ± {}", figure(Some(h), "")));
    let gap = if unit.is_empty() { "" } else { " " };
    format!("{}{half}{gap}{unit}", figure(Some(e.value), ""))
}

/// A figure with four digits and its unit; a dash for none.
pub fn figure(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    let digits = match value.abs() {
        a if a >= 1000.0 => 0,
        a if a >= 100.0 => 1,
        a if a >= 10.0 => 2,
        _ => 3,
    };
    let gap = if unit.is_empty() { "" } else { " " };
    format!("{value:.digits$}{gap}{unit}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
