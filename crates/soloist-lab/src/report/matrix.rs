//! Who waits for whom, as a picture: a panel for each case, a row for each task
//! that was waited for, a column for each culprit.

use maud::{html, Markup};

use crate::judgement::Answer;

const CELL: usize = 92;
const ROW: usize = 34;
const LEFT: usize = 190;

/// The picture as SVG; cells hold ns and are the darker the larger their share
/// of the task's time alone.
pub fn matrix(answers: &[Answer], name: impl Fn(&Answer) -> String) -> Markup {
    let mut culprits: Vec<String> = answers
        .iter()
        .flat_map(|a| a.beyond.culprits())
        .map(|(who, _)| who)
        .collect();
    culprits.sort();
    culprits.dedup();
    let width = LEFT + CELL * (culprits.len() + 2) + 10;
    let height = 60 + ROW * answers.len();
    let heads = culprits
        .iter()
        .map(String::as_str)
        .chain(["nobody", "in all"]);
    html! {
        svg width=(width) height=(height) viewBox={"0 0 " (width) " " (height)}
            xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" {
            "\n" rect width=(width) height=(height) fill="white" {}
            "\n" text x=(LEFT) y="18" {
                "microseconds beyond its time alone that a task waited for"
            }
            @for (i, head) in heads.enumerate() {
                "\n" text x=(LEFT + CELL * i + CELL / 2) y="44" text-anchor="middle"
                    font-weight="bold" { (head) }
            }
            @for (i, answer) in answers.iter().enumerate() {
                (row(56 + ROW * i, answer, &culprits, &name(answer)))
            }
            "\n"
        }
        "\n"
    }
}

fn row(y: usize, answer: &Answer, culprits: &[String], name: &str) -> Markup {
    let beyond = &answer.beyond;
    let total = beyond.total_ns();
    let alone = (answer.time_ms * 1e6 - total).max(1.0);
    let mut values: Vec<f64> = culprits.iter().map(|c| beyond.of_culprit(c)).collect();
    values.push(total - values.iter().sum::<f64>());
    values.push(total);
    let text_y = y + ROW / 2 + 5;
    html! {
        "\n" text x=(LEFT - 8) y=(text_y) text-anchor="end" { (name) }
        @for (i, ns) in values.iter().enumerate() {
            @let x = LEFT + CELL * i;
            @let share = (ns / alone).clamp(0.0, 1.0).sqrt();
            "\n" rect x=(x) y=(y) width=(CELL - 4) height=(ROW - 4) fill=(blue(share))
                stroke="#ddd" {}
            text x=(x + CELL / 2 - 2) y=(text_y) text-anchor="middle"
                fill=(if share > 0.6 { "white" } else { "black" }) {
                (format!("{:.1}", ns / 1000.0))
            }
        }
    }
}

/// From white, of 0, to the blue of the palette for the colour-blind, of 1.
fn blue(share: f64) -> String {
    let mix = |full: f64| (255.0 - (255.0 - full) * share) as u8;
    format!("rgb({},{},{})", mix(0.0), mix(90.0), mix(160.0))
}
