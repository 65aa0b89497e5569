//! The table that a newcomer reads; 80 columns.

use std::fmt::Write;

use crate::{Pair, Placement};

const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One program: where its pages were, as it is and under `soloist run`.
pub fn show(pair: &Pair, sets_of_nodes: &[Vec<u32>]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}: {}", pair.name, pair.about);
    let _ = writeln!(text, "  $ soloist run {} -- {} ...", pair.colors, pair.name);
    let mut head = format!("  {:<13}{:>8}", "pages", "in all");
    for node in 0..sets_of_nodes.len() {
        let _ = write!(head, "{:>9}", format!("node {node}"));
    }
    let _ = writeln!(text, "{head}{:>11}", "in colour");
    for (name, run) in [("as it is", &pair.without), ("with Soloist", &pair.with)] {
        let place = &run.placement;
        let _ = write!(text, "  {name:<13}{:>8}", place.pages);
        for node in 0..sets_of_nodes.len() as u32 {
            let _ = write!(text, "{:>9}", place.by_node.get(&node).unwrap_or(&0));
        }
        let share = if name == "as it is" {
            "-".to_owned()
        } else {
            format!("{:.1} %", place.share())
        };
        let _ = writeln!(text, "{share:>11}");
    }
    let _ = writeln!(text, "  pages in each bank set, node by node:");
    for (name, run) in [("as it is", &pair.without), ("with Soloist", &pair.with)] {
        let _ = writeln!(text, "  {name:<13}{}", bars(&run.placement, sets_of_nodes));
    }
    let same = if pair.without.result == pair.with.result {
        "identical"
    } else {
        "DIFFERENT"
    };
    let _ = writeln!(
        text,
        "  results {same}; {} process(es), {} thread(s)",
        pair.with.placement.processes, pair.with.placement.threads
    );
    let rest: Vec<String> = pair
        .with
        .placement
        .not_in_color
        .iter()
        .map(|(reason, pages)| format!("{pages} {reason}"))
        .collect();
    if !rest.is_empty() {
        let _ = writeln!(text, "  not in colour: {}", rest.join(", "));
    }
    text.push('\n');
    text
}

fn bars(place: &Placement, sets_of_nodes: &[Vec<u32>]) -> String {
    let pages = |set: &u32| place.by_bank_set.get(set).copied().unwrap_or(0);
    let most = sets_of_nodes
        .iter()
        .flatten()
        .map(pages)
        .max()
        .unwrap_or(0)
        .max(1);
    let bar = |set: &u32| match pages(set) {
        0 => BARS[0],
        n => BARS[(n * 8).div_ceil(most) as usize],
    };
    let nodes: Vec<String> = sets_of_nodes
        .iter()
        .map(|sets| sets.iter().map(bar).collect())
        .collect();
    nodes.join(" ")
}

/// What it all showed, and what to type next.
pub fn summary(pairs: &[Pair]) -> String {
    let good = pairs.iter().filter(|pair| pair.good()).count();
    let mut text = format!(
        "{good} of {} programs: same result, all pages of their own in the colours given.\n",
        pairs.len()
    );
    for pair in pairs.iter().filter(|pair| !pair.good()) {
        let stray = pair.with.placement.stray;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {}: {stray} pages of its own out of colour",
            pair.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_none_some_and_most() {
        let place = Placement {
            by_bank_set: [(0, 800), (1, 1), (3, 400)].into(),
            ..Placement::default()
        };
        assert_eq!(bars(&place, &[vec![0, 1], vec![2, 3]]), "█▁ ·▄");
    }
}
