//! A timeline as an extended Gantt chart, SVG.
//!
//! One row a task, as in CAMC's figures 15 and 16: an arrow up is a release, an
//! arrow down a deadline, a box an execution. A job that missed has its box
//! crossed and a cross at its deadline; throttled time is hatched. Shape and
//! texture say everything, so that it can be read in grey and by the
//! colour-blind; colours are those of Okabe and Ito (2008).

use maud::{html, Markup};
use soloist_core::time::{Time, MS};

use crate::timeline::{Job, Row, Timeline};

/// Colours of executions, by task.
const FILLS: [&str; 6] = [
    "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2",
];
const MISS: &str = "#d55e00";
const LEFT: f64 = 120.0;
const WIDTH: f64 = 960.0;
const ROW: f64 = 64.0;
const BOX: f64 = 26.0;
const TOP: f64 = 44.0;

/// Draws it; `scale` multiplies the times of the axis (of a timeline whose times
/// were divided by it).
#[must_use]
pub fn svg(timeline: &Timeline, title: &str, scale: u64) -> String {
    let chart = Chart {
        timeline,
        scale: scale.max(1),
        width: WIDTH - LEFT - 36.0,
    };
    chart.draw(title).into_string() + "\n"
}

struct Chart<'a> {
    timeline: &'a Timeline,
    scale: u64,
    width: f64,
}

impl Chart<'_> {
    fn draw(&self, title: &str) -> Markup {
        let rows = self.timeline.rows.len() as f64;
        let height = TOP + rows * ROW + 76.0;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height)
                viewBox=(format!("0 0 {WIDTH} {height}")) font-family="sans-serif" font-size="12" {
                title { (title) }
                defs {
                    pattern id="throttled" width="5" height="5" patternUnits="userSpaceOnUse"
                        patternTransform="rotate(45)" {
                        rect width="5" height="5" fill="#fff" {}
                        line x1="0" y1="0" x2="0" y2="5" stroke="#000" stroke-width="2.6" {}
                    }
                }
                rect width="100%" height="100%" fill="#fff" {}
                text x=(LEFT) y="20" font-size="14" { (title) }
                (self.axis(rows))
                @for (task, row) in self.timeline.rows.iter().enumerate() {
                    (self.row(task, row))
                }
                (self.key(TOP + rows * ROW + 52.0))
            }
        }
    }

    fn x(&self, at_ps: u64) -> f64 {
        let end = self.timeline.end_ps.max(1) as f64;
        LEFT + self.width * (at_ps as f64 / end).min(1.0)
    }

    fn axis(&self, rows: f64) -> Markup {
        let bottom = TOP + rows * ROW;
        let end = self.timeline.end_ps * self.scale;
        let step = tick(end);
        html! {
            @for n in 0..=end / step {
                @let x = tenth(self.x(n * step / self.scale));
                line x1=(x) y1=(TOP) x2=(x) y2=(bottom) stroke="#ddd" {}
                text x=(x) y=(tenth(bottom + 16.0)) text-anchor="middle" fill="#333" {
                    (Time(n * step).to_string())
                }
            }
        }
    }

    fn row(&self, task: usize, row: &Row) -> Markup {
        let base = TOP + task as f64 * ROW + ROW - 8.0;
        let beside = tenth(LEFT - 8.0);
        let jobs = self.timeline.jobs.iter().filter(|j| j.task == task);
        html! {
            line x1=(LEFT) y1=(base) x2=(tenth(LEFT + self.width)) y2=(base) stroke="#000" {}
            text x=(beside) y=(tenth(base - 12.0)) text-anchor="end" { (row.name) }
            text x=(beside) y=(tenth(base + 1.0)) text-anchor="end" font-size="10" fill="#555" {
                (cores(&row.cores))
            }
            @for job in jobs {
                (self.job(job, base, FILLS[task % FILLS.len()]))
            }
            @for &(from, to) in &row.throttled {
                @let width = (self.x(to) - self.x(from)).max(0.4);
                rect x=(hundredth(self.x(from))) y=(tenth(base - BOX)) width=(hundredth(width))
                    height=(BOX) fill="url(#throttled)" {}
            }
        }
    }

    fn job(&self, job: &Job, base: f64, fill: &str) -> Markup {
        html! {
            @for &(from, to) in &job.runs {
                (self.execution(job.missed(), from, to, base, fill))
            }
            @if let Some(deadline) = job.deadline_ps {
                (release(self.x(job.release_ps), base))
                @if deadline <= self.timeline.end_ps {
                    // A deadline that is the next release too stands a little before it.
                    (arrow_down(self.x(deadline) - 2.0, base))
                    @if job.missed() {
                        (cross(self.x(deadline) - 2.0, base))
                    }
                }
            }
        }
    }

    /// A box, crossed if its job missed.
    fn execution(&self, missed: bool, from_ps: u64, to_ps: u64, base: f64, fill: &str) -> Markup {
        let x = self.x(from_ps);
        let width = (self.x(to_ps) - x).max(0.3);
        // An outline would hide what is thinner than itself.
        let (stroke, line) = match (missed, width < 1.5) {
            (true, _) => (MISS, Some("2")),
            (false, true) => ("none", None),
            (false, false) => ("#000", Some("0.8")),
        };
        let (left, right) = (hundredth(x), hundredth(x + width));
        let (top, bottom) = (tenth(base - BOX), tenth(base));
        html! {
            rect x=(left) y=(top) width=(hundredth(width)) height=(BOX) fill=(fill)
                stroke=(stroke) stroke-width=[line] {}
            @if missed {
                path d=(format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"))
                    stroke=(MISS) stroke-width="1.2" {}
            }
        }
    }

    fn key(&self, y: f64) -> Markup {
        let throttled = self.timeline.rows.iter().any(|r| !r.throttled.is_empty());
        let arrow_up = html! {
            path d="M6 9V-8M2.5 -2L6 -8L9.5 -2" fill="none" stroke="#000" stroke-width="1.3" {}
        };
        let arrow_down = html! {
            path d="M6 -8V9M2.5 3L6 9L9.5 3" fill="none" stroke="#555" stroke-width="1.3"
                stroke-dasharray="4 2" {}
        };
        let executes = html! {
            rect x="0" y="-6" width="13" height="12" fill="#56b4e9" stroke="#000"
                stroke-width="0.8" {}
        };
        let in_vain = html! {
            rect x="0" y="-6" width="13" height="12" fill="#fff" stroke=(MISS) stroke-width="2" {}
            path d="M0 -6l13 12m0 -12l-13 12" stroke=(MISS) stroke-width="1.2" {}
        };
        let missed = html! {
            path d="M2 -5l9 9m0 -9l-9 9" stroke=(MISS) stroke-width="2.6" {}
        };
        let hatched = html! {
            rect x="0" y="-6" width="13" height="12" fill="url(#throttled)" stroke="#000"
                stroke-width="0.5" {}
        };
        let marks = [
            (arrow_up, "release", 80.0),
            (arrow_down, "deadline", 84.0),
            (executes, "executes", 88.0),
            (in_vain, "in vain: the job misses", 170.0),
            (missed, "missed deadline", 132.0),
            (hatched, "throttled", 90.0),
        ];
        let shown = if throttled { 6 } else { 5 };
        let mut next = LEFT;
        let marks = marks.into_iter().take(shown).map(|(mark, text, width)| {
            let x = next;
            next += width;
            (x, mark, text)
        });
        html! {
            @for (x, mark, text) in marks {
                g transform=(format!("translate({x:.0} {y:.0})")) {
                    (mark)
                    text x="18" y="4" fill="#333" { (text) }
                }
            }
        }
    }
}

/// Coordinates to a tenth of a pixel.
fn tenth(at: f64) -> String {
    format!("{at:.1}")
}

/// Coordinates to a hundredth of a pixel.
fn hundredth(at: f64) -> String {
    format!("{at:.2}")
}

/// Where arrows of a row begin or end.
fn tip(base: f64) -> f64 {
    base - BOX - 18.0
}

/// The arrow of a release.
fn release(x: f64, base: f64) -> Markup {
    let (tip, barb) = (tip(base), tip(base) + 6.0);
    let (left, right) = (x - 3.5, x + 3.5);
    html! {
        path d=(format!("M{x:.2} {base:.1}V{tip:.1}M{left:.2} {barb:.1}L{x:.2} {tip:.1}L{right:.2} {barb:.1}"))
            fill="none" stroke="#000" stroke-width="1.3" {}
    }
}

/// The arrow of a deadline.
fn arrow_down(x: f64, base: f64) -> Markup {
    let (from, tip) = (tip(base), base - 1.0);
    let (left, right, barb) = (x - 3.5, x + 3.5, tip - 6.0);
    html! {
        path d=(format!("M{x:.2} {from:.1}V{tip:.1}M{left:.2} {barb:.1}L{x:.2} {tip:.1}L{right:.2} {barb:.1}"))
            fill="none" stroke="#555" stroke-width="1.3" stroke-dasharray="4 2" {}
    }
}

/// The cross of a missed deadline.
fn cross(x: f64, base: f64) -> Markup {
    let (left, top) = (x - 4.5, tip(base) - 7.5);
    html! {
        path d=(format!("M{left:.2} {top:.1}l9 9m0 -9l-9 9")) stroke=(MISS) stroke-width="2.6" {}
    }
}

/// Distance of the axis' labels: 1, 2 or 5 times a power of ten, at most 13.
fn tick(end_ps: u64) -> u64 {
    let mut step = 1_000;
    loop {
        for factor in [1, 2, 5] {
            if end_ps / (step * factor) <= 13 {
                return step * factor;
            }
        }
        step *= 10;
        if step > 1_000_000 * MS {
            return step;
        }
    }
}

fn cores(cores: &[u32]) -> String {
    let list: Vec<String> = cores.iter().map(u32::to_string).collect();
    match list.len() {
        0 => "no core".to_owned(),
        1 => format!("core {}", list[0]),
        _ => format!("cores {}", list.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::End;

    #[test]
    fn a_late_job_is_crossed_out() {
        let drawn = |at| {
            let job = Job {
                task: 0,
                number: 0,
                release_ps: 0,
                deadline_ps: Some(10),
                runs: vec![(0, 12)],
                end: End::Completed(at),
            };
            let timeline = Timeline {
                rows: vec![Row::default()],
                jobs: vec![job],
                end_ps: 20,
            };
            svg(&timeline, "t", 1).matches(MISS).count()
        };
        // Three are the key's; its box, the box's cross and the deadline's.
        assert_eq!((drawn(10), drawn(12)), (3, 6));
    }
}
