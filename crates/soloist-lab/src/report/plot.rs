//! An experiment as a picture.

use plotters::coord::types::RangedCoordf64;
use plotters::coord::Shift;
use plotters::prelude::*;
use soloist_core::statistics::Spread;
use soloist_play::policy::Policy;

use crate::judgement::ScenarioOutcome;
use crate::measurements::CaseResult;
use crate::spec::Plot;

/// Size of a plot with its key, pixels.
const SIZE: (u32, u32) = (860, 360);
/// Width of the key.
const KEY: u32 = 190;
/// Least width of a bar; a plot of many is wider.
const BAR: u32 = 7;

/// Colours that the colour-blind tell apart (Okabe and Ito, 2008).
const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(240, 228, 66),
    RGBColor(90, 90, 90),
];

fn color(i: usize) -> RGBColor {
    PALETTE[i % PALETTE.len()]
}

/// A policy's name for people; as it is where there is none.
fn plain(name: &str) -> String {
    let policy: Result<&'static dyn Policy, _> = name.parse();
    policy.map_or_else(|_| name.to_owned(), |p| p.title().to_owned())
}

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("{id}: the plot could not be drawn: {what}")]
pub struct DrawError {
    /// Of the experiment.
    pub id: String,
    /// The reason.
    pub what: String,
}

/// One line or bar group: its name, and values over the x axis, each with the
/// number of its label and what the paper prints.
struct Series {
    name: String,
    points: Vec<(usize, Spread, Option<f64>)>,
}

/// The plot as SVG.
pub fn svg(outcome: &ScenarioOutcome, plot: &Plot) -> Result<String, DrawError> {
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
        let bars = (labels.len() * (series.len() + 1)) as u32;
        let size = (SIZE.0.max(100 + KEY + BAR * bars), SIZE.1);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area, outcome, plot, &labels, &series).map_err(|e| fail(e.to_string()))?;
        area.present().map_err(|e| fail(e.to_string()))?;
    }
    Ok(text)
}

/// Labels of the x axis, and a series for each policy; with a regulator, one for
/// each mode over a sweep, and the modes on the axis without one.
fn gather(outcome: &ScenarioOutcome, plot: &Plot) -> (Vec<String>, Vec<Series>) {
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
        let is_figure = |(_, spread, _): &(String, Spread, Option<f64>)| spread.mean.is_finite();
        for (label, spread, printed) in points.into_iter().filter(is_figure) {
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
fn place(outcome: &ScenarioOutcome, case: &CaseResult) -> (String, String) {
    let scenario = &outcome.scenario;
    let value = case.value.map_or(String::new(), short);
    // The first sweep is the x axis, the others make series of their own.
    let others = case.others.iter().zip(scenario.sweep.0.iter().skip(1));
    let others: Vec<String> = others
        .map(|(&value, sweep)| format!(", {} {}", sweep.name, short(value)))
        .collect();
    let others = others.concat();
    if scenario.regulator.is_none() {
        return (plain(&case.policy) + &others, value);
    }
    // Named POLICY_MODE, or POLICY_MODE_VALUE.
    let mode = case.case.get(case.policy.len() + 1..).unwrap_or_default();
    let suffix = format!("_{}", case.point());
    let mode = mode.strip_suffix(&suffix).unwrap_or(mode).replace('_', "+");
    match (scenario.sweep.is_empty(), scenario.policies.len()) {
        (true, _) => (plain(&case.policy), mode),
        (false, 1) => (mode + &others, value),
        (false, _) => (format!("{} {mode}{others}", plain(&case.policy)), value),
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
    outcome: &ScenarioOutcome,
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
    let (bars, key) = area.split_horizontally(area.dim_in_pixel().0 - KEY);
    let mut chart = ChartBuilder::on(&bars)
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..groups, 0.0..top * 1.05)
        .map_err(broken)?;
    let x_name = match (outcome.scenario.sweep.0.first(), plot.by_repeat) {
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
    draw_bars(&mut chart, series, plot.range).map_err(broken)?;
    let printed = draw_printed(&mut chart, series).map_err(broken)?;
    draw_key(&key, series, printed)
}

type Bars<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<'b, T> = Result<T, DrawingAreaErrorKind<<SVGBackend<'b> as DrawingBackend>::ErrorType>>;

/// The width of a series' bar; a group of bars is 1 wide.
fn bar_width(series: &[Series]) -> f64 {
    0.8 / series.len() as f64
}

/// A bar of each mean; with `range` the least and the greatest at it.
fn draw_bars<'b>(chart: &mut Bars<'_, 'b>, series: &[Series], range: bool) -> Drawn<'b, ()> {
    let width = bar_width(series);
    for (i, s) in series.iter().enumerate() {
        let color = color(i);
        let left = |at: usize| at as f64 + 0.1 + i as f64 * width;
        let bars = s.points.iter().map(|(at, spread, _)| {
            let corners = [(left(*at), 0.0), (left(*at) + width * 0.92, spread.mean)];
            Rectangle::new(corners, color.filled())
        });
        chart.draw_series(bars)?;
        if range {
            let bars = s.points.iter().map(|(at, spread, _)| {
                let x = left(*at) + width * 0.46;
                ErrorBar::new_vertical(x, spread.min, spread.mean, spread.max, BLACK, 6)
            });
            chart.draw_series(bars)?;
        }
    }
    Ok(())
}

/// A cross at each printed figure. Returns whether there is one.
fn draw_printed<'b>(chart: &mut Bars<'_, 'b>, series: &[Series]) -> Drawn<'b, bool> {
    let width = bar_width(series);
    let mut any = false;
    for (i, s) in series.iter().enumerate() {
        for (at, _, printed) in &s.points {
            let Some(printed) = printed else { continue };
            let x = *at as f64 + 0.1 + (i as f64 + 0.46) * width;
            let cross = Cross::new((x, *printed), 6, BLACK.stroke_width(2));
            chart.draw_series([cross])?;
            any = true;
        }
    }
    Ok(any)
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
        let (color, y) = (color(i), line(i));
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
