//! What isolation buys a program, as a picture and a page.

use maud::{html, Markup, PreEscaped, DOCTYPE};
use plotters::prelude::*;
use serde::Serialize;
use soloist_core::statistics::mean;
use soloist_play::replay::{PartResult, Replayed};

use super::plot::DrawError;

const WIDTH: u32 = 900;
/// Height of a program's bars, pixels.
const BAR: u32 = 26;
const HEAD: u32 = 60;
const FOOT: u32 = 40;
/// Width of the names before the bars.
const NAMES: i32 = 330;

/// A program under several conditions; the first is what the others are compared
/// with.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The program.
    pub program: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// One condition and its runs.
#[derive(Debug, Clone, Serialize)]
pub struct Condition {
    /// Such as `alone` or `beside 3 writers, Linux`.
    pub name: String,
    /// Seconds of each run.
    pub seconds: Vec<f64>,
}

impl Condition {
    fn mean(&self) -> f64 {
        mean(&self.seconds)
    }
}

impl Comparison {
    /// Mean of a condition over the mean of the first.
    pub fn slowdown(&self, condition: &Condition) -> f64 {
        condition.mean() / self.conditions.first().map_or(f64::NAN, Condition::mean)
    }
}

/// All comparisons as one picture: slowdowns as bars. `title` must say whether they
/// were measured or modelled.
pub fn svg(title: &str, comparisons: &[Comparison]) -> Result<String, DrawError> {
    let bars: usize = comparisons.iter().map(|c| c.conditions.len() + 1).sum();
    let height = HEAD + FOOT + BAR * bars as u32;
    let mut text = String::new();
    let fail = |e: &dyn std::fmt::Display| DrawError {
        id: title.to_owned(),
        what: e.to_string(),
    };
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        draw(&area, title, comparisons).map_err(|e| fail(&e))?;
        area.present().map_err(|e| fail(&e))?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(
    area: &Area<'_>,
    title: &str,
    comparisons: &[Comparison],
) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let font = |size: i32| ("sans-serif", size).into_font();
    area.draw(&Text::new(title, (16, 14), font(20)))?;
    let worst = comparisons
        .iter()
        .flat_map(|c| c.conditions.iter().map(|condition| c.slowdown(condition)))
        .filter(|s| s.is_finite())
        .fold(1.0, f64::max);
    let room = f64::from(WIDTH as i32 - NAMES - 90);
    let x = |slowdown: f64| NAMES + (room * slowdown / worst) as i32;
    let mut y = HEAD as i32;
    for comparison in comparisons {
        area.draw(&Text::new(
            comparison.program.clone(),
            (16, y + 4),
            font(17),
        ))?;
        y += BAR as i32;
        for (i, condition) in comparison.conditions.iter().enumerate() {
            let slowdown = comparison.slowdown(condition);
            let color = match i {
                0 => RGBColor(150, 150, 150),
                1 => RGBColor(202, 72, 54),
                _ => RGBColor(52, 128, 92),
            };
            area.draw(&Text::new(condition.name.clone(), (32, y + 5), font(14)))?;
            let bar = [(NAMES, y + 3), (x(slowdown), y + BAR as i32 - 4)];
            area.draw(&Rectangle::new(bar, color.filled()))?;
            let label = format!("{slowdown:.2}");
            area.draw(&Text::new(label, (x(slowdown) + 6, y + 5), font(14)))?;
            y += BAR as i32;
        }
    }
    let one = [(x(1.0), HEAD as i32), (x(1.0), y)];
    area.draw(&PathElement::new(one, BLACK.mix(0.5)))?;
    let text = "time over time alone; 1.00 is as though it ran alone";
    area.draw(&Text::new(text, (NAMES, y + 10), font(14)))?;
    Ok(())
}

/// Who waited for whom: `rows[i][j]` of `names[i]`'s waiting is `names[j]`'s doing.
#[derive(Debug, Clone, Serialize)]
pub struct Blame {
    /// Of which condition.
    pub condition: String,
    /// Programs.
    pub names: Vec<String>,
    /// Seconds.
    pub rows: Vec<Vec<f64>>,
}

impl Blame {
    /// Of one run.
    pub fn of(run: &Replayed, condition: String) -> Self {
        let names: Vec<String> = run.played.iter().map(|p| p.name.clone()).collect();
        let waited = |played: &PartResult, for_whom: &String| {
            let shares = played.blame.iter();
            let shares = shares.filter(|s| s.culprit.as_ref() == Some(for_whom));
            shares.map(|s| s.ns / 1e9).sum()
        };
        let row = |played| names.iter().map(|name| waited(played, name)).collect();
        Self {
            condition,
            rows: run.played.iter().map(row).collect(),
            names,
        }
    }
}

/// A page with the picture, histograms of the runs and the blame matrices.
pub fn html(
    title: &str,
    comparisons: &[Comparison],
    blames: &[Blame],
    notes: &[String],
) -> Result<String, DrawError> {
    let page = html! {
        (DOCTYPE)
        meta charset="utf-8";
        title { (title) }
        "\n" style { (PreEscaped(STYLE)) }
        "\n" h1 { (title) }
        "\n" (PreEscaped(svg(title, comparisons)?))
        @for comparison in comparisons { (table(comparison)) }
        @for blame in blames { (blame_table(blame)) }
        @for note in notes { "\n" p { (note) } }
        "\n"
    };
    Ok(page.into_string())
}

const STYLE: &str = "body{font-family:sans-serif;max-width:60rem;margin:2rem auto}\
    td,th{padding:.2rem .8rem;text-align:right}td:first-child,th:first-child{text-align:left}";

fn table(comparison: &Comparison) -> Markup {
    let least = |seconds: &[f64]| seconds.iter().copied().fold(f64::MAX, f64::min);
    let most = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    let all: Vec<f64> = comparison
        .conditions
        .iter()
        .flat_map(|c| c.seconds.iter().copied())
        .collect();
    let heads = [
        "condition",
        "runs",
        "mean s",
        "min",
        "max",
        "slowdown",
        "runs by time",
    ];
    html! {
        "\n" h2 { (comparison.program) }
        "\n" table {
            "\n" tr { @for head in heads { th { (head) } } }
            @for c in &comparison.conditions {
                "\n" tr {
                    td { (c.name) }
                    td { (c.seconds.len()) }
                    td { (format!("{:.6}", c.mean())) }
                    td { (format!("{:.6}", least(&c.seconds))) }
                    td { (format!("{:.6}", most(&c.seconds))) }
                    td { (format!("{:.3}", comparison.slowdown(c))) }
                    td { (histogram(&c.seconds, least(&all), most(&all))) }
                }
            }
        }
    }
}

fn blame_table(blame: &Blame) -> Markup {
    html! {
        "\n" h2 { "Who waited for whom, " (blame.condition) " (ms)" }
        "\n" table {
            "\n" tr { th {} @for name in &blame.names { th { (name) } } }
            @for (name, row) in blame.names.iter().zip(&blame.rows) {
                "\n" tr {
                    td { (name) }
                    @for seconds in row { td { (format!("{:.3}", 1e3 * seconds)) } }
                }
            }
        }
    }
}

/// A histogram of 30 bins as a small picture.
fn histogram(values: &[f64], low: f64, high: f64) -> Markup {
    const BINS: usize = 30;
    let mut bins = [0u32; BINS];
    for value in values {
        let share = (value - low) / (high - low).max(f64::MIN_POSITIVE);
        bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    html! {
        svg width="240" height="24" fill="#346" {
            @for (i, &n) in bins.iter().enumerate().filter(|(_, &n)| n > 0) {
                @let height = 24 * n / most;
                rect x=(8 * i) y=(24 - height) width="7" height=(height) {}
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        let condition = |name: &str, seconds: &[f64]| Condition {
            name: name.into(),
            seconds: seconds.to_vec(),
        };
        Comparison {
            program: "a<b".into(),
            conditions: vec![
                condition("alone", &[1.0, 1.0]),
                condition("beside", &[1.5, 2.5]),
            ],
        }
    }

    #[test]
    fn slowdown_is_to_the_first_condition() {
        let c = comparison();
        assert_eq!(c.slowdown(&c.conditions[1]), 2.0);
    }

    #[test]
    fn the_page_shows_all_and_escapes_names() {
        let blame = Blame {
            condition: "beside".into(),
            names: vec!["a<b".into(), "writer".into()],
            rows: vec![vec![0.0, 0.25], vec![0.0, 0.0]],
        };
        let page = html("modelled", &[comparison()], &[blame], &["a note".into()]).unwrap();
        for part in ["2.000", "250.000", "a note", "modelled", "<rect"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("a<b"));
    }
}
