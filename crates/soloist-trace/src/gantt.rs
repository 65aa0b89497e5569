//! A timeline as an extended Gantt chart, SVG.
//!
//! One row a task, as in CAMC's figures 15 and 16: an arrow up is a release, an
//! arrow down a deadline, a box an execution. A job that missed has its box
//! crossed and a cross at its deadline; throttled time is hatched. Shape and
//! texture say everything, so that it can be read in grey and by the
//! colour-blind; colours are those of Okabe and Ito (2008).

use std::fmt::Write;

use crate::timeline::{Job, Timeline};
use soloist_core::time::{Time, MS};

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
    chart.draw(title)
}

struct Chart<'a> {
    timeline: &'a Timeline,
    scale: u64,
    width: f64,
}

impl Chart<'_> {
    fn draw(&self, title: &str) -> String {
        let rows = self.timeline.rows.len() as f64;
        let height = TOP + rows * ROW + 76.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{0}</title>\n\
             <defs>\n\
             <pattern id=\"throttled\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"#fff\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\" stroke=\"#000\" stroke-width=\"2.6\"/></pattern>\n\
             </defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{0}</text>\n",
            escape(title)
        );
        self.axis(&mut out, rows);
        for task in 0..self.timeline.rows.len() {
            self.row(&mut out, task);
        }
        self.key(&mut out, TOP + rows * ROW + 52.0);
        out.push_str("</svg>\n");
        out
    }

    fn x(&self, at_ps: u64) -> f64 {
        let end = self.timeline.end_ps.max(1) as f64;
        LEFT + self.width * (at_ps as f64 / end).min(1.0)
    }

    fn axis(&self, out: &mut String, rows: f64) {
        let (top, bottom) = (TOP, TOP + rows * ROW);
        let end = self.timeline.end_ps * self.scale;
        let step = tick(end);
        for n in 0..=end / step {
            let x = self.x(n * step / self.scale);
            let label = Time(n * step);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
                <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{label}</text>",
                bottom + 16.0
            );
        }
    }

    fn row(&self, out: &mut String, task: usize) {
        let row = &self.timeline.rows[task];
        let base = TOP + task as f64 * ROW + ROW - 8.0;
        let _ = writeln!(out, "<line x1=\"{LEFT}\" y1=\"{base}\" x2=\"{:.1}\" y2=\"{base}\" stroke=\"#000\"/>\
            <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
            <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"10\" fill=\"#555\">{}</text>",
            LEFT + self.width, LEFT - 8.0, base - 12.0, escape(&row.name), LEFT - 8.0, base + 1.0, cores(&row.cores));
        for job in self.timeline.jobs.iter().filter(|j| j.task == task) {
            self.job(out, job, base, FILLS[task % FILLS.len()]);
        }
        for &(from, to) in &row.throttled {
            let _ = writeln!(out, "<rect x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{BOX}\" fill=\"url(#throttled)\"/>",
                self.x(from), base - BOX, (self.x(to) - self.x(from)).max(0.4));
        }
    }

    fn job(&self, out: &mut String, job: &Job, base: f64, fill: &str) {
        let missed = job.missed();
        for &(from, to) in &job.runs {
            let (x, width) = (self.x(from), (self.x(to) - self.x(from)).max(0.3));
            let top = base - BOX;
            // An outline would hide what is thinner than itself.
            let line = match (missed, width < 1.5) {
                (true, _) => format!("stroke=\"{MISS}\" stroke-width=\"2\""),
                (false, true) => "stroke=\"none\"".to_owned(),
                (false, false) => "stroke=\"#000\" stroke-width=\"0.8\"".to_owned(),
            };
            let _ = writeln!(out, "<rect x=\"{x:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{BOX}\" fill=\"{fill}\" {line}/>");
            if missed {
                let _ = writeln!(out, "<path d=\"M{x:.2} {top:.1}L{:.2} {base:.1}M{x:.2} {base:.1}L{:.2} {top:.1}\" stroke=\"{MISS}\" stroke-width=\"1.2\"/>",
                    x + width, x + width);
            }
        }
        let Some(deadline) = job.deadline_ps else {
            return;
        };
        let x = self.x(job.release_ps);
        let tip = base - BOX - 18.0;
        // A deadline that is the next release too stands a little before it.
        let _ = writeln!(out, "<path d=\"M{x:.2} {base:.1}V{tip:.1}M{:.2} {:.1}L{x:.2} {tip:.1}L{:.2} {:.1}\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"/>",
            x - 3.5, tip + 6.0, x + 3.5, tip + 6.0);
        if deadline > self.timeline.end_ps {
            return;
        }
        let x = self.x(deadline) - 2.0;
        let tip_down = base - 1.0;
        let _ = writeln!(out, "<path d=\"M{x:.2} {tip:.1}V{tip_down:.1}M{:.2} {:.1}L{x:.2} {tip_down:.1}L{:.2} {:.1}\" fill=\"none\" stroke=\"#555\" stroke-width=\"1.3\" stroke-dasharray=\"4 2\"/>",
            x - 3.5, tip_down - 6.0, x + 3.5, tip_down - 6.0);
        if missed {
            let y = tip - 3.0;
            let _ = writeln!(
                out,
                "<path d=\"M{:.2} {:.1}l9 9m0 -9l-9 9\" stroke=\"{MISS}\" stroke-width=\"2.6\"/>",
                x - 4.5,
                y - 4.5
            );
        }
    }

    fn key(&self, out: &mut String, y: f64) {
        let mut x = LEFT;
        let mut say = |out: &mut String, mark: String, text: &str, width: f64| {
            let _ = writeln!(out, "<g transform=\"translate({x:.0} {y:.0})\">{mark}<text x=\"18\" y=\"4\" fill=\"#333\">{text}</text></g>");
            x += width;
        };
        say(out, "<path d=\"M6 9V-8M2.5 -2L6 -8L9.5 -2\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"/>".to_owned(), "release", 80.0);
        say(out, "<path d=\"M6 -8V9M2.5 3L6 9L9.5 3\" fill=\"none\" stroke=\"#555\" stroke-width=\"1.3\" stroke-dasharray=\"4 2\"/>".to_owned(), "deadline", 84.0);
        say(out, "<rect x=\"0\" y=\"-6\" width=\"13\" height=\"12\" fill=\"#56b4e9\" stroke=\"#000\" stroke-width=\"0.8\"/>".to_owned(), "executes", 88.0);
        say(out, format!("<rect x=\"0\" y=\"-6\" width=\"13\" height=\"12\" fill=\"#fff\" stroke=\"{MISS}\" stroke-width=\"2\"/><path d=\"M0 -6l13 12m0 -12l-13 12\" stroke=\"{MISS}\" stroke-width=\"1.2\"/>"), "in vain: the job misses", 170.0);
        say(
            out,
            format!("<path d=\"M2 -5l9 9m0 -9l-9 9\" stroke=\"{MISS}\" stroke-width=\"2.6\"/>"),
            "missed deadline",
            132.0,
        );
        if self.timeline.rows.iter().any(|r| !r.throttled.is_empty()) {
            say(out, "<rect x=\"0\" y=\"-6\" width=\"13\" height=\"12\" fill=\"url(#throttled)\" stroke=\"#000\" stroke-width=\"0.5\"/>".to_owned(), "throttled", 90.0);
        }
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{End, Row};

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
