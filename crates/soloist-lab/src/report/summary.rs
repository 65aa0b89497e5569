//! All predictions in one picture: our effect over the printed one, a line for
//! each, best first.

use maud::{html, Markup};

use crate::judgement::verdict::TOLERANCE;
use crate::judgement::Judged;
use crate::spec::ClaimKind;

const LEFT: f64 = 470.0;
const WIDTH: f64 = 390.0;
const ROW: f64 = 17.0;
const TOP: f64 = 46.0;
/// What is drawn of the axis: effects beyond stand at its ends.
const AXIS: (f64, f64) = (-0.5, 3.0);

/// A name that fits beside the axis; one that is cut says so.
fn shortened(name: &str) -> String {
    const MOST: usize = 72;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    let kept: String = name.chars().take(MOST - 1).collect();
    format!("{}…", kept.trim_end())
}

/// The mark of an effect: a disc, or an arrow at the end beyond which it lies.
fn mark(effect: f64, x: f64, y: f64) -> String {
    let arrow = |way: f64| format!("M{} {y}l{} -5v10z", x + 5.0 * way, -10.0 * way);
    match effect {
        e if e < AXIS.0 => arrow(-1.0),
        e if e > AXIS.1 => arrow(1.0),
        _ => format!("M{} {y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", x - 5.0),
    }
}

/// The picture as SVG; nothing where nothing is predicted.
pub fn summary(experiments: &[Judged]) -> Markup {
    let mut all: Vec<(f64, String)> = Vec::new();
    for Judged { id, verdicts } in experiments {
        for v in *verdicts {
            if v.kind == ClaimKind::Predicted && v.counts() {
                all.extend(v.effect.map(|e| (e, format!("{id}: {}", v.what))));
            }
        }
    }
    if all.is_empty() {
        return html! {};
    }
    all.sort_by(|a, b| (a.0 - 1.0).abs().total_cmp(&(b.0 - 1.0).abs()));
    let height = TOP + ROW * all.len() as f64 + 12.0;
    let full = LEFT + WIDTH + 30.0;
    let x = |effect: f64| {
        let share = (effect.clamp(AXIS.0, AXIS.1) - AXIS.0) / (AXIS.1 - AXIS.0);
        LEFT + WIDTH * share
    };
    let within = (x(1.0 - TOLERANCE), x(1.0 + TOLERANCE));
    html! {
        svg width=(full) height=(height) viewBox={"0 0 " (full) " " (height)}
            xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" {
            "\n" rect width=(full) height=(height) fill="white" {}
            "\n" rect x=(within.0) y=(TOP) width=(within.1 - within.0)
                height=(ROW * all.len() as f64) fill="#cde5f5" {}
            "\n" text x=(full - 10.0) y="16" text-anchor="end" font-size="13" {
                "effect, ours over the printed one (shaded: within 15 %; 0: no effect; arrows: beyond)"
            }
            @for tick in [0.0, 0.5, 1.0, 1.5, 2.0, 2.5] {
                "\n" line x1=(x(tick)) x2=(x(tick)) y1=(TOP) y2=(height - 12.0) stroke="#bbb" {}
                text x=(x(tick)) y="38" text-anchor="middle" { (tick) }
            }
            @for (i, (effect, name)) in all.iter().enumerate() {
                @let y = TOP + ROW * (i as f64 + 0.5);
                @let inside = (effect - 1.0).abs() <= TOLERANCE;
                "\n" text x=(LEFT - 10.0) y=(y + 4.0) text-anchor="end" font-size="11" {
                    (shortened(name))
                }
                path d=(mark(*effect, x(*effect), y))
                    fill=(if inside { "#0072b2" } else { "#d55e00" }) {}
            }
            "\n"
        }
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::{mark, shortened};

    #[test]
    fn what_lies_beyond_the_axis_is_an_arrow() {
        assert_eq!(mark(1.0, 20.0, 9.0), "M15 9a5 5 0 1 0 10 0a5 5 0 1 0 -10 0");
        assert_eq!(mark(-9.0, 20.0, 9.0), "M15 9l10 -5v10z");
        assert_eq!(mark(9.0, 20.0, 9.0), "M25 9l-10 -5v10z");
    }

    #[test]
    fn a_name_that_is_cut_says_so() {
        assert_eq!(shortened("camc-table-4: gain"), "camc-table-4: gain");
        let cut = shortened(&"µ ".repeat(50));
        assert!(cut.ends_with("µ…") && cut.chars().count() <= 72, "{cut}");
    }
}
