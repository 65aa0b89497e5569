//! What slices say as a picture: banks for each busy core, what neighbours cost in shared
//! banks and in private ones, with the fit and this machine's point; below, each curve of
//! paced neighbours ([`paced`]).

mod paced;

use maud::{html, Markup};

use crate::cores::Attack;
use crate::in_slices::InSlices;

/// Told apart by the colour-blind, and in print.
const SHARED: &str = "#d55e00";
const PRIVATE: &str = "#1f5fa8";
const INK: &str = "#1b1f24";
const FAINT: &str = "#d0d7de";

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 56.0;
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 60.0;

/// Where values are drawn, both axes by logarithms.
struct Axes {
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    fn of(report: &InSlices) -> Self {
        let points = &report.density.points;
        let all_x = points.iter().map(|p| p.banks_per_core);
        let all_x = all_x.chain(report.density.here);
        let (low, high) = all_x.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
        let fit = report.density.fit(low).into_iter();
        let top = points
            .iter()
            .map(|p| p.shared.max(p.private))
            .chain(fit.map(|saved| 1.0 + saved))
            .fold(1.5, f64::max);
        Self {
            x: ((low / 1.4).log2(), (high * 1.4).log2()),
            y: (0.85f64.log2(), (top * 1.2).log2()),
        }
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value.log2() - self.x.0) / (self.x.1 - self.x.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let value = value.max(0.86).log2();
        let share = (value - self.y.0) / (self.y.1 - self.y.0);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// Powers of two on the x axis.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.x.0.ceil() as i32..=self.x.1.floor() as i32).map(|power| 2f64.powi(power))
    }
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> Markup {
    html! { "\n" text x=(number(x)) y=(number(y)) text-anchor=(anchor) { (words) } }
}

fn line(from: (f64, f64), to: (f64, f64), color: &str, dashes: &str) -> Markup {
    html! {
        "\n" line x1=(number(from.0)) y1=(number(from.1)) x2=(number(to.0)) y2=(number(to.1))
            stroke=(color) stroke-dasharray=(dashes) {}
    }
}

/// The picture as SVG; points say what they are when pointed at.
#[must_use]
pub fn svg(machine: &str, report: &InSlices) -> String {
    let axes = Axes::of(report);
    let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let here = report.density.here.map(|here| axes.x(here));
    let height = HEIGHT * (1 + report.paced.len()) as f64;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH:.0} {height:.0}"))
            font-family="sans-serif" font-size="12" fill=(INK) {
            "\n" rect width=(number(WIDTH)) height=(number(height)) fill="#ffffff" {}
            (text(12.0, 22.0, "start", &format!("{machine}: time of an access beside co-runners, over alone")))
            (legend())
            @for value in [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0] {
                @if axes.y(value) > TOP {
                    (line((LEFT, axes.y(value)), (right, axes.y(value)), FAINT, ""))
                    (text(LEFT - 6.0, axes.y(value) + 4.0, "end", &value.to_string()))
                }
            }
            @for value in axes.ticks() {
                (line((axes.x(value), floor), (axes.x(value), floor + 4.0), INK, ""))
                (text(axes.x(value), floor + 18.0, "middle", &value.to_string()))
            }
            (text((LEFT + right) / 2.0, HEIGHT - 18.0, "middle", "banks for each busy core"))
            @if let Some(here) = here {
                (line((here, TOP), (here, floor), INK, "4 3"))
                (text(here - 4.0, TOP + 12.0, "end", "this machine, all CPUs busy"))
            }
            (fit(&axes, report))
            @for point in &report.density.points {
                @let what = format!(
                    "{} banks a core, {}: {:.2} shared, {:.2} private",
                    point.banks_per_core, name(point.attack), point.shared, point.private
                );
                (mark(&axes, point.banks_per_core, point.shared, point.attack, SHARED, &what))
                (mark(&axes, point.banks_per_core, point.private, point.attack, PRIVATE, &what))
            }
            @for (i, curve) in report.paced.iter().enumerate() {
                (paced::panel(HEIGHT * (i + 1) as f64, curve))
            }
            "\n"
        }
        "\n"
    };
    picture.into_string()
}

/// The line through what private banks save beside most readers, over alone, and what it says
/// of this machine: a bar that holds 99 of 100 cases.
fn fit(axes: &Axes, report: &InSlices) -> Markup {
    let ends = [axes.x.0, axes.x.1].map(f64::exp2);
    if report.density.law.is_none() {
        return html! {};
    }
    let at = |banks: f64, saved: f64| (axes.x(banks), axes.y(1.0 + saved));
    // 1 + saved is no straight line by logarithms.
    let steps = (0..=32).map(|step| ends[0] * (ends[1] / ends[0]).powf(f64::from(step) / 32.0));
    let points = steps.filter_map(|banks| Some(at(banks, report.density.fit(banks)?)));
    let path = points.map(|(x, y)| format!("{x:.1},{y:.1}"));
    let here = report.density.here.zip(report.density.expected());
    html! {
        "\n" polyline points=(path.collect::<Vec<_>>().join(" ")) fill="none" stroke=(INK)
            stroke-dasharray="2 3" {}
        (text(LEFT + 505.0, 43.0, "start", "dotted: 1 + what is saved, by a fit"))
        @if let Some((banks, [low, middle, high])) = here {
            (line(at(banks, low), at(banks, high), INK, ""))
            "\n" path d=(diamond(at(banks, middle))) fill=(INK) {
                title { "by the fit, all CPUs busy: " (format!("{:.1} % saved", 100.0 * middle)) }
            }
        }
    }
}

fn diamond((x, y): (f64, f64)) -> String {
    format!(
        "M{:.1} {y:.1} L{x:.1} {:.1} L{:.1} {y:.1} L{x:.1} {:.1} Z",
        x - 6.0,
        y - 6.0,
        x + 6.0,
        y + 6.0
    )
}

fn name(attack: Attack) -> &'static str {
    match attack {
        Attack::Read => "readers",
        Attack::Write => "writers",
        Attack::Both => "readers that write",
    }
}

/// A filled circle for readers, an open one for writers, a square for both.
fn mark(axes: &Axes, x: f64, y: f64, attack: Attack, color: &str, what: &str) -> Markup {
    let (x, y) = (axes.x(x), axes.y(y));
    let fill = match attack {
        Attack::Read => color,
        _ => "#ffffff",
    };
    html! {
        @if attack == Attack::Both {
            "\n" rect x=(number(x - 4.0)) y=(number(y - 4.0)) width="8" height="8" fill=(fill)
                stroke=(color) { title { (what) } }
        } @else {
            "\n" circle cx=(number(x)) cy=(number(y)) r="4.5" fill=(fill) stroke=(color) { title { (what) } }
        }
    }
}

fn legend() -> Markup {
    html! {
        "\n" rect x=(number(LEFT)) y="34" width="10" height="10" fill=(SHARED) {}
        (text(LEFT + 16.0, 43.0, "start", "shared banks"))
        "\n" rect x=(number(LEFT + 110.0)) y="34" width="10" height="10" fill=(PRIVATE) {}
        (text(LEFT + 126.0, 43.0, "start", "private banks"))
        (text(LEFT + 230.0, 43.0, "start", "filled: readers; open: writers; square: both"))
    }
}
