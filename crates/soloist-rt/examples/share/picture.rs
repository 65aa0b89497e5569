//! Lines over utilisation, told apart by colour, dash and mark.

use maud::{html, Markup};

use crate::isolation::Isolation;

use super::Point;

/// Okabe and Ito (2008), a dash and a mark each.
const STYLES: [(&str, &str, &str); 6] = [
    ("#5a5a5a", "2 3", "M-4 -4L4 4M-4 4L4 -4"),
    ("#e69f00", "8 3", "M-4 4H4L0 -4Z"),
    ("#0072b2", "6 3 2 3", "M-4 -4H4V4H-4Z"),
    ("#009e73", "12 3", "M0 -5L5 0L0 5L-5 0Z"),
    ("#cc79a7", "1 2", "M-5 0H5M0 -5V5"),
    ("#d55e00", "none", "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0"),
];
const LEFT: f64 = 60.0;
const TOP: f64 = 36.0;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 240.0;

/// The picture.
pub fn svg(points: &[Point], title: &str) -> String {
    let picture = Picture {
        points,
        last: points.last().map_or(1.0, |p| p.utilisation),
    };
    let below = format!("{:.0}", TOP + HEIGHT + 40.0);
    let made = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 340" width="780" height="340"
            font-family="sans-serif" font-size="12" {
            title { (title) }
            rect width="100%" height="100%" fill="#fff" {}
            text x=(LEFT) y="20" font-size="14" { (title) }
            text x=(format!("{:.0}", LEFT + WIDTH / 2.0)) y=(below) text-anchor="middle" {
                "processor time of tasks with deadlines, cores"
            }
            @for quarter in 0..=4 {
                (picture.grid(f64::from(quarter) / 4.0))
            }
            @for (i, isolation) in Isolation::ALL.into_iter().enumerate() {
                (picture.line(i, isolation.name()))
            }
        }
    };
    made.into_string() + "\n"
}

struct Picture<'a> {
    points: &'a [Point],
    /// The highest utilisation.
    last: f64,
}

impl Picture<'_> {
    fn x(&self, utilisation: f64) -> f64 {
        LEFT + WIDTH * utilisation / self.last
    }

    fn y(share: f64) -> f64 {
        TOP + HEIGHT * (1.0 - share)
    }

    /// A line of the grid, and labels of both axes.
    fn grid(&self, share: f64) -> Markup {
        let (y, at) = (Self::y(share), self.last * share);
        html! {
            path d=(format!("M{LEFT} {y:.1}h{WIDTH}")) stroke="#ddd" {}
            text x=(format!("{:.0}", LEFT - 6.0)) y=(format!("{:.1}", y + 4.0)) text-anchor="end" {
                (format!("{:.0} %", share * 100.0))
            }
            text x=(format!("{:.1}", self.x(at))) y=(format!("{:.0}", TOP + HEIGHT + 18.0))
                text-anchor="middle" { (at) }
        }
    }

    /// What an isolation proves, and its key.
    fn line(&self, i: usize, name: &str) -> Markup {
        let (color, dash, mark) = STYLES[i];
        let at = |p: &Point| (self.x(p.utilisation), Self::y(p.proved[i]));
        let places = self.points.iter().map(at);
        let path: Vec<String> = places.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let key = TOP + 20.0 + 22.0 * i as f64;
        // Where lines lie on each other, each has its marks at other places.
        let marks = self.points.iter().skip(i).step_by(6).map(at);
        let marks = marks.chain([(LEFT + WIDTH + 30.0, key)]);
        html! {
            path d=(format!("M{}", path.join("L"))) fill="none" stroke=(color) stroke-width="2"
                stroke-dasharray=(dash) {}
            @for (x, y) in marks {
                path d=(mark) transform=(format!("translate({x:.1} {y:.1})")) fill="#fff"
                    stroke=(color) stroke-width="2" {}
            }
            path d=(format!("M{:.0} {key}h36", LEFT + WIDTH + 12.0)) stroke=(color)
                stroke-width="2" stroke-dasharray=(dash) {}
            text x=(format!("{:.0}", LEFT + WIDTH + 54.0)) y=(format!("{:.0}", key + 4.0)) {
                (name)
            }
        }
    }
}
