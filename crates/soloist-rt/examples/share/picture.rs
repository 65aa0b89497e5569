//! Lines over utilisation, told apart by colour, dash and mark.

use std::fmt::Write;

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
    let last = points.last().map_or(1.0, |p| p.utilisation);
    let x = |u: f64| LEFT + WIDTH * u / last;
    let y = |share: f64| TOP + HEIGHT * (1.0 - share);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 780 340\" width=\"780\" height=\"340\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">processor time of tasks with deadlines, cores</text>\n",
        LEFT + WIDTH / 2.0,
        TOP + HEIGHT + 40.0
    );
    for n in 0..=4 {
        let (share, at) = (f64::from(n) / 4.0, last * f64::from(n) / 4.0);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {0:.1}h{WIDTH}\" stroke=\"#ddd\"/><text x=\"{1:.0}\" y=\"{2:.1}\" text-anchor=\"end\">{3:.0} %</text>\
             <text x=\"{4:.1}\" y=\"{5:.0}\" text-anchor=\"middle\">{at}</text>",
            y(share),
            LEFT - 6.0,
            y(share) + 4.0,
            share * 100.0,
            x(at),
            TOP + HEIGHT + 18.0
        );
    }
    for (i, isolation) in Isolation::ALL.into_iter().enumerate() {
        let (color, dash, mark) = STYLES[i];
        let path: Vec<String> = points
            .iter()
            .map(|p| format!("{:.1} {:.1}", x(p.utilisation), y(p.proved[i])))
            .collect();
        let _ = writeln!(
            out,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
            path.join("L")
        );
        let key = TOP + 20.0 + 22.0 * i as f64;
        // Where lines lie on each other, each has its marks at other places.
        let marks = points.iter().skip(i).step_by(6);
        let marks = marks.map(|p| (x(p.utilisation), y(p.proved[i])));
        for (x, y) in marks.chain([(LEFT + WIDTH + 30.0, key)]) {
            let _ = writeln!(out, "<path d=\"{mark}\" transform=\"translate({x:.1} {y:.1})\" fill=\"#fff\" stroke=\"{color}\" stroke-width=\"2\"/>");
        }
        let _ = writeln!(
            out,
            "<path d=\"M{:.0} {key}h36\" stroke=\"{color}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/><text x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            LEFT + WIDTH + 12.0,
            LEFT + WIDTH + 54.0,
            key + 4.0,
            isolation.name()
        );
    }
    out.push_str("</svg>\n");
    out
}
