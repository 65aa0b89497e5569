//! One self-contained HTML page of outcomes: a plot and a table of claims for
//! each experiment.
//!
//! A plot has the paper's axes. Theirs appears only where the scenario holds a
//! printed figure; the papers' own curves are lost and are not redrawn.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::outcome::{CaseResult, Outcome, Spread, Verdict};
use crate::scenario::Plot;

/// Size of a plot with its key, pixels.
const SIZE: (u32, u32) = (860, 360);
/// Width of the key.
const KEY: u32 = 180;

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("{id}: the plot could not be drawn: {what}")]
pub struct DrawError {
    /// Of the experiment.
    pub id: String,
    /// The reason.
    pub what: String,
}

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:56em;margin:2em auto;padding:0 1em;\
color:#222}table{border-collapse:collapse;margin:1em 0}th,td{padding:.25em .8em;text-align:right;\
border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}.misses{color:#b00020}\
.holds{color:#1b6e2c}code{background:#f3f3f3;padding:.1em .3em}svg{max-width:100%;height:auto}\
.note{color:#555}";

/// The page.
pub fn html(outcomes: &[Outcome]) -> Result<String, DrawError> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>Soloist: experiments</title><style>{STYLE}</style></head><body>\n\
         <h1>Experiments over the memory model</h1>\n\
         <p>Version {}. <em>Theirs</em> is what the paper prints in text or tables, and nothing \
         else; <em>ours</em> is computed by the model. A claim holds within 15&nbsp;% unless \
         it says otherwise.</p>\n",
        env!("CARGO_PKG_VERSION")
    );
    let judged = outcomes.iter().flat_map(|o| &o.verdicts);
    let (mut holds, mut misses, mut open) = (0, 0, 0);
    for verdict in judged {
        match verdict.holds {
            Some(true) => holds += 1,
            Some(false) => misses += 1,
            None => open += 1,
        }
    }
    let _ = writeln!(
        page,
        "<p>{} experiments, {} claims: {holds} hold, {misses} miss, {open} could not be judged.</p>",
        outcomes.len(),
        holds + misses + open
    );
    for outcome in outcomes {
        section(&mut page, outcome)?;
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn section(page: &mut String, outcome: &Outcome) -> Result<(), DrawError> {
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
        page.push_str(&svg(outcome, plot)?);
    }
    if !outcome.verdicts.is_empty() {
        page.push_str(
            "<table><tr><th>Claim</th><th>Theirs</th><th>Ours</th><th>Ratio</th><th></th></tr>\n",
        );
        for verdict in &outcome.verdicts {
            row(page, verdict);
        }
        page.push_str("</table>\n");
    }
    if !about.note.is_empty() {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(&about.note));
    }
    Ok(())
}

fn row(page: &mut String, v: &Verdict) {
    let (class, word) = match v.holds {
        Some(true) => ("holds", "holds"),
        Some(false) => ("misses", "misses"),
        None => ("misses", "not judged"),
    };
    let why = v.error.as_deref().unwrap_or_default();
    let _ = writeln!(
        page,
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{word} {}</td></tr>",
        escape(&v.what),
        figure(v.theirs, &v.unit),
        figure(v.ours, &v.unit),
        figure(v.ratio, ""),
        escape(why),
    );
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

// ---- plots ----

/// One line or bar group: its name, and values over the x axis, each with the
/// number of its label and what the paper prints.
struct Series {
    name: String,
    points: Vec<(usize, Spread, Option<f64>)>,
}

/// The plot as SVG.
pub fn svg(outcome: &Outcome, plot: &Plot) -> Result<String, DrawError> {
    let mut text = String::new();
    let fail = |what: String| DrawError {
        id: outcome.scenario.experiment.id.clone(),
        what,
    };
    let (labels, series) = gather(outcome, plot);
    if series.iter().all(|s| s.points.is_empty()) {
        return Err(fail(format!(
            "no values of `{}` of task `{}`",
            plot.metric, plot.task
        )));
    }
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&area, outcome, plot, &labels, &series).map_err(|e| fail(e.to_string()))?;
        area.present().map_err(|e| fail(e.to_string()))?;
    }
    Ok(text)
}

/// Labels of the x axis, and a series for each policy; with a regulator, one for
/// each mode over a sweep, and the modes on the axis without one.
fn gather(outcome: &Outcome, plot: &Plot) -> (Vec<String>, Vec<Series>) {
    let mut labels: Vec<String> = Vec::new();
    let mut series: Vec<Series> = Vec::new();
    for case in &outcome.cases {
        let (name, label) = place(outcome, case);
        let points: Vec<(String, Spread, Option<f64>)> = if plot.by_repeat {
            let runs = case.per_run(&plot.task, &plot.metric);
            let numbered = runs.iter().enumerate();
            numbered
                .map(|(i, run)| ((i + 1).to_string(), Spread::of(run), None))
                .collect()
        } else {
            let printed = plot.printed.get(&case.case).copied();
            let spread = case.spread(&plot.task, &plot.metric);
            spread.map(|s| (label, s, printed)).into_iter().collect()
        };
        for (label, spread, printed) in points {
            let at = position(&mut labels, |known| *known == label, || label.clone());
            let new = || Series {
                name: name.clone(),
                points: Vec::new(),
            };
            let which = position(&mut series, |known| known.name == name, new);
            series[which].points.push((at, spread, printed));
        }
    }
    (labels, series)
}

/// Where in `list` the item is; it is added if it is not there.
fn position<T>(list: &mut Vec<T>, is_it: impl FnMut(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    list.iter().position(is_it).unwrap_or_else(|| {
        list.push(new());
        list.len() - 1
    })
}

/// Names of a case's series and of its place on the x axis.
fn place(outcome: &Outcome, case: &CaseResult) -> (String, String) {
    let scenario = &outcome.scenario;
    let value = case.value.map_or(String::new(), short);
    if scenario.regulator.is_none() {
        return (case.policy.clone(), value);
    }
    // Named POLICY_MODE, or POLICY_MODE_VALUE.
    let mode = case.case.get(case.policy.len() + 1..).unwrap_or_default();
    let suffix = case.value.map_or(String::new(), |v| format!("_{v}"));
    let mode = mode.strip_suffix(&suffix).unwrap_or(mode).replace('_', "+");
    match (&scenario.sweep, scenario.policies.len()) {
        (None, _) => (case.policy.clone(), mode),
        (Some(_), 1) => (mode, value),
        (Some(_), _) => (format!("{} {mode}", case.policy), value),
    }
}

/// 4294967296 as 4G.
fn short(value: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M")];
    match units.into_iter().find(|(u, _)| value > 0 && value % u == 0) {
        Some((unit, name)) => format!("{}{name}", value / unit),
        None => value.to_string(),
    }
}

type Failure = Box<dyn std::error::Error>;

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    outcome: &Outcome,
    plot: &Plot,
    labels: &[String],
    series: &[Series],
) -> Result<(), Failure> {
    let broken = |e: DrawingAreaErrorKind<_>| -> Failure { format!("{e:?}").into() };
    area.fill(&WHITE).map_err(broken)?;
    let values = series.iter().flat_map(|s| &s.points);
    let top = values
        .flat_map(|(_, s, printed)| {
            [
                if plot.range { s.max } else { s.mean },
                printed.unwrap_or(0.0),
            ]
        })
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let groups = labels.len() as f64;
    let (bars, key) = area.split_horizontally(SIZE.0 - KEY);
    let mut chart = ChartBuilder::on(&bars)
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..groups, 0.0..top * 1.05)
        .map_err(broken)?;
    let x_name = match (&outcome.scenario.sweep, plot.by_repeat) {
        (_, true) => "run".to_owned(),
        (Some(sweep), _) if sweep.unit.is_empty() => sweep.name.clone(),
        (Some(sweep), _) => sweep.unit.clone(),
        (None, _) if outcome.scenario.regulator.is_some() => "mode".to_owned(),
        (None, _) => "policy".to_owned(),
    };
    let label = |x: &f64| {
        let inside = (x.fract() - 0.5).abs() < 1e-9;
        let at = x.floor() as usize;
        labels
            .get(at)
            .filter(|_| inside)
            .cloned()
            .unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_labels(labels.len() * 2 + 1)
        .x_label_formatter(&label)
        .x_desc(x_name)
        .y_desc(&plot.y)
        .label_style(("sans-serif", 14))
        .draw()
        .map_err(broken)?;
    let width = 0.8 / series.len() as f64;
    for (i, s) in series.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let left = |at: usize| at as f64 + 0.1 + i as f64 * width;
        let bars = s.points.iter().map(|(at, spread, _)| {
            let corners = [(left(*at), 0.0), (left(*at) + width * 0.92, spread.mean)];
            Rectangle::new(corners, color.filled())
        });
        chart.draw_series(bars).map_err(broken)?;
        if plot.range {
            let bars = s.points.iter().map(|(at, spread, _)| {
                let x = left(*at) + width * 0.46;
                ErrorBar::new_vertical(x, spread.min, spread.mean, spread.max, BLACK, 6)
            });
            chart.draw_series(bars).map_err(broken)?;
        }
    }
    let printed: Vec<(f64, f64)> = series
        .iter()
        .enumerate()
        .flat_map(|(i, s)| {
            let x = move |at: usize| at as f64 + 0.1 + (i as f64 + 0.46) * width;
            let points = s.points.iter();
            points.filter_map(move |(at, _, printed)| Some((x(*at), (*printed)?)))
        })
        .collect();
    if !printed.is_empty() {
        chart
            .draw_series(
                printed
                    .iter()
                    .map(|&at| Cross::new(at, 6, BLACK.stroke_width(2))),
            )
            .map_err(broken)?;
    }
    draw_key(&key, series, !printed.is_empty())
}

/// What the colours mean, beside the plot.
fn draw_key(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    series: &[Series],
    printed: bool,
) -> Result<(), Failure> {
    let broken = |e: DrawingAreaErrorKind<_>| -> Failure { format!("{e:?}").into() };
    let line = |i: usize| 24 + 20 * i as i32;
    let say = |text: &str, y: i32| {
        area.draw(&Text::new(text.to_owned(), (20, y - 7), ("sans-serif", 14)))
    };
    for (i, s) in series.iter().enumerate() {
        let (color, y) = (Palette99::pick(i).to_rgba(), line(i));
        let corners = [(0, y - 5), (12, y + 5)];
        area.draw(&Rectangle::new(corners, color.filled()))
            .map_err(broken)?;
        say(&s.name, y).map_err(broken)?;
    }
    if printed {
        let y = line(series.len());
        area.draw(&Cross::new((6, y), 5, BLACK.stroke_width(2)))
            .map_err(broken)?;
        say("printed in the paper", y).map_err(broken)?;
    }
    Ok(())
}
