//! Paced neighbours as a picture: what they cost against what they get, in shared banks and
//! in private ones. That is how colours and reservations combine.

use maud::{html, Markup};

use super::{
    line, number, text, BOTTOM, FAINT, HEIGHT, INK, LEFT, PRIVATE, RIGHT, SHARED, TOP, WIDTH,
};
use crate::paced::{Paced, Point};
use crate::statistics::Interval;

/// Where values are drawn, both axes straight.
struct Axes {
    top: f64,
    megabytes: f64,
    slowdown: f64,
}

impl Axes {
    fn of(top: f64, paced: &Paced) -> Self {
        let points = &paced.points;
        let rates = points
            .iter()
            .flat_map(|p| [p.shared_bytes_per_second, p.private_bytes_per_second]);
        let slowdowns = points.iter().flat_map(|p| [p.shared.high, p.private.high]);
        Self {
            top,
            megabytes: (rates.fold(0.0, f64::max) / 1e6).max(1.0) * 1.05,
            slowdown: slowdowns
                .filter(|high| high.is_finite())
                .fold(1.2, f64::max)
                * 1.05,
        }
    }

    fn x(&self, megabytes: f64) -> f64 {
        LEFT + megabytes / self.megabytes * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, slowdown: f64) -> f64 {
        let share = (slowdown.clamp(0.9, self.slowdown) - 0.9) / (self.slowdown - 0.9);
        self.top + HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }
}

/// Some five values up to `most`: 1, 2 or 5 times a power of ten apart.
fn ticks(most: f64) -> impl Iterator<Item = f64> {
    let rough = most / 5.0;
    let ten = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * ten);
    let step = step.into_iter().find(|&step| step >= rough).unwrap_or(ten);
    (0..)
        .map(move |n| f64::from(n) * step)
        .take_while(move |&value| value <= most)
}

/// The panel whose upper edge is at `top`.
pub(super) fn panel(top: f64, paced: &Paced) -> Markup {
    let axes = Axes::of(top, paced);
    let (floor, right) = (top + HEIGHT - BOTTOM, WIDTH - RIGHT);
    let who = paced.attack.neighbours(paced.neighbours);
    let title = format!(
        "{} banks, {who}, paced: time of an access over alone (99 %)",
        paced.banks
    );
    html! {
        (text(12.0, top + 22.0, "start", &title))
        @for over in ticks(axes.slowdown - 1.0) {
            (line((LEFT, axes.y(1.0 + over)), (right, axes.y(1.0 + over)), FAINT, ""))
            (text(LEFT - 6.0, axes.y(1.0 + over) + 4.0, "end", &shortest(1.0 + over)))
        }
        @for rate in ticks(axes.megabytes) {
            (line((axes.x(rate), floor), (axes.x(rate), floor + 4.0), INK, ""))
            (text(axes.x(rate), floor + 18.0, "middle", &shortest(rate)))
        }
        (text((LEFT + right) / 2.0, top + HEIGHT - 18.0, "middle", "MB/s of all co-runners"))
        (curve(&axes, paced, SHARED, "shared", |p| (p.shared_bytes_per_second, p.shared)))
        (curve(&axes, paced, PRIVATE, "private", |p| (p.private_bytes_per_second, p.private)))
    }
}

/// Without the digits that floating point adds.
fn shortest(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Each pace's interval, joined by a line in the order of the paces.
fn curve(
    axes: &Axes,
    paced: &Paced,
    color: &str,
    banks: &str,
    figures: impl Fn(&Point) -> (f64, Interval),
) -> Markup {
    let points: Vec<(f64, Interval)> = paced.points.iter().map(&figures).collect();
    let at = |rate: f64, slowdown: f64| (axes.x(rate / 1e6), axes.y(slowdown));
    let path = points.iter().map(|(rate, over)| at(*rate, over.median));
    let path: Vec<String> = path.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    html! {
        "\n" polyline points=(path.join(" ")) fill="none" stroke=(color) {}
        @for ((rate, over), point) in points.iter().zip(&paced.points) {
            @let (x, y) = at(*rate, over.median);
            (line(at(*rate, over.low), at(*rate, over.high), color, ""))
            "\n" circle cx=(number(x)) cy=(number(y)) r="4" fill=(color) {
                title {
                    (format!("{banks} banks, {} ns between 16 accesses: {:.2} at {:.0} MB/s",
                        point.pause_ns, over.median, rate / 1e6))
                }
            }
        }
    }
}
