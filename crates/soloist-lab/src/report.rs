//! One self-contained HTML page of outcomes: a plot and a table of claims for
//! each experiment.
//!
//! A plot has the paper's axes. Theirs appears only where the scenario holds a
//! printed figure; the papers' own curves are lost and are not redrawn.

pub mod comparison;
pub mod matrix;
pub mod plot;
pub mod summary;

use maud::{html, Markup, PreEscaped, DOCTYPE};

pub use plot::{svg, DrawError};

use self::matrix::matrix;
use crate::judgement::{
    answers, Answer, Estimate, Judged, ScenarioOutcome, Totals, Verdict, VERSION,
};
use crate::measurements::CaseResult;
use crate::spec::Plot;

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
    let all = outcomes.iter().map(Judged::from);
    let all: Vec<Judged> = all.chain(others.iter().map(|o| o.judged)).collect();
    let totals = Totals::of(all.iter().flat_map(|j| j.verdicts));
    let about = outcomes.iter().map(|o| &o.scenario.experiment);
    let named = about.map(|about| (about.id.as_str(), about.title.as_str()));
    let contents = named.chain(others.iter().map(|o| (o.judged.id, o.title)));
    let sections = outcomes.iter().map(section);
    let sections = sections.collect::<Result<Vec<Markup>, DrawError>>()?;
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Soloist: experiments" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                "\n" h1 { "Experiments over the memory model" }
                "\n" p {
                    "Version " (VERSION) ". " em { "Theirs" }
                    " is what the paper prints in text or tables, and nothing else; "
                    em { "ours" } " is computed by the model. ± is a 95\u{a0}% interval over seeds; a figure holds "
                    "when all of it is within 15\u{a0}% of the effect."
                }
                "\n" p { (all.len()) " experiments: " (totals.sentence()) "." }
                "\n" figure { (summary::summary(&all)) }
                "\n" h2 { "Contents" }
                "\n" ul {
                    @for (id, title) in contents {
                        "\n" li { a href={"#" (id)} { (id) } ": " (title) }
                    }
                    "\n"
                }
                @for section in &sections { (section) }
                @for other in others { (other_section(other)) }
                "\n"
            }
        }
        "\n"
    };
    Ok(page.into_string())
}

fn section(outcome: &ScenarioOutcome) -> Result<Markup, DrawError> {
    let about = &outcome.scenario.experiment;
    let runs = outcome.cases.first().map_or(0, |c| c.runs.len());
    let plot = outcome.scenario.plot.as_ref();
    let is_measured = |plot: &&Plot| {
        let mut cases = outcome.cases.iter();
        let spread = |case: &CaseResult| case.spread(&plot.task, &plot.metric);
        cases.any(|case| spread(case).is_some_and(|spread| spread.mean.is_finite()))
    };
    let drawn = plot.filter(is_measured);
    let drawn = drawn.map(|plot| svg(outcome, plot)).transpose()?;
    let answers = answers(&outcome.cases);
    Ok(html! {
        "\n" h2 id=(about.id) { (about.title) }
        "\n" p {
            @if !about.source.is_empty() { (about.source) "." }
            " Machine " code { (about.machine) } ", " (runs) " run" @if runs != 1 { "s" }
            " a case, seed " (outcome.seed)
            @if !["", VERSION].contains(&&*outcome.version) { ", version " (outcome.version) }
            ". " code { (outcome.command()) }
        }
        @match (drawn, plot) {
            (Some(drawn), _) => { "\n" figure { (PreEscaped(drawn)) } }
            (None, Some(plot)) => {
                "\n" p class="note" {
                    "No plot: no values of " code { (plot.metric) } " of task " code { (plot.task) } "."
                }
            }
            (None, None) => {}
        }
        @if !answers.is_empty() {
            (answer_table(&answers))
            "\n" figure { (matrix(&answers, |a| format!("{}, {}", a.task, a.case))) }
        }
        (claims(&outcome.verdicts))
        @if !about.note.is_empty() { "\n" p class="note" { (about.note) } }
    })
}

fn other_section(other: &Other) -> Markup {
    html! {
        "\n" h2 id=(other.judged.id) { (other.title) }
        "\n" p {
            (other.source) ". Machine " code { (other.machine) } ". " code { (other.command) }
        }
        @for table in &other.tables {
            "\n" table {
                @for (n, row) in table.iter().enumerate() {
                    "\n" tr {
                        @for text in row {
                            @if n == 0 { th { (text) } } @else { td { (text) } }
                        }
                    }
                }
            }
        }
        @for picture in &other.pictures { "\n" figure { (PreEscaped(picture)) } }
        (claims(other.judged.verdicts))
    }
}

fn claims(verdicts: &[Verdict]) -> Markup {
    let heads = [
        "Claim",
        "Theirs",
        "Ours",
        "Effect, ours / theirs",
        "Kind",
        "",
    ];
    html! {
        @if !verdicts.is_empty() {
            "\n" table {
                tr { @for head in heads { th { (head) } } }
                @for verdict in verdicts { "\n" (row(verdict)) }
            }
        }
    }
}

fn answer_table(answers: &[Answer]) -> Markup {
    let heads = ["Task", "Policy", "Slowdown", "p99", "Waits most for"];
    html! {
        "\n" table {
            tr { @for head in heads { th { (head) } } }
            @for a in answers {
                "\n" tr {
                    td { (a.task) }
                    td { (a.case) }
                    td { (estimate(Some(a.slowdown), "")) }
                    td { (figure(Some(a.p99_ns), "ns")) }
                    td { (first_culprit(a)) }
                }
            }
        }
    }
}

/// Whom a task waited for most, and why.
pub fn first_culprit(a: &Answer) -> String {
    a.culprit.as_ref().map_or_else(
        || "nobody".to_owned(),
        |(who, cause, ns)| format!("{who}: {} ({cause})", figure(Some(ns / 1000.0), "us")),
    )
}

fn row(v: &Verdict) -> Markup {
    let class = match v.holds {
        Some(true) => "holds",
        _ => "misses",
    };
    html! {
        tr {
            td { (v.what) }
            td { (figure(v.theirs, &v.unit)) }
            td { (estimate(v.ours, &v.unit)) }
            td { (figure(v.effect, "")) }
            td { (v.worth()) }
            td class=(class) { (word(v)) }
        }
    }
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
