//! Prints what another channel adds to private banks.

use anyhow::Result;
use soloist_bench::channels::{Channels, Side};
use soloist_cli::table;

/// A table of the functions that choose the channel, and of what else is shown.
pub(super) fn print(channels: &Channels) -> Result<()> {
    let rows: Vec<&Side> = channels.told().collect();
    if rows.is_empty() {
        return Ok(());
    }
    outln!(
        "Co-runners in other banks, on the victim's side of a function and on the other side; an access \
         alone takes {:.0} ns:\n",
        channels.alone_ns
    )?;
    let mut table = table([
        "FUNCTION",
        "CO-RUNNERS",
        "SAME SIDE",
        "OTHER SIDE",
        "SAVED, 99 %",
        "OTHERS LOSE",
    ]);
    for side in rows {
        table.add_row([
            side.function.clone(),
            side.attack.neighbours(channels.neighbours),
            side.near.words(),
            side.far.words(),
            format!("{:.1} to {:.1}", side.saved.ns.low, side.saved.ns.high),
            side.neighbours_lose.percent(),
        ]);
    }
    outln!("{table}\n")
}
