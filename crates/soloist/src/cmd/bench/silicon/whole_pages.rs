//! Prints what page colours buy.

use anyhow::Result;
use soloist_bench::pages::{By, Split};
use soloist_cli::table;

/// A table of all splits, and a sentence for each that is shown.
pub(super) fn print(splits: &[Split]) -> Result<()> {
    if splits.is_empty() {
        return Ok(());
    }
    outln!(
        "\nWhole pages, caches included: ns of an access (p99, p99.9 of single ones), beside co-runners on \
         as much as the cache holds:\n"
    )?;
    let mut table = table([
        "PAGES BY",
        "MiB",
        "CO-RUNNERS",
        "SPREAD",
        "PRIVATE",
        "SAVED, 99 %",
        "OTHERS LOSE",
    ]);
    for split in splits {
        table.add_row([
            name(&split.by),
            format!("{:.1}", split.bytes as f64 / f64::from(1 << 20)),
            split.attack.neighbours(split.neighbours),
            split.spread.words(),
            split.private.words(),
            format!("{:.1} to {:.1}", split.saved.ns.low, split.saved.ns.high),
            split.neighbours_lose.percent(),
        ]);
    }
    outln!("{table}\n")?;
    if !splits.iter().any(|split| split.saved.shown) {
        outln!("Nothing that divides pages is shown to isolate anything here.")?;
    }
    for split in splits.iter().filter(|split| split.shows_anything()) {
        outln!("{}", split.verdict())?;
    }
    Ok(())
}

fn name(by: &By) -> String {
    match by {
        By::Bits(bits) => {
            let bits: Vec<String> = bits.iter().map(u32::to_string).collect();
            format!("bit {}", bits.join("+"))
        }
        By::Class => "class".to_owned(),
        By::Banks => "banks".to_owned(),
        By::ClassAndBanks => "class, banks".to_owned(),
    }
}
