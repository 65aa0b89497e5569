//! Prints what page colours by address bits buy.

use anyhow::Result;
use soloist_cli::table;
use soloist_map::silicon::pages::{Size, Split};

/// A table of all splits, and a sentence for each that is shown.
pub(super) fn print(splits: &[Split]) -> Result<()> {
    let Some(first) = splits.first() else {
        return Ok(());
    };
    outln!(
        "ns of an access, beside {} that write as much as the cache holds:\n",
        first.neighbours
    )?;
    let mut table = table([
        "BITS",
        "MiB",
        "SPREAD",
        "PRIVATE",
        "SAVED, 99 %",
        "OTHERS LOSE",
    ]);
    for split in splits {
        let bits: Vec<String> = split.bits.iter().map(u32::to_string).collect();
        let by = match split.size {
            Size::OfClass => "class".to_owned(),
            _ => bits.join("+"),
        };
        table.add_row([
            by,
            format!("{:.1}", split.bytes as f64 / f64::from(1 << 20)),
            format!("{:.1}", split.spread_ns),
            format!("{:.1}", split.private_ns),
            format!("{:.1} to {:.1}", split.saved.ns.low, split.saved.ns.high),
            format!(
                "{:.0} %",
                (100.0 * split.neighbours_lose.share.median).round() + 0.0
            ),
        ]);
    }
    outln!("{table}\n")?;
    if !splits.iter().any(|split| split.saved.shown) {
        outln!("Neither address bits nor classes of pages are shown to isolate anything here.")?;
    }
    for split in splits.iter().filter(|split| split.shows_anything()) {
        outln!("{}", split.verdict())?;
    }
    Ok(())
}
