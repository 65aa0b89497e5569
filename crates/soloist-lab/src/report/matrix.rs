//! Who waits for whom, as a picture: a panel for each case, a row for each task
//! that was waited for, a column for each culprit.

use std::fmt::Write as _;

use crate::judgement::Answer;

const CELL: usize = 92;
const ROW: usize = 34;
const LEFT: usize = 190;

/// The picture as SVG; cells hold ns and are the darker the larger their share
/// of the task's time alone.
pub fn matrix(answers: &[Answer], name: impl Fn(&Answer) -> String) -> String {
    let mut culprits: Vec<String> = answers
        .iter()
        .flat_map(|a| a.beyond.culprits())
        .map(|(who, _)| who)
        .collect();
    culprits.sort();
    culprits.dedup();
    let width = LEFT + CELL * (culprits.len() + 2) + 10;
    let height = 60 + ROW * answers.len();
    let mut svg = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">microseconds beyond its time alone that a task waited for</text>\n"
    );
    let heads = culprits
        .iter()
        .map(String::as_str)
        .chain(["nobody", "in all"]);
    for (i, head) in heads.enumerate() {
        let x = LEFT + CELL * i + CELL / 2;
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"44\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
            super::escape(head)
        );
    }
    for (i, answer) in answers.iter().enumerate() {
        row(&mut svg, 56 + ROW * i, answer, &culprits, &name(answer));
    }
    svg.push_str("</svg>\n");
    svg
}

fn row(svg: &mut String, y: usize, answer: &Answer, culprits: &[String], name: &str) {
    let beyond = &answer.beyond;
    let total = beyond.total_ns();
    let alone = (answer.time_ms * 1e6 - total).max(1.0);
    let mut values: Vec<f64> = culprits.iter().map(|c| beyond.of_culprit(c)).collect();
    values.push(total - values.iter().sum::<f64>());
    values.push(total);
    let text_y = y + ROW / 2 + 5;
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\">{}</text>",
        LEFT - 8,
        super::escape(name)
    );
    for (i, ns) in values.iter().enumerate() {
        let x = LEFT + CELL * i;
        let share = (ns / alone).clamp(0.0, 1.0).sqrt();
        // From white to the blue of the palette for the colour-blind.
        let mix = |full: f64| (255.0 - (255.0 - full) * share) as u8;
        let ink = if share > 0.6 { "white" } else { "black" };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"rgb({},{},{})\" \
             stroke=\"#ddd\"/><text x=\"{}\" y=\"{text_y}\" text-anchor=\"middle\" \
             fill=\"{ink}\">{:.1}</text>",
            CELL - 4,
            ROW - 4,
            mix(0.0),
            mix(90.0),
            mix(160.0),
            x + CELL / 2 - 2,
            ns / 1000.0
        );
    }
}
