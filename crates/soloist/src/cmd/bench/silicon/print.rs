//! Prints what was found, for people.

use anyhow::Result;
use soloist_bench::cores::Attack;
use soloist_bench::in_slices::InSlices;
use soloist_bench::report::Report;
use soloist_bench::slices::{Cell, Figures};
use soloist_bench::two_banks::Cost;
use soloist_host::machine::Host;

use super::{channels, paced, whole_pages};
use soloist_cli::table;

/// All of it.
pub(super) fn print(report: &Report) -> Result<()> {
    let inside = match report.virtual_machine {
        true => ", a virtual machine",
        false => "",
    };
    outln!("{}{inside}", report.machine)?;
    if let Some(why) = report.why_nothing() {
        return outln!("Nothing can be measured: {why}.");
    }
    print_two_banks(report)?;
    if let Some(why) = &report.slices_why {
        outln!("No slices of few banks: {why}.")?;
    }
    if let Some(slices) = &report.slices {
        print_slices(slices)?;
    }
    if let Some(why) = &report.pages_why {
        outln!("No whole pages: {why}.")?;
    }
    if let Some(why) = &report.cache_why {
        outln!("Page colours of the last-level cache are not known: {why}.")?;
    }
    if let Some(cache) = &report.cache {
        outln!("{}", cache.verdict())?;
    }
    whole_pages::print(&report.pages)
}

fn print_slices(slices: &InSlices) -> Result<()> {
    match slices.functions.as_slice() {
        [] => outln!(
            "\n{}, but no function inside a huge page tells which pairs: channels come from a division, \
             or the host makes huge pages of small ones. So 16 banks were found pair by pair.",
            match slices.banks {
                Some(banks) => format!("About {banks:.0} banks by how often random pairs conflict"),
                None => "Some pairs of lines conflict, of nobody knows how many banks".to_owned(),
            }
        )?,
        functions => outln!(
            "\n{} banks by functions {} inside a huge page, and a class for each page.",
            slices.banks.unwrap_or_default(),
            functions.join(", ")
        )?,
    }
    outln!("ns of an access (p99, p99.9 of single ones), and MB/s of all co-runners:\n")?;
    let mut table = table([
        "BANKS",
        "CO-RUNNERS",
        "ALONE",
        "SHARED",
        "PRIVATE",
        "SAME",
        "MB/s SHARED, PRIVATE",
    ]);
    for cell in &slices.cells {
        table.add_row(row(cell));
    }
    outln!("{table}\n")?;
    let blocks = slices
        .cells
        .iter()
        .map(|cell| cell.blocks)
        .min()
        .unwrap_or(0);
    let dropped: usize = slices.cells.iter().map(|cell| cell.dropped).sum();
    outln!(
        "medians of {blocks} blocks or more; {dropped} were dropped, since a co-runner hardly ran\n"
    )?;
    slices.paced.iter().try_for_each(paced::print)?;
    slices.channels.iter().try_for_each(channels::print)?;
    for sentence in slices.sentences() {
        outln!("{sentence}")?;
    }
    Ok(())
}

fn row(cell: &Cell) -> [String; 7] {
    let rate = |figures: &Figures| figures.neighbours_bytes_per_second / 1e6;
    let pages = if cell.by_pages { ", by page" } else { "" };
    [
        format!("{}{pages}", cell.banks),
        cell.attack.neighbours(cell.neighbours),
        cell.alone.words(),
        cell.shared.words(),
        cell.private.words(),
        cell.same.words(),
        format!("{:.0}, {:.0}", rate(&cell.shared), rate(&cell.private)),
    ]
}

/// One neighbour, in the same bank or another.
fn print_two_banks(report: &Report) -> Result<()> {
    if let Some((victim, neighbour)) = report.cpus.filter(|_| report.sets.is_some()) {
        outln!("victim on CPU {victim}, co-runner on {neighbour}")?;
    }
    if let Some(sets) = &report.sets {
        outln!(
            "pairs of lines take {:.0} {unit}, in two rows of one bank {:.0} (spread {:.1})",
            sets.levels.fast,
            sets.levels.slow,
            sets.levels.sigma,
            unit = report.unit
        )?;
        outln!(
            "measured once more: {} of {} pairs of one bank conflict, {} of {} of two",
            sets.within,
            sets.checked,
            sets.across,
            sets.checked
        )?;
    }
    if let Some(why) = &report.why {
        outln!("Nothing can be measured with two banks: {why}.")?;
        if report.page_bytes == Host::live().page_size().bytes() {
            outln!(
                "The kernel gave no huge pages (echo madvise >/sys/kernel/mm/transparent_hugepage/enabled)."
            )?;
        }
        return Ok(());
    }
    let Some(measured) = &report.measured else {
        return Ok(());
    };
    let mut table = table([
        "CO-RUNNER",
        "SAME BANK ns",
        "OTHER BANK ns",
        "ITS ACCESSES a µs",
        "ADDED ns (99 %)",
        "CHANCE",
    ]);
    table.add_row([
        "none".to_owned(),
        format!("{:.1}", measured.alone_ns),
        format!("{:.1}", measured.alone_ns),
    ]);
    for cost in &measured.costs {
        table.add_row([
            name(cost.attack).to_owned(),
            format!("{:.1}", cost.same_ns),
            format!("{:.1}", cost.other_ns),
            format!("{:.1}, {:.1}", cost.same_rate, cost.other_rate),
            format!(
                "{:+.1} ({:+.1} to {:+.1})",
                cost.added_ns.median, cost.added_ns.low, cost.added_ns.high
            ),
            format!("{:.5}", cost.chance),
        ]);
    }
    outln!("{table}")?;
    outln!(
        "medians of {} blocks; {} more were dropped, since the co-runner hardly ran",
        measured.blocks,
        measured.dropped
    )?;
    for cost in &measured.costs {
        outln!("{}", verdict(cost, measured.alone_ns))?;
    }
    Ok(())
}

fn name(attack: Attack) -> &'static str {
    match attack {
        Attack::Read => "reads",
        Attack::Write => "writes",
        Attack::Both => "reads and writes",
    }
}

/// What the figures say, in a sentence.
fn verdict(cost: &Cost, alone: f64) -> String {
    let who = format!("A co-runner that {}", name(cost.attack));
    let percent = |ns: f64| 100.0 * ns / alone;
    match (cost.shown, cost.shown_less) {
        (true, _) => format!(
            "{who}: shown, the same bank adds {:.1} % of an access alone.",
            percent(cost.added_ns.median)
        ),
        (_, true) => format!(
            "{who}: shown, the same bank takes {:.1} % of an access alone away.",
            percent(-cost.added_ns.median)
        ),
        _ => format!(
            "{who}: nothing is shown; if the same bank adds anything, it is less than {:.1} % (99 %).",
            percent(cost.added_ns.high).max(0.1)
        ),
    }
}
